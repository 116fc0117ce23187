"""The program of paper 001 and eq. 13 with the same update rule: does the program's kernel explain the paper's maps?"""

from __future__ import annotations

from typing import Any

import common
import program
from experiment import PERPLEXITY, Ledger, Task, scores
from panels import draw_maps
from rows import DRAWS
from verdicts import Verdict, lower, mean_error

from equipoise.evaluate import davies_bouldin_curve

TITLE = "Paper 001: the released program's own kernel"
N_ITER = 1500
PICTURED = "mnist-1k"
CLASSES = {"olivetti": 40, "mnist-1k": 10}
VARIANTS = {
    "eq. 13, η = 1 (t-SNE)": program.Consistent(),
    "program, η = 1": program.OwnSlope(),
    "program, η = 0.1": program.OwnSlope(eta=0.1),
    "eq. 13, η = 0.1": program.Consistent(eta=0.1),
    "program, its settings": program.OwnSlope(alpha=-0.5, beta=3.0, eta=0.1),
}
T_SNE, OURS, SMALL, UNIT = list(VARIANTS)[:4]


def measure(task: Task, ledger: Ledger) -> None:
    for column in task.few(list(CLASSES), 1):
        for seed in task.few(DRAWS):
            rows = task.source.draw(column, seed)
            P = program.affinities(rows.X, min(PERPLEXITY, len(rows.X) // 4))
            maps = []

            def run(name: str, P: Any = P, rows: Any = rows, seed: int = seed, maps: list[Any] = maps) -> Any:
                Y = VARIANTS[name].optimize(P, task.steps(N_ITER), seed)
                maps.append((name, Y))
                index = float(davies_bouldin_curve(Y, (CLASSES[column],)).index[0])  # noqa: B023
                return {**scores(Y, rows.labels), "clusters": index}

            for name in list(VARIANTS)[: None if seed == DRAWS[0] else 2]:  # the others once, for lack of time
                ledger.get(f"{column}/{seed}/{name}", lambda name=name, run=run: run(name))
            if (
                seed == DRAWS[0]
                and column == (next(iter(CLASSES)) if task.short else PICTURED)
                and len(maps) == len(VARIANTS)
            ):
                draw_maps(maps, [rows.labels] * len(maps), task.picture("program"))


def collect(values: dict[str, Any], column: str, name: str, score: str) -> list[float]:
    """Return the scores of a variant, one per draw."""
    found = [values.get(f"{column}/{seed}/{name}") for seed in DRAWS]
    return [value[score] for value in found if value is not None]


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "The program (gsne.py at cbc8e93) normalises Q = (r + η)^(−β), but its gradient has the slope of 1/(η + r^β),"
        " the kernel of eq. 13. At β = 2, η = 1, r = 1 its attraction is twice that of eq. 13. Here both are run with"
        f" the update rule of the program's function (learning rate {program.RATE:g}, momentum"
        f" {program.MOMENTUM[0]:g}, then {program.MOMENTUM[1]:g}, gains, exaggeration {program.EXAGGERATION:g} for"
        f" {program.UNTIL} steps, start of standard deviation {program.SPREAD:g}), all pairs, {N_ITER} steps; α = −1,"
        " β = 2 except for “its settings”, the defaults of its command line, α = −0.5, β = 3, η = 0.1. Under eq. 13 η"
        " is a unit of length; in the program it changes the ratio of the forces. Mean ± standard error over the"
        " draws (Olivetti: over random starts on the same rows). The index is Davies-Bouldin's of as many k-means"
        " clusters as there are classes.",
        "",
    ]
    rows = []
    for column in CLASSES:
        for name in VARIANTS:
            if not (error := collect(values, column, name, "error")):
                continue
            cells = [mean_error([100 * value for value in error])]
            cells += [mean_error([100 * v for v in collect(values, column, name, "cover")], ".1f")]
            cells += [mean_error(collect(values, column, name, "clusters"), ".3f")]
            rows.append([task.source.title(column), str(len(error)), name, *cells])
    head = ["data", "draws", "kernel", "1-NN error, %", "cover, %", "index"]
    return [*lines, *common.table(head, rows), "", f"![Maps]({task.folder.name}/program.png)"]


def differences(values: dict[str, Any], column: str, score: str, pair: tuple[str, str]) -> list[float]:
    """Return the scores of the first variant less those of the second, for the draws that have both."""
    both = [[values.get(f"{column}/{seed}/{name}") for name in pair] for seed in DRAWS]
    return [first[score] - second[score] for first, second in both if first is not None and second is not None]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    found = []
    for column in CLASSES:
        pair = (OURS, T_SNE)
        if not differences(values, column, "error", pair):
            continue
        title = task.source.title(column)
        for score, claim, scale in (
            ("error", "the program's kernel has a lower 1-NN error than t-SNE", 100),
            ("clusters", "the program's kernel has a lower index than t-SNE", 1),
        ):
            d = [scale * value for value in differences(values, column, score, pair)]
            both = [seed for seed in DRAWS if all(f"{column}/{seed}/{name}" in values for name in pair)]
            means = [
                mean_error([scale * values[f"{column}/{seed}/{name}"][score] for seed in both], ".3f") for name in pair
            ]
            evidence = f"{title}, {len(d)} draws: {means[0]} against {means[1]}"
            word = lower(d, "+.3f")
            if not column.startswith("mnist"):  # the same rows in all draws
                word += ", over random starts only: not counted as evidence for other rows"
            found.append(Verdict("001 program", f"{claim} ({title})", word, evidence))
    if d := [100 * v for v in differences(values, "mnist-1k", "cover", (OURS, SMALL))]:
        unit = [100 * v for v in differences(values, "mnist-1k", "cover", (T_SNE, UNIT))]
        evidence = f"cover at η = 1 less that at 0.1, points: program {minus_mean(d)}, eq. 13 {minus_mean(unit)}"
        claim = "η changes the map (a larger η gives tighter clusters): in the program"
        found.append(Verdict("001 Fig. 10", claim, lower(d), evidence))
        found.append(
            Verdict(
                "001 Fig. 10",
                "the same under eq. 13, from the program's start and with its fixed steps",
                lower(unit),
                evidence,
            )
        )
    return found


def minus_mean(values: list[float]) -> str:
    """Return mean ± standard error with a typographic minus."""
    return mean_error(values).replace("-", "−")
