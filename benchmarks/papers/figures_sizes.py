"""Figure 15 of paper 001: t-SNE and g-SNE on increasing numbers of rows of MNIST."""

from __future__ import annotations

from typing import Any

import common
import numpy as np
from experiment import Ledger, Task
from panels import draw_maps
from rows import DRAWS
from verdicts import Verdict, lower, mean_error

import equipoise as eq
from equipoise.evaluate import davies_bouldin_curve, one_nn_error

TITLE = "Paper 001, Fig. 15: sample sizes"
SIZES = ("mnist-1k", "mnist-3k")
# The paper does not state β here, and 2 would be t-SNE; 1.8 is the next smaller value in its Fig. 9.
METHODS = {"t-SNE": eq.TSNE(), "g-SNE, α = −1, β = 1.8": eq.GSNE(alpha=-1.0, beta=1.8, eta=1.0)}
CLASSES = 10  # of MNIST, and the number of clusters for k-means


def measure(task: Task, ledger: Ledger) -> None:
    titled, labels = [], []
    for name, method in METHODS.items():
        for size in SIZES:
            for seed in task.few(DRAWS, 1):

                def run(name: str = name, method: Any = method, size: str = size, seed: int = seed) -> Any:
                    rows = task.source.draw(size, seed)
                    Y = task.embed(method, rows.X, seed)
                    if seed == DRAWS[0]:
                        titled.append((f"{name.partition(',')[0]}, {len(Y):,}", Y))
                        labels.append(rows.labels)
                    index = float(davies_bouldin_curve(Y, (CLASSES,)).index[0])
                    return {"error": one_nn_error(Y, rows.labels), "index": index}

                ledger.get(f"{name}/{size}/{seed}", run)
    if len(titled) == len(METHODS) * len(SIZES):
        draw_maps(titled, labels, task.picture("fig15"), len(SIZES))


def series(values: dict[str, Any], name: str, size: str, score: str) -> np.ndarray:
    """Return a score of a method for one size, one per draw; errors in per cent."""
    found = (values.get(f"{name}/{size}/{seed}") for seed in DRAWS)
    return np.array([value[score] * (100 if score == "error" else 1) for value in found if value is not None])


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "Claim of the paper: with more rows both methods have a lower error and a lower Davies-Bouldin index. Mean ±"
        f" standard error over {len(DRAWS)} draws; pictures of the first. The paper goes up to 14k rows: see Table 2.",
        "",
    ]
    rows = []
    for name in METHODS:
        for score, form in (("error", ".2f"), ("index", ".3f")):
            title = "1-NN error, %" if score == "error" else f"index of {CLASSES} clusters"
            rows.append([name, title, *(mean_error(series(values, name, size, score), form) for size in SIZES)])
    head = ["method", "", *(task.source.title(size) for size in SIZES)]
    return [*lines, *common.table(head, rows), "", f"![Maps]({task.folder.name}/fig15.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    found = []
    for name in METHODS:
        for score, what in (("error", "error"), ("index", "Davies-Bouldin index")):
            few, more = (series(values, name, size, score) for size in SIZES)
            if len(few) and len(few) == len(more):
                evidence = f"{len(few)} draws, 3k: {mean_error(more, '.3f')}, 1k: {mean_error(few, '.3f')}"
                claim = f"{name}: 3k rows have a lower {what} than 1k"
                found.append(Verdict("001 Fig. 15", claim, lower(more - few, "+.3f"), evidence))
    return found
