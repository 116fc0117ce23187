"""Defines `SparseTable`, the input for a sparse table with a metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances

from .._tags import tagged
from .._types import Array, Matrix
from .._warn import warn
from ..arrays.csr import make_csr
from ..data import check_distances, check_finite, check_sparse_table
from ..linalg.pca import finish, one_blas_thread
from ..linalg.randomized import Directions
from ..neighbors.search import MIN_RECALL, Searcher, nearest_neighbors
from ..neighbors.sparse import PRODUCTS, SparseSearcher, search_work
from ..neighbors.vectors import Graph, in_range
from .base import Input, Nearby, check_block, check_comparable, nearby, square

# Rows are reduced first if an exact search needs more multiplications; chosen. Measured: 1e9 take 4 s on one core.
SEARCH_WORK = 2e10
RANK = 100  # dimension to which rows are reduced; chosen


@tagged("inputs.sparse_table.SparseTable")
class SparseTable(Input):
    """Input whose points are the rows of a sparse table, with a metric. The table is never converted to a dense one.

    The neighbours are exact if finding them takes at most `SEARCH_WORK` multiplications, or if the table has at most
    `RANK` = 100 rows or columns. For larger tables, neighbours are found among the projections (n, 100) of the rows on
    the 100 leading singular vectors, with a warning; this requires a metric in `neighbors.sparse.PRODUCTS`.

    Parameters
    ----------
    X : CSR matrix of float64, shape (n, D)
    metric : str or callable
        One of `neighbors.sparse.SPARSE_METRICS`, or a function of two rows.
    """

    def __init__(self, X: Matrix, metric: Any):
        self.X, self.metric = X, metric
        self.n = X.shape[0]
        self.limit = min(X.shape)
        self._reduced: _Reduced | None = None
        self._exact: SparseSearcher | None = None
        self._places: dict[bytes, int] | None = None

    @property
    def coordinates(self) -> Matrix:
        return self.X

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        return check_block(self._between(self.X[rows], self.X if columns is None else self.X[columns]), rows, columns)

    def _between(self, A: Matrix, B: Matrix) -> Array:
        # scikit-learn's formula, for stress and measures. The searcher's distances differ in the last digits: they are
        # exactly 0 between equal rows, as neighbours need it.
        check_comparable(self.metric)
        return np.asarray(pairwise_distances(A, B, metric=self.metric), dtype=np.float64)

    def check_power(self, power: int) -> None:
        check_finite(self.X, "X", power=power)

    def squared(self) -> Array:
        name = getattr(self.metric, "__name__", self.metric)
        D = self._searcher().all()
        if self.metric != "inner_product":  # not symmetric: its distances are comparable only within a row
            D = check_distances(D, f"the distance matrix with metric={name}")
        return square(D, self.fix_exponent(D))

    def neighbors(self, k: int, n_threads: int, min_recall: float = MIN_RECALL) -> tuple[Matrix, float]:
        if min(self.X.shape) > RANK and search_work(self.X, self.metric) > SEARCH_WORK:
            self._reduced = self._reduce()
            graph = self._reduced.within(k, n_threads, min_recall)
        else:
            graph = self._searcher().within(k)
        return graph.into_squared(self.n, self.fix_exponent(graph.distances)), graph.recall

    def check_new(self, X: Any) -> Matrix:
        return check_sparse_table(X, min_rows=1)

    def nearest(self, X: Matrix, k: int, n_threads: int) -> Nearby:
        rows = self._in_range(X)
        graph = (
            self._searcher().nearest(rows, k) if self._reduced is None else self._reduced.nearest(rows, k, n_threads)
        )
        return nearby(graph, self.n, self.exponent, self._equal_rows(X))

    def rows(self, i: Array) -> Matrix:
        return self.X[i]

    def squared_to_all(self, X: Matrix) -> Array:
        return np.asarray(square(self._searcher().to_all(self._in_range(X)), self.exponent or 0))

    def new_block(self, X: Matrix, columns: Array) -> Array:
        return self._between(X, self.X[columns])

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        with one_blas_thread():
            X = make_csr(in_range(self.X.data), self.X.indices, self.X.indptr, self.X.shape)
            return finish(Directions(X, d, centered=True).scores(X), d, rng)

    def _searcher(self) -> SparseSearcher:
        if self._exact is None:
            self._exact = SparseSearcher(self._in_range(self.X), self.metric)
        return self._exact

    def _reduce(self) -> _Reduced:
        n, D = self.X.shape
        if self.metric not in PRODUCTS:
            raise ValueError(
                f"{n:,} sparse rows are too many for an exact search with metric={self.metric!r}; use"
                ' metric="euclidean", "cosine" or "inner_product", or pass the neighbours as X=(indices, distances)'
                ' with metric="precomputed"'
            )
        warn(
            f"the neighbours of {n:,} sparse rows are approximate: they are found in the space of the {RANK} leading"
            f" singular vectors, not in all {D} columns; for exact neighbours pass them as X=(indices, distances) with"
            ' metric="precomputed"',
        )
        return _Reduced(self._in_range(self.X), self.metric)

    def _equal_rows(self, X: Matrix) -> Array | None:
        """Return for each row of X the index of the equal row of the table, or −1 if there is none.

        Return None if metric is not "inner_product" and the search is exact: then `nearby` recognises equal rows by
        their distance of 0.
        """
        if self.metric != "inner_product" and self._reduced is None:
            return None
        if self._places is None:
            self._places = {key: i for i, key in enumerate(_keys(self.X))}
        return np.array([self._places.get(key, -1) for key in _keys(X)])

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "_row_exponent"}
        return {**state, "_exact": None, "_places": None}  # large, and quick to rebuild


@tagged("inputs.sparse_table._Reduced")
class _Reduced:
    """Searches for neighbours among sparse rows that are projected on their leading singular vectors.

    No other projection of the same rank preserves the products x·y of all pairs better.
    """

    def __init__(self, X: Matrix, metric: str):
        self.metric = metric
        self._searcher: Searcher | None = None
        # Distances do not depend on the mean row; angles and products do.
        with one_blas_thread():
            self.directions = Directions(self._rows(X), RANK, centered=metric not in ("cosine", "inner_product"))
        self.V = self._scores(X)

    def _rows(self, X: Matrix) -> Matrix:
        return SparseSearcher.unit_rows(X) if self.metric == "cosine" else X

    def _scores(self, X: Matrix) -> Array:
        with one_blas_thread():
            return self.directions.scores(self._rows(X))

    def _graph(self, graph: Graph) -> Graph:
        if self.metric != "cosine":
            return graph
        return Graph(graph.indices, graph.distances / 2, graph.recall)  # ‖x̂ − ŷ‖² = 2 (1 − cos)

    def within(self, k: int, n_threads: int, min_recall: float) -> Graph:
        metric = self._dense_metric
        return self._graph(nearest_neighbors(self.V, k, metric, n_threads=n_threads, min_recall=min_recall))

    def nearest(self, X: Matrix, k: int, n_threads: int) -> Graph:
        if self._searcher is None:
            self._searcher = Searcher(self.V, self._dense_metric, n_threads)
        return self._graph(self._searcher.nearest(self._scores(X), k))

    @property
    def _dense_metric(self) -> str:
        return "sqeuclidean" if self.metric == "cosine" else self.metric

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_searcher": None}


def _keys(X: Matrix) -> list[bytes]:
    """Return a dictionary key for each row of CSR X: the columns and values of its nonzeros, as bytes."""
    X = sparse.csr_matrix((X.data, X.indices.astype(np.int64), X.indptr), shape=X.shape)
    X.eliminate_zeros()
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [X.indices[a:b].astype(np.int64).tobytes() + X.data[a:b].tobytes() for a, b in ends]
