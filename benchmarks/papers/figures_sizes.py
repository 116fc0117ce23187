"""Figure 15 of paper 001: t-SNE and g-SNE on increasing numbers of rows of MNIST."""

from __future__ import annotations

from typing import Any

import common
from experiment import Ledger, Task, trend
from panels import draw_maps
from verdicts import Verdict

import equipoise as eq
from equipoise.evaluate import davies_bouldin_curve, one_nn_error

TITLE = "Paper 001, Fig. 15: sample sizes"
SIZES = ("mnist-1k", "mnist-3k", "mnist-10k", "mnist-14k")
# The paper does not state β here, and 2 would be t-SNE; 1.8 is the next smaller value in its Fig. 9.
METHODS = {"t-SNE": eq.TSNE(), "g-SNE, α = −1, β = 1.8": eq.GSNE(alpha=-1.0, beta=1.8, eta=1.0)}
CLASSES = 10  # of MNIST, and the number of clusters for k-means
SEED = 0


def measure(task: Task, ledger: Ledger) -> None:
    def run() -> dict[str, Any]:
        drawn = [task.source.draw(size, SEED) for size in SIZES]
        found: dict[str, Any] = {}
        titled, labels = [], []
        for name, method in METHODS.items():
            maps = [task.embed(method, rows.X, SEED) for rows in drawn]
            found[name] = [
                {"error": one_nn_error(Y, rows.labels), "index": float(davies_bouldin_curve(Y, (CLASSES,)).index[0])}
                for Y, rows in zip(maps, drawn, strict=True)
            ]
            titled += [(f"{name.partition(',')[0]}, {len(Y):,}", Y) for Y in maps]
            labels += [rows.labels for rows in drawn]
        draw_maps(titled, labels, task.picture("fig15"), len(SIZES))
        return found

    ledger.get("sizes", run)


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = ["Claim of the paper: with more rows both methods have a lower error and a lower Davies-Bouldin index.", ""]
    rows = []
    for name, found in values["sizes"].items():
        for score, form in (("error", ".2%"), ("index", ".3f")):
            series = [numbers[score] for numbers in found]
            title = "1-NN error" if score == "error" else f"index of {CLASSES} clusters"
            rows.append([name, title, *(format(value, form) for value in series), trend(series)])
    head = ["method", "", *(task.source.title(size) for size in SIZES), "trend with more rows"]
    return [*lines, *common.table(head, rows), "", f"![Maps]({task.folder.name}/fig15.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    return []
