"""The user's data, checked once, and every question a method asks of it: distances, neighbours, an initial map."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances

from .. import initialize
from .._types import Array, Matrix
from ..affinities import Points, SquaredDistances
from ..data import check_distances, check_finite, check_table
from ..geometry import factor
from ..neighbors import Graph, Searcher, nearest_in_matrix, nearest_neighbors, smallest

# fmt: off
METRICS = (  # those of sklearn.metrics.pairwise_distances
    "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "dice", "euclidean", "hamming",
    "haversine", "jaccard", "l1", "l2", "mahalanobis", "manhattan", "minkowski", "nan_euclidean", "precomputed",
    "rogerstanimoto", "russellrao", "seuclidean", "sokalsneath", "sqeuclidean", "yule",
)
# fmt: on


def make_input(X: Any, metric: Any, h: Any) -> Input:
    """Return X checked: a table (n, D) under a metric and a metric tensor h, or distances if metric="precomputed"."""
    if not callable(metric) and metric not in METRICS:
        raise ValueError(f"metric must be a callable or one of {', '.join(METRICS)}; got {metric!r}")
    if h is not None and metric != "euclidean":
        raise ValueError(f"h replaces the Euclidean metric on columns of X; it excludes metric={metric!r}")
    if isinstance(metric, str) and metric == "precomputed":
        return Distances(check_distances(X))
    if sparse.issparse(X):
        raise TypeError('sparse X is taken only with metric="precomputed"; make it dense with X.toarray()')
    return Table(check_table(X, getattr(X, "columns", None)), metric, h)


class Input:
    """What a method may ask of its data."""

    n: int
    limit: int  # the most dimensions a map of it can use
    limited_by: str
    sparse = False

    def distances(self) -> Points | SquaredDistances:
        """Return the distances between all pairs, or what they are computed from."""
        raise TypeError(f"{type(self).__name__} must define distances()")

    def neighbors(self, k: int, n_threads: int) -> tuple[SquaredDistances, float]:
        """Return d² from each point to its k nearest, and the recall of the search."""
        raise TypeError(f"{type(self).__name__} must define neighbors()")

    def nearest(self, X: Any, k: int, n_threads: int) -> Graph:
        """Return the k points nearest to each new row."""
        raise TypeError(f"{type(self).__name__} must define nearest()")

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        """Return the first d principal components, of standard deviation 1."""
        raise TypeError(f"{type(self).__name__} must define principal()")


class Table(Input):
    """Rows of numbers (n, D) under a metric; h makes it Mahalanobis': d² = (x_i − x_j)ᵀ h (x_i − x_j)."""

    def __init__(self, X: Array, metric: Any, h: Any):
        self.metric = metric
        self._A = None if h is None else factor(h, "h", X.shape[1])
        self.X = self._under_h(X)
        self.n = len(X)
        self.limit = min(X.shape)
        self.limited_by = f"n_samples={X.shape[0]}" if X.shape[0] < X.shape[1] else f"n_features={X.shape[1]}"
        self._searcher: Searcher | None = None

    def _under_h(self, X: Array) -> Array:
        return X if self._A is None else np.ascontiguousarray(X @ self._A.T)

    def distances(self) -> Points | SquaredDistances:
        if isinstance(self.metric, str) and self.metric in ("euclidean", "l2"):
            return Points(_in_range(self.X))
        name = getattr(self.metric, "__name__", self.metric)
        D = check_distances(pairwise_distances(self.X, metric=self.metric), f"the distances by metric={name}")
        return SquaredDistances(_square(D))

    def neighbors(self, k: int, n_threads: int) -> tuple[SquaredDistances, float]:
        X = _in_range(self.X) if self.metric == "euclidean" else self.X
        graph = nearest_neighbors(X, k, self.metric, n_threads=n_threads)
        return SquaredDistances(graph.squared(self.n)), graph.recall

    def nearest(self, X: Any, k: int, n_threads: int) -> Graph:
        if self._searcher is None:
            self._searcher = Searcher(self.X, self.metric, n_threads)
        return self._searcher.nearest(self._under_h(X), k)

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        return initialize.principal_components(self.X, d, rng)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_searcher": None}  # its index is quickly built again, and large


class Distances(Input):
    """Distances given by the user: dense (n, n), or CSR with the stored pairs as neighbours."""

    def __init__(self, D: Matrix):
        self.D = D
        self.n = self.limit = D.shape[0]
        self.limited_by = f"n_samples={self.n}"
        self.sparse = sparse.issparse(D)

    def distances(self) -> Points | SquaredDistances:
        return SquaredDistances(_square(self.D))

    def neighbors(self, k: int, n_threads: int) -> tuple[SquaredDistances, float]:
        if self.sparse:
            return SquaredDistances(_square(self.D)), 1.0
        return SquaredDistances(nearest_in_matrix(_in_range(self.D), k).squared(self.n)), 1.0

    def nearest(self, X: Any, k: int, n_threads: int) -> Graph:
        if X.shape[1] != self.n:
            raise ValueError(f"X has shape {X.shape}; (m, {self.n}) distances to the fitted points are needed")
        return smallest(X, k)

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        if self.sparse:
            raise ValueError('init="pca" needs coordinates or all distances; with a sparse graph use init="random"')
        return initialize.principal_coordinates(_square(self.D), d, rng)


def check_new(X: Any) -> Array:
    """Return new rows as float64, one or more, finite."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2 or len(X) == 0:
        raise ValueError(f"transform needs a table (m, D) of at least one row, got shape {X.shape}")
    check_finite(X, "X")
    return X


def _square(D: Matrix) -> Matrix:
    """Return D² entry by entry; zeros stored in a sparse D stay stored, they are neighbours."""
    if not sparse.issparse(D):
        return _in_range(D) ** 2
    return sparse.csr_matrix((_in_range(D.data) ** 2, D.indices, D.indptr), shape=D.shape)


def _in_range(X: Array) -> Array:
    """Return X, scaled by a power of two if its squares would overflow or vanish; affinities do not see the scale."""
    largest = np.abs(X).max(initial=0.0)
    if largest == 0 or 1e-100 < largest < 1e100:
        return X
    return np.ldexp(X, -int(np.frexp(largest)[1]))
