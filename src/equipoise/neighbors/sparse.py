"""Nearest rows of a sparse table, exactly: products of a few rows at a time with all, never the whole table dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances

from .._types import Array, Matrix
from ..progress import advance_callback, stage
from .graph import Graph, smallest
from .vectors import product_distances

PRODUCTS = ("euclidean", "l2", "sqeuclidean", "cosine", "inner_product")  # from x·y alone
SCIKIT = ("manhattan", "cityblock", "l1")  # scikit-learn's metrics for sparse rows, beyond those
SPARSE_METRICS = PRODUCTS + SCIKIT
BLOCK = 2**20  # distances held at once, 8 MB; a handful of arrays of that size are alive


def check_sparse_metric(metric: Any) -> None:
    """Raise for a metric that has no form for sparse rows."""
    if not callable(metric) and metric not in SPARSE_METRICS:
        raise ValueError(
            f"metric={metric!r} is not defined for sparse X; use one of {', '.join(SPARSE_METRICS)},"
            " or make X dense with X.toarray()"
        )


def search_work(X: Matrix, metric: Any) -> float:
    """Return how many numbers an exact search of CSR X (n, D) handles: products, and n² distances to choose from."""
    n = float(X.shape[0])
    if metric not in PRODUCTS:
        return n * (X.nnz + n)
    return float(np.square(np.bincount(X.indices).astype(np.float64)).sum()) + n * n


class SparseSearcher:
    """Nearest rows of CSR X (n, D), float64 with sorted columns, by exact distances.

    Euclidean distances come from ‖x‖² + ‖y‖² − 2 x·y with all three summed in one order, so equal rows are at 0.
    """

    def __init__(self, X: Matrix, metric: Any):
        check_sparse_metric(metric)
        self.metric = metric
        self.X = self._rows(X)
        if self.metric in PRODUCTS:
            self._XT = self.X.T.tocsr()
            self._norm2 = _norm2(self.X)

    def within(self, k: int) -> Graph:
        """Return the k nearest of the other rows to each row."""
        n = self.X.shape[0]
        indices, distances = np.empty((n, k), np.int32), np.empty((n, k))
        stage("neighbours", n)
        advance = advance_callback()
        for rows, block in self._blocks(self.X):
            block[np.arange(len(block)), np.arange(rows.start, rows.stop)] = np.inf
            near = np.argpartition(block, k - 1, axis=1)[:, :k]
            indices[rows], distances[rows] = near, self._finish(np.take_along_axis(block, near, axis=1))
            advance(rows.stop - rows.start)
        return Graph(indices, distances)

    def nearest(self, X_new: Matrix, k: int) -> Graph:
        """Return the k nearest rows to each row of X_new (m, D), each by itself."""
        parts = []
        for _, block in self._blocks(self._rows(X_new)):
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
        """Return the distances (m, n) from each row of X_new to every row."""
        return np.vstack([self._finish(block) for _, block in self._blocks(self._rows(X_new))])

    def _rows(self, X: Matrix) -> Matrix:
        return self.unit_rows(X) if self.metric == "cosine" else X

    @staticmethod
    def unit_rows(X: Matrix) -> Matrix:
        """Return the rows divided by their norms."""
        norm = np.sqrt(_norm2(X))
        if not norm.all():
            i = int(norm.argmin())
            raise ValueError(f"row {i} has no direction, so metric='cosine' gives it no distances; drop it")
        return (sparse.diags(1 / norm) @ X).tocsr()

    def _blocks(self, Q: Matrix) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of rows and what orders the table for them, (rows, n): distances, squares of them, or −q·x."""
        step = max(1, BLOCK // self.X.shape[0])
        for start in range(0, Q.shape[0], step):
            rows = slice(start, min(start + step, Q.shape[0]))
            yield rows, self._order(Q[rows])

    def _order(self, Q: Matrix) -> Array:
        if self.metric not in PRODUCTS:
            return np.asarray(pairwise_distances(Q, self.X, metric=self.metric))
        G = (Q @ self._XT).toarray()
        if self.metric == "inner_product":
            return -G
        G *= -2
        G += _norm2(Q)[:, None] + self._norm2  # N + N − 2N = 0 for equal rows
        return np.maximum(G, 0.0, out=G)

    def _finish(self, order: Array) -> Array:
        """Return distances from what `_blocks` gave; infinite entries stand for the row itself."""
        if self.metric == "inner_product":
            return product_distances(-order)
        if self.metric in ("euclidean", "l2"):
            return np.sqrt(order)
        return order / 2 if self.metric == "cosine" else order


def _norm2(X: Matrix) -> Array:
    """Return ‖x‖² for every row, by the very sums that give x·y."""
    parts = [(X[i : i + 64] @ X[i : i + 64].T).diagonal() for i in range(0, X.shape[0], 64)]
    return np.concatenate(parts) if parts else np.empty(0)
