"""X → Graph: the k nearest neighbours of every point, with the recall of the search measured, not hoped for.

Squared Euclidean distance, cosine and correlation go through faiss: an exact scan for small data, an inverted file
(IVF: cells around k-means centres, the nearest few scanned) for large. Both give the same bytes for any number of
threads; faiss's HNSW graphs do not, so they are not used. Other metrics are searched exactly, block by block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances, pairwise_distances_chunked

from . import _core
from ._types import Array, Matrix

EXACT_WORK = 5e10  # n² · D up to which a full scan is used; a guess, to be measured
SAMPLE = 500  # rows whose recall is measured
EUCLIDEAN = ("euclidean", "l2", "sqeuclidean", "cosine", "correlation")  # searched as Euclidean distances by faiss
TRAINING = 64  # points per cell that k-means sees


@dataclass(frozen=True)
class Graph:
    """Neighbours of each of n points: `indices` and `distances`, (n, k), the point itself left out."""

    indices: Array  # int32
    distances: Array  # float64
    recall: float  # measured on a sample against an exact scan; 1.0 for exact searches

    def squared(self, n: int | None = None) -> Matrix:
        """Return d² as CSR, to n points: those that have the neighbours, unless said otherwise."""
        m, k = self.indices.shape
        indptr = np.arange(0, m * k + 1, k, dtype=np.int64)
        shape = (m, m if n is None else n)
        return sparse.csr_matrix((np.square(self.distances).ravel(), self.indices.ravel(), indptr), shape=shape)


def nearest_neighbors(
    X: Array, k: int, metric: Any = "euclidean", *, n_threads: int = 1, min_recall: float = 0.95
) -> Graph:
    """Return the k nearest neighbours of each row of X (n, D), at a measured recall of at least `min_recall`."""
    n = len(X)
    if not 0 < k < n:
        raise ValueError(f"k must be between 1 and n_samples - 1 = {n - 1}, got {k}")
    if metric in EUCLIDEAN:
        V = _as_euclidean(X, metric)
        indices, recall = _search(V, k, n_threads, min_recall)
        # faiss works in float32; the distances that set the affinities are computed again in float64.
        d2 = np.empty(indices.shape)
        _core.pair_distances(V, indices, d2, n_threads)
        return Graph(indices, _distance(d2, metric), recall)
    return _scan(X, k, metric)


class Searcher:
    """Nearest rows of a table X to new rows, exactly; each new row is searched by itself."""

    SPARE = 16  # found in float32 beyond the k asked for, and sorted out in float64

    def __init__(self, X: Array, metric: Any, n_threads: int):
        self.X, self.metric, self.n_threads = X, metric, n_threads
        self._index: Any = None

    def nearest(self, X_new: Array, k: int) -> Graph:
        """Return the k nearest rows of X to each row of X_new (m, D)."""
        if self.metric not in EUCLIDEAN:
            return smallest(pairwise_distances(X_new, self.X, metric=self.metric), k)
        import faiss

        if self._index is None:
            self._V = _as_euclidean(self.X, self.metric)
            self._center = self._V.mean(axis=0)
            self._index = faiss.IndexFlatL2(self._V.shape[1])
            self._index.add((self._V - self._center).astype(np.float32))
        V = _as_euclidean(X_new, self.metric)
        width = min(k + self.SPARE, len(self.X))
        before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(self.n_threads)
        try:
            found = self._index.search((V - self._center).astype(np.float32), width)[1]
        finally:
            faiss.omp_set_num_threads(before)
        found = np.sort(found, axis=1)
        d2 = np.empty(found.shape)
        for start in range(0, len(V), 1024):
            rows = slice(start, start + 1024)
            d2[rows] = ((V[rows, None, :] - self._V[found[rows]]) ** 2).sum(axis=2)
        keep = np.sort(np.argsort(d2, axis=1, kind="stable")[:, :k], axis=1)
        near = np.take_along_axis(d2, keep, axis=1)
        return Graph(np.take_along_axis(found, keep, axis=1).astype(np.int32), _distance(near, self.metric), 1.0)


def smallest(D: Array, k: int) -> Graph:
    """Return the k smallest entries of each row of D (m, n), in order of their columns."""
    keep = np.sort(np.argsort(D, axis=1, kind="stable")[:, :k], axis=1)
    return Graph(keep.astype(np.int32), np.take_along_axis(D, keep, axis=1), 1.0)


def nearest_in_matrix(D: Array, k: int) -> Graph:
    """Return the k nearest neighbours of each point from all distances, D (n, n)."""
    D = D.copy()
    np.fill_diagonal(D, np.inf)
    near = np.argpartition(D, k - 1, axis=1)[:, :k]
    return Graph(near.astype(np.int32), np.take_along_axis(D, near, axis=1), 1.0)


def _distance(d2: Array, metric: str) -> Array:
    return np.sqrt(d2) if metric in ("euclidean", "l2") else d2 if metric == "sqeuclidean" else d2 / 2


def _as_euclidean(X: Array, metric: str) -> Array:
    """Return vectors whose squared Euclidean distance is d², d² = 2 (1 − cos) or 2 (1 − correlation)."""
    if metric in ("euclidean", "l2", "sqeuclidean"):
        return np.ascontiguousarray(X, dtype=np.float64)
    V = X - X.mean(axis=1, keepdims=True) if metric == "correlation" else X
    norm = np.linalg.norm(V, axis=1, keepdims=True)
    if not norm.all():
        i = int(norm.argmin())
        raise ValueError(f"row {i} has no direction, so metric={metric!r} gives it no distances; drop it")
    return np.ascontiguousarray(V / norm)


def _search(X: Array, k: int, n_threads: int, min_recall: float) -> tuple[Array, float]:
    import faiss

    V = X - X.mean(axis=0)
    V = (V / max(np.abs(V).max(), np.finfo(np.float64).tiny)).astype(np.float32)
    n, D = V.shape
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n_threads)
    try:
        flat = faiss.IndexFlatL2(D)
        flat.add(V)
        if float(n) * n * D <= EXACT_WORK:
            return _without_self(flat.search(V, k + 1)[1]), 1.0
        cells = int(4 * np.sqrt(n))
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(D), D, cells)
        index.cp.seed = 0
        index.cp.niter = 6
        rows = np.random.RandomState(0).permutation(n)
        index.train(V[np.sort(rows[: TRAINING * cells])])
        index.add(V)
        sample = np.sort(rows[:SAMPLE])
        truth = flat.search(V[sample], k + 1)[1]
        index.nprobe, recall = 4, 0.0
        while True:
            found = index.search(V[sample], k + 1)[1]
            recall = float(np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)]))
            if recall >= min_recall or index.nprobe >= cells:
                break
            index.nprobe = min(cells, int(index.nprobe * 1.5))
        return _without_self(index.search(V, k + 1)[1]), recall
    finally:
        faiss.omp_set_num_threads(before)


def _without_self(found: Array) -> Array:
    """Return neighbours (n, k) from a search for k + 1 that may hold the point itself anywhere, or not at all."""
    n, width = found.shape
    own = found == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # crowded out by duplicates: drop the farthest instead
    return np.ascontiguousarray(found[~own].reshape(n, width - 1).astype(np.int32))


def _scan(X: Array, k: int, metric: Any) -> Graph:
    """Return exact neighbours by any metric of scikit-learn, or a callable, in blocks of rows."""
    indices, distances = np.empty((len(X), k), np.int32), np.empty((len(X), k))
    start = 0
    for block in pairwise_distances_chunked(X, metric=metric):
        rows = np.arange(start, start + len(block))
        block[np.arange(len(block)), rows] = np.inf
        bad = np.argwhere(~(block >= 0))
        if bad.size:
            i, j = bad[0]
            raise ValueError(f"metric={metric!r} gives the distance {block[i, j]} between rows {rows[i]} and {j}")
        near = np.argpartition(block, k - 1, axis=1)[:, :k]
        indices[rows], distances[rows] = near, np.take_along_axis(block, near, axis=1)
        start += len(block)
    return Graph(indices, distances, 1.0)
