"""Check what the user passes as X, and convert it to the right subclass of `Input`."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeGuard

from scipy import sparse

from .._plural import plural
from .._suggest import did_you_mean
from ..arrays.namespace import is_tensor
from ..data import (
    as_array,
    check_affinities,
    check_distances,
    check_neighbors,
    check_rows,
    check_sparse_table,
    check_table,
    is_neighbors,
)
from ..data.checks.dissimilarities import check_dissimilarities
from ..mixed.gaps import require_not_infinite
from ..neighbors import Graph
from ..neighbors.sparse import check_sparse_metric
from ..neighbors.vectors import EUCLIDEAN, check_metric, is_mixed, is_nan_euclidean
from .base import Input
from .mixed_table import MixedTable
from .precomputed import Affinities, Distances
from .space import FromSpace, SpaceLike
from .sparse_table import SparseTable
from .table import Table
from .varying_metric import with_metric_function

# fmt: off
METRICS = (  # those of sklearn.metrics.pairwise_distances, plus inner_product and mixed
    "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "dice", "euclidean", "hamming",
    "haversine", "inner_product", "jaccard", "l1", "l2", "mahalanobis", "manhattan", "minkowski", "mixed",
    "nan_euclidean", "precomputed", "rogerstanimoto", "russellrao", "seuclidean", "sokalsneath", "sqeuclidean", "yule",
)
# fmt: on
DEVICE_METRICS = (*EUCLIDEAN, "cosine")  # supported by the neighbour search in PyTorch
AFFINITIES = ("gaussian", "uniform", "precomputed")


def make_input(
    X: Any,
    metric: Any,
    h: Any = None,
    affinity: Any = "gaussian",
    *,
    order: str = "C",
    device: str | None = None,
    pairs: bool = False,
) -> Input:
    """Check the user's data X, and convert it to an `Input`.

    Parameters
    ----------
    X : table (n, D), dense or sparse; distances (n, n), (indices, distances) or `Graph`; affinities (n, n); MetricSpace
    metric : str, callable, Mixed or Blocks
        One of `METRICS`, or a function of two rows. With "precomputed", X contains distances. A metric space defines
        its own distance and requires metric="euclidean".
    h : array or callable, default=None
        Metric tensor for all rows, or a function h(X) that returns one tensor for all rows or one tensor per row.
    affinity : {"gaussian", "uniform", "precomputed"}, default="gaussian"
        With "precomputed", X contains affinities.
    order : {"C", "rows"}, default="C"
        Memory layout of a dense table. "C" is C-contiguous, as neighbour searches need it. With "rows" only each row
        is contiguous, and gaps between rows are allowed.
    device : {"cpu", "cuda"}, default=None
        Convert a dense table to a PyTorch tensor on this device, if its metric is one of `DEVICE_METRICS` and `h` is
        None. If X is already a tensor, it is then used without conversion to NumPy.
    pairs : bool, default=False
        Whether the input is for stress or measures, which need the distances of pairs and not only the neighbours. If
        True, distances may be missing: NaN in a dense matrix, or not stored in a sparse matrix. If True,
        metric="inner_product" raises ValueError, because its distances from one point cannot be compared with those
        from another.
    """
    check_affinity_name(affinity)
    if isinstance(h, type):
        raise ValueError(f"h={h.__name__} is a class; pass an object, h={h.__name__}()")
    if isinstance(h, str):
        raise ValueError(
            f"the metric tensor h must be a matrix of numbers, got {h!r}; pass a matrix (D, D), a function h(X), or"
            " equipoise.LearnedMetric() to learn one"
        )
    if isinstance(X, MixedTable):
        return X
    if is_space(X):
        return _from_space(X, metric, h, affinity)
    check_metric_name(metric, pairs)
    if is_mixed(metric):
        return _from_mixed_columns(X, metric, h, affinity)
    use_device = device is not None and affinity != "precomputed" and h is None and metric in DEVICE_METRICS
    if use_device and is_tensor(X):
        return _on_device(X, metric, str(device))
    X = as_array(X)
    if affinity == "precomputed":
        if h is not None or metric not in ("euclidean", "precomputed"):
            raise ValueError('with affinity="precomputed" X contains affinities; omit metric and h')
        return Affinities(check_affinities(X))
    if h is not None and metric != "euclidean":
        raise ValueError(f'the metric tensor h requires metric="euclidean", got {metric!r}; omit metric or h')
    if isinstance(metric, str) and metric == "precomputed":
        return _from_distances(X, pairs)
    if sparse.issparse(X):
        if h is not None:
            raise ValueError("h requires a dense table, but X is sparse; use X.toarray()")
        check_sparse_metric(metric)
        X = check_sparse_table(X)
        check_metric(X, metric)
        return SparseTable(X, metric)
    if is_neighbors(X):
        raise ValueError('X is a pair (indices, distances); pass metric="precomputed" with it')
    X = check_table(X, order=order)
    check_metric(X, metric)
    if callable(h):
        return with_metric_function(X, h)
    return _on_device(X, metric, str(device)) if use_device else Table(X, metric, h)


def _from_mixed_columns(X: Any, metric: Any, h: Any, affinity: str) -> Input:
    """Convert a table of mixed columns to an input; raise ValueError if another argument needs a table of numbers."""
    if h is not None or affinity == "precomputed":
        raise ValueError(f'metric={metric!r} compares columns of a table; omit h and affinity="precomputed"')
    if is_nan_euclidean(metric):
        X = check_rows(X, min_rows=2, accept_sparse=False)
        require_not_infinite(X, "X")
    return MixedTable(X, metric)


def is_space(X: Any) -> TypeGuard[SpaceLike]:
    """Return whether X is a metric space: an object with a number of points `n` and a method `distances`."""
    return isinstance(getattr(X, "n", None), Integral) and callable(getattr(X, "distances", None))


def _from_space(space: SpaceLike, metric: Any, h: Any, affinity: str) -> Input:
    """Convert a metric space to an input; raise ValueError if another argument requires a table or affinities."""
    if affinity == "precomputed":
        raise ValueError('affinity="precomputed" requires affinities (n, n), but X is a metric space; omit affinity')
    if h is not None:
        raise ValueError("h requires a dense table, but X is a metric space, which defines its own distance; omit h")
    if not (isinstance(metric, str) and metric == "euclidean"):
        raise ValueError(f"a metric space defines its own distance; omit metric={metric!r}")
    if space.n < 2:
        raise ValueError(f"the metric space has {plural(space.n, 'point')}; at least 2 are needed")
    return FromSpace(space)


def _from_distances(X: Any, pairs: bool) -> Input:
    """Convert precomputed distances to an input; if `pairs` is True, some distances may be missing."""
    if pairs:
        return Distances(check_dissimilarities(X))
    if is_neighbors(X):
        return Distances(check_neighbors(X), X.recall if isinstance(X, Graph) else 1.0)
    return Distances(check_distances(X))


def check_affinity_name(affinity: Any) -> None:
    """Raise ValueError if `affinity` is not one of `AFFINITIES`."""
    if not (isinstance(affinity, str) and affinity in AFFINITIES):
        known = f"choose from {', '.join(map(repr, AFFINITIES))}"
        raise ValueError(f"unknown affinity {affinity!r}; {did_you_mean(affinity, AFFINITIES, known)}")


def check_metric_name(metric: Any, pairs: bool = False) -> None:
    """Raise ValueError if `metric` is neither a function nor a known name; `make_input` explains `pairs`."""
    names = [name for name in METRICS if name != "inner_product"] if pairs else METRICS
    if not callable(metric) and not is_mixed(metric) and not (isinstance(metric, str) and metric in names):
        meant = did_you_mean(metric, names, "") if isinstance(metric, str) else ""
        known = f"metric must be a callable or one of {', '.join(names)}"
        kind = "unsupported" if isinstance(metric, str) and metric in METRICS else "unknown"
        raise ValueError(f"{kind} metric {metric!r}; {meant or known}")


def _on_device(X: Any, metric: str, device: str) -> Input:
    """Convert a table, given as an array or tensor, to an input on a device."""
    import torch

    from .device_table import DeviceTable, check_tensor

    return DeviceTable(check_tensor(X, torch.device(device)), metric)
