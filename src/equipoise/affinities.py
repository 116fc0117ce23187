"""Input affinities P: how likely each point would pick each other as a neighbour (docs/math.md, section 3)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from . import _core
from ._types import Array, Matrix


@dataclass(frozen=True)
class Points:
    """Points whose Euclidean distances are computed row by row and never stored: X (n, D)."""

    X: Array


@dataclass(frozen=True)
class SquaredDistances:
    """Squared distances d²: dense (n, n), or CSR with the stored pairs as neighbours."""

    D2: Matrix


def resolve_perplexity(perplexity: Any, n: int) -> Array:
    """Return the perplexities to average over, from a number, several (multi-scale) or "auto", for n points.

    "auto" is 30, and on fewer than 91 points max((n−1)/3, √(n−1)).
    """
    if isinstance(perplexity, str):
        if perplexity != "auto":
            raise ValueError(f'perplexity must be a number, several numbers or "auto", got {perplexity!r}')
        return np.array([min(30.0, max((n - 1) / 3, np.sqrt(n - 1)))])
    scales = np.asarray(perplexity if isinstance(perplexity, Sequence | np.ndarray) else [perplexity], dtype=np.float64)
    if scales.ndim != 1 or scales.size == 0:
        raise ValueError(f"perplexity must be one number or a flat list of numbers, got {perplexity!r}")
    for value in scales:
        if not value >= 1:
            raise ValueError(f"perplexity must be at least 1, got {value:g}")
        if value > n - 1:
            raise ValueError(
                f"perplexity={value:g} is too large for n_samples={n}: a point has {n - 1} neighbours;"
                f' use perplexity="auto" or at most {n - 1}'
            )
    return np.ascontiguousarray(scales)


def conditional(
    distances: Points | SquaredDistances, perplexities: Array, dtype: type[np.floating], n_threads: int
) -> Matrix:
    """Return p_{j|i} ∝ exp(−d²_ij / 2σ_i²), each row of the given perplexity; the mean over several perplexities.

    Dense (n, n), or CSR on the stored pairs of a sparse distance matrix.
    """
    if isinstance(distances, Points):
        n = len(distances.X)
        P, saturated = np.empty((n, n), dtype), np.zeros(n, np.uint8)
        _core.conditional_points(np.ascontiguousarray(distances.X), perplexities, P, saturated, n_threads)
    elif sparse.issparse(D2 := distances.D2):
        n = D2.shape[0]
        counts = np.diff(D2.indptr)
        if counts.min() < perplexities.max():
            i = int(counts.argmin())
            raise ValueError(
                f"row {i} of the precomputed graph stores {counts[i]} neighbours, fewer than the perplexity"
                f" {perplexities.max():g}; store at least 3 × perplexity neighbours per row, or ask for less"
            )
        values, saturated = np.empty(D2.nnz, dtype), np.zeros(n, np.uint8)
        _core.conditional_sparse(D2.indptr.astype(np.int64), D2.data, perplexities, values, saturated, n_threads)
        P = sparse.csr_matrix((values, D2.indices, D2.indptr), shape=D2.shape)
    else:
        n = len(D2)
        P, saturated = np.empty((n, n), dtype), np.zeros(n, np.uint8)
        _core.conditional_dense(D2, perplexities, P, saturated, n_threads)
    if saturated.any():
        warnings.warn(
            f"{int(saturated.sum())} rows (the first is row {int(saturated.argmax())}) have more equally near"
            f" neighbours (duplicates, for example) than the perplexity {perplexities.min():g};"
            " they spread evenly over these",
            stacklevel=2,
        )
    return P


def joint(P: Matrix) -> Matrix:
    """Return (P + Pᵀ)/2n, symmetric and of total 1, from the rows p_{j|i}. A dense P is overwritten."""
    n = P.shape[0]
    if sparse.issparse(P):
        S = (P + P.T).tocsr()
        S.data /= 2 * n
        S.sort_indices()
        return S
    block = 1024  # tile by tile, so that no second (n, n) array is made
    for i in range(0, n, block):
        for j in range(i, n, block):
            tile = (P[i : i + block, j : j + block] + P[j : j + block, i : i + block].T) / (2 * n)
            P[i : i + block, j : j + block] = tile
            P[j : j + block, i : i + block] = tile.T
    return P
