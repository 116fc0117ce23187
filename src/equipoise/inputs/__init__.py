"""What comes in: a table, sparse or not, distances, lists of neighbours, or affinities, each checked once."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from ..arrays.namespace import is_tensor
from ..data import (
    as_array,
    check_affinities,
    check_distances,
    check_neighbors,
    check_sparse_table,
    check_table,
    is_neighbors,
)
from ..neighbors.graph import Graph
from ..neighbors.sparse import check_sparse_metric
from .base import Input
from .precomputed import Affinities, Distances
from .space import FromSpace
from .sparse_table import SparseTable
from .table import Table
from .varying_metric import Varying, under_function

# fmt: off
METRICS = (  # those of sklearn.metrics.pairwise_distances, and inner_product
    "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "dice", "euclidean", "hamming",
    "haversine", "inner_product", "jaccard", "l1", "l2", "mahalanobis", "manhattan", "minkowski", "nan_euclidean",
    "precomputed", "rogerstanimoto", "russellrao", "seuclidean", "sokalsneath", "sqeuclidean", "yule",
)
# fmt: on
DEVICE_METRICS = ("euclidean", "l2", "cosine")  # that are searched on a device
AFFINITIES = ("gaussian", "uniform", "precomputed")


def make_input(
    X: Any, metric: Any, h: Any, affinity: Any = "gaussian", order: str = "C", device: str | None = None
) -> Input:
    """Return X checked: a table (n, D) under a metric and a metric tensor h or h(X), or what "precomputed" says it is.

    A dense table is laid out row after row, as searches for neighbours need it; with order="rows" its rows may lie
    apart. With a `device`, "cpu" or "cuda", it is put there for PyTorch, if its metric can be searched there; a tensor
    does not go through the host.
    """
    if not (isinstance(affinity, str) and affinity in AFFINITIES):
        raise ValueError(f"affinity must be one of {', '.join(map(repr, AFFINITIES))}, got {affinity!r}")
    if not callable(metric) and not (isinstance(metric, str) and metric in METRICS):
        raise ValueError(f"metric must be a callable or one of {', '.join(METRICS)}; got {metric!r}")
    there = device is not None and affinity != "precomputed" and h is None and metric in DEVICE_METRICS
    if there and is_tensor(X):
        return _on_device(X, metric, str(device))
    X = as_array(X)
    if affinity == "precomputed":
        if h is not None or metric not in ("euclidean", "precomputed"):
            raise ValueError('affinity="precomputed" takes X as the affinities; leave metric and h alone')
        return Affinities(check_affinities(X))
    if h is not None and metric != "euclidean":
        raise ValueError(f"h replaces the Euclidean metric on columns of X; it excludes metric={metric!r}")
    if isinstance(metric, str) and metric == "precomputed":
        if is_neighbors(X):
            return Distances(check_neighbors(X), X.recall if isinstance(X, Graph) else 1.0)
        return Distances(check_distances(X))
    if sparse.issparse(X):
        if h is not None:
            raise ValueError("h maps X to new columns, all of them filled; make X dense with X.toarray()")
        check_sparse_metric(metric)
        return SparseTable(check_sparse_table(X), metric)
    if is_neighbors(X):
        raise ValueError('X is a pair (indices, distances): say metric="precomputed"')
    X = check_table(X, order=order)
    if callable(h):
        return under_function(X, h)
    return _on_device(X, metric, str(device)) if there else Table(X, metric, h)


def _on_device(X: Any, metric: str, device: str) -> Input:
    """Return a table, NumPy's or a tensor, on a device of PyTorch."""
    import torch

    from .device_table import DeviceTable, check_tensor

    return DeviceTable(check_tensor(X, torch.device(device)), metric)


__all__ = [
    "AFFINITIES",
    "METRICS",
    "Affinities",
    "Distances",
    "FromSpace",
    "Input",
    "SparseTable",
    "Table",
    "Varying",
    "make_input",
]
