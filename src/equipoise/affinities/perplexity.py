"""Input affinities P: how likely each point would pick each other as a neighbour (docs/math.md, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .. import _core
from .._tags import tagged
from .._types import Array, Matrix
from .._warn import warn
from ..arrays.csr import entry_rows, is_on_device, is_sparse, make_csr, on_host, symmetrized
from ..arrays.namespace import like
from ..arrays.pattern import compiled_pattern, entry_values
from ..progress import stage


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
    stage("affinities")
    if isinstance(distances, SquaredDistances) and is_on_device(distances.D2):
        return _conditional_there(distances.D2, perplexities)
    if isinstance(distances, Points):
        n = len(distances.X)
        P, saturated = np.empty((n, n), dtype), np.zeros(n, np.uint8)
        _core.conditional_points(np.ascontiguousarray(distances.X), perplexities, P, saturated, n_threads)
    elif sparse.issparse(D2 := distances.D2):
        n = D2.shape[0]
        _require_neighbors(D2, perplexities.max())
        values, saturated = np.empty(D2.nnz, dtype), np.zeros(n, np.uint8)
        _core.conditional_sparse(compiled_pattern(D2), entry_values(D2), perplexities, values, saturated, n_threads)
        P = make_csr(values, D2.indices, D2.indptr, D2.shape)
    else:
        n = len(D2)
        P, saturated = np.empty((n, n), dtype), np.zeros(n, np.uint8)
        _core.conditional_dense(D2, perplexities, P, saturated, n_threads)
    _warn_of(saturated, perplexities)
    return P


def _warn_of(saturated: Any, perplexities: Array) -> None:
    """Say which rows have no Gaussian of the perplexity."""
    if saturated.any():
        warn(
            f"{int(saturated.sum())} rows (the first is row {int(saturated.argmax())}) have more equally near"
            f" neighbours (duplicates, for example) than the perplexity {perplexities.min():g};"
            " they spread evenly over these",
        )


def _conditional_there(D2: Any, perplexities: Array) -> Any:
    """Return p_{j|i} on a device, from rows with as many neighbours each."""
    from . import perplexity_torch as there

    d2 = D2.data.reshape(D2.shape[0], -1)
    _warn_of(there.crowded(d2, float(perplexities.min())).int(), perplexities)
    first, *others = (there.conditional(d2, float(perplexity)).flatten() for perplexity in perplexities)
    return D2.with_data(sum(others, start=first) / len(perplexities) if others else first)


def uniform(distances: SquaredDistances, perplexities: Array, dtype: type[np.floating]) -> Matrix:
    """Return p_{j|i} = 1/k on the k nearest neighbours of each point, k the rounded perplexity, which it then has.

    CSR, from CSR distances; the mean over several perplexities. Of equally near neighbours the first stored are taken.
    """
    D2, widths = distances.D2, np.maximum(np.rint(perplexities), 1)
    if is_on_device(D2):  # rows from the nearest on
        rank = np.arange(D2.nnz // D2.shape[0])
        weights = np.mean([(rank < k) / k for k in widths], axis=0)
        return D2.with_data(like(D2.data, weights.astype(np.float32)).repeat(D2.shape[0]))
    _require_neighbors(D2, widths.max())
    if len(widths) == 1 and D2.nnz == D2.shape[0] * widths[0]:
        return make_csr(np.full(D2.nnz, 1 / widths[0], dtype), D2.indices, D2.indptr, D2.shape)
    rank = _ranks(D2)
    values = np.mean([(rank < k) / k for k in widths], axis=0)
    return _kept(D2, values.astype(dtype), values > 0)


def _ranks(D2: Matrix) -> Array:
    """Return the rank of each stored neighbour in its row, by distance."""
    rows, rank = entry_rows(D2), np.empty(D2.nnz, np.int64)
    rank[np.lexsort((D2.data, rows))] = np.arange(D2.nnz) - D2.indptr[rows]
    return rank


def _kept(A: Matrix, values: Array, keep: Array) -> Matrix:
    """Return the entries of CSR A that `keep` marks, with other values."""
    indptr = np.concatenate([[0], np.cumsum(keep)])[A.indptr]
    return make_csr(values[keep], A.indices[keep], indptr, A.shape)


FLOOR = 1e-3  # of the mean distance of a row, the least σ_i; as umap-learn's MIN_K_DIST_SCALE


def memberships(distances: SquaredDistances, k: int, dtype: type[np.floating], n_threads: int) -> Matrix:
    """Return w_ij = exp(−max(0, d_ij − ρ_i)/σ_i) on the k − 1 nearest neighbours, with Σ_j w_ij = log₂ k, CSR.

    ρ_i is the least distance above 0; the nearest neighbour, and every duplicate, has weight 1 (McInnes et al. 2018,
    algorithm 3). As in umap-learn a point counts among its own k neighbours.
    """
    stage("affinities")
    D2 = distances.D2
    if is_on_device(D2):
        from . import perplexity_torch as there

        return D2.with_data(there.memberships(D2.data.reshape(D2.shape[0], -1), k, FLOOR).flatten())
    _require_neighbors(D2, k - 1, "n_neighbors − 1 =", "n_neighbors − 1")
    if D2.nnz > D2.shape[0] * (k - 1):
        D2 = _kept(D2, D2.data, _ranks(D2) < k - 1)
    W = np.empty(D2.nnz, dtype)
    _core.memberships(compiled_pattern(D2), entry_values(D2), np.log2(k), FLOOR, W, n_threads)
    return make_csr(W, D2.indices, D2.indptr, D2.shape)


def fuzzy_union(W: Matrix, n_threads: int = 1) -> Matrix:
    """Return μ = W + Wᵀ − W ∘ Wᵀ for CSR weights between 0 and 1: the chance of an edge in either direction."""
    if is_on_device(W):
        from . import perplexity_torch as there

        return there.fuzzy_union(W)
    with np.errstate(divide="ignore"):  # log 0 of a sure edge
        log_none = make_csr(np.log1p(-np.minimum(W.data, 1)), W.indices, W.indptr, W.shape)
    union = symmetrized(log_none, n_threads)
    np.negative(np.expm1(union.data, out=union.data), out=union.data)
    return _kept(union, union.data, union.data > 0)


def intersected(mu: Matrix, labels: Array, weight: float) -> Matrix:
    """Return μ with edges between different classes weakened; labels are whole numbers, −1 where there is none.

    As in umap-learn, by e^(−2.5/(1−w)) for target weight w, by e^(−1) where a label is missing. Then every row is
    scaled to a largest entry of 1 and the union taken again.
    """
    mu = on_host(mu)
    i, j = labels[entry_rows(mu)], labels[mu.indices]
    far = np.exp(-2.5 / (1 - weight)) if weight < 1 else 0.0
    values = mu.data * np.where((i < 0) | (j < 0), np.exp(-1.0), np.where(i == j, 1.0, far)).astype(mu.dtype)
    part = _kept(mu, values, values > 0)
    rows = entry_rows(part)
    largest = np.zeros(mu.shape[0], mu.dtype)
    np.maximum.at(largest, rows, part.data)
    part.data = part.data / largest[rows]
    return fuzzy_union(part)


@tagged("affinities.of_total")
def of_total(P: Matrix, dtype: type[np.floating]) -> Matrix:
    """Return the user's affinities P (n, n) with total n, as rows p_{j|i} have: weights between points are kept."""
    n = P.shape[0]
    return _divided(P, np.full(n, _row_sums(P).sum() / n), dtype)


