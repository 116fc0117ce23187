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
from .csr import entry_rows, make_csr, symmetrized


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
        _require_neighbors(D2, perplexities.max())
        values, saturated = np.empty(D2.nnz, dtype), np.zeros(n, np.uint8)
        indptr = D2.indptr.astype(np.int64, copy=False)
        _core.conditional_sparse(indptr, D2.data, perplexities, values, saturated, n_threads)
        P = make_csr(values, D2.indices, indptr, D2.shape)
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


def uniform(distances: SquaredDistances, perplexities: Array, dtype: type[np.floating]) -> Matrix:
    """Return p_{j|i} = 1/k on the k nearest neighbours of each point, k the rounded perplexity, which it then has.

    CSR, from CSR distances; the mean over several perplexities. Of equally near neighbours the first stored are taken.
    """
    D2, widths = distances.D2, np.maximum(np.rint(perplexities), 1)
    _require_neighbors(D2, widths.max())
    if len(widths) == 1 and D2.nnz == D2.shape[0] * widths[0]:
        return make_csr(np.full(D2.nnz, 1 / widths[0], dtype), D2.indices, D2.indptr, D2.shape)
    rows = entry_rows(D2)
    rank = np.empty(D2.nnz, np.int64)  # of each neighbour in its row, by distance
    rank[np.lexsort((D2.data, rows))] = np.arange(D2.nnz) - D2.indptr[rows]
    values = np.mean([(rank < k) / k for k in widths], axis=0)
    keep = values > 0
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[keep], minlength=D2.shape[0]))])
    return make_csr(values[keep].astype(dtype), D2.indices[keep], indptr, D2.shape)


def of_total(P: Matrix, dtype: type[np.floating]) -> Matrix:
    """Return the user's affinities P (n, n) with total n, as rows p_{j|i} have: weights between points are kept."""
    n = P.shape[0]
    return _divided(P, np.full(n, _row_sums(P).sum() / n), dtype)


def of_rows(P: Matrix, dtype: type[np.floating]) -> Matrix:
    """Return the user's affinities P (m, n) with every row a distribution."""
    return _divided(P, _row_sums(P), dtype)


def _row_sums(P: Matrix) -> Array:
    return np.asarray(P.sum(axis=1)).ravel()


def _divided(P: Matrix, by: Array, dtype: type[np.floating]) -> Matrix:
    if sparse.issparse(P):
        return make_csr((P.data / np.repeat(by, np.diff(P.indptr))).astype(dtype), P.indices, P.indptr, P.shape)
    return np.ascontiguousarray(P / by[:, None], dtype=dtype)


def _require_neighbors(D2: Matrix, perplexity: float) -> None:
    counts = np.diff(D2.indptr)
    if counts.min() < perplexity:
        i = int(counts.argmin())
        raise ValueError(
            f"row {i} of the precomputed graph stores {counts[i]} neighbours, fewer than the perplexity"
            f" {perplexity:g}; store at least 3 × perplexity neighbours per row, or ask for less"
        )


def joint(P: Matrix, n_threads: int = 1) -> Matrix:
    """Return (P + Pᵀ)/2n, symmetric and of total 1, from the rows p_{j|i}. A dense P is overwritten."""
    n = P.shape[0]
    if sparse.issparse(P):
        S = symmetrized(P, n_threads)
        S.data /= 2 * n
        return S
    block = 1024  # tile by tile, so that no second (n, n) array is made
    for i in range(0, n, block):
        for j in range(i, n, block):
            tile = (P[i : i + block, j : j + block] + P[j : j + block, i : i + block].T) / (2 * n)
            P[i : i + block, j : j + block] = tile
            P[j : j + block, i : i + block] = tile.T
    return P
