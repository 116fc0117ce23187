"""What stress compares a map with: dissimilarities δ between n points, from a table, a matrix or a metric space."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from .. import _core
from .._tags import tagged
from .._types import Array, Matrix
from ..data import as_array, check_finite, check_sparse_table, check_table
from ..data.checks.dissimilarities import check_dissimilarities, check_size
from ..neighbors.sparse import check_sparse_metric
from ..neighbors.vectors import metric_parameters
from . import METRICS

BLOCK = 2**22  # dissimilarities computed at once, 32 MB
EUCLIDEAN = ("euclidean", "l2")


@runtime_checkable
class Space(Protocol):
    """n points with a distance: the part of `spaces.MetricSpace` that is used here."""

    n: int

    def distances(self, i: Any = None, j: Any = None) -> Array:
        """Return the distances (len(i), len(j)) from points i to points j."""
        ...


class Dissimilarities:
    """δ between n points, in blocks; NaN where one is missing."""

    n: int
    features: int  # columns that new rows must have
    points: Array | None = None  # (n, D) in float64, centred, if δ is their Euclidean distance
    known: Matrix | None = None  # CSR of the known pairs, if only some are

    def block(self, i: Array, j: Array) -> Array:
        """Return δ (len(i), len(j)), float64."""
        raise TypeError(f"{type(self).__name__} must define block(i, j)")

    def along(self, pairs: Matrix, n_threads: int) -> Array:
        """Return δ of the entries of a CSR matrix (n, n), in their order."""
        delta = np.empty(pairs.nnz)
        for i in range(self.n):
            row = slice(pairs.indptr[i], pairs.indptr[i + 1])
            delta[row] = self.block(np.array([i]), pairs.indices[row])[0]
        return delta

    def from_new(self, X: Any, j: Array) -> Array:
        """Return δ (m, len(j)) from new rows, checked here, to the points j."""
        raise TypeError(f"{type(self).__name__} must define from_new(X, j)")

    def condensed(self, dtype: type[np.floating], n_threads: int) -> Array:
        """Return δ of the pairs i < j, row by row; NaN where it is missing."""
        n = self.n
        delta = np.empty(n * (n - 1) // 2, dtype)
        if self.points is not None and dtype is np.float32:
            _core.condensed_distances(self.points.astype(np.float32), delta, n_threads)
            return delta
        step, end = max(1, BLOCK // n), 0
        for start in range(0, n - 1, step):
            rows = np.arange(start, min(start + step, n - 1))
            block = self.block(rows, np.arange(start, n))
            for r in range(len(rows)):
                size = n - 1 - rows[r]
                delta[end : end + size] = block[r, r + 1 :]
                end += size
        return delta


def _checked(D: Array, i: Array, j: Array) -> Array:
    """Return computed distances (len(i), len(j)), or say between which points one is none."""
    bad = np.argwhere(~(D >= 0) | np.isinf(D))
    if bad.size:
        a, b = bad[0]
        raise ValueError(f"the distance between points {i[a]} and {j[b]} is {D[a, b]}; it must be finite, not negative")
    return D


@tagged("dissimilarities.Table")
class Table(Dissimilarities):
    """Rows of numbers (n, D), dense or CSR, under a metric."""

    def __init__(self, X: Matrix, metric: Any):
        self.n, self.features = X.shape
        self.metric = metric
        self._parameters = metric_parameters(X, metric)
        self.X = X
        self.mean = np.zeros(self.features)
        if isinstance(metric, str) and metric in EUCLIDEAN and not sparse.issparse(X):
            self.mean = X.mean(axis=0)
            self.X = self.points = X - self.mean
            check_size(2 * float(np.abs(self.points).max()))

    def block(self, i: Array, j: Array) -> Array:
        return _checked(self._between(self.X[i], self.X[j]), i, j)

    def along(self, pairs: Matrix, n_threads: int) -> Array:
        width = np.diff(pairs.indptr)
        if self.points is None or width.min() != width.max() or not pairs.nnz:
            return super().along(pairs, n_threads)
        d2 = np.empty((self.n, width[0]))
        _core.pair_distances(self.points, pairs.indices.reshape(d2.shape), d2, n_threads)
        return np.sqrt(d2, out=d2).ravel()

    def from_new(self, X: Any, j: Array) -> Array:
        if sparse.issparse(self.X):
            return self._between(check_sparse_table(X, least=1), self.X[j])
        X = X.toarray() if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        check_finite(X, "X")
        return self._between(X - self.mean, self.X[j])

    def _between(self, A: Matrix, B: Matrix) -> Array:
        if self.points is not None:  # by differences, each entry by itself: a row never depends on its batch
            return cdist(A, B)
        return np.asarray(pairwise_distances(A, B, metric=self.metric, **self._parameters), dtype=np.float64)


@tagged("dissimilarities.Given")
class Given(Dissimilarities):
    """A dense matrix (n, n); NaN where a dissimilarity is missing."""

    def __init__(self, D: Array):
        self.D = D
        self.n = self.features = len(D)
        known = ~np.isnan(D)
        if not known.all():
            rows, columns = np.nonzero(known & ~np.eye(self.n, dtype=bool))
            self.known = sparse.csr_matrix((D[rows, columns], (rows, columns)), shape=D.shape)

    def block(self, i: Array, j: Array) -> Array:
        return self.D[np.ix_(i, j)]

    def from_new(self, X: Any, j: Array) -> Array:
        if X.shape[1] != self.n or not ((X >= 0) & np.isfinite(X)).all():
            raise ValueError(f"new rows are distances (m, {self.n}) to the fitted points, finite and not negative")
        return np.asarray(X, dtype=np.float64)[:, j]


@tagged("dissimilarities.KnownPairs")
class KnownPairs(Dissimilarities):
    """A sparse matrix (n, n) whose stored entries are known; each pair in both directions."""

    def __init__(self, D: Matrix):
        self.known = D
        self.n = self.features = D.shape[0]

    def from_new(self, X: Any, j: Array) -> Array:
        raise ValueError("transform needs distances to all fitted points, which a sparse matrix did not have")


@tagged("dissimilarities.InSpace")
class InSpace(Dissimilarities):
    """The distances of a metric space."""

    def __init__(self, space: Space):
        self.space = space
        self.n = self.features = space.n

    def block(self, i: Array, j: Array) -> Array:
        return _checked(np.asarray(self.space.distances(i, j), dtype=np.float64), i, j)

    def from_new(self, X: Any, j: Array) -> Array:
        raise ValueError("transform needs a table or distances; a metric space has no points but its own")


def make_dissimilarities(X: Any, metric: Any) -> Dissimilarities:
    """Return X checked: a table (n, D) under a metric, distances if metric="precomputed", or a metric space."""
    if isinstance(X, Space):
        if not (isinstance(metric, str) and metric == "euclidean"):
            raise ValueError(f"a metric space has its own distance; leave metric alone instead of {metric!r}")
        if X.n < 2:
            raise ValueError(f"at least 2 points are needed, the space has {X.n}")
        return InSpace(X)
    if not callable(metric) and not (isinstance(metric, str) and metric in METRICS and metric != "inner_product"):
        names = ", ".join(name for name in METRICS if name != "inner_product")
        raise ValueError(f"metric must be a callable or one of {names}; got {metric!r}")
    X = as_array(X)
    if isinstance(metric, str) and metric == "precomputed":
        D = check_dissimilarities(X)
        return KnownPairs(D) if sparse.issparse(D) else Given(D)
    if sparse.issparse(X):
        check_sparse_metric(metric)
        return Table(check_sparse_table(X), metric)
    return Table(check_table(X), metric)
