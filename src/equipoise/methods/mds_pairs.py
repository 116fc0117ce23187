"""The pairs that stress compares, and their weights."""

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

# Random partners of a point. Measured on digits, stress of the map above the least with 128, 256, 512: 15, 6, 2 %.
PARTNERS = 512


def known_pairs(source: Input, W: Matrix | None) -> Matrix | None:
    """Return CSR with δ of the pairs that are known and have weight, or None if all are and have."""
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
    """Return CSR weights of the known pairs, in their pattern."""
    values = np.ones(known.nnz) if W is None else np.asarray(W[entry_rows(known), known.indices]).ravel()
    return make_csr(values, known.indices, known.indptr, known.shape)


def require_connected(known: Matrix) -> None:
    """Raise if the known distances leave groups of points unconnected."""
    groups, label = connected_components(known, directed=False)
    if groups > 1:
        other = int(np.flatnonzero(label != label[0])[0])
        raise ValueError(
            f"the known distances of positive weight fall into {groups} groups of points that none of them joins: 0 and"
            f" {other} are in different ones, and nothing says where one lies from the other; give a distance between"
            " the groups, or embed each by itself"
        )


def condensed_weights(delta: Array, W: Matrix | None) -> Array:
    """Return weights of the pairs i < j, float32, or none if all are 1; missing δ get weight 0 and become 0."""
    missing = np.isnan(delta)
    if W is None and not missing.any():
        return NONE
    w = np.ones(len(delta), np.float32) if W is None else squareform(W, checks=False).astype(np.float32)
    w[missing] = 0.0
    delta[missing] = 0.0
    return w


def random_pairs(n: int, seed: int) -> Matrix:
    """Return CSR weights of the pairs i, i + o modulo n for random offsets o (docs/math.md, section 13)."""
    offsets, weights = draw_offsets(n, PARTNERS, seed)
    columns = np.add.outer(np.arange(n, dtype=np.int32), offsets.astype(np.int32))
    columns %= n
    values = np.tile(weights.astype(np.float32), n)
    return make_csr(values, columns.ravel(), np.arange(n + 1, dtype=np.int64) * len(offsets), (n, n))
