"""The leading directions of a sparse table, without ever making it dense."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .._tags import tagged
from .._types import Array, Matrix

SMALL = 1000  # columns up to which the Gram matrix is decomposed; chosen, not tuned
SPARE = 10  # directions beyond those asked for (Halko et al. 2011, section 4.2, recommend 5 or 10)
POWERS = 6  # times that X Xᵀ is applied: a bound on the work, whatever the spectrum; chosen, not tuned


@tagged("low_rank.Directions")
class Directions:
    """The `rank` leading right singular vectors of X − 1μᵀ, (D, rank), for CSR X (n, D); μ is the mean row, or 0.

    Up to 1,000 columns by the eigenvectors of the Gram matrix; beyond by subspace iteration from a fixed random start
    (Halko et al. 2011, algorithm 4.4). Run it on one BLAS thread for the same bytes everywhere.
    """

    def __init__(self, X: Matrix, rank: int, *, centered: bool):
        n, D = X.shape
        self.mean = np.asarray(X.mean(axis=0)).ravel() if centered else np.zeros(D)
        if D <= SMALL:
            G = (X.T @ X).toarray() - n * np.outer(self.mean, self.mean)
            V = linalg.eigh(G, subset_by_index=[max(D - rank, 0), D - 1])[1][:, ::-1]
        else:
            V = self._iterate(X, min(rank, n, D))
        self.V = V * np.sign(V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])])

    def scores(self, X: Matrix) -> Array:
        """Return the coordinates (m, rank) of rows along the directions."""
        return np.asarray(X @ self.V) - self.mean @ self.V

    def _iterate(self, X: Matrix, rank: int) -> Array:
        width = min(rank + SPARE, *X.shape)
        V = np.random.RandomState(0).standard_normal((X.shape[1], width))
        for _ in range(POWERS):
            Q = linalg.qr(self._times(X, V), mode="economic")[0]
            V = linalg.qr(self._transpose_times(X, Q), mode="economic")[0]
        _, _, W = linalg.svd(self._times(X, V), full_matrices=False)
        return V @ W[:rank].T

    def _times(self, X: Matrix, V: Array) -> Array:
        return np.asarray(X @ V) - self.mean @ V

    def _transpose_times(self, X: Matrix, Q: Array) -> Array:
        return np.asarray(X.T @ Q) - np.outer(self.mean, Q.sum(axis=0))
