"""Check the arguments of measures: data, maps, labels and sizes of neighbourhoods."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np

from .._plural import plural
from .._types import Array
from ..arrays.namespace import is_auto
from ..data import as_array, is_neighbors
from ..data.checks import maps
from ..data.checks.missing_labels import first_missing_label
from ..inputs import Input, MixedTable, Table, is_space, make_input
from ..mixed import Blocks, Mixed
from ..neighbors import Graph
from ..neighbors.vectors import is_euclidean, is_mixed
from .curved_map import CurvedMap, describe_geometry

K = 15  # neighbours in a report, if there are enough points; chosen


def metric_of(Y: Any) -> Any:
    """Return the metric of a fitted method; None for a bare map and for methods without one."""
    metric = getattr(getattr(Y, "method", Y), "metric", None) if hasattr(Y, "embedding_") else None
    return (
        metric if isinstance(metric, str | Mixed | Blocks) or callable(metric) else None
    )  # scikit-learn's MDS has metric=True


def resolve_metric(metric: Any, Y: Any, X: Any) -> Any:
    """Return the metric of the data X of a map Y: `metric`, if it is None that of a fitted method Y, else "euclidean".

    Raise ValueError if the method was fitted to distances and X is not a square matrix.
    """
    if metric is not None:
        return metric
    metric = None if is_space(X) else metric_of(Y)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if isinstance(metric, str) and metric == "precomputed" and len(shape) == 2 and shape[0] != shape[1]:
        raise ValueError(
            f"{type(Y).__name__} was fitted to distances, metric='precomputed', but X has shape {shape}; pass the"
            ' distances, or the metric of the table X, such as metric="euclidean"'
        )
    return "euclidean" if metric is None else metric


def precomputed_input(method: Any) -> tuple[str, str] | None:
    """Return the parameter of a method that is "precomputed" and what X then contains; None if X contains the data."""
    settings = method.get_params()
    for name, content in (("affinity", "affinities"), ("kernel", "a kernel")):
        if isinstance(given := settings.get(name), str) and given == "precomputed":
            return name, content
    return None


def check_pair(X: Any, Y: Any, metric: Any = None) -> tuple[Input, Table | CurvedMap]:
    """Check data X and a map Y of the same points, and return both as inputs, as `check_embedding` does with Y.

    Parameters
    ----------
    X : table (n, D), dense or sparse; distances (n, n) if metric="precomputed"; or a `spaces.MetricSpace`
    Y : array-like of shape (n, d), or a fitted method
    metric : str or callable, optional
        By default that of a fitted method Y, else "euclidean".
    """
    metric = resolve_metric(metric, Y, X)
    X = read_data(X, metric)
    n = count_points(X)
    embedding = check_embedding(Y)
    if n != embedding.n:
        raise ValueError(
            f"X has {plural(n, 'point')} and Y has {embedding.n:,}; they must be the same points, in the same order"
        )
    return check_data(X, metric), embedding


def read_data(X: Any, metric: Any) -> Any:
    """Return data as an array or matrix in memory; a table of mixed columns as an input, so that it is read once."""
    return make_input(X, metric, pairs=True) if is_mixed(metric) else as_array(X)


def check_embedding(Y: Any) -> Table | CurvedMap:
    """Return a map as an input: its distances are those of its geometry if Y is a fitted method, else straight lines.

    Parameters
    ----------
    Y : array-like of shape (n, d), a fitted method, or a result of this function
    """
    if isinstance(Y, Table | CurvedMap):
        return Y
    geometry, X = maps.curved_geometry(Y), check_map(Y, curved=True)
    return Table(X, "euclidean") if geometry is None else CurvedMap(X, geometry)


def count_points(X: Any) -> int:
    """Return the number of points of a table, of distances, of neighbour lists, or of a metric space."""
    if is_space(X):
        return int(X.n)
    if is_neighbors(X):
        return len(X.indices if isinstance(X, Graph) else X[0])
    if not (getattr(X, "shape", ()) or (isinstance(X, Sized) and getattr(X, "ndim", 1))):
        raise ValueError(f"X must be a table (n, D), distances (n, n) or a metric space, got {type(X).__name__}")
    return int(X.shape[0] if getattr(X, "shape", ()) else len(X))


def check_data(X: Any, metric: Any = "euclidean") -> Input:
    """Return the data X as an `Input`.

    Raise ValueError if there are fewer than three points, if the distances of some pairs are missing, or if all rows of
    a dense table with Euclidean distances are equal.
    """
    X = read_data(X, metric)
    data = X if isinstance(X, MixedTable) else make_input(X, metric, pairs=True)
    _require_points(data.n, "X")
    if data.points is not None and not np.ptp(data.points, axis=0).any():
        raise ValueError(f"all {data.n:,} rows of X are equal, so there are no distances to compare; check the data")
    if data.known is not None:
        raise ValueError(
            "X contains only some of the distances, but those of all pairs are needed; pass a dense matrix"
            f" ({data.n}, {data.n}) without NaN"
        )
    return data


def is_euclidean_table(X: Any, metric: Any) -> bool:
    """Return whether X is a table, dense or sparse, with Euclidean distances."""
    return not is_space(X) and is_euclidean(metric)


def require_straight_lines(Y: Any) -> None:
    """Raise ValueError if Y is a fitted method whose map lies in a curved space."""
    geometry = maps.curved_geometry(Y)
    if geometry is not None:
        raise ValueError(
            f"this measure uses straight lines in the map, but the map of {type(Y).__name__} lies in"
            f" {describe_geometry(geometry)}; use equipoise.evaluate(X, method), or pass method.embedding_ to measure"
            " straight lines all the same"
        )


def check_map(Y: Any, *, curved: bool = False) -> Array:
    """Return a map Y (n, d), or the map of a fitted method Y, as float64.

    Raise ValueError unless it has at least three points that are not all at the same position, and, unless `curved`, if
    it lies in a curved space.
    """
    if not curved:
        require_straight_lines(Y)
    Y = np.ascontiguousarray(maps.check_map(Y))
    _require_points(len(Y), "Y")
    if not np.ptp(Y, axis=0).any():
        raise ValueError(
            f"all {len(Y):,} points of Y are at the same position, so there is nothing to measure; pass a map with"
            " different positions"
        )
    return Y


def check_labels(labels: Any, n: int) -> tuple[Array, Array]:
    """Return the sorted classes (c,), at least two, and the index (n,) of the class of each of the n points."""
    if labels is None:
        raise ValueError("labels are missing; pass the class of each point")
    masked = np.ma.getmaskarray(labels) if isinstance(labels, np.ma.MaskedArray) else None
    if isinstance(labels, str):
        raise ValueError(
            f"labels={labels!r} is text; pass {n:,} labels, one per point, such as the column table[{labels!r}]"
        )
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise ValueError(f"labels have shape {labels.shape}, but there are {n} points; pass one label per point")
    if masked is not None and masked.any():
        raise ValueError(
            f"the label of row {masked.argmax()} is masked; leave out points without a label, or give them one"
        )
    if (i := first_missing_label(labels)) is not None:
        raise ValueError(f"the label of row {i} is {labels[i]}; leave out points without a label, or give them one")
    try:
        classes, number = np.unique(labels, return_inverse=True)
    except TypeError:
        raise ValueError("labels of different types cannot be sorted; make them all strings, or all numbers") from None
    if len(classes) < 2:
        raise ValueError(f"all labels are {classes.item(0)!r}; pass labels of at least two classes")
    return classes, number.reshape(-1)


def number_labels(labels: Any, n: int) -> Array:
    """Return the index (n,) of the class of each point, −1 where a masked array of labels is masked."""
    number = np.full(n, -1)
    if not isinstance(labels, np.ma.MaskedArray) or labels.shape != (n,):
        number[:] = check_labels(labels, n)[1]
    elif (known := ~np.ma.getmaskarray(labels)).any():
        number[known] = check_labels(labels.data[known], int(known.sum()))[1]
    else:
        raise ValueError("no point has a label; pass labels of at least two classes")
    return number


def resolve_k(k: Any, n: int) -> int:
    """Return the size k of a neighbourhood; "auto" is 15, or (n − 1)/2, rounded down, for fewer than 31 points.

    For k above (n − 1)/2, the neighbourhoods of a point in the data and in the map always overlap, so even the worst
    map would preserve some neighbours.
    """
    return min(K, (n - 1) // 2) if is_auto(k) else check_k(k, n)


def resolve_n_neighbors(n_neighbors: Any, n: int) -> int:
    """Return the number of neighbours to which a Jacobian is fitted; "auto" is 15, or n − 1 for fewer points."""
    return min(K, n - 1) if is_auto(n_neighbors) else check_k(n_neighbors, n, "n_neighbors")


def check_k(k: Any, n: int, name: str = "k", limit: str = "n_samples - 1") -> int:
    """Return k after checking that it is an integer from 1 to n − 1.

    In the error message, `name` is the name of the parameter k, and `limit` says in words what n − 1 is.
    """
    if not isinstance(k, int | np.integer) or isinstance(k, bool):
        raise ValueError(f"{name} must be an integer, got {k!r}")
    if not 0 < k < n:
        raise ValueError(f"{name} must be between 1 and {limit} = {n - 1}, got {k}")
    return int(k)


def _require_points(n: int, name: str) -> None:
    if n < 3:
        raise ValueError(f"{name} has {plural(n, 'point')}; at least 3 are needed to compare distances")
