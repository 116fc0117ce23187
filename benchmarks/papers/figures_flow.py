"""Figure 2 of paper 002: PCA, classical MDS and Isomap by eigenvectors and by gradient descent."""

from __future__ import annotations

from typing import Any

import common
import double_kernel_runs
import numpy as np
from experiment import Ledger, Task
from panels import draw_maps
from scipy.spatial import procrustes
from sklearn.base import clone
from verdicts import Verdict

import equipoise as eq

TITLE = "Paper 002, Fig. 2: closed forms and their flows"
METHODS = {
    "PCA": eq.PCA(),
    "classical MDS, L1": eq.ClassicalMDS(metric="manhattan"),
    "Isomap": eq.Isomap(n_neighbors=15),
}


def points(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Return 1000 images of MNIST, pixels from 0 to 1, and their classes."""
    if task.short:
        rows = task.source.draw("mnist-6k", 0)
        return rows.images.reshape(len(rows.images), -1) / 255.0, rows.labels
    return double_kernel_runs.load("mnist")


def measure(task: Task, ledger: Ledger) -> None:
    def run() -> dict[str, Any]:
        X, labels = points(task)
        found, titled = {}, []
        for name, method in METHODS.items():
            closed = clone(method).fit(X)
            flow = clone(method).set_params(solver="flow", random_state=0).fit(X)
            r2 = 1 - procrustes(closed.embedding_, flow.embedding_)[2]
            found[name] = {"r2": float(r2), "steps": flow.n_iter_, "loss": flow.loss_ / closed.loss_ - 1}
            titled += [(f"{name}, eigenvectors", closed.embedding_), (f"{name}, flow", flow.embedding_)]
        draw_maps(titled[::2] + titled[1::2], [labels] * len(titled), task.picture("002_fig2"), len(METHODS))
        return found

    ledger.get("flow", run)


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "Random starts, and the accelerated descent of each method. The paper shows that both solvers reach the same"
        " map. examples/flow.py shows the convergence, also for plain gradient descent.",
        "",
    ]
    rows = [
        [name, str(found["steps"]), f"{found['r2']:.8f}", f"{found['loss']:.1e}"]
        for name, found in values["flow"].items()
    ]
    head = ["method", "steps", "Procrustes R² with the eigenvector map", "relative excess of the loss"]
    return [*lines, *common.table(head, rows), "", f"![Maps]({task.folder.name}/002_fig2.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    least = min(found["r2"] for found in values["flow"].values())
    evidence = f"R² with the eigenvector map at least {least:.8f}"
    claim = "gradient descent reaches the maps of PCA, classical MDS and Isomap"
    return [Verdict("002 Fig. 2", claim, "yes" if least > 0.9999 else "no", evidence)]
