"""Figures 9 and 11-14 of paper 001: a method at several values of one parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import common
from experiment import CELLS, Ledger, Task, minus, scores, trend
from panels import draw_maps
from verdicts import Verdict

import equipoise as eq
from equipoise.divergences import Alpha

TITLE = "Paper 001, Fig. 9 and 11–14: β and α"
SEED = 0


@dataclass(frozen=True)
class Sweep:
    """A figure: a method at several values of one parameter, and the paper's claim about its maps."""

    what: str
    column: str
    symbol: str
    values: tuple[float, ...]
    make: Callable[[float], Any]
    claim: str
    score: str  # "cover" or "error"
    holds: Callable[[Sequence[float]], bool]  # tests the claim on the scores, in the order of the values


def rises(series: Sequence[float]) -> bool:
    return trend(series) == "rises"


def highest_at_last(series: Sequence[float]) -> bool:
    return max(series[:-1]) < series[-1]


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
WIDER = "larger α gives wider separation and more compact clusters"
UNRAVELS = "an α larger than −1 unravels the map"
SWEEPS = {
    "9": Sweep("g-SNE, α = −1", "mnist-6k", "β", BETAS, g_sne_beta, TIGHTER, "cover", rises),
    "11": Sweep("g-SNE, α = −1", "coil20", "β", BETAS, g_sne_beta, TIGHTER, "cover", rises),
    "12": Sweep(
        "the Student kernel",
        "mnist-6k", "α", (0.0, -0.5, -1.0, -1.5, -2.0), student_alpha, WIDER, "cover", rises,
    ),
    "13": Sweep(
        "g-SNE, β = 2, which is the Student kernel in other units",
        "mnist-6k", "α", (-0.8, -1.2, -1.5, -2.0), g_sne_alpha, WIDER, "cover", rises,
    ),
    "14": Sweep(
        "symmetric SNE, Gaussian kernel; the paper does not state its values of α",
        "mnist-6k", "α", (0.5, 0.0, -0.5, -1.0), gaussian_alpha, UNRAVELS, "error", highest_at_last,
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
    lines = [
        f"One map each, from draw 0. Cover is the share of occupied cells of a {CELLS} × {CELLS} grid over the middle"
        " 98 % of the map: compact, well-separated clusters cover less. The Davies-Bouldin index is that of the"
        " true classes.",
        "",
    ]
    for number, found in values.items():
        sweep = SWEEPS[number]
        series = [score[sweep.score] for score in found]
        rows = [
            ["1-NN error", *(f"{score['error']:.2%}" for score in found)],
            ["cover", *(f"{score['cover']:.1%}" for score in found)],
            ["Davies-Bouldin index", *(f"{score['separation']:.3f}" for score in found)],
        ]
        name = "1-NN error" if sweep.score == "error" else sweep.score
        verdict = "yes" if sweep.holds(series) else "**no**"
        lines += [f"### Fig. {number}: {sweep.what}; {task.source.title(sweep.column)}", ""]
        lines += common.table(["", *(f"{sweep.symbol} = {minus(value)}" for value in sweep.values)], rows)
        lowest, highest = (minus(sweep.values[series.index(f(series))]) for f in (min, max))
        reading = f"lowest at {sweep.symbol} = {lowest}, highest at {highest}"
        lines += ["", f"“{sweep.claim}”: {verdict}; from left to right the {name} {trend(series)}; {reading}.", ""]
        lines += [f"![Maps]({task.folder.name}/fig{number}.png)", ""]
    return lines[:-1]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    return []
