"""t-SNE and g-SNE, each at the best of nine settings: chosen on some rows, compared on others."""

from __future__ import annotations

from itertools import product
from typing import Any

import common
import numpy as np
from experiment import Ledger, Task, cluster_index, minus, remaining_gain
from rows import Rows, only_starts
from verdicts import Verdict, lower, mean_error, with_gain

import equipoise as eq
from equipoise.evaluate import one_nn_error

TITLE = "Paper 001: t-SNE and g-SNE, tuned alike"
FAMILIES: dict[str, tuple[tuple[float, float], ...]] = {
    "t-SNE": tuple(product((30.0, 15.0, 45.0), (1.0, 1.2, 1.5))),  # perplexity, exaggeration
    "g-SNE": tuple(product((-1.0, -0.8, -1.2), (2.0, 1.8, 2.2))),  # α, β
}
# Number of splits and of classes.
COLUMNS = {"olivetti": (10, 40), "mnist-1k": (10, 10), "mnist-3k": (6, 10), "coil20": (10, 20)}


def make(family: str, setting: tuple[float, float], n: int) -> Any:
    """Return the method of a family with one setting."""
    if family == "t-SNE":
        return eq.TSNE(perplexity=min(setting[0], n // 4), exaggeration=setting[1])
    return eq.GSNE(alpha=setting[0], beta=setting[1], eta=1.0)


def measure(task: Task, ledger: Ledger) -> None:
    for column in task.few(list(COLUMNS)):
        splits, classes = COLUMNS[column]
        for seed in range(splits)[: 2 if task.short else splits]:
            choosing, testing = task.source.split(column, seed)
            for family, settings in FAMILIES.items():
                for setting in task.few(settings, 2):
                    ledger.get(
                        f"{column}/{seed}/{family}/{_key(setting)}/choice",
                        lambda family=family, setting=setting, rows=choosing: _score(task, family, setting, rows, None),
                    )
                chosen = choose(ledger.values, column, seed, family)
                for setting in dict.fromkeys((chosen, settings[0])):
                    ledger.get(
                        f"{column}/{seed}/{family}/{_key(setting)}/test",
                        lambda family=family, setting=setting, rows=testing, classes=classes: _score(
                            task, family, setting, rows, classes
                        ),
                    )


def _score(task: Task, family: str, setting: tuple[float, float], rows: Rows, classes: int | None) -> dict[str, float]:
    model = task.fit(make(family, setting, len(rows.X)), rows.X, 0)
    Y = np.asarray(model.embedding_, dtype=np.float64)
    index = {} if classes is None else {"index": cluster_index(Y, classes)}
    return {"error": one_nn_error(Y, rows.labels), "gain": remaining_gain(model), **index}


def _key(setting: tuple[float, float]) -> str:
    return f"{setting[0]:g}/{setting[1]:g}"


def choose(values: dict[str, Any], column: str, seed: int, family: str) -> tuple[float, float]:
    """Return the setting with the lowest error on the rows for choosing; the first in case of ties."""
    errors = {
        setting: values[key]["error"]
        for setting in FAMILIES[family]
        if (key := f"{column}/{seed}/{family}/{_key(setting)}/choice") in values
    }
    if not errors:
        raise ValueError(f"no results of the search for {column}; run with --only tuning first")
    return min(errors, key=lambda setting: errors[setting])


def tested(values: dict[str, Any], column: str, family: str, score: str, plain: bool = False) -> list[float]:
    """Return a score of a family at its chosen settings (or the first one) on the test rows, one per split."""
    found = []
    for seed in range(COLUMNS[column][0]):
        if f"{column}/{seed}/g-SNE/-1/2/test" in values:
            setting = FAMILIES[family][0] if plain else choose(values, column, seed, family)
            found.append(values[f"{column}/{seed}/{family}/{_key(setting)}/test"][score])
    return found


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "Each family has nine settings: t-SNE perplexity 15, 30, 45 and exaggeration 1, 1.2, 1.5; g-SNE, at perplexity"
        " 30, α = −0.8, −1, −1.2 and β = 1.8, 2, 2.2 (−1, 2 is t-SNE; η is a unit of length). In every split the"
        " setting with the lowest 1-NN error on one set of rows is compared on another set, with no row in both: MNIST"
        " by disjoint draws, Olivetti and COIL-20 by random halves of every class (the halves of several splits"
        " overlap, so that their standard error is too small). Random"
        " start; 1-NN error in per cent, tenfold, mean ± standard error over the splits; the index is Davies-Bouldin's"
        " of as many k-means clusters as there are classes. The gain is the largest decrease of the loss in the last"
        " fifth of a run, relative to its end.",
        "",
    ]
    rows = []
    for column in COLUMNS:
        if not (plain := tested(values, column, "t-SNE", "error", plain=True)):
            continue
        cells = [task.source.title(column), str(len(plain)), mean_error([100 * e for e in plain])]
        for family in FAMILIES:
            cells.append(mean_error([100 * e for e in tested(values, column, family, "error")]))
            chosen = [choose(values, column, seed, family) for seed in range(len(plain))]
            cells.append("; ".join(f"{minus(a)}, {b:g}" for a, b in chosen))
        cells += [mean_error(tested(values, column, family, "index"), ".3f") for family in FAMILIES]
        gains = [value["gain"] for key, value in values.items() if key.startswith(f"{column}/")]
        rows.append([*cells, f"{max(gains):.2%}"])
    head = ["data", "splits", "t-SNE, not tuned", "t-SNE, tuned", "perplexity, exaggeration", "g-SNE, tuned", "α, β"]
    return [*lines, *common.table([*head, "index, t-SNE", "index, g-SNE", "gain"], rows)]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    found = []
    for column in COLUMNS:
        for score, claim, scale in (("error", "a lower 1-NN error", 100), ("index", "a lower index", 1)):
            t, g = (np.array(tested(values, column, family, score)) * scale for family in FAMILIES)
            if len(t):
                evidence = f"{len(t)} splits: {mean_error(g, '.3f')} against {mean_error(t, '.3f')}"
                title = f"g-SNE has {claim} than t-SNE, both tuned ({task.source.title(column)})"
                measure = "small error" if (column, score) == ("coil20", "error") else score
                word = lower(g - t, measure) + (" (halves of the same rows)" if only_starts(column) else "")
                gains = tested(values, column, "t-SNE", "gain") + tested(values, column, "g-SNE", "gain")
                found.append(Verdict("001 Table 2, Fig. 6–7", title, with_gain(word, gains), evidence))
    return found
