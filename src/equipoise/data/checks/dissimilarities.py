"""Check the input of MDS: dissimilarities, some of which can be missing, and the weights of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._types import Array, Matrix
from ..._warn import warn
from ...arrays.csr import entry_rows
from ...arrays.namespace import entry_place
from ...arrays.numbers import as_numbers
from .table_input import check_distances

TRIPLES = 20_000  # sampled to check the triangle inequality; chosen
LARGEST = 1e12  # stress uses float32, which loses precision for squares beyond this or below its inverse


def check_dissimilarities(D: Any, name: str = "the precomputed distance matrix") -> Matrix:
    """Return dissimilarities (n, n) as float64: dense with NaN for missing ones, or CSR with the known pairs.

    The known dissimilarities must be finite and nonnegative. A dense matrix must be symmetric with a zero diagonal. A
    sparse matrix stores each known pair of points as (i, j), as (j, i), or as both with equal values.
    """
    if sparse.issparse(D):
        return _check_known_pairs(check_distances(D, name), name)
    D = as_numbers(D, order="C", ensure_min_samples=2)
    if D.shape[0] != D.shape[1]:
        raise ValueError(f"{name} must be square, got shape {D.shape}")
    missing = np.isnan(D)
    if not missing.any():
        return check_distances(D, name)
    one_way = np.argwhere(missing & ~missing.T)
    if one_way.size:
        i, j = one_way[0]
        raise ValueError(f"{name}: D[{i}, {j}] is missing (NaN) but D[{j}, {i}] = {D[j, i]:g}; specify both or neither")
    check_distances(np.where(missing, 0.0, D), name)
    return D


def _check_known_pairs(D: Matrix, name: str) -> Matrix:
    """Return the known distances as symmetric CSR; a distance stored only for (i, j) is used for (j, i) too."""
    known = D.copy()
    known.data = np.ones_like(D.data)
    both = known + known.T
    values = D.copy()
    values.data = values.data + 1.0  # preserves stored zeros
    total = (values + values.T).tocsr()
    total.sort_indices()
    both.sort_indices()
    mean = total.data / both.data - 1.0
    symmetric = sparse.csr_matrix((mean, total.indices, total.indptr), shape=D.shape)
    rows = entry_rows(D)
    off = np.abs(np.asarray(symmetric[rows, D.indices]).ravel() - D.data) > 1e-8 * max(D.data.max(initial=0.0), 1e-300)
    if off.any():
        t = int(np.flatnonzero(off)[0])
        i, j = int(rows[t]), int(D.indices[t])
        raise ValueError(
            f"{name} is not symmetric: D[{i}, {j}] = {D[i, j]:g} but D[{j}, {i}] = {D[j, i]:g};"
            " store equal values, or only one of the two"
        )
    return symmetric


def check_pair_weights(W: Any, n: int) -> Matrix:
    """Return symmetric, nonnegative pair weights (n, n) as float64, dense or CSR, with a zero diagonal."""
    W = as_numbers(W, "weights", order="C", accept_sparse="csr", copy=True)
    if W.shape != (n, n):
        raise ValueError(f"weights must have shape ({n}, {n}), one weight per pair of points, got {W.shape}")
    values = (W.data if sparse.issparse(W) else W).ravel()
    bad = np.flatnonzero(~(values >= 0) | np.isinf(values))
    if bad.size:
        i, j = entry_place(W, int(bad[0]))
        raise ValueError(f"weights must be finite and nonnegative, but weights[{i}, {j}] = {values[bad[0]]:g}")
    difference = abs(W - W.T)
    if difference.max() > 1e-8 * values.max(initial=0.0):
        at = difference.argmax()
        i, j = int(at // n), int(at % n)
        raise ValueError(
            f"weights are not symmetric: weights[{i}, {j}] = {W[i, j]:g} but weights[{j}, {i}] = {W[j, i]:g};"
            " symmetrise them, for example with (weights + weights.T) / 2"
        )
    if not sparse.issparse(W):
        np.fill_diagonal(W, 0.0)
        return W
    W = W.tocoo()
    keep = (W.row != W.col) & (W.data > 0)
    return sparse.csr_matrix((W.data[keep], (W.row[keep], W.col[keep])), shape=(n, n))


def warn_if_not_metric(D: Array) -> None:
    """Warn if the distances D (n, n) violate the triangle inequality for one of TRIPLES sampled triples of points."""
    n = len(D)
    i, j, k = np.random.RandomState(0).randint(n, size=(3, TRIPLES))
    with np.errstate(invalid="ignore"):
        excess = D[i, j] - (D[i, k] + D[k, j])
    worst = int(np.nan_to_num(excess, nan=-np.inf).argmax())
    if excess[worst] > 1e-6 * D[i[worst], j[worst]]:
        a, b, c = i[worst], j[worst], k[worst]
        warn(
            f"the dissimilarities are not a metric: D[{a}, {b}] = {D[a, b]:g} is larger than D[{a}, {c}] + D[{c}, {b}]"
            f" = {D[a, c] + D[c, b]:g}; no map can reproduce them exactly",
        )


def check_size(largest: float) -> None:
    """Raise ValueError if the largest dissimilarity is outside the range in which stress in float32 is accurate."""
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        raise ValueError(
            f"the largest dissimilarity is about {largest:g}, but stress requires it to be between {1 / LARGEST:g}"
            f" and {LARGEST:g}; rescale the data"
        )
