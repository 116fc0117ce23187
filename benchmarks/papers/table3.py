"""Table 3 of paper 001: the α-divergence between p = exp(−r²/30) and q = 1/(1 + r²) at the same distances."""

from __future__ import annotations

from typing import Any

import common
import numpy as np
from experiment import Ledger, Task, minus, trend
from scipy.spatial.distance import pdist
from verdicts import Verdict

from equipoise.divergences import Alpha

TITLE = "Paper 001, Table 3: the loss under several α"
ALPHAS = (0.5, 0.0, -0.5, -1.0, -1.5, -2.0, -3.0)
# The paper does not state the distances r_ij of its example; these are of 500 points in a disk of each radius.
RADII = (3.0, 6.0, 12.0)
POINTS = 500
LINE = "the integers 0 to 10 on a line, normalised"


def affinities(radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Return p(r) and q(r) of all pairs of points drawn uniformly in a disk."""
    rng = np.random.RandomState(0)
    angle, r = rng.uniform(0, 2 * np.pi, POINTS), radius * np.sqrt(rng.uniform(size=POINTS))
    d2 = pdist(np.column_stack([r * np.cos(angle), r * np.sin(angle)])) ** 2
    return np.exp(-d2 / 30), 1 / (1 + d2)


def losses(p: np.ndarray, q: np.ndarray) -> list[float]:
    """Return Σ p f_α(q/p) for each α."""
    return [float((p * Alpha(alpha).value(q / p)).sum()) for alpha in ALPHAS]


def measure(task: Task, ledger: Ledger) -> None:
    d2 = pdist(np.arange(11.0)[:, None]) ** 2
    p, q = np.exp(-d2 / 30), 1 / (1 + d2)
    ledger.get(LINE, lambda: losses(p / p.sum(), q / q.sum()))
    for radius in RADII:
        p, q = affinities(radius)
        ledger.get(f"disk of radius {radius:g}, normalised", lambda p=p, q=q: losses(p / p.sum(), q / q.sum()))
        ledger.get(f"disk of radius {radius:g}, as they are, a pair", lambda p=p, q=q: losses(p / len(p), q / len(p)))


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "The paper's numbers are missing from our copy of the text, and it does not state the distances of its"
        f" example; here they are those of all pairs of {POINTS} points, uniform in a disk of each radius. Claim of"
        " the paper: the loss increases as α decreases. By f″ = t^((α−3)/2) the value f_α(t) increases as α decreases"
        " if t = q/p < 1, and decreases if t > 1. So the claim holds for p and q as given in the caption, since q < p"
        " up to r = 12.3; for distributions, each of which must exceed the other somewhere (eq. 10, 11), either"
        " effect may prevail: on the integers 0 to 10 of a line it increases, in disks it does not.",
        "",
    ]
    rows = [
        [name, *(f"{loss:.4f}" for loss in found), "yes" if trend(found) == "rises" else f"**no**: {trend(found)}"]
        for name, found in values.items()
    ]
    return [*lines, *common.table(["points", *(f"α = {minus(a)}" for a in ALPHAS), "increases as α decreases"], rows)]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    rising = [name for name, found in values.items() if trend(found) == "rises"]
    normal = [name for name in values if name.endswith("normalised")]
    line = values[LINE]
    evidence = (
        f"increases on the integers 0 to 10 of a line ({min(line):.3f} to {max(line):.3f}); among the"
        f" {len(normal)} normalised examples on {len([name for name in normal if name in rising])}"
    )
    return [Verdict("001 Table 3", "the loss increases as α decreases", "depends on the distances", evidence)]
