"""Figures 9 and 11-14 of paper 001: one parameter of a method through several values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import common
from experiment import Ledger, Task, minus, scores, trend
from panels import draw_maps

import equipoise as eq
from equipoise.divergences import Alpha

TITLE = "Paper 001, Fig. 9 and 11–14: β and α"
SEED = 0


@dataclass(frozen=True)
class Sweep:
    """A figure: a method at several values of one parameter, and what the paper says of its maps from left to right."""

    what: str
    column: str
    symbol: str
    values: tuple[float, ...]
    make: Callable[[float], Any]
    claim: str
    score: str  # "separation", the Davies-Bouldin index of the true classes, or "error"
    expected: str  # of that score, over the values as they stand


def g_sne_beta(beta: float) -> Any:
    return eq.GSNE(alpha=-1.0, beta=beta, eta=1.0)


def student_alpha(alpha: float) -> Any:
    return eq.SymmetricSNE(kernel=eq.kernels.StudentT(), divergence=Alpha(alpha))


def g_sne_alpha(alpha: float) -> Any:
    return eq.GSNE(alpha=alpha, beta=2.0, eta=1.0)


def gaussian_alpha(alpha: float) -> Any:
    return eq.SymmetricSNE(divergence=Alpha(alpha))


BETAS = (1.5, 1.8, 2.0, 2.5, 3.0)
TIGHTER = "smaller β gives tighter clusters"
WIDER = "larger α separates the classes better"
SWEEPS = {
    "9": Sweep("g-SNE, α = −1", "mnist-6k", "β", BETAS, g_sne_beta, TIGHTER, "separation", "rises"),
    "11": Sweep("g-SNE, α = −1", "coil20", "β", BETAS, g_sne_beta, TIGHTER, "separation", "rises"),
    "12": Sweep(
        "the Student kernel",
        "mnist-6k", "α", (0.0, -0.5, -1.0, -1.5, -2.0), student_alpha, WIDER, "separation", "rises",
    ),
    "13": Sweep(
        "g-SNE, β = 2, which is the Student kernel in other units",
        "mnist-6k", "α", (-0.8, -1.2, -1.5, -2.0), g_sne_alpha, WIDER, "separation", "rises",
    ),
    "14": Sweep(
        "symmetric SNE, Gaussian kernel; the paper does not state its values of α",
        "mnist-6k", "α", (0.5, 0.0, -0.5, -1.0), gaussian_alpha, "larger α unravels the map", "error", "rises",
    ),
}  # fmt: skip


def measure(task: Task, ledger: Ledger) -> None:
    for number, sweep in SWEEPS.items():

        def run(number: str = number, sweep: Sweep = sweep) -> list[dict[str, float]]:
            rows = task.source.draw(sweep.column, SEED)
            maps = [task.embed(sweep.make(value), rows.X, SEED) for value in sweep.values]
            found = [scores(Y, rows.labels) for Y in maps]
            titles = [
                f"{sweep.symbol} = {minus(value)}: {score['error']:.1%}"
                for value, score in zip(sweep.values, found, strict=True)
            ]
            labels = [rows.labels] * len(maps)
            draw_maps(list(zip(titles, maps, strict=True)), labels, task.picture(f"fig{number}"))
            return found

        ledger.get(number, run)


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = ["One map each, of draw 0. The Davies-Bouldin index is that of the true classes: lower is better.", ""]
    for number, found in values.items():
        sweep = SWEEPS[number]
        held = trend([score[sweep.score] for score in found])
        name = "1-NN error" if sweep.score == "error" else "index"
        rows = [
            ["1-NN error", *(f"{score['error']:.2%}" for score in found)],
            ["Davies-Bouldin index", *(f"{score['separation']:.3f}" for score in found)],
        ]
        verdict = "yes" if held == sweep.expected else "**no**"
        lines += [f"### Fig. {number}: {sweep.what}; {task.source.title(sweep.column)}", ""]
        lines += common.table(["", *(f"{sweep.symbol} = {minus(value)}" for value in sweep.values)], rows)
        lines += ["", f"“{sweep.claim}”: {verdict}; from left to right the {name} {held}.", ""]
        lines += [f"![Maps]({task.folder.name}/fig{number}.png)", ""]
    return lines[:-1]
