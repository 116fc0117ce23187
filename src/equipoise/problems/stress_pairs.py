"""Selects the pairs of points whose distances a stress compares, and computes their weights."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from .._types import Array, Matrix
from ..arrays.csr import entry_rows, make_csr
from ..engines.sampled import draw_offsets
from ..inputs import Input
from ..objectives.stress.metric import NONE

# Random partners of each point. Measured on digits: with 128, 256, 512 the stress is 15, 6, 2 % above the minimum.
PARTNERS = 512


def known_pairs(source: Input, W: Matrix | None) -> Matrix | None:
    """Return the known dissimilarities of positive weight as a CSR matrix (n, n).

    Return None if every pair is known and has a positive weight.
    """
    if W is None or (not sparse.issparse(W) and (W + np.eye(len(W)) > 0).all()):
        return source.known
    weighted = sparse.csr_matrix(W)
    if source.known is not None:
        pattern = source.known.copy()
        pattern.data = np.ones_like(pattern.data)
        weighted = weighted.multiply(pattern).tocsr()
        weighted.eliminate_zeros()
    if source.sparse and source.known is not None:
        delta = np.asarray(source.known[entry_rows(weighted), weighted.indices]).ravel()
    else:
        delta = source.stored_pairs(weighted, 1)
    return make_csr(delta, weighted.indices, weighted.indptr, weighted.shape)


def weights_of(known: Matrix, W: Matrix | None) -> Matrix:
    """Return the weights of the pairs stored in `known`, as a CSR matrix with the same nonzero pattern as `known`."""
    values = np.ones(known.nnz) if W is None else np.asarray(W[entry_rows(known), known.indices]).ravel()
    return make_csr(values, known.indices, known.indptr, known.shape)


def require_connected(known: Matrix) -> None:
    """Raise if the known distances do not connect all points."""
    groups, label = connected_components(known, directed=False)
    if groups > 1:
        other = int(np.flatnonzero(label != label[0])[0])
        raise ValueError(
            f"the known distances of positive weight leave {groups} groups of points unconnected: points 0 and {other}"
            " are in different groups; add a distance between the groups, or embed each group separately"
        )


def condensed_weights(delta: Array, W: Matrix | None) -> Array:
    """Return the weights of the pairs i < j, float32; an empty array means that all weights are 1.

    A missing dissimilarity is NaN in `delta`. It is set to 0 in place, and its weight is 0.
    """
    missing = np.isnan(delta)
    if W is None and not missing.any():
        return NONE
    w = np.ones(len(delta), np.float32) if W is None else squareform(W, checks=False).astype(np.float32)
    w[missing] = 0.0
    delta[missing] = 0.0
    return w


def random_pairs(n: int, seed: int) -> Matrix:
    """Return the weights, CSR (n, n), of pairs (i, i + o modulo n) for random offsets o (docs/math.md, section 13)."""
    offsets, weights = draw_offsets(n, PARTNERS, seed)
    columns = np.add.outer(np.arange(n, dtype=np.int32), offsets.astype(np.int32))
    columns %= n
    values = np.tile(weights.astype(np.float32), n)
    return make_csr(values, columns.ravel(), np.arange(n + 1, dtype=np.int64) * len(offsets), (n, n))


def zero_entry(delta: Array, w: Array) -> tuple[int, int] | None:
    """Return the first pair i < j of positive weight with dissimilarity 0, for condensed arrays; None if there is none.

    An empty `w` means that all weights are 1.
    """
    zero = (delta == 0) & (w > 0) if len(w) else delta == 0
    if not zero.any():
        return None
    t, n = int(zero.argmax()), int(np.ceil(np.sqrt(2 * len(delta))))
    starts = np.concatenate([[0], np.cumsum(np.arange(n - 1, 0, -1))])  # of the rows
    i = int(np.searchsorted(starts, t, side="right")) - 1
    return i, int(t - starts[i]) + i + 1


def zero_stored(delta: Array, pattern: Matrix) -> tuple[int, int] | None:
    """Return the first pair stored in CSR `pattern` whose dissimilarity is 0; `delta` has the order of the entries."""
    zero = np.flatnonzero(delta == 0)
    return (int(entry_rows(pattern)[zero[0]]), int(pattern.indices[zero[0]])) if zero.size else None


def equal_rows(X: Array) -> tuple[int, int] | None:
    """Return the first two equal rows i < j of X (n, D) in float32; None if all rows differ."""
    _, first, group = np.unique(X.astype(np.float32), axis=0, return_index=True, return_inverse=True)
    original = first[group.reshape(-1)]
    repeated = np.flatnonzero(original != np.arange(len(X)))
    return (int(original[repeated[0]]), int(repeated[0])) if repeated.size else None
