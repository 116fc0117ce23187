"""Figure 10 of paper 001: η, which sets the unit of length, and with fixed steps affects the optimisation."""

from __future__ import annotations

from typing import Any

import common
import numpy as np
from experiment import Ledger, Task, minus, scores
from panels import draw_maps
from scipy.spatial import procrustes
from verdicts import Verdict

import equipoise as eq

TITLE = "Paper 001, Fig. 10: η"
ETAS = (5.0, 1.0, 0.1, 0.075)
ALPHA, BETA = -0.5, 3.0
RATE = 500.0  # of the paper's program
SEED = 0


def in_units(eta: float, n: int) -> Any:
    """Return g-SNE with the library's defaults: start and steps in units of the kernel's length η^(1/β)."""
    return eq.GSNE(alpha=ALPHA, beta=BETA, eta=eta)


def as_published(eta: float, n: int) -> Any:
    """Return g-SNE with start, learning rate and exaggeration independent of η, as in the paper's program."""
    start = np.random.RandomState(SEED).standard_normal((n, 2))
    return eq.GSNE(alpha=ALPHA, beta=BETA, eta=eta, init=start, learning_rate=RATE, early_exaggeration=4.0)


VARIANTS = {"start and steps in units of the kernel": in_units, "start and steps fixed": as_published}


def measure(task: Task, ledger: Ledger) -> None:
    def run() -> dict[str, Any]:
        rows = task.source.draw("mnist-6k", SEED)
        found: dict[str, Any] = {}
        titled = []
        for variant, make in VARIANTS.items():
            maps = [task.embed(make(eta, len(rows.X)), rows.X, SEED) for eta in ETAS]
            found[variant] = []
            for eta, Y in zip(ETAS, maps, strict=True):
                same = 1 - procrustes(maps[1], Y)[2]
                width = float(np.sqrt((Y**2).mean())) / eta ** (1 / BETA)
                found[variant].append({**scores(Y, rows.labels), "same": same, "width": width})
                titled.append((f"η = {eta:g}: {found[variant][-1]['error']:.1%}", Y))
        draw_maps(titled, [rows.labels] * len(titled), task.picture("fig10"), columns=len(ETAS))
        return found

    ledger.get("eta", run)


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        f"g-SNE, α = {minus(ALPHA)}, β = {BETA:g}; {task.source.title('mnist-6k')}. 1/(η + r^β) is 1/(1 +"
        " (r/η^(1/β))^β) up to a factor that cancels in Q: η is a unit of length, and the minima of the loss are the"
        " same for every η, up to scale. That holds for eq. 13. In the paper's program Q is (r + η)^(−β), and η"
        " changes the ratio of attraction and repulsion itself (section `program`); besides, its start and learning"
        " rate are fixed while the unit changes. First row of the picture: start and steps in units of the"
        " kernel, the library's default. Second row: a start with standard deviation 1 and a learning rate of"
        f" {RATE:g} at every η, exaggeration 4, as in the paper's program. R² is the Procrustes R² with the map at η ="
        " 1.",
        "",
    ]
    rows = []
    for variant, found in values["eta"].items():
        for eta, score in zip(ETAS, found, strict=True):
            row = [variant, f"{eta:g}", f"{score['error']:.2%}", f"{score['separation']:.3f}", f"{score['same']:.6f}"]
            rows.append([*row, f"{score['width']:.2f}"])
    head = ["", "η", "1-NN error", "Davies-Bouldin index of the classes", "R²", "spread of the map / η^(1/β)"]
    return [*lines, *common.table(head, rows), "", f"![Maps]({task.folder.name}/fig10.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    units, fixed = values["eta"].values()
    least = min(score["same"] for score in units)
    evidence = f"R² with the map at η = 1 at least {least:.3f}; {min(s['same'] for s in fixed):.3f} with fixed steps"
    return [Verdict("001 Fig. 10", "under eq. 13, η changes the map", "no" if least > 0.95 else "yes", evidence)]
