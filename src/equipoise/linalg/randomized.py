"""Find the leading singular vectors of a sparse table, without converting it to a dense one."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .._tags import tagged
from .._types import Array, Matrix
from .pca import fix_signs, top_eigenvectors

SMALL = 1000  # columns up to which the Gram matrix is decomposed; chosen, not tuned
SPARE = 10  # oversampling (Halko et al. 2011, section 4.2, recommend 5 or 10)
POWERS = 6  # power iterations: a fixed amount of work for any spectrum; chosen, not tuned


@tagged("low_rank.Directions")
class Directions:
    """Finds the `rank` leading right singular vectors (D, rank) of X − 1μᵀ, where μ is the mean row of X, or 0.

    Up to 1,000 columns they are eigenvectors of the Gram matrix; for more columns, subspace iteration from a fixed
    random start finds them (Halko et al. 2011, algorithm 4.4). Their last digits are reproducible only if BLAS runs on
    one thread.

    Parameters
    ----------
    X : CSR matrix of shape (n, D)
    rank : int
        Number of vectors; fewer are found if D < `rank`, or if n < `rank` and D > 1,000.
    centered : bool
        Whether μ is the mean row; otherwise it is 0.
    """

    def __init__(self, X: Matrix, rank: int, *, centered: bool):
        n, D = X.shape
        self.mean = np.asarray(X.mean(axis=0)).ravel() if centered else np.zeros(D)
        if D <= SMALL:
            G = (X.T @ X).toarray() - n * np.outer(self.mean, self.mean)
            self.V = top_eigenvectors(G, rank)[1]
        else:
            self.V = fix_signs(self._iterate(X, min(rank, n, D)))

    def scores(self, X: Matrix) -> Array:
        """Return the coordinates (m, rank) of rows along the directions."""
        return np.asarray(X @ self.V) - self.mean @ self.V

    def _iterate(self, X: Matrix, rank: int) -> Array:
        """Return the leading right singular vectors (D, rank) by subspace iteration."""
        width = min(rank + SPARE, *X.shape)
        V = np.random.RandomState(0).standard_normal((X.shape[1], width))
        for _ in range(POWERS):
            Q = linalg.qr(self._times(X, V), mode="economic")[0]
            V = linalg.qr(self._transpose_times(X, Q), mode="economic")[0]
        _, _, W = linalg.svd(self._times(X, V), full_matrices=False)
        return V @ W[:rank].T

    def _times(self, X: Matrix, V: Array) -> Array:
        """Return (X − 1μᵀ) V."""
        return np.asarray(X @ V) - self.mean @ V

    def _transpose_times(self, X: Matrix, Q: Array) -> Array:
        """Return (X − 1μᵀ)ᵀ Q."""
        return np.asarray(X.T @ Q) - np.outer(self.mean, Q.sum(axis=0))
