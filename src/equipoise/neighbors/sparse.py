"""Exact neighbour search in a sparse table, one block of rows at a time; the table is never made dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances

from .._types import Array, Matrix
from ..arrays.blocks import row_blocks
from ..progress import advance_callback, stage
from .vectors import (
    EUCLIDEAN,
    Graph,
    check_metric_results,
    check_range,
    is_euclidean,
    product_distances,
    smallest,
    undefined_for_row,
)

PRODUCTS = (*EUCLIDEAN, "sqeuclidean", "cosine", "inner_product")  # functions of products x·y
SCIKIT = ("manhattan", "cityblock", "l1")  # other metrics that scikit-learn supports for sparse rows
SPARSE_METRICS = PRODUCTS + SCIKIT
ARRAYS = 4  # number of block-sized arrays that exist at once


def check_sparse_metric(metric: Any) -> None:
    """Raise ValueError for a metric that is not available for sparse rows."""
    if not callable(metric) and metric not in SPARSE_METRICS:
        raise ValueError(
            f"metric={metric!r} is not available for sparse X; choose from {', '.join(SPARSE_METRICS)},"
            " or make X dense with X.toarray()"
        )


def search_work(X: Matrix, metric: Any) -> float:
    """Return the approximate number of multiplications and comparisons of an exact search in CSR X (n, D)."""
    n = float(X.shape[0])
    if metric not in PRODUCTS:
        return n * (X.nnz + n)
    return float(np.square(np.bincount(X.indices).astype(np.float64)).sum()) + n * n


class SparseSearcher:
    """Finds the rows of a sparse table that are nearest to given rows, by an exact search.

    Squared Euclidean distances are computed as ‖x‖² + ‖y‖² − 2 x·y. The two norms and the product are summed in the
    same order, so the distance between equal rows is exactly 0.

    Parameters
    ----------
    X : CSR matrix of float64, shape (n, D)
        The table; its column indices must be sorted.
    metric : str or callable
        One of `SPARSE_METRICS`, or a function of two rows.
    """

    def __init__(self, X: Matrix, metric: Any):
        check_sparse_metric(metric)
        check_range(X, metric)
        self.metric = metric
        self.X = self._rows(X)
        if self.metric in PRODUCTS:
            self._XT = self.X.T.tocsr()
            self._norm2 = _norm2(self.X)

    def within(self, k: int) -> Graph:
        """Return the k other rows of the table nearest to each of its rows."""
        n = self.X.shape[0]
        indices, distances = np.empty((n, k), np.int32), np.empty((n, k))
        stage("neighbours", n)
        advance = advance_callback()
        for rows, block in self._blocks(self.X):
            own = np.arange(len(block)), np.arange(rows.start, rows.stop)
            block[own] = 0.0
            self._check(block, rows.start)
            block[own] = np.inf
            near = np.argpartition(block, k - 1, axis=1)[:, :k]
            indices[rows], distances[rows] = near, self._finish(np.take_along_axis(block, near, axis=1))
            advance(rows.stop - rows.start)
        return Graph(indices, distances)

    def nearest(self, X_new: Matrix, k: int) -> Graph:
        """Return the k rows of the table nearest to each row of X_new (m, D); the k neighbours are sorted by index."""
        parts = []
        for rows, block in self._blocks(self._rows(X_new)):
            self._check(block, rows.start, new=True)
            near = smallest(block, k)
            parts.append(Graph(near.indices, self._finish(near.distances)))
        return Graph(np.vstack([part.indices for part in parts]), np.vstack([part.distances for part in parts]))

    def all(self) -> Array:
        """Return the distances between all rows, (n, n)."""
        D = np.empty((self.X.shape[0],) * 2)
        for rows, block in self._blocks(self.X):
            own = np.arange(len(block)), np.arange(rows.start, rows.stop)
            block[own] = np.inf
            D[rows] = self._finish(block)
            D[rows][own] = 0.0
        return D

    def to_all(self, X_new: Matrix) -> Array:
        """Return the distances (m, n) from each row of X_new (m, D) to every row of the table."""
        return np.vstack([self._finish(block) for _, block in self._blocks(self._rows(X_new))])

    def _rows(self, X: Matrix) -> Matrix:
        """Return the rows that are compared: unit vectors for the cosine metric, otherwise X itself."""
        return self.unit_rows(X) if self.metric == "cosine" else X

    @staticmethod
    def unit_rows(X: Matrix) -> Matrix:
        """Return the rows of X divided by their norms; raise ValueError if a row is zero."""
        norm = np.sqrt(_norm2(X))
        if not norm.all():
            raise undefined_for_row(int(norm.argmin()), "cosine")
        return (sparse.diags(1 / norm) @ X).tocsr()

    def _blocks(self, Q: Matrix) -> Iterator[tuple[slice, Array]]:
        """Yield slices of the rows of Q, each with the scores (q, n) of its q rows against all n rows of the table.

        A small score means a near row. Scores are distances, squared distances, or −q·x, depending on the metric.
        """
        for rows in row_blocks(Q.shape[0], 8 * ARRAYS * self.X.shape[0]):
            yield rows, self._scores(Q[rows])

    def _scores(self, Q: Matrix) -> Array:
        """Return the scores (q, n) of the rows of Q (q, D) against all rows of the table; see `_blocks`."""
        if self.metric not in PRODUCTS:
            return np.asarray(pairwise_distances(Q, self.X, metric=self.metric))
        G = (Q @ self._XT).toarray()
        if self.metric == "inner_product":
            return -G
        G *= -2
        G += _norm2(Q)[:, None] + self._norm2  # N + N − 2N = 0 for equal rows
        return np.maximum(G, 0.0, out=G)

    def _check(self, scores: Array, start: int, *, new: bool = False) -> None:
        """Raise ValueError if a score is not a valid distance; scores of the metrics in `PRODUCTS` are not checked."""
        if self.metric not in PRODUCTS:
            check_metric_results(scores, self.metric, start, new=new)

    def _finish(self, scores: Array) -> Array:
        """Return the distances for scores from `_blocks`.

        If rows of the table are compared with the table, the score of each row against itself must be infinite, because
        for metric="inner_product" the largest product of a row is taken over the other rows.
        """
        if self.metric == "inner_product":
            return product_distances(-scores)
        if is_euclidean(self.metric):
            return np.sqrt(scores)
        return scores / 2 if self.metric == "cosine" else scores


def _norm2(X: Matrix) -> Array:
    """Return ‖x‖² for every row, summed in the same order as x·y."""
    parts = [(X[i : i + 64] @ X[i : i + 64].T).diagonal() for i in range(0, X.shape[0], 64)]
    return np.concatenate(parts) if parts else np.empty(0)
