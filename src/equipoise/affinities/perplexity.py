"""Compute affinities P: the probability that a point picks another as its neighbour (docs/math.md, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isqrt, log
from typing import Any

import numpy as np
from scipy import sparse

from .. import _core
from .._plural import plural
from .._tags import tagged
from .._types import Array, Matrix
from .._warn import warn
from ..arrays.blocks import FIXED_SEARCH_TILE, FIXED_SUM, cache_bytes
from ..arrays.csr import (
    compiled_pattern,
    entry_rows,
    entry_values,
    is_on_device,
    is_sparse,
    make_csr,
    run_on_threads,
    symmetrized,
)
from ..arrays.namespace import array_like, array_namespace
from ..arrays.tiles import in_tiles
from ..neighbors.vectors import in_range
from ..progress import stage

HALVINGS = 60  # bisection steps for β_i on a device; chosen: float32 has 24 bits, and a start is rarely off by 2^30


def resolve_perplexity(perplexity: Any, n: int) -> Array:
    """Return the perplexities over which the affinities of n points are averaged.

    Parameters
    ----------
    perplexity : float, sequence of float, or "auto"
        With several perplexities the affinities are averaged. "auto" is 30, or max((n−1)/3, √(n−1)) for fewer than 91
        points.
    n : int

    Returns
    -------
    perplexities : ndarray of float64
    """
    if isinstance(perplexity, str):
        if perplexity != "auto":
            raise ValueError(f'perplexity must be a number, several numbers or "auto", got {perplexity!r}')
        return np.array([min(30.0, max((n - 1) / 3, np.sqrt(n - 1)))])
    scales = _as_numbers(perplexity)
    if scales.ndim != 1 or scales.size == 0:
        raise ValueError(f"perplexity must be one number or a non-empty flat list of numbers, got {perplexity!r}")
    for value in scales:
        if not value >= 1:
            raise ValueError(f"perplexity must be at least 1, got {value:g}")
        if value > n - 1:
            raise ValueError(
                f"perplexity={value:g} is too large for n_samples={n}: a point has {plural(n - 1, 'neighbour')};"
                f' use perplexity="auto" or at most {n - 1}'
            )
    return np.ascontiguousarray(scales)


def _as_numbers(perplexity: Any) -> Array:
    try:
        several = isinstance(perplexity, Sequence | np.ndarray)
        return np.asarray(perplexity if several else [perplexity], dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f'perplexity must be a number, several numbers or "auto", got {perplexity!r} ({error})'
        ) from error


def conditional_of_points(X: Array, perplexities: Array, dtype: type[np.floating], n_threads: int) -> Array:
    """Return p_{j|i} (n, n) for the rows of X (n, D), without storing their Euclidean distances."""
    stage("affinities")
    X = np.ascontiguousarray(in_range(X))
    P, saturated = np.empty((len(X), len(X)), dtype), np.zeros(len(X), np.uint8)
    _core.conditional_points(X, perplexities, P, saturated, n_threads)
    _warn_saturated(saturated, perplexities)
    return P


def conditional(D2: Matrix, perplexities: Array, dtype: type[np.floating], n_threads: int) -> Matrix:
    """Return p_{j|i} ∝ exp(−d²_ij / 2σ_i²), with σ_i such that each row has the given perplexity.

    With several perplexities, the affinities are averaged. D2 contains squared distances: dense (n, n), or CSR with the
    neighbours of each point, in host memory or on a device. The result has the same form as D2. The compiled core
    computes it on the CPU, `conditional_rows` on a device.
    """
    stage("affinities")
    if is_on_device(D2):
        return _conditional_on_device(D2, perplexities)
    if sparse.issparse(D2):
        P, saturated = conditional_sparse(D2, perplexities, dtype, n_threads)
    else:
        n = len(D2)
        P, saturated = np.empty((n, n), dtype), np.zeros(n, np.uint8)
        _core.conditional_dense(D2, perplexities, P, saturated, n_threads)
    _warn_saturated(saturated, perplexities)
    return P


def conditional_sparse(
    D2: Matrix, perplexities: Array, dtype: type[np.floating], n_threads: int
) -> tuple[Matrix, Array]:
    """Return p_{j|i} as `conditional` does, for CSR D2 (m, n), and for which rows no σ gives the perplexity, (m,)."""
    require_neighbors(D2, perplexities.max())
    values, saturated = np.empty(D2.nnz, dtype), np.zeros(D2.shape[0], np.uint8)
    _core.conditional_sparse(compiled_pattern(D2), entry_values(D2), perplexities, values, saturated, n_threads)
    return make_csr(values, D2.indices, D2.indptr, D2.shape), saturated


def _warn_saturated(saturated: Any, perplexities: Array) -> None:
    """Warn if a row is marked in `saturated` (n,): see `warn_saturated`."""
    if saturated.any():
        warn_saturated(int(saturated.sum()), int(saturated.argmax()), perplexities)


def warn_saturated(count: int, first: int, perplexities: Array) -> None:
    """Warn about `count` rows for which no σ gives the perplexity: too many neighbours are at the smallest distance.

    `first` is the index of the first of these rows.
    """
    row = f"row {first}"
    warn(
        f"{f'{row} has' if count == 1 else f'{count} rows (the first is {row}) have'} more neighbours at the"
        f" smallest distance (duplicates, for example) than the perplexity {perplexities.min():g};"
        " these neighbours get equal affinities",
    )


def _conditional_on_device(D2: Any, perplexities: Array) -> Any:
    """Return p_{j|i} from D2, squared distances in a CSR matrix on a device; all rows have equally many neighbours."""
    d2 = D2.data.reshape(D2.shape[0], -1)
    smallest, parts = float(perplexities.min()), []
    in_tiles(len(d2), d2.shape[1], lambda rows: parts.append(saturated_rows(d2[rows], smallest)), FIXED_SEARCH_TILE)
    _warn_saturated(array_namespace(d2).concat(parts).int(), perplexities)
    first, *others = (conditional_rows(d2, float(perplexity)).flatten() for perplexity in perplexities)
    return D2.with_data(sum(others, start=first) / len(perplexities) if others else first)


def conditional_rows(d2: Any, perplexity: float) -> Any:
    """Return p_{j|i} ∝ exp(−β_i d²_ij), where bisection finds the β_i that gives row i the entropy log(perplexity).

    If more neighbours than the perplexity are at the smallest distance, they get equal affinities.

    Parameters
    ----------
    d2 : array or tensor of shape (n, k)
        Squared distances to the neighbours.
    perplexity : float

    Returns
    -------
    p : array or tensor of shape (n, k)
    """
    if getattr(d2, "is_cuda", False):
        from . import perplexity_triton

        return perplexity_triton.conditional(d2, perplexity, HALVINGS)
    xp = array_namespace(d2)
    p = xp.empty_like(d2)

    def solve(part: slice) -> None:
        excess = d2[part, :] - xp.min(d2[part, :], axis=1, keepdims=True)
        scale = xp.mean(excess, axis=1, keepdims=True)
        low, high = xp.zeros_like(scale), xp.full_like(scale, inf)
        beta = 1 / xp.where(scale > 0, scale, 1.0)
        for _ in range(HALVINGS):
            e = xp.exp(-beta * excess)
            Z = xp.sum(e, axis=1, keepdims=True)
            entropy = xp.log(Z) + beta * xp.sum(e * excess, axis=1, keepdims=True) / Z
            wide = entropy > log(perplexity)
            low, high = xp.where(wide, beta, low), xp.where(wide, high, beta)
            beta = xp.where(xp.isinf(high), 2 * beta, (low + high) / 2)
        e = xp.exp(-beta * excess)
        p[part, :] = e / xp.sum(e, axis=1, keepdims=True)

    in_tiles(d2.shape[0], 4 * d2.shape[1], solve)
    return p


def saturated_rows(d2: Any, perplexity: float) -> Any:
    """Return, for each row of d2 (n, k), whether the neighbours at the smallest distance outnumber the perplexity."""
    xp = array_namespace(d2)
    nearest = xp.astype(d2 == xp.min(d2, axis=1, keepdims=True), xp.int64)
    return xp.sum(nearest, axis=1) > perplexity


def uniform(D2: Matrix, perplexities: Array, dtype: type[np.floating]) -> Matrix:
    """Return p_{j|i} = 1/k for the k nearest neighbours j of each point i, where k is the rounded perplexity.

    D2 is a CSR matrix of squared distances to neighbours, in host memory or on a device, and so is the result. With
    several perplexities, the affinities are averaged. Of neighbours at the same distance, those stored first are used.
    """
    widths = np.maximum(np.rint(perplexities), 1)
    if is_on_device(D2):  # rows are sorted by distance
        rank = np.arange(D2.nnz // D2.shape[0])
        weights = np.mean([(rank < k) / k for k in widths], axis=0)
        return D2.with_data(array_like(D2.data, weights.astype(np.float32)).repeat(D2.shape[0]))
    require_neighbors(
        D2, widths.max(), "the rounded perplexity", remedy="that many neighbours per row, or lower perplexity"
    )
    if len(widths) == 1 and D2.nnz == D2.shape[0] * widths[0]:
        return make_csr(np.full(D2.nnz, 1 / widths[0], dtype), D2.indices, D2.indptr, D2.shape)
    rank = neighbor_ranks(D2)
    values = np.mean([(rank < k) / k for k in widths], axis=0)
    return keep_entries(D2, values.astype(dtype), values > 0)


@tagged("affinities.of_total")
def of_total(P: Matrix, dtype: type[np.floating]) -> Matrix:
    """Return precomputed affinities P (n, n) divided by one constant, so that the sum of all entries is n."""
    n = P.shape[0]
    return _divide_rows(P, np.full(n, _row_sums(P).sum() / n), dtype)


@tagged("affinities.of_rows")
def of_rows(P: Matrix, dtype: type[np.floating]) -> Matrix:
    """Return precomputed affinities P (m, n) with every row scaled to the sum 1."""
    return _divide_rows(P, _row_sums(P), dtype)


def _row_sums(P: Matrix) -> Array:
    return np.asarray(P.sum(axis=1)).ravel()


def _divide_rows(P: Matrix, by: Array, dtype: type[np.floating]) -> Matrix:
    if sparse.issparse(P):
        return make_csr((P.data / np.repeat(by, np.diff(P.indptr))).astype(dtype), P.indices, P.indptr, P.shape)
    return np.ascontiguousarray(P / by[:, None], dtype=dtype)


def joint(P: Matrix, n_threads: int = 1) -> Matrix:
    """Return (P + Pᵀ)/2n, symmetric with sum 1, for P (n, n) with entries p_{j|i}. A dense P is overwritten."""
    n = P.shape[0]
    if is_sparse(P):
        S = symmetrized(P, n_threads)

        def divide(start: int) -> None:
            S.data[start : start + FIXED_SUM] /= 2 * n

        run_on_threads(divide, range(0, len(S.data), FIXED_SUM), 1 if is_on_device(S) else n_threads)
        return S
    side = isqrt(cache_bytes() // P.dtype.itemsize)
    for i in range(0, n, side):  # by tiles, without a second (n, n) array
        for j in range(i, n, side):
            tile = (P[i : i + side, j : j + side] + P[j : j + side, i : i + side].T) / (2 * n)
            P[i : i + side, j : j + side] = tile
            P[j : j + side, i : i + side] = tile.T
    return P


def neighbor_ranks(D2: Matrix) -> Array:
    """Return the rank, from 0, of each stored entry of CSR D2 within its row, in ascending order of distance."""
    rows, rank = entry_rows(D2), np.empty(D2.nnz, np.int64)
    rank[np.lexsort((D2.data, rows))] = np.arange(D2.nnz) - D2.indptr[rows]
    return rank


def keep_entries(A: Matrix, values: Array, keep: Array) -> Matrix:
    """Return CSR A with only the entries for which `keep` (nnz,) is true; their values are `values[keep]`."""
    indptr = np.concatenate([[0], np.cumsum(keep)])[A.indptr]
    return make_csr(values[keep], A.indices[keep], indptr, A.shape)


def require_neighbors(
    D2: Matrix,
    minimum: float,
    name: str = "the perplexity",
    remedy: str = "3 × perplexity neighbours per row, or lower perplexity",
) -> None:
    """Raise ValueError if a row of CSR D2 stores fewer neighbours than `minimum`.

    The message ends with "fewer than `name` `minimum`; store at least `remedy`".
    """
    counts = np.diff(D2.indptr)
    if counts.min() < minimum:
        i = int(counts.argmin())
        raise ValueError(
            f"row {i} of the precomputed graph stores {plural(counts[i], 'neighbour')}, fewer than {name}"
            f" {minimum:g}; store at least {remedy}"
        )