@tagged("affinities.of_rows")
def of_rows(P: Matrix, dtype: type[np.floating]) -> Matrix:
    """Return the user's affinities P (m, n) with every row a distribution."""
    return _divided(P, _row_sums(P), dtype)


def _row_sums(P: Matrix) -> Array:
    return np.asarray(P.sum(axis=1)).ravel()


def _divided(P: Matrix, by: Array, dtype: type[np.floating]) -> Matrix:
    if sparse.issparse(P):
        return make_csr((P.data / np.repeat(by, np.diff(P.indptr))).astype(dtype), P.indices, P.indptr, P.shape)
    return np.ascontiguousarray(P / by[:, None], dtype=dtype)


def _require_neighbors(D2: Matrix, least: float, name: str = "the perplexity", remedy: str = "3 × perplexity") -> None:
    counts = np.diff(D2.indptr)
    if counts.min() < least:
        i = int(counts.argmin())
        raise ValueError(
            f"row {i} of the precomputed graph stores {counts[i]} neighbours, fewer than {name}"
            f" {least:g}; store at least {remedy} neighbours per row, or ask for less"
        )


def joint(P: Matrix, n_threads: int = 1) -> Matrix:
    """Return (P + Pᵀ)/2n, symmetric and of total 1, from the rows p_{j|i}. A dense P is overwritten."""
    n = P.shape[0]
    if is_sparse(P):
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
