"""Selects the pairs of points whose distances a stress compares, and computes their weights."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from .._types import Array, Matrix
from ..arrays.csr import entry_rows, make_csr
from ..arrays.to_device import to_device
from ..data.checks.dissimilarities import check_size
from ..engines.sampled import draw_offsets
from ..inputs import Input
from ..objectives.stress.metric import NONE, Stress

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


def stress_on_device(device: str, source: Input, W: Matrix | None, max_stored: int, n_threads: int) -> Stress:
    """Return the stress over all pairs on a PyTorch device; W, if given, contains dense weights (n, n).

    The Euclidean distances of a table are stored on the device for up to `max_stored` points; for more, they are
    recomputed at every evaluation. All other distances are stored.
    """
    from ..objectives.stress.torch_stress import DeviceStress, Recomputed, Stored

    if source.points is not None:
        points = Recomputed(to_device(source.points, device))
        weights = None if W is None else to_device(W - np.diag(W.diagonal()), device).float()
        return DeviceStress(points.stored() if source.n <= max_stored else points, weights)
    delta = source.condensed(np.float32, n_threads)
    w = condensed_weights(delta, W)
    check_size(float(delta.max(initial=0.0)))
    weights = to_device(squareform(w), device) if len(w) else None
    return DeviceStress(Stored(to_device(squareform(delta), device)), weights)
