"""Defines `Input`, the interface that all kinds of input data share: n points and the distances between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..arrays.blocks import FIXED_ENTRIES
from ..linalg.pca import principal_coordinates
from ..neighbors.search import MIN_RECALL, nearest_in_rows
from ..neighbors.vectors import Graph, ScaledDistances, scale_down

NeighborLookup = Callable[[Array, int, list[Any], Callable[[], Graph]], Graph]  # (table, k, settings, search) → graph


class Nearby(NamedTuple):
    """The fitted points nearest to each of m new rows."""

    d2: Matrix  # CSR (m, n): squared distances to the nearest points
    twins: Array  # (m,): index of the fitted point that equals the row, or −1


class Input(ScaledDistances):
    """The n points of the user's data and the distances between them, validated once.

    A subclass defines `block`, and overrides the other methods where it can avoid computing all n² distances. Methods
    that it cannot support raise ValueError.

    Attributes
    ----------
    n : int
        Number of points.
    limit : int
        Largest possible dimension of a map: the number of points or of columns, whichever is smaller.
    sparse : bool
        Whether only some pairs are known, and their distances or affinities are stored in a sparse matrix.
    recall : float
        If `sparse`, the recall of the search that found the known pairs; 1 if the search was exact or there was none.
    on_device : bool
        Whether the data is a PyTorch tensor (`DeviceTable`).
    reads_frames : bool
        Whether new rows are tables that may contain categories, dates and missing values.
    has_principal : bool
        Whether `principal` is available.
    metric : str, callable or None
        The metric of a table; None if the input defines its own distances.
    lookup : callable or None
        Function that returns the neighbours of a dense table from a cache, or searches for them if they are not cached;
        None if there is no cache.
    """

    n: int
    limit: int
    metric: Any = None
    sparse = False
    recall = 1.0
    on_device = False
    reads_frames = False
    has_principal = True
    lookup: NeighborLookup | None = None

    @property
    def limited_by(self) -> str:
        """What determines `limit`, as text for error messages, such as "n_samples=50"."""
        return f"n_samples={self.n}" if self.limit == self.n else f"n_features={self.limit}"

    @property
    def points(self) -> Array | None:
        """Coordinates (n, D), float64, if distances are Euclidean distances between dense rows; else None."""
        return None

    @property
    def coordinates(self) -> Matrix | None:
        """The rows (n, D) of a table under any metric, as an array, CSR matrix or tensor; None if there is no table."""
        return None

    @property
    def affinities(self) -> Matrix | None:
        """Precomputed affinities (n, n), dense or CSR; None if the input has distances instead."""
        return None

    @property
    def known(self) -> Matrix | None:
        """CSR matrix (n, n) of the known distances if some distances are missing; None if all are known."""
        return None

    def centered(self) -> Input:
        """Return a dense Euclidean table with its mean row subtracted; any other input is returned unchanged."""
        return self

    def warn_if_not_metric(self) -> None:
        """Warn if the input is a dense matrix of distances that violate the triangle inequality."""

    def check_power(self, power: int) -> None:
        """Raise ValueError if x^power would overflow for a coordinate or precomputed distance x; see `check_finite`."""

    # Distances between the n points

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        """Return the distances from the points `rows` to the points `columns`.

        Where possible, each distance is computed on its own, so that it does not depend on the other rows and columns.

        Parameters
        ----------
        rows : array of int, shape (m,)
            Indices of points.
        columns : array of int, shape (k,), default=None
            Indices of points; all points by default.

        Returns
        -------
        array of float64, shape (m, k)
            NaN for missing distances.
        """
        raise TypeError(f"{type(self).__name__} must define block(rows, columns)")

    def block_by_products(self, rows: Array, columns: Array | None = None) -> Array:
        """Return the same distances as `block`, computed by matrix products where possible: faster but less precise.

        Measures over all pairs use this method. Stress uses `block`, because it needs small distances precisely.
        """
        return self.block(rows, columns)

    def pairs(self, i: Array, j: Array) -> Array:
        """Return the distances (m,) between the points i[t] and j[t] of m pairs; i and j are index arrays (m,)."""
        d = np.empty(len(i))
        order = np.argsort(i, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(i[order])) + 1):  # one call for all pairs of the same i
            if part.size:
                columns, where = np.unique(j[part], return_inverse=True)  # repeated pairs are computed once
                d[part] = self.block(i[part[:1]], columns)[0, where]
        return d

    def stored_pairs(self, pattern: Matrix, n_threads: int) -> Array:
        """Return the distances of the pairs stored in CSR `pattern` (n, n), in the order of its entries.

        By default `block` computes each row, so that the distances agree with those of `block` to the last digit.
        """
        d = np.empty(pattern.nnz)
        for i in range(self.n):
            row = slice(pattern.indptr[i], pattern.indptr[i + 1])
            d[row] = self.block(np.array([i]), pattern.indices[row])[0]
        return d

    def condensed(self, dtype: type[np.floating], n_threads: int) -> Array:
        """Return the distances of all pairs i < j, row by row, shape (n (n − 1)/2,); NaN for missing distances."""
        n = self.n
        d = np.empty(n * (n - 1) // 2, dtype)
        # Metrics computed from matrix products (cosine, for example), and the heat method on a surface, depend on the
        # shape of the block in their last digits.
        step, end = max(1, FIXED_ENTRIES // n), 0
        for start in range(0, n - 1, step):
            rows = np.arange(start, min(start + step, n - 1))
            block = self.block(rows, np.arange(start, n))
            for r in range(len(rows)):
                size = n - 1 - rows[r]
                d[end : end + size] = block[r, r + 1 :]
                end += size
        return d

    def squared(self) -> Matrix:
        """Return d² (n, n) of all pairs, or if `sparse` a CSR matrix with d² of the stored pairs.

        The values are scaled by a power of two if they would overflow or underflow.
        """
        D = self.block(np.arange(self.n))
        return square(D, self.fix_exponent(D))

    # Neighbours and principal components

    def neighbors(self, k: int, n_threads: int, min_recall: float = MIN_RECALL) -> tuple[Matrix, float]:
        """Find the k nearest neighbours of each point.

        Returns
        -------
        D2 : CSR matrix, shape (n, n)
            Squared distances to the neighbours, on the device of the input. If `sparse`, D2 contains all stored pairs
            and `k` is ignored.
        recall : float
            Recall of the search, estimated on a sample and at least `min_recall`; 1 if the search is exact.
        """
        near, d = np.empty((self.n, k), np.int32), np.empty((self.n, k))
        step = max(1, FIXED_ENTRIES // self.n)
        for start in range(0, self.n, step):
            rows = np.arange(start, min(start + step, self.n))
            found = nearest_in_rows(self.block(rows), rows, k)
            near[rows], d[rows] = found.indices, found.distances
        return Graph(near, d).into_squared(self.n, self.fix_exponent(d)), 1.0

    def measured_neighbors(self, k: int, n_threads: int) -> tuple[Matrix, float]:
        """Return the same as `neighbors`, but with d² computed in float64 and stored in a SciPy matrix."""
        return self.neighbors(k, n_threads)

    def principal(self, d: int, rng: np.random.RandomState | None) -> Any:
        """Return the first d principal components (n, d) of the points, with a little noise drawn by `rng`.

        The components are scaled so that the first has standard deviation 1. If `rng` is None, there is no noise.
        """
        return principal_coordinates(self.squared(), d, rng)

    # New points

    def check_new(self, X: Any) -> Any:
        """Check new rows X; return them in the form that `nearest`, `squared_to_all` and `new_block` expect."""
        raise TypeError(f"{type(self).__name__} must define check_new()")

    def nearest(self, X: Any, k: int, n_threads: int) -> Nearby:
        """Return the k fitted points nearest to each new row of X."""
        raise TypeError(f"{type(self).__name__} must define nearest()")

    def rows(self, i: Array) -> Any:
        """Return the fitted points with indices `i` in a form that `squared_to_all` accepts as X."""
        raise TypeError(f"{type(self).__name__} must define rows()")

    def squared_to_all(self, X: Any) -> Array:
        """Return d² (m, n) from new rows X to all fitted points, computed by matrix products where that is faster."""
        raise TypeError(f"{type(self).__name__} must define squared_to_all()")

    def new_block(self, X: Any, columns: Array) -> Array:
        """Return the distances (m, k) from new rows X to the fitted points `columns` (k,), computed as in `block`."""
        raise TypeError(f"{type(self).__name__} must define new_block()")


def nearby(graph: Graph, n: int, exponent: int | None, twins: Array | None = None) -> Nearby:
    """Convert `graph`, the neighbours of m new rows among n fitted points, to `Nearby`.

    Distances are divided by 2^exponent before they are squared (see `Graph.into_squared`). `twins` (m,) contains, for
    each new row, the index of a fitted point equal to it, or −1 if there is none. By default a neighbour at distance 0
    counts as equal.
    """
    if twins is None:
        nearest = graph.distances.argmin(axis=1)[:, None]
        at_zero = np.take_along_axis(graph.distances, nearest, axis=1) == 0
        twins = np.where(at_zero, np.take_along_axis(graph.indices, nearest, axis=1), -1)[:, 0]
    return Nearby(graph.into_squared(n, exponent), twins)


def square(D: Matrix, exponent: int) -> Matrix:
    """Return (D/2^exponent)² elementwise; zeros stored in a sparse D stay stored, because they are neighbours."""
    if not sparse.issparse(D):
        return scale_down(D, exponent) ** 2
    return sparse.csr_matrix((scale_down(D.data, exponent) ** 2, D.indices, D.indptr), shape=D.shape)


def check_block(D: Array, rows: Array, columns: Array | None) -> Array:
    """Return computed distances D (m, k) from the points `rows` to the points `columns`; all points if None.

    Raise ValueError if a distance is negative or not finite; the message names the two points.
    """
    bad = np.argwhere(~(D >= 0) | np.isinf(D))
    if bad.size:
        a, b = bad[0]
        j = b if columns is None else columns[b]
        raise ValueError(
            f"the distance between points {rows[a]} and {j} is {D[a, b]}; distances must be finite and nonnegative,"
            " so correct the metric or remove one of the points"
        )
    return D


def check_comparable(metric: Any) -> None:
    """Raise ValueError if distances under `metric` can be compared only within a row of the distance matrix."""
    if isinstance(metric, str) and metric == "inner_product":
        raise ValueError(
            'with metric="inner_product" the distances from one point cannot be compared with those from another;'
            ' use metric="cosine"'
        )
