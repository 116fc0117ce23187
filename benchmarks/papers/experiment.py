"""Shared by all sections of the page: the task, the ledger of results, and how maps are made and scored."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rows import Bundled, Shared, Source
from sklearn.base import clone
from sklearn.metrics import silhouette_score

import equipoise as eq
from equipoise.evaluate import davies_bouldin_curve, one_nn_error

PERPLEXITY = 30  # of paper 001's program; the paper states none
INIT = "random"  # a disk, as in paper 001, section VI.A
N_ITER = 2000  # at most, from a random start; the gain of the last fifth of the run is in the tables
# A random start all over the sphere needs many more steps, see Table 2.
SPHERE = eq.SphericalSNE(rho=0.95, init="pca")

CELLS = 24  # per side of the grid in `covered`

Item = TypeVar("Item")


@dataclass(frozen=True)
class Task:
    """Source of the rows, number of threads, and folder for pictures and results."""

    short: bool
    threads: int
    folder: Path

    @property
    def source(self) -> Source:
        return Bundled() if self.short else Shared()

    def steps(self, n_iter: int) -> int:
        """Return the number of iterations, or at most 100 in the short version."""
        return min(n_iter, 100) if self.short else n_iter

    def few(self, items: Sequence[Item], count: int = 2) -> Sequence[Item]:
        """Return the items, or only the first `count` in the short version."""
        return items[:count] if self.short else items

    def picture(self, name: str) -> Path:
        return self.folder / f"{name}.png"

    def embed(self, method: Any, X: np.ndarray, seed: int, n_iter: int = N_ITER) -> np.ndarray:
        """Return the map of X by a copy of `method`; perplexity and init "auto" become those of paper 001."""
        return np.asarray(self.fit(method, X, seed, n_iter).embedding_, dtype=np.float64)

    def fit(self, method: Any, X: np.ndarray, seed: int, n_iter: int = N_ITER) -> Any:
        """Return a fitted copy of `method`; perplexity and init "auto" become those of paper 001."""
        method = clone(method).set_params(random_state=abs(seed), n_jobs=self.threads, n_iter=self.steps(n_iter))
        if method.perplexity == "auto":
            method.set_params(perplexity=min(PERPLEXITY, len(X) // 4))
        if isinstance(method.init, str) and method.init == "auto":
            method.set_params(init=INIT)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the loss rose", UserWarning)  # published learning rates can be too large
            return method.fit(X)


class Ledger:
    """The named results of a section, in a JSON file that is rewritten after each one."""

    def __init__(self, file: Path, where: dict[str, Any], resume: bool):
        self.file, self.where = file, where
        self.values: dict[str, Any] = read_values(file)[1] if resume and file.exists() else {}

    def get(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the result of this name, computing it only if it is missing."""
        if name not in self.values:
            self.values[name] = compute()
            self.file.parent.mkdir(parents=True, exist_ok=True)
            part = self.file.with_suffix(".part")  # a run may be interrupted at any time
            part.write_text(json.dumps({"where": self.where, "values": self.values}, indent=1) + "\n")
            part.replace(self.file)
        return self.values[name]


def read_values(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the machine on which a section was run, and its results."""
    found = json.loads(file.read_text())
    return found["where"], found["values"]


def scores(Y: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the tenfold 1-NN error, the silhouette of the true classes, and the cover."""
    silhouette = float(silhouette_score(Y, labels))
    return {"error": one_nn_error(Y, labels), "silhouette": silhouette, "cover": covered(Y)}


def cluster_index(Y: np.ndarray, clusters: int) -> float:
    """Return the Davies-Bouldin index of k-means clusters."""
    return float(davies_bouldin_curve(Y, (clusters,)).index[0])


def remaining_gain(model: Any) -> float:
    """Return the decrease of the loss in the last fifth of the run, relative to the final loss."""
    step, loss = model.loss_curve_.T
    return float(np.interp(0.8 * step[-1], step, loss) / loss[-1] - 1)


def covered(Y: np.ndarray) -> float:
    """Return the share of occupied cells of a grid over the middle 98 % of the map; tight clusters occupy few."""
    low, high = np.quantile(Y[:, :2], [0.01, 0.99], axis=0)
    at = np.floor((Y[:, :2] - low) / (high - low) * CELLS).astype(int)
    inside = at[((at >= 0) & (at < CELLS)).all(axis=1)]
    return len(np.unique(inside, axis=0)) / CELLS**2


def trend(values: Sequence[float]) -> str:
    """Return the trend of a series in words."""
    steps = np.diff(values)
    return "rises" if (steps > 0).all() else "falls" if (steps < 0).all() else "neither rises nor falls throughout"


def percent(values: Sequence[float]) -> str:
    """Return mean ± standard deviation of shares, in per cent; a dash if there are none."""
    if not len(values):
        return "–"
    spread = f" ± {100 * np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{100 * np.mean(values):.2f}{spread}"


def minus(value: float) -> str:
    """Return a number with a typographic minus sign."""
    return f"{value:g}".replace("-", "−")
