"""What a measure is given, checked before any work: data, a map of it, labels, sizes of neighbourhoods."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..data import as_array, check_finite
from ..inputs import Input, Table, make_distance_input
from ..spaces import MetricSpace

EUCLIDEAN = ("euclidean", "l2")
K = 15  # neighbours that a report looks at where there are enough points; chosen


def check_pair(X: Any, Y: Any, metric: Any = "euclidean") -> tuple[Input, Table]:
    """Return data and a map of the same points.

    X is a table (n, D), dense or sparse, under a metric, a matrix (n, n) of distances if metric="precomputed", or a
    `spaces.MetricSpace`; Y is (n, d).
    """
    X = as_array(X)
    n = count_points(X)
    Y = check_map(Y)
    if n != len(Y):
        raise ValueError(f"X has {n} rows and Y has {len(Y)}; they must be the same points, in the same order")
    return check_data(X, metric), Table(Y, "euclidean")


def count_points(X: Any) -> int:
    """Return how many points X is about."""
    return int(X.n if isinstance(X, MetricSpace) else X.shape[0] if hasattr(X, "shape") and X.shape else len(X))


def check_data(X: Any, metric: Any = "euclidean") -> Input:
    """Return the data as an input with all distances."""
    data = make_distance_input(as_array(X), metric)
    _require_points(data.n, "X")
    if data.points is not None and not np.ptp(data.points, axis=0).any():
        raise ValueError(f"all {data.n} rows of X are equal, so there are no distances to compare; check the data")
    if data.known is not None:
        raise ValueError("X holds the distances of some pairs only; measures compare all pairs and need a dense matrix")
    return data


def is_euclidean_table(X: Any, metric: Any) -> bool:
    """Return whether X is a table, dense or sparse, with Euclidean distances."""
    return not isinstance(X, MetricSpace) and isinstance(metric, str) and metric in EUCLIDEAN


def check_map(Y: Any) -> Array:
    """Return a map (n, d) in float64, or say what is wrong with it."""
    try:
        Y = np.ascontiguousarray(as_array(Y), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Y must be a map (n, d) of numbers: {error}") from None
    if Y.ndim != 2 or Y.shape[1] == 0:
        hint = "; a map in one dimension is Y[:, None]" if Y.ndim == 1 else ""
        raise ValueError(f"Y must be a map (n, d), a row per point; got shape {Y.shape}{hint}")
    _require_points(len(Y), "Y")
    check_finite(Y, "Y")
    if not np.ptp(Y, axis=0).any():
        raise ValueError(f"all {len(Y)} points of Y are in one place, so the map shows nothing; embed the data again")
    return Y


def check_labels(labels: Any, n: int) -> tuple[Array, Array]:
    """Return the classes in order, and the number of its class for each of n points; two classes are needed."""
    if labels is None:
        raise ValueError("labels are missing: give a class for each point")
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise ValueError(f"labels have shape {labels.shape}, but there are {n} points: give one class for each")
    if labels.dtype.kind in "fc":
        unknown = np.isnan(labels)
    else:
        unknown = np.array([label is None or label != label for label in labels.tolist()])
    if unknown.any():
        i = int(unknown.argmax())
        raise ValueError(f"the label of row {i} is {labels[i]}; leave out points without a class, or give them one")
    try:
        classes, number = np.unique(labels, return_inverse=True)
    except TypeError:
        raise ValueError("labels are of types that have no common order; make them all text, or all numbers") from None
    if len(classes) < 2:
        raise ValueError(f"all labels are {classes.item(0)!r}; a measure of classes needs two of them or more")
    return classes, number.reshape(-1)


def resolve_k(k: Any, n: int) -> int:
    """Return the size of a neighbourhood; "auto" is 15, on fewer than 31 points half of the others.

    The k nearest among n points can be all wrong only while k is at most half of the other n − 1.
    """
    return min(K, (n - 1) // 2) if isinstance(k, str) and k == "auto" else check_k(k, n)


def check_k(k: Any, n: int, name: str = "k") -> int:
    """Return the size of a neighbourhood among n points."""
    if not isinstance(k, int | np.integer) or isinstance(k, bool):
        raise ValueError(f"{name} must be a whole number, got {k!r}")
    if not 0 < k < n:
        raise ValueError(f"{name} must be between 1 and n_samples - 1 = {n - 1}, got {k}")
    return int(k)


def _require_points(n: int, name: str) -> None:
    if n < 3:
        raise ValueError(f"{name} has {n} points; at least 3 are needed, so that one can be nearer than another")
