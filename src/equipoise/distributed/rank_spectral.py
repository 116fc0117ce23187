"""Laplacian eigenmaps of affinities whose rows several ranks share: Lanczos with sums over all points."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from .._warn import warn
from ..arrays.csr import row_sums
from .halo import Halo
from .shared_map import SharedMap

BASIS = 24  # vectors of the basis, of which a restart keeps half; chosen
RESTARTS = 100  # a bound on the time; chosen, as for one machine
TOLERANCE = 1e-4  # error of an eigenvalue, all at most 1; chosen: an initial map need not be more accurate


class SharedAffinities:
    """The normalised affinities D^(−1/2) W D^(−1/2) of symmetric W, of which this rank has the rows (own, halo.size).

    The constant direction, the eigenvector √D_ii with eigenvalue 1, is removed from every product.
    """

    def __init__(self, W: Matrix, halo: Halo, shared: SharedMap):
        self.W, self.halo, self.shared = sparse.csr_matrix(W, copy=False), halo, shared
        degree = row_sums(W)
        self.root = np.sqrt(np.maximum(degree, 1e-30 * shared.maximum(float(degree.max(initial=0.0)))))
        self.trivial = self.root / shared.squared_norm(self.root[:, None]) ** 0.5

    def times(self, u: Array) -> Array:
        """Return the product with u (own,), in float64."""
        u = self.without_constant(u)
        every = self.halo.extended((u / self.root)[:, None])[:, 0]
        return self.without_constant((self.W @ every) / self.root)

    def without_constant(self, u: Array) -> Array:
        """Return u without its component along the constant direction."""
        return np.asarray(u - self.trivial * self.dots(self.trivial[None], u)[0])

    def dots(self, V: Array, u: Array) -> Array:
        """Return the inner products of the rows of V (j, own) with u (own,), summed over all ranks."""
        blocks = self.shared.partition.own_blocks()
        sums = np.array([np.einsum("ij,j->i", V[:, rows], u[rows]) for rows in blocks]).reshape(len(blocks), len(V))
        return self.shared.add_blocks(sums)

    def is_connected(self) -> bool:
        """Return whether the graph of W is connected: points adopt the smallest label among their neighbours'."""
        own, group = self.shared.partition.own, self.shared.group
        label = np.arange(own.start, own.stop, dtype=np.int64)
        starts, filled = self.W.indptr[:-1], np.flatnonzero(np.diff(self.W.indptr))
        while True:
            every = self.halo.extended(label[:, None])[:, 0]
            new = label.copy()
            if filled.size:
                nearby = np.minimum.reduceat(every[self.W.indices], starts[filled])
                new[filled] = np.minimum(label[filled], nearby)
            changed = group.all_reduce(np.array([int((new != label).any())], np.int64), "max")[0]
            label = new
            if not changed:
                return not group.all_reduce(np.array([int(label.any())], np.int64), "max")[0]


def eigenmap(W: Matrix, halo: Halo, shared: SharedMap, d: int) -> Array | None:
    """Return the own rows (own, d) of the Laplacian eigenmap of W; None if its graph is not connected.

    The eigenvectors are found by Lanczos with full reorthogonalisation and thick restarts (Wu & Simon 2000). If they do
    not converge, the current ones are returned, with a warning.
    """
    A = SharedAffinities(W, halo, shared)
    if not A.is_connected():
        return None
    n_own, size = len(A.root), max(BASIS, 2 * d + 4)
    V, H = np.empty((size, n_own)), np.zeros((size, size))
    u, kept = A.without_constant(_start(shared)), 0
    u /= A.dots(u[None], u)[0] ** 0.5
    for _ in range(RESTARTS):
        for j in range(kept, size):
            V[j] = u
            u = A.times(u)
            for _ in range(2):  # twice is enough for full precision (Parlett 1998, section 6.9)
                h = A.dots(V[: j + 1], u)
                H[: j + 1, j] += h
                for k in range(j + 1):
                    u = u - h[k] * V[k]  # not a matrix product, whose rounding may depend on the number of columns
            H[j, : j + 1] = H[: j + 1, j]
            length = A.dots(u[None], u)[0] ** 0.5
            u = u / length if length > 0 else u
        values, S = (shared.group.broadcast(part[..., ::-1]) for part in np.linalg.eigh(H))
        done = bool((length * np.abs(S[-1, :d]) <= TOLERANCE).all())
        kept = d if done else size // 2
        V[:kept] = [_combined(S[:, k], V) for k in range(kept)]
        if done:
            break
        H = np.diag(np.concatenate([values[:kept], np.zeros(size - kept)]))
    else:
        warn(f"the spectral initial map did not converge in {RESTARTS} restarts; the current one is used")
    return _signed(np.ascontiguousarray(V[:d].T) / A.root[:, None], shared)


def _start(shared: SharedMap) -> Array:
    """Return the own part of a fixed random vector, drawn block by block."""
    blocks = shared.partition.blocks()
    parts = [np.random.RandomState(b).standard_normal(rows.stop - rows.start) for b, rows in blocks]
    return np.concatenate(parts) if parts else np.empty(0)


def _combined(weights: Array, V: Array) -> Array:
    """Return the sum of the rows of V (j, own) with weights (j,), added one after the other."""
    result = weights[0] * V[0]
    for weight, v in zip(weights[1:], V[1:], strict=True):
        result += weight * v
    return np.asarray(result)


def _signed(Y: Array, shared: SharedMap) -> Array:
    """Return Y with the largest entry of each column, over all ranks, positive: the rule of `linalg.pca.fix_signs`."""
    columns = np.arange(Y.shape[1])
    peaks = Y[np.abs(Y).argmax(axis=0), columns] if len(Y) else np.zeros(Y.shape[1])
    every = np.stack(shared.group.all_gather(peaks))
    return Y * np.where(every[np.abs(every).argmax(axis=0), columns] < 0, -1.0, 1.0)
