"""The program of paper 001 and eq. 13 with the same update rule: does the program's kernel explain the paper's maps?"""

from __future__ import annotations

from typing import Any

import common
import program
from experiment import PERPLEXITY, Ledger, Task, cluster_index, scores
from panels import draw_maps
from rows import FIRST, only_starts
from scipy.spatial import procrustes
from verdicts import CONVERGED, Verdict, lower, mean_error

TITLE = "Paper 001: the released program's own kernel"
N_ITER = 3000
PICTURED = "mnist-1k"
CLASSES = {"olivetti": 40, "mnist-1k": 10}
VARIANTS = {
    "eq. 13, η = 1 (t-SNE)": program.Consistent(),
    "program, η = 1": program.OwnSlope(),
    "program, η = 0.1": program.OwnSlope(eta=0.1),
    "eq. 13, η = 0.1": program.Consistent(eta=0.1),
    "program, its settings": program.OwnSlope(alpha=-0.5, beta=3.0, eta=0.1),
}
T_SNE, OURS, SMALL, UNIT, SETTINGS = VARIANTS
# Number of draws, or of random starts on the same rows: of t-SNE and the program's kernel, and of the others.
DRAWS = {"olivetti": (10, 10), "mnist-1k": (8, 4)}


def draws(column: str, name: str) -> tuple[int, ...]:
    """Return the seeds of a variant; the first two include the first rows of MNIST, as the program takes them."""
    main = name in (T_SNE, OURS)
    random = tuple(range(DRAWS[column][0 if main else 1]))
    return (*random, FIRST) if main and not only_starts(column) else random


def measure(task: Task, ledger: Ledger) -> None:
    for column in task.few(list(CLASSES), 1):
        for seed in task.few(draws(column, T_SNE)):
            names = [name for name in VARIANTS if seed in draws(column, name)]
            if all(f"{column}/{seed}/{name}" in ledger.values for name in names):
                continue
            rows = task.source.draw(column, seed)
            P = program.affinities(rows.X, min(PERPLEXITY, len(rows.X) // 4))
            maps: list[Any] = []

            def run(name: str, column: str = column, P: Any = P, rows: Any = rows, seed: int = seed) -> Any:
                before, Y = VARIANTS[name].optimize(P, task.steps(N_ITER), abs(seed))
                maps.append((name, Y))  # noqa: B023
                moved = float(procrustes(Y, before)[2])
                return {**scores(Y, rows.labels), "index": cluster_index(Y, CLASSES[column]), "moved": moved}

            for name in names:
                ledger.get(f"{column}/{seed}/{name}", lambda name=name, run=run: run(name))
            pictured = next(iter(CLASSES)) if task.short else PICTURED
            if (seed, column, len(maps)) == (0, pictured, len(VARIANTS)):
                draw_maps(maps, [rows.labels] * len(maps), task.picture("program"))


def collect(values: dict[str, Any], column: str, name: str, score: str, seeds: tuple[int, ...]) -> list[float]:
    """Return the scores of a variant, one per draw; shares in per cent."""
    found = [values.get(f"{column}/{seed}/{name}") for seed in seeds]
    scale = 100 if score in ("error", "cover", "moved") else 1
    return [scale * value[score] for value in found if value is not None]


def common_draws(values: dict[str, Any], column: str, pair: tuple[str, str]) -> tuple[int, ...]:
    """Return the random draws that both variants have."""
    return tuple(
        seed for seed in range(max(DRAWS[column])) if all(f"{column}/{seed}/{name}" in values for name in pair)
    )


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "The program (gsne.py at cbc8e93) normalises Q = (r + η)^(−β), but its gradient has the slope of 1/(η + r^β),"
        " the kernel of eq. 13. At β = 2, η = 1, r = 1 its attraction is twice that of eq. 13. Here both are run with"
        f" the update rule of the program's function (learning rate {program.RATE:g}, momentum"
        f" {program.MOMENTUM[0]:g}, then {program.MOMENTUM[1]:g}, gains, exaggeration {program.EXAGGERATION:g} for"
        f" {program.UNTIL} steps, start of standard deviation {program.SPREAD:g}), all pairs, {N_ITER:,} steps (the"
        " program's function makes 20,000); α = −1, β = 2 except for “its settings”, the defaults of its command line,"
        " α = −0.5, β = 3, η = 0.1. Under eq. 13 η is a unit of length; in the program it changes the ratio of the"
        " forces. Mean ± standard error over the draws (Olivetti: over random starts on the same rows). The index is"
        " Davies-Bouldin's of as many k-means clusters as there are classes. The program descends no loss; what remains"
        " is the part of the map that changed in the last fifth of the steps, 1 − R² by Procrustes, the largest of the"
        " draws.",
        "",
    ]
    rows = []
    for column in CLASSES:
        for name in VARIANTS:
            random = tuple(seed for seed in draws(column, name) if seed != FIRST)
            for seeds, title in ((random, ""), ((FIRST,), ", first rows")):
                if error := collect(values, column, name, "error", seeds):
                    cells = [mean_error(error), mean_error(collect(values, column, name, "cover", seeds), ".1f")]
                    cells += [mean_error(collect(values, column, name, "index", seeds), ".3f")]
                    cells += [f"{max(collect(values, column, name, 'moved', seeds)):.1f}"]
                    rows.append([task.source.title(column) + title, str(len(error)), name, *cells])
    head = ["data", "draws", "kernel", "1-NN error, %", "cover, %", "index", "changed in the last fifth, %"]
    return [*lines, *common.table(head, rows), "", f"![Maps]({task.folder.name}/program.png)"]


def compare(values: dict[str, Any], task: Task, column: str, score: str, pair: tuple[str, str]) -> tuple[str, str]:
    """Return the verdict on the claim that the first of two variants has the lower score, and the evidence."""
    seeds = common_draws(values, column, pair)
    first, second = (collect(values, column, name, score, seeds) for name in pair)
    moved = max(max(collect(values, column, name, "moved", seeds)) for name in pair)
    word = lower([a - b for a, b in zip(first, second, strict=True)], score)
    word += "; starts only" if only_starts(column) else ""
    word += f"; the maps still change (by {moved:.0f} %)" if moved > 100 * CONVERGED else ""
    return word, f"{len(first)} draws: {mean_error(first, '.3f')} against {mean_error(second, '.3f')}"


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    found = []
    for column in CLASSES:
        title = task.source.title(column)
        for where, claim, score, pair in (
            ("program", "the program's kernel has a lower 1-NN error than t-SNE", "error", (OURS, T_SNE)),
            ("program", "the program's kernel has a lower index than t-SNE", "index", (OURS, T_SNE)),
            ("program", "the program at its settings has a lower 1-NN error than t-SNE", "error", (SETTINGS, T_SNE)),
            ("Fig. 10", "a smaller η gives tighter clusters in the program (0.1 less 1)", "cover", (SMALL, OURS)),
            ("Fig. 10", "the same under eq. 13, with the program's start and steps", "cover", (UNIT, T_SNE)),
        ):
            if common_draws(values, column, pair):
                word, evidence = compare(values, task, column, score, pair)
                name = f"{score} in %, " if score != "index" else ""
                found.append(Verdict(f"001 {where}", f"{claim} ({title})", word, name + evidence))
    return found
