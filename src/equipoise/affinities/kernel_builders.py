"""Neighbourhoods under a Gaussian kernel k_x on the data: locally linear weights, and the kernel itself."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import entry_rows, make_csr
from ..inputs import Distances, Input, SparseTable, Table
from ..kernels import Gaussian
from ..neighbors.vectors import in_range
from ..progress import stage
from .bandwidth import positive, variances
from .locally_linear import lle_weights, lle_weights_from_distances

MOST = 20_000  # points whose distances are all held, 3.2 GB: what weights under another metric than the Euclidean need
WIDTH = 3  # times n_neighbors: the nearest points at which k_x is not cut off, as many as t-SNE takes; chosen


@tagged("methods.kernel_neighborhoods.Bandwidth")
@dataclass
class Bandwidth:
    """σ² of k_x = exp(−d² / 2σ²), from the k nearest: each point's own, their mean, or a given number."""

    bandwidth: Any
    k: int
    _mean: float = field(default=np.nan, init=False)

    def fit(self, d2: Matrix) -> Array:
        """Return σ_i² for the rows of CSR d2 (n, n), and remember what new rows need."""
        if not isinstance(self.bandwidth, str):
            return np.full(d2.shape[0], self.bandwidth**2)
        sigma2 = variances(d2, self.k)
        self._mean = float(sigma2.mean()) or 1.0
        return positive(sigma2, self.k) if self.bandwidth == "local" else np.full(len(sigma2), self._mean)

    def of_new(self, d2: Matrix) -> Array:
        """Return σ_i² for new rows, CSR (m, n)."""
        if self.bandwidth != "local":
            return np.full(d2.shape[0], self._mean if self.bandwidth == "global" else self.bandwidth**2)
        with warnings.catch_warnings():  # a row among many duplicates is no news here
            warnings.simplefilter("ignore", UserWarning)
            return positive(variances(d2, self.k), self.k)


@tagged("methods.kernel_neighborhoods.LocallyLinear")
class LocallyLinear:
    """W with Σ_j w_ij = 1 on the k nearest neighbours, fitted in the feature space of k_x; in that of X for σ = ∞."""

    def __init__(self, data: Input, bandwidth: Bandwidth, reg: float, n_threads: int):
        self.bandwidth, self.reg, self.n_threads = bandwidth, reg, n_threads
        _require_distances_among_neighbors(data)

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        D2, recall = data.neighbors(self.bandwidth.k, self.n_threads)
        return self._weights(data, D2, self.bandwidth.fit(D2), None).astype(dtype), recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        if isinstance(data, Distances) and sparse.issparse(X):
            raise ValueError("locally linear weights of new points need their distances to all n fitted ones, (m, n)")
        nearby = data.nearest(X, self.bandwidth.k, self.n_threads)
        return self._weights(data, nearby.d2, self.bandwidth.of_new(nearby.d2), X), nearby.twins

    def _weights(self, data: Input, d2: Matrix, sigma2: Array, new: Matrix | None) -> Matrix:
        stage("affinities")
        neighbors = d2.indices.reshape(-1, self.bandwidth.k)
        linear = self.bandwidth.bandwidth == np.inf
        kernel, scale = (None, 1.0) if linear else (Gaussian().value, 2 * sigma2)
        if isinstance(data, Table | SparseTable) and _is_euclidean(data):
            X = in_range(data.X) if new is None and isinstance(data, Table) else data.X  # as the search had it
            return lle_weights(X, neighbors, rows=new, reg=self.reg, kernel=kernel, scale=scale)
        rows = None if new is None else self._distances_to(data, new)
        return lle_weights_from_distances(
            data.squared(), neighbors, rows=rows, reg=self.reg, kernel=kernel, scale=scale
        )

    @staticmethod
    def _distances_to(data: Input, new: Matrix) -> Array:
        """Return d² from new rows to all fitted points, (m, n)."""
        return data.squared_to_all(new) if isinstance(data, Table | SparseTable) else np.square(new)


@tagged("methods.kernel_neighborhoods.Radial")
class Radial:
    """K_X = exp(−d²_ij / 2σ_iσ_j) between all pairs, or between each point and its 3k nearest, in either direction.

    With one σ for all this is the Gaussian kernel; the product for local ones follows Zelnik-Manor & Perona 2004. The
    ones on the diagonal are left out.
    """

    def __init__(self, bandwidth: Bandwidth, n_threads: int):
        self.bandwidth, self.n_threads = bandwidth, n_threads
        self._sigma2 = np.empty(0)
        self._width = 0

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        stage("affinities")
        self._width = min(data.n - 1, WIDTH * self.bandwidth.k) if few else data.n
        if few or data.sparse:
            d2, recall = data.neighbors(min(self._width, data.n - 1), self.n_threads)
            self._sigma2 = self.bandwidth.fit(d2)
            K = make_csr(self._value(d2, self._sigma2), d2.indices, d2.indptr, d2.shape)
            K.sort_indices()
            return sparse.csr_matrix(K.maximum(K.T), dtype=dtype), recall
        D2 = data.squared()
        self._sigma2 = self.bandwidth.fit(data.neighbors(self.bandwidth.k, self.n_threads)[0])
        sigma = np.sqrt(self._sigma2)
        K = np.exp(-D2 / (2 * np.outer(sigma, sigma)))
        np.fill_diagonal(K, 0.0)
        return np.ascontiguousarray(K, dtype=dtype), data.recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        nearby = data.nearest(X, self._width, self.n_threads)
        d2 = nearby.d2
        return make_csr(self._value(d2, self.bandwidth.of_new(d2)), d2.indices, d2.indptr, d2.shape), nearby.twins

    def _value(self, d2: Matrix, sigma2: Array) -> Array:
        """Return k_x at the stored entries of d2 (m, n), whose rows have variances `sigma2` (m,)."""
        return np.exp(-d2.data / (2 * np.sqrt(sigma2[entry_rows(d2)] * self._sigma2[d2.indices])))


def _is_euclidean(data: Table | SparseTable) -> bool:
    return isinstance(data.metric, str) and data.metric in ("euclidean", "l2")


def _require_distances_among_neighbors(data: Input) -> None:
    """Raise if the distances between two neighbours of a point, which its weights depend on, cannot be had."""
    what = "locally linear weights take the distances among the neighbours of a point"
    if isinstance(data, Distances) and data.sparse:
        raise ValueError(f"{what}, and a graph does not store them all; give a table, or distances between all pairs")
    if not isinstance(data, Table | SparseTable) or _is_euclidean(data):
        return
    name = getattr(data.metric, "__name__", data.metric)
    if data.metric == "inner_product":
        raise ValueError(f'{what}; inner products compare points within a row alone. Use metric="cosine"')
    if data.n > MOST:
        raise ValueError(
            f"{what}: under metric={name} all are computed, too many for n_samples={data.n}, more than {MOST};"
            ' use metric="euclidean"'
        )
