"""Figure 10 of paper 001: η, which sets the unit of length, and with fixed steps affects the optimisation."""

from __future__ import annotations

from typing import Any

import common
import numpy as np
from experiment import Ledger, Task, minus, remaining_gain, scores
from panels import draw_maps
from scipy.spatial import procrustes
from verdicts import Verdict, lower, mean_error, with_gain

import equipoise as eq

TITLE = "Paper 001, Fig. 10: η"
ETAS = (5.0, 1.0, 0.1, 0.075)
ALPHA, BETA = -0.5, 3.0
RATE = 500.0  # of the paper's program
COLUMN = "mnist-3k"  # the paper does not state the number of rows
SEEDS = (0, 1, 2, 3)  # draws
SAME = 0.95  # R² from which two maps are the same


def in_units(eta: float, n: int, seed: int) -> Any:
    """Return g-SNE with the library's defaults: start and steps in units of the kernel's length η^(1/β)."""
    return eq.GSNE(alpha=ALPHA, beta=BETA, eta=eta)


def as_published(eta: float, n: int, seed: int) -> Any:
    """Return g-SNE with start, learning rate and exaggeration independent of η, as in the paper's program."""
    start = np.random.RandomState(seed).standard_normal((n, 2))
    return eq.GSNE(alpha=ALPHA, beta=BETA, eta=eta, init=start, learning_rate=RATE, early_exaggeration=4.0)


VARIANTS = {"start and steps in units of the kernel": in_units, "start and steps fixed": as_published}


def measure(task: Task, ledger: Ledger) -> None:
    def run(seed: int) -> dict[str, Any]:
        rows = task.source.draw(COLUMN, seed)
        found: dict[str, Any] = {}
        titled = []
        for variant, make in VARIANTS.items():
            models = [task.fit(make(eta, len(rows.X), seed), rows.X, seed) for eta in ETAS]
            maps = [np.asarray(model.embedding_, dtype=np.float64) for model in models]
            found[variant] = []
            for eta, Y, model in zip(ETAS, maps, models, strict=True):
                same = 1 - procrustes(maps[1], Y)[2]
                width = float(np.sqrt((Y**2).mean())) / eta ** (1 / BETA)
                scored = {**scores(Y, rows.labels), "same": same, "width": width, "gain": remaining_gain(model)}
                found[variant].append(scored)
                titled.append((f"η = {eta:g}: {scored['error']:.1%}", Y))
        if seed == SEEDS[0]:
            draw_maps(titled, [rows.labels] * len(titled), task.picture("fig10"), columns=len(ETAS))
        return found

    for seed in task.few(SEEDS, 1):
        ledger.get(str(seed), lambda seed=seed: run(seed))


def series(values: dict[str, Any], variant: str, score: str) -> np.ndarray:
    """Return a score of a variant, one row per draw and one column per η."""
    return np.array([[one[score] for one in found[variant]] for found in values.values()])


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        f"g-SNE, α = {minus(ALPHA)}, β = {BETA:g}; {task.source.title(COLUMN)}. 1/(η + r^β) is 1/(1 +"
        " (r/η^(1/β))^β) up to a factor that cancels in Q: η is a unit of length, and the minima of the loss are the"
        " same for every η, up to scale. That holds for eq. 13. In the paper's program Q is (r + η)^(−β), and η"
        " changes the ratio of attraction and repulsion itself (section `program`); besides, its start and learning"
        " rate are fixed while the unit changes. Claim of the paper: as η decreases, clusters separate more strongly"
        " (an earlier version of this page tested the opposite). First row of the picture: start and steps in"
        " units of the kernel, the library's default. Second row: a start with standard deviation 1 and a"
        f" learning rate of {RATE:g} at every η, exaggeration 4, as in the paper's program. R² is the Procrustes"
        f" R² with the map at η = 1. Mean ± standard error over {len(SEEDS)} draws; pictures of the first.",
        "",
    ]
    rows = []
    for variant in VARIANTS:
        shown = (("error", 100, ".2f"), ("silhouette", 1, ".3f"), ("cover", 100, ".1f"), ("same", 1, ".4f"))
        for i, eta in enumerate(ETAS):
            cells = [mean_error(scale * series(values, variant, s)[:, i], form) for s, scale, form in shown]
            cells += [mean_error(series(values, variant, "width")[:, i])]
            rows.append([variant, f"{eta:g}", *cells, f"{series(values, variant, 'gain')[:, i].max():.2%}"])
    head = [
        "",
        "η",
        "1-NN error, %",
        "silhouette of the classes",
        "cover, %",
        "R²",
        "spread of the map / η^(1/β)",
        "gain",
    ]
    return [*lines, *common.table(head, rows), "", f"![Maps]({task.folder.name}/fig10.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    found = []
    for variant, claim in zip(
        VARIANTS,
        ("under eq. 13, η changes the map", "under eq. 13 with fixed start and steps, η changes the map"),
        strict=True,
    ):
        least = series(values, variant, "same").min(axis=1)
        gains = series(values, variant, "gain").ravel()
        evidence = f"{len(least)} draws: R² with the map at η = 1 at least {mean_error(least, '.3f')}; changed is below"
        word = with_gain(lower(least - SAME, "R²"), gains)
        found.append(Verdict("001 Fig. 10", claim, word, f"{evidence} {SAME:g}"))
    cover = 100 * series(values, "start and steps fixed", "cover")
    small, large = cover[:, ETAS.index(0.1)], cover[:, ETAS.index(1.0)]
    evidence = f"{len(small)} draws, cover in %: {mean_error(small, '.1f')} against {mean_error(large, '.1f')}"
    claim = "a smaller η gives tighter clusters (0.1 less 1), eq. 13 with fixed start and steps, α = −0.5, β = 3"
    gains = series(values, "start and steps fixed", "gain")[:, 1:3].ravel()
    found.append(Verdict("001 Fig. 10", claim, with_gain(lower(small - large, "cover"), gains), evidence))
    return found
