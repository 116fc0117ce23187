"""Defines `Table`, the input for a dense table with a metric."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import euclidean_distances, pairwise_distances
from sklearn.preprocessing import normalize

from .. import _core
from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.blocks import row_blocks
from ..data import check_distances, check_finite
from ..data.checks.dissimilarities import check_size
from ..geometry.flat import factor
from ..linalg.pca import one_blas_thread, principal_components
from ..linalg.row_products import by_row_blocks
from ..neighbors.search import MIN_RECALL, Searcher, nearest_neighbors
from ..neighbors.vectors import (
    VECTORS,
    Graph,
    Vectors,
    is_euclidean,
    make_vectors,
    metric_parameters,
    product_distances,
    scale_down,
)
from .base import Input, Nearby, check_block, check_comparable, nearby, square

PAIRS = 64  # pairs per call of scikit-learn: the call itself costs more than unneeded distances in its block; chosen


@tagged("inputs.table.Table")
class Table(Input):
    """Input whose points are the rows of a dense table, with a metric.

    Parameters
    ----------
    X : array of float64, shape (n, D)
    metric : str or callable
        One of `METRICS`, or a function of two rows.
    h : array, default=None
        Metric tensor (D, D): d² = (x_i − x_j)ᵀ h (x_i − x_j), with metric="euclidean".
    """

    _vectors: Vectors | None = None  # the rows as vectors for distances of pairs, made when first needed
    mean: Array | None = None  # (D,): the row subtracted from all rows, if any

    def __init__(self, X: Array, metric: Any, h: Any = None):
        self.metric = metric
        self._A = None if h is None else factor(h, "h", X.shape[1])
        self.X = self._apply_h(X)
        self.n = len(X)
        self.limit = min(X.shape)
        self._searcher: Searcher | None = None
        self._places: dict[bytes, int] | None = None

    def _apply_h(self, X: Array) -> Array:
        if self._A is None:
            return X
        with np.errstate(over="ignore", invalid="ignore"):
            X = np.ascontiguousarray(X @ self._A.T)
        check_finite(X, "X in the metric h")
        return X

    @property
    def coordinates(self) -> Array:
        return self.X

    @property
    def points(self) -> Array | None:
        return self.X if is_euclidean(self.metric) else None

    def centered(self) -> Table:
        """Return a Euclidean table with the mean row subtracted; any other table unchanged.

        Stress uses this table, because differences between centred rows keep more digits. Raise ValueError if the
        values are too large or too small for stress (see `check_size`).
        """
        if not is_euclidean(self.metric) or self.mean is not None:
            return self
        result = copy(self)
        result.mean = self.X.mean(axis=0)
        result.X = self.X - result.mean
        check_size(2 * float(np.abs(result.X).max()))
        return result

    @cached_property
    def _parameters(self) -> dict[str, Array]:
        return metric_parameters(self.X, self.metric)

    @cached_property
    def _centred(self) -> Array:
        return self.X - self.X.mean(axis=0)

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        to = self.X if columns is None else self.X[columns]
        return check_block(self._between(self.X[rows], to), rows, columns)

    def block_by_products(self, rows: Array, columns: Array | None = None) -> Array:
        if not is_euclidean(self.metric):
            return self.block(rows, columns)
        # From centred rows: errors of up to about 1e-8 of the largest distance, also between equal points.
        V = self._centred
        with one_blas_thread():
            return np.asarray(euclidean_distances(V[rows], V if columns is None else V[columns]))

    def pairs(self, i: Array, j: Array) -> Array:
        if not is_euclidean(self.metric):
            return self._pairs_by_metric(i, j)
        d = np.empty(len(i))
        for part in row_blocks(len(i), 8 * self.X.shape[1]):
            d[part] = np.linalg.norm(self.X[i[part]] - self.X[j[part]], axis=1)
        return d

    def _pairs_by_metric(self, i: Array, j: Array) -> Array:
        """Return the distances of pairs under a metric that is not Euclidean.

        They are computed from `neighbors.vectors.Vectors` if possible (see `_has_vectors`), only for these pairs if
        the metric is a function, and otherwise by a few calls to scikit-learn.
        """
        if self._vectors is None and self._has_vectors():
            self._vectors = make_vectors(self.X, self.metric)
        if self._vectors is not None:
            return self._vectors.distances(self._vectors.own[i], j[:, None])[:, 0]
        if not isinstance(self.metric, str):  # a function: each pair once
            return super().pairs(i, j)
        d, order = np.empty(len(i)), np.argsort(i, kind="stable")
        for start in range(0, len(i), PAIRS):
            part = order[start : start + PAIRS]
            rows, which = np.unique(i[part], return_inverse=True)
            columns, where = np.unique(j[part], return_inverse=True)
            d[part] = self.block(rows, columns)[which, where]
        return d

    def _has_vectors(self) -> bool:
        """Return whether the distances of pairs can be computed from `neighbors.vectors.Vectors`.

        For the cosine and correlation metrics, the result is False if a row is constant, because the distances of such
        a row can be undefined.
        """
        if not isinstance(self.metric, str) or self.metric not in VECTORS or self.metric == "inner_product":
            return False
        return self.metric not in ("cosine", "correlation") or bool(np.ptp(self.X, axis=1).all())

    def stored_pairs(self, pattern: Matrix, n_threads: int) -> Array:
        width = np.diff(pattern.indptr)
        if not is_euclidean(self.metric) or width.min() != width.max() or not pattern.nnz:
            return super().stored_pairs(pattern, n_threads)
        d = np.empty((self.n, width[0]))
        rows = np.arange(self.n, dtype=np.int32)
        _core.pair_distances(self.X, pattern.indices.reshape(d.shape), rows, d, n_threads, squared=False)
        return d.ravel()

    def condensed(self, dtype: type[np.floating], n_threads: int) -> Array:
        if not is_euclidean(self.metric) or dtype is not np.float32:
            return super().condensed(dtype, n_threads)
        d = np.empty(self.n * (self.n - 1) // 2, dtype)
        _core.condensed_distances(self.X.astype(np.float32), d, n_threads)
        return d

    def check_power(self, power: int) -> None:
        check_finite(self.X, "X", power=power)

    def squared(self) -> Array:
        if is_euclidean(self.metric) or self.metric == "inner_product":
            self.exponent = self.exponent or 0
            X = self._in_range(self.X)
            D2 = cdist(X, X, "sqeuclidean") if is_euclidean(self.metric) else _squared_from_products(X)
            return scale_down(D2, 2 * self.exponent)
        name = getattr(self.metric, "__name__", self.metric)
        D = pairwise_distances(self.X, metric=self.metric, **self._parameters)
        D = check_distances(D, f"the distance matrix with metric={name}")
        return square(D, self.fix_exponent(D))

    def neighbors(self, k: int, n_threads: int, min_recall: float = MIN_RECALL) -> tuple[Matrix, float]:
        X = self._in_range(self.X)

        def search() -> Graph:
            return nearest_neighbors(X, k, self.metric, n_threads=n_threads, min_recall=min_recall)

        named = isinstance(self.metric, str)  # functions with the same name may differ
        graph = self.lookup(X, k, [self.metric, min_recall], search) if self.lookup and named else search()
        return graph.into_squared(self.n, self.fix_exponent(graph.distances)), graph.recall

    def principal(self, d: int, rng: np.random.RandomState | None) -> Array:
        return principal_components(self.X, d, rng)

    def check_new(self, X: Any) -> Array:
        X = X.toarray() if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        check_finite(X, "X")
        X = self._apply_h(X)
        return X if self.mean is None else X - self.mean

    def nearest(self, X: Any, k: int, n_threads: int) -> Nearby:
        if self._searcher is None:
            self._searcher = Searcher(self._in_range(self.X), self.metric, n_threads)
        graph = self._searcher.nearest(self._in_range(X), k)
        return nearby(graph, self.n, self.exponent, self._equal_rows(X))

    def rows(self, i: Array) -> Array:
        return self.X[i]

    def squared_to_all(self, X: Array) -> Array:
        if is_euclidean(self.metric):
            X, V = self.scaled(X), self.scaled(self.X)
            center = V.mean(axis=0)  # products lose digits far from the origin
            V = V - center
            return by_row_blocks(lambda rows: euclidean_distances(rows, V, squared=True), X - center)
        D = self._from_new(X, self.X)
        return np.asarray(square(D, self.exponent or 0))

    def new_block(self, X: Array, columns: Array) -> Array:
        return self._from_new(X, self.X[columns])

    def _from_new(self, X: Array, B: Array) -> Array:
        """Return the distances (m, k) from rows X (m, D) to rows B (k, D); row i depends only on X[i] and B."""
        if not (isinstance(self.metric, str) and self.metric == "cosine"):
            return self._between(X, B)
        V = normalize(B)
        return by_row_blocks(lambda rows: np.clip(1 - normalize(rows) @ V.T, 0, 2), X)

    def _between(self, A: Array, B: Array) -> Array:
        check_comparable(self.metric)
        if is_euclidean(self.metric):  # from differences, each entry on its own: a row does not depend on its block
            return cdist(A, B)
        return np.asarray(pairwise_distances(A, B, metric=self.metric, **self._parameters), dtype=np.float64)

    def _equal_rows(self, X: Array) -> Array | None:
        """Return for each row of X the index of the equal row of the table, or −1 if there is none.

        Return None if metric is not "inner_product": then `nearby` recognises equal rows by their distance of 0.
        """
        if self.metric != "inner_product":
            return None
        if self._places is None:
            self._places = {(row + 0.0).tobytes(): i for i, row in enumerate(self.X)}  # −0 + 0 = 0
        return np.array([self._places.get((row + 0.0).tobytes(), -1) for row in X])

    def __getstate__(self) -> dict[str, Any]:
        recomputed = ("_centred", "_parameters", "_row_exponent", "_vectors")
        state = {name: value for name, value in self.__dict__.items() if name not in recomputed}
        return {**state, "_searcher": None, "_places": None}  # large, and quick to rebuild


def _squared_from_products(X: Array) -> Array:
    """Return d² (n, n) between all rows under metric="inner_product" (see `neighbors.vectors.InnerProduct`)."""
    with one_blas_thread():
        S = X @ X.T
    np.fill_diagonal(S, -np.inf)  # the constant of each row is its largest product with another row
    D = product_distances(S)
    np.fill_diagonal(D, 0.0)
    return np.square(D, out=D)
