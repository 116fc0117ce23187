"""Compute UMAP's fuzzy memberships μ from distances to neighbours (McInnes et al. 2018; docs/math.md, section 3)."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log2
from typing import Any

import numpy as np

from .. import _core
from .._types import Array, Matrix
from ..arrays.csr import (
    compiled_pattern,
    entry_rows,
    entry_values,
    is_on_device,
    make_csr,
    on_host,
    symmetrized,
    with_values,
)
from ..arrays.namespace import array_namespace, at_least
from ..progress import stage
from .perplexity import keep_entries, neighbor_ranks, require_neighbors

HALVINGS = 64  # bisections of a membership's scale on a device; chosen: float32 has 24 bits
FLOOR = 1e-3  # minimum σ_i, relative to the mean distance of the row; copied from umap-learn's MIN_K_DIST_SCALE


def memberships(D2: Matrix, k: int, dtype: type[np.floating], n_threads: int) -> Matrix:
    """Return w_ij = exp(−max(0, d_ij − ρ_i)/σ_i) for the k − 1 nearest neighbours j of i (McInnes et al. 2018, alg. 3).

    ρ_i is the smallest positive distance from point i, so that the nearest neighbour and all duplicates have weight 1.
    σ_i makes Σ_j w_ij = log₂ k, but is at least FLOOR times the mean distance of the row. As in umap-learn, a point
    counts among its own k neighbours. D2 is a CSR matrix of squared distances, in host memory or on a device, and so is
    the result. The compiled core computes the memberships on the CPU, `membership_rows` on a device.
    """
    stage("affinities")
    if is_on_device(D2):
        return D2.with_data(membership_rows(D2.data.reshape(D2.shape[0], -1), k).flatten())
    require_neighbors(D2, k - 1, "n_neighbors − 1 =", "n_neighbors − 1 neighbours per row, or lower n_neighbors")
    if D2.nnz > D2.shape[0] * (k - 1):
        D2 = keep_entries(D2, D2.data, neighbor_ranks(D2) < k - 1)
    W = np.empty(D2.nnz, dtype)
    _core.memberships(compiled_pattern(D2), entry_values(D2), np.log2(k), FLOOR, W, n_threads)
    return make_csr(W, D2.indices, D2.indptr, D2.shape)


def membership_rows(d2: Any, k: int) -> Any:
    """Return the memberships w (n, k − 1) for squared distances d2 (n, k − 1) to neighbours, an array or a tensor."""
    xp = array_namespace(d2)
    d = xp.sqrt(d2)
    rho = xp.min(xp.where(d > 0, d, inf), axis=1, keepdims=True)
    excess = xp.where(xp.isinf(rho), 0.0, at_least(d - rho, 0.0))
    low, high = xp.zeros_like(rho), xp.full_like(rho, inf)
    sigma = at_least(xp.mean(excess, axis=1, keepdims=True), 1e-30)
    for _ in range(HALVINGS):
        too_wide = xp.sum(xp.exp(-excess / sigma), axis=1, keepdims=True) > log2(k)
        low, high = xp.where(too_wide, low, sigma), xp.where(too_wide, sigma, high)
        sigma = xp.where(xp.isinf(high), 2 * sigma, (low + high) / 2)
    sigma = xp.maximum(sigma, FLOOR * xp.mean(d, axis=1, keepdims=True))
    return xp.where(excess > 0, xp.exp(-excess / sigma), 1.0)


def fuzzy_union(W: Matrix, n_threads: int = 1, symmetrize: Callable[[Matrix, int], Matrix] = symmetrized) -> Matrix:
    """Return μ = W + Wᵀ − W ∘ Wᵀ for CSR weights in [0, 1]: the probability of an edge in at least one direction.

    `symmetrize(A, n_threads)` returns A + Aᵀ; another function than the default is for matrices in host memory whose
    rows are divided among ranks.
    """
    xp = array_namespace(W.data)
    with np.errstate(divide="ignore"):  # log 0 for an edge of weight 1
        log_none = xp.log1p(-xp.where(W.data < 1, W.data, 1.0))
    if is_on_device(W):
        union = W.with_data(log_none).symmetrized()
        return union.with_data(-xp.expm1(union.data))
    union = symmetrize(with_values(W, log_none), n_threads)
    np.negative(np.expm1(union.data, out=union.data), out=union.data)
    return keep_entries(union, union.data, union.data > 0)


def intersected(mu: Matrix, labels: Array, weight: float) -> Matrix:
    """Return μ with smaller values between points of different classes; labels are integers, −1 for a missing label.

    As in umap-learn, μ_ij is multiplied by e^(−2.5/(1−w)) if i and j have different labels, where w is `weight`, and by
    e^(−1) if a label is missing. Then every row is scaled to a maximum of 1, and `fuzzy_union` makes μ symmetric again.
    """
    mu = on_host(mu)
    i, j = labels[entry_rows(mu)], labels[mu.indices]
    penalty = np.exp(-2.5 / (1 - weight)) if weight < 1 else 0.0
    values = mu.data * np.where((i < 0) | (j < 0), np.exp(-1.0), np.where(i == j, 1.0, penalty)).astype(mu.dtype)
    part = keep_entries(mu, values, values > 0)
    rows = entry_rows(part)
    largest = np.zeros(mu.shape[0], mu.dtype)
    np.maximum.at(largest, rows, part.data)
    part.data = part.data / largest[rows]
    return fuzzy_union(part)
