"""Figure 3 of paper 002: does double-kernel PCA over all pairs spread its maps out more than UMAP?"""

from __future__ import annotations

from typing import Any

import common
import double_kernel
import numpy as np
from experiment import CELLS, Ledger, Task, covered
from panels import draw_maps
from sklearn import datasets
from sklearn.base import clone
from verdicts import Verdict

import equipoise as eq

TITLE = "Paper 002, Fig. 3: double-kernel PCA over all pairs"
METHODS = {"DK-PCA": eq.DKPCA(engine="exact"), "UMAP": eq.UMAP()}


def sets(task: Task) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return each table and the colours of its points: classes, or the position along the Swiss roll."""
    n = 200 if task.short else double_kernel.N
    iris = datasets.load_iris()
    others = {"Swiss roll": datasets.make_swiss_roll(n, random_state=0), "Iris": (iris.data, iris.target)}
    if task.short:
        rows = task.source.draw("mnist-6k", 0)
        return {rows.title: (rows.X, rows.labels), **others}
    return {"MNIST": double_kernel.load("mnist"), "Fashion-MNIST": double_kernel.load("fashion_mnist"), **others}


def measure(task: Task, ledger: Ledger) -> None:
    def run() -> dict[str, Any]:
        found: dict[str, Any] = {}
        titled, labels = [], []
        for name, method in METHODS.items():
            for title, (X, y) in sets(task).items():
                Y = clone(method).set_params(random_state=0, n_jobs=task.threads).fit_transform(X)
                classes = len(np.unique(y)) <= 20
                accuracy = double_kernel.accuracy(Y, y) if classes else None
                found.setdefault(title, {})[name] = {"accuracy": accuracy, "covered": covered(Y)}
                titled.append((f"{title}, {name}", Y))
                labels.append(y)
        draw_maps(titled, labels, task.picture("002_fig3"), columns=len(titled) // len(METHODS))
        return found

    ledger.get("double_pca", run)


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "Claim of the paper: with all n² pairs the repulsion spreads the map over the available space, unlike UMAP."
        f" Cover is the share of occupied cells of a {CELLS} × {CELLS} grid over the middle 98 % of the map; accuracy"
        " is that of a 10-nearest-neighbour classifier, tenfold. UMAP is equipoise's.",
        "",
    ]
    rows = []
    for title, found in values["double_pca"].items():
        wider = found["DK-PCA"]["covered"] > found["UMAP"]["covered"]
        row = [title]
        for name in METHODS:
            row += [common.show(found[name]["accuracy"], ".3f"), f"{found[name]['covered']:.1%}"]
        rows.append([*row, "yes" if wider else "**no**"])
    head = ["data", *(f"{name}, {what}" for name in METHODS for what in ("accuracy", "cover")), "DK-PCA covers more"]
    return [*lines, *common.table(head, rows), "", f"![Maps]({task.folder.name}/002_fig3.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    return []
