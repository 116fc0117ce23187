"""Convert objects in files of earlier versions to the current classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy import sparse

from ..neighbors.vectors import is_euclidean

Described = tuple[str, dict[str, Any]]  # the tag of a class, and the state of an object


def migrate(tag: str, state: Any) -> tuple[str, Any]:
    """Convert an object from a file to its current class, and return the tag of that class and the state of the object.

    The tag names the class. Tag and state are returned unchanged if the class in the file still exists.
    """
    change = CHANGES.get(tag)
    return (tag, state) if change is None else change(state)


def _table(state: dict[str, Any]) -> Described:
    """Convert the table of an MDS from a file of version 0.1.0.

    In version 0.1.0 the mean row was subtracted from a dense Euclidean table.
    """
    X, metric = state["X"], state["metric"]
    common = {"X": X, "metric": metric, "n": X.shape[0], "limit": min(X.shape), "_places": None}
    if sparse.issparse(X):
        return "inputs.sparse_table.SparseTable", {**common, "_reduced": None, "_exact": None}
    mean = state["mean"] if is_euclidean(metric) else None
    return "inputs.table.Table", {**common, "_A": None, "mean": mean, "_searcher": None}


def _distances(D: Any) -> Described:
    is_sparse, n = sparse.issparse(D), D.shape[0]
    state = {"D": D, "recall": 1.0, "n": n, "limit": n, "sparse": is_sparse, "has_principal": not is_sparse}
    return "inputs.given.Distances", state


def _space(state: dict[str, Any]) -> Described:
    return "inputs.space.FromSpace", {"n": state["n"], "limit": state["n"]}


def _sphere(state: dict[str, Any]) -> Described:
    """Convert the unit sphere of s-SNE from a file of version 0.1.0, which stored no radius."""
    return ("geometry.Sphere", state) if "radius" in state else ("geometry.Directions", {"radius": 1.0})


# In 0.1.0 MDS had separate classes for its input; now it uses `inputs.Input`.
CHANGES: dict[str, Callable[[dict[str, Any]], Described]] = {
    "dissimilarities.Table": _table,
    "dissimilarities.Given": lambda state: _distances(state["D"]),
    "dissimilarities.KnownPairs": lambda state: _distances(state["known"]),
    "dissimilarities.InSpace": _space,
    "geometry.Sphere": _sphere,
}
