"""Figures 9 and 11-14 of paper 001: a method at several values of one parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import common
import numpy as np
from experiment import CELLS, N_ITER, Ledger, Task, minus, remaining_gain, scores, trend
from panels import draw_maps
from rows import draws, only_starts
from verdicts import Verdict, lower, mean_error, with_gain

import equipoise as eq
from equipoise.divergences import Alpha

TITLE = "Paper 001, Fig. 9 and 11–14: β and α"


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
    between: tuple[float, float]  # the claim: the score is lower at the first of these values than at the second
    n_iter: int = N_ITER


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
    "12": Sweep(
        "the Student kernel",
        "mnist-3k", "α", (0.0, -0.5, -1.0, -1.5, -2.0), student_alpha, WIDER, "cover", (-0.5, -2.0), 2500,
    ),
    "9": Sweep("g-SNE, α = −1", "mnist-3k", "β", BETAS, g_sne_beta, TIGHTER, "cover", (1.5, 3.0)),
    "11": Sweep("g-SNE, α = −1", "coil20", "β", BETAS, g_sne_beta, TIGHTER, "cover", (1.5, 3.0)),
    "13": Sweep(
        "g-SNE, β = 2, which is the Student kernel in other units",
        "mnist-3k", "α", (-0.8, -1.2, -1.5, -2.0), g_sne_alpha, WIDER, "cover", (-0.8, -2.0),
    ),
    "14": Sweep(
        "symmetric SNE, Gaussian kernel; the paper does not state its values of α",
        "mnist-3k", "α", (0.5, 0.0, -0.5, -1.0), gaussian_alpha, UNRAVELS, "error", (0.0, -1.0),
    ),
}  # fmt: skip


def measure(task: Task, ledger: Ledger) -> None:
    for number, sweep in SWEEPS.items():
        for seed in task.few(draws(sweep.column), 1):

            def run(number: str = number, sweep: Sweep = sweep, seed: int = seed) -> list[dict[str, float]]:
                rows = task.source.draw(sweep.column, seed)
                fitted = [task.fit(sweep.make(value), rows.X, seed, sweep.n_iter) for value in sweep.values]
                maps = [np.asarray(model.embedding_, dtype=np.float64) for model in fitted]
                found = [
                    {**scores(Y, rows.labels), "gain": remaining_gain(model)}
                    for Y, model in zip(maps, fitted, strict=True)
                ]
                if seed == draws(sweep.column)[0]:
                    titles = [
                        f"{sweep.symbol} = {minus(value)}: {score['error']:.1%}"
                        for value, score in zip(sweep.values, found, strict=True)
                    ]
                    labels = [rows.labels] * len(maps)
                    draw_maps(list(zip(titles, maps, strict=True)), labels, task.picture(f"fig{number}"))
                return found

            ledger.get(f"{number}/{seed}", run)


def series(values: dict[str, Any], number: str, score: str) -> np.ndarray:
    """Return a score at each value of the parameter, one row per draw, in per cent."""
    found = (values.get(f"{number}/{seed}") for seed in draws(SWEEPS[number].column))
    return np.array([[100 * one[score] for one in row] for row in found if row is not None])


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "Mean ± standard error over the draws (COIL-20: random starts on the same rows), pictures of the first one."
        f" Cover is the share of occupied cells of a {CELLS} × {CELLS} grid over the middle 98 % of the map: compact,"
        " well-separated clusters cover less. The gain is the largest decrease of the loss in the last fifth of a run,"
        " relative to the final loss.",
        "",
    ]
    if missing := [number for number in SWEEPS if not len(series(values, number, "error"))]:
        lines += [f"Not run, for lack of time: Fig. {', '.join(missing)}.", ""]
    for number in (number for number in SWEEPS if number not in missing):
        sweep = SWEEPS[number]
        rows = []
        for title, score, form in (("1-NN error, %", "error", ".2f"), ("cover, %", "cover", ".1f")):
            rows.append([title, *(mean_error(column, form) for column in series(values, number, score).T)])
        rows.append(["gain, %", *(f"{column.max():.2f}" for column in series(values, number, "gain").T)])
        where = f"{task.source.title(sweep.column)}; at most {sweep.n_iter:,} steps"
        lines += [f"### Fig. {number}: {sweep.what}; {where}", ""]
        lines += common.table(["", *(f"{sweep.symbol} = {minus(value)}" for value in sweep.values)], rows)
        lines += ["", f"![Maps]({task.folder.name}/fig{number}.png)", ""]
    return lines[:-1]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    """Decide each claim by the difference between the values of the parameter named in it."""
    found = []
    for number, sweep in SWEEPS.items():
        scored = series(values, number, sweep.score)
        if len(scored):
            first, last = (sweep.values.index(value) for value in sweep.between)
            order = ", ".join(
                f"{minus(v)}: {mean_error(c, '.1f')}" for v, c in zip(sweep.values, scored.T, strict=True)
            )
            name = "1-NN error" if sweep.score == "error" else "cover"
            evidence = f"{len(scored)} draws, {name} in % at {sweep.symbol} = {order}; it {trend(scored.mean(axis=0))}"
            pair = f"{sweep.symbol} = {minus(sweep.between[0])} less {minus(sweep.between[1])}"
            starts = ", starts only" if only_starts(sweep.column) else ""
            claim = f"{sweep.claim} ({pair}, {task.source.title(sweep.column)}{starts})"
            gains = series(values, number, "gain")[:, [first, last]].ravel() / 100
            word = with_gain(lower(scored[:, first] - scored[:, last], sweep.score), gains)
            found.append(Verdict(f"001 Fig. {number}", claim, word, evidence))
    return found
