"""Neighbourhoods under a Gaussian kernel k_x on the data: locally linear weights, and the kernel itself."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from .._types import Array, Matrix
from ..affinities import Points
from ..bandwidth import positive, variances
from ..csr import entry_rows, make_csr
from ..inputs import Affinities, Distances, Input, SparseTable, Table
from ..inputs.base import in_range, square
from ..kernels import Gaussian
from ..lle import lle_weights, lle_weights_from_distances

MOST = 20_000  # points whose distances are all held, 3.2 GB: what weights under another metric than the Euclidean need
WIDTH = 3  # times n_neighbors: the nearest points at which k_x is not cut off, as many as t-SNE takes; chosen


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


class LocallyLinear:
    """W with Σ_j w_ij = 1 on the k nearest neighbours, fitted in the feature space of k_x; in that of X for σ = ∞."""

    def __init__(self, data: Input, k: int, bandwidth: Any, n_threads: int):
        self.k, self.n_threads = k, n_threads
        self._bandwidth = Bandwidth(bandwidth, k)
        self._linear = bandwidth == np.inf
        _require_distances_among_neighbors(data)

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        distances, recall = data.neighbors(self.k, self.n_threads)
        d2 = distances.D2
        return self._weights(data, d2, self._bandwidth.fit(d2), None).astype(dtype), recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        if isinstance(data, Distances) and sparse.issparse(X):
            raise ValueError("new points need their distances to all fitted ones here, a dense matrix (m, n)")
        nearby = data.nearest(X, self.k, self.n_threads)
        return self._weights(data, nearby.d2, self._bandwidth.of_new(nearby.d2), X), nearby.twins

    def _weights(self, data: Input, d2: Matrix, sigma2: Array, new: Matrix | None) -> Matrix:
        neighbors = d2.indices.reshape(-1, self.k)
        kernel = None if self._linear else Gaussian().value
        scale = 1.0 if self._linear else 2 * sigma2
        if _euclidean(data):
            X, rows = (None if V is None else _in_range(V) for V in (data.X, new))
            return lle_weights(X, neighbors, rows=rows, kernel=kernel, scale=scale)
        rows = None if new is None else square(_distances_to_new(data, new))
        return lle_weights_from_distances(_all(data), neighbors, rows=rows, kernel=kernel, scale=scale)
