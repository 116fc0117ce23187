"""Affinities k_x of pairs in the scale in which a loss F(k_x, k_y) reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import symmetrized
from ..inputs import Input


@tagged("affinities.pair_affinities.Unscaled")
@dataclass(frozen=True)
class Unscaled:
    """Precomputed affinities as they are given."""

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        P = data.affinities
        return (sparse.csr_matrix(P, dtype=dtype) if few or sparse.issparse(P) else np.array(P, dtype=dtype)), 1.0

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        return sparse.csr_matrix(X, dtype=np.float64), np.full(X.shape[0], -1)


def mean_of_both(P: Matrix, n_threads: int) -> Matrix:
    """Return (P + Pᵀ)/2, without entries that are 0, for affinities P (n, n), CSR or dense."""
    if not sparse.issparse(P):
        return (P + P.T) / 2
    S = symmetrized(P, n_threads)
    S.data /= 2
    return S
