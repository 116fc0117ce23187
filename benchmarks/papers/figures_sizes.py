"""Figure 15 of paper 001: t-SNE and g-SNE on increasing numbers of rows of MNIST."""

from __future__ import annotations

from typing import Any

import common
import numpy as np
from experiment import Ledger, Task, cluster_index, read_values, remaining_gain
from panels import draw_maps
from rows import draws
from table2 import CLASSES
from verdicts import Verdict, lower, lower_of_two, mean_error, with_gain

import equipoise as eq
from equipoise.evaluate import one_nn_error

TITLE = "Paper 001, Fig. 15: sample sizes"
SIZES = ("mnist-1k", "mnist-3k", "mnist-6k", "mnist-14k")
# The paper does not state β here, and 2 would be t-SNE; 1.8 is the next smaller value in its Fig. 9.
METHODS = {"t-SNE": eq.TSNE(), "g-SNE, α = −1, β = 1.8": eq.GSNE(alpha=-1.0, beta=1.8, eta=1.0)}


def measure(task: Task, ledger: Ledger) -> None:
    titled, labels = [], []
    file = task.folder / "table2.json"
    stored = read_values(file)[1] if file.exists() else {}  # the same maps, except those of 3k rows
    for name, method in METHODS.items():
        for size in SIZES:
            for seed in task.few(draws(size), 1):

                def run(name: str = name, method: Any = method, size: str = size, seed: int = seed) -> Any:
                    rows = task.source.draw(size, seed)
                    model = task.fit(method, rows.X, seed)
                    Y = np.asarray(model.embedding_, dtype=np.float64)
                    if seed == draws(size)[0]:
                        titled.append((f"{name.partition(',')[0]}, {len(Y):,}", Y))
                        labels.append(rows.labels)
                    scored = {"error": one_nn_error(Y, rows.labels), "index": cluster_index(Y, CLASSES)}
                    return {**scored, "gain": remaining_gain(model)}

                scored = None if seed == draws(size)[0] else stored.get(f"{size}/{seed}/{name}")
                ledger.get(f"{name}/{size}/{seed}", run if scored is None else lambda scored=scored: scored)
    if len(titled) == len(METHODS) * len(SIZES):
        draw_maps(titled, labels, task.picture("fig15"), len(SIZES))


def series(values: dict[str, Any], name: str, size: str, score: str) -> np.ndarray:
    """Return a score of a method for one size, one per draw; errors in per cent."""
    found = (values.get(f"{name}/{size}/{seed}") for seed in draws(size))
    return np.array([value[score] * (100 if score == "error" else 1) for value in found if value is not None])


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "Claim of the paper: with more rows both methods have a lower error and a lower Davies-Bouldin index. Mean ±"
        " standard error over the draws; pictures of the first. The paper has 1k, 3k, 10k and 14k rows. Draws of"
        " different sizes are not paired (Welch's test). The gain is the largest decrease of the loss in the last fifth"
        " of a run, relative to the final loss.",
        "",
    ]
    rows = []
    for name in METHODS:
        for score, form in (("error", ".2f"), ("index", ".3f")):
            title = "1-NN error, %" if score == "error" else f"index of {CLASSES} clusters"
            rows.append([name, title, *(mean_error(series(values, name, size, score), form) for size in SIZES)])
        rows.append([name, "gain", *(f"{max(series(values, name, size, 'gain'), default=0):.2%}" for size in SIZES)])
    rows.append(["", "draws", *(str(len(series(values, "t-SNE", size, "error"))) for size in SIZES)])
    head = ["method", "", *(task.source.title(size) for size in SIZES)]
    return [*lines, *common.table(head, rows), "", f"![Maps]({task.folder.name}/fig15.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    found = []
    titles = [task.source.title(size) for size in SIZES]
    for name in METHODS:
        for score, what in (("error", "error"), ("index", "Davies-Bouldin index")):
            for i in range(len(SIZES) - 1):
                few, more = (series(values, name, size, score) for size in SIZES[i : i + 2])
                if len(few) and len(more):
                    evidence = f"{len(more)} and {len(few)} draws: {mean_error(more, '.3f')}, {mean_error(few, '.3f')}"
                    claim = f"{name}: {titles[i + 1]} has a lower {what} than {titles[i].rpartition(' ')[2]}"
                    gains = [gain for size in SIZES[i : i + 2] for gain in series(values, name, size, "gain")]
                    word = with_gain(lower_of_two(more, few, score), gains)
                    found.append(Verdict("001 Fig. 15", claim, word, evidence))
    for size, title in zip(SIZES, titles, strict=True):
        t, g = (series(values, name, size, "index") for name in METHODS)
        if len(t) and len(t) == len(g):
            evidence = f"{len(t)} draws: {mean_error(g, '.3f')} against {mean_error(t, '.3f')}"
            claim = f"{list(METHODS)[1]} has a lower Davies-Bouldin index than t-SNE ({title})"
            gains = [gain for name in METHODS for gain in series(values, name, size, "gain")]
            found.append(Verdict("001 Fig. 15", claim, with_gain(lower(g - t, "index"), gains), evidence))
    return found
