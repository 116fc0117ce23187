"""Neighbours in large data: the points of a cell against those of the nearest cells, a matrix product at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
from threadpoolctl import threadpool_limits

from . import _core
from ._types import Array

TRAINING = 64  # points per cell that k-means sees; chosen, as its 6 rounds and the number of cells
SAMPLE = 500  # rows whose recall is measured
BLOCK = 2**22  # distances at a time


@contextmanager
def faiss_threads(n_threads: int) -> Iterator[None]:
    """Run faiss on this many threads, and put its setting back."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n_threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def without_self(found: Array, rows: Array) -> Array:
    """Return neighbours (m, k) from a search for k + 1 that may hold the point itself anywhere, or not at all."""
    m, width = found.shape
    own = found == rows[:, None]
    own[~own.any(axis=1), -1] = True  # crowded out by nearer points: drop the farthest instead
    return found[~own].reshape(m, width - 1)


class Cells:
    """4 √n cells around k-means centres; a query is compared with all points of the cells nearest to its own.

    All queries of a cell have the same candidates, so their distances are one matrix product.
    """

    def __init__(self, base: Array, queries: Array):
        import faiss

        self.base, self.queries = base, queries  # (n, D) float32
        n, D = base.shape
        self._rows = np.random.RandomState(0).permutation(n)
        means = faiss.Clustering(D, int(4 * np.sqrt(n)))
        means.seed, means.niter, means.min_points_per_centroid = 0, 6, 1
        index = faiss.IndexFlatL2(D)
        means.train(base[np.sort(self._rows[: TRAINING * means.k])], index)
        centres = faiss.vector_to_array(means.centroids).reshape(-1, D)
        self._cell = index.search(base, 1)[1][:, 0]  # of each point
        self._query_cell = self._cell if queries is base else index.search(queries, 1)[1][:, 0]
        self._members = _by_cell(self._cell, means.k)
        self._askers = self._members if queries is base else _by_cell(self._query_cell, means.k)
        self._nearest = faiss.knn(centres, centres, means.k)[1].astype(np.int32)  # cells from near to far, of each

    def reach(self, k: int, min_recall: float) -> tuple[int, float]:
        """Return how many cells must be looked at for this recall of k neighbours, and the recall, from a sample."""
        import faiss

        rows = np.sort(self._rows[:SAMPLE])
        truth = without_self(faiss.knn(self.queries[rows], self.base, k + 1)[1], rows)
        order = self._nearest[self._query_cell[rows]]
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(order.shape[1])[None], axis=1)
        needed = np.sort(np.take_along_axis(rank, self._cell[truth], axis=1), axis=None)  # cells until each is found
        count = int(needed[int(np.ceil(min_recall * len(needed))) - 1]) + 1
        return count, float((needed < count).mean())

    def search(self, k: int, count: int, n_threads: int) -> Array:
        """Return the k nearest of the points in `count` cells, (n, k) int32, without the point itself."""
        result = np.empty((len(self.queries), k), np.int32)
        norms = np.einsum("ij,ij->i", self.base, self.base)
        sizes = np.array([len(rows) for rows in self._members])

        def answer(cell: int) -> None:
            rows = self._askers[cell]
            if len(rows) == 0:
                return
            near = self._nearest[cell]
            enough = max(count, int(np.searchsorted(np.cumsum(sizes[near]), k + 1)) + 1)
            candidates = np.concatenate([self._members[c] for c in near[:enough]])
            points = self.base[candidates].T
            for part in np.array_split(rows, -(-len(rows) * len(candidates) // BLOCK)):
                dots = self.queries[part] @ points
                nearest = np.empty((len(part), k + 1), np.int32)
                _core.nearest(dots, norms[candidates], nearest)
                result[part] = without_self(candidates[nearest], part)

        # Each cell by one thread alone: the bytes do not depend on how many there are.
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(answer, range(len(sizes))))
        return result


def _by_cell(cell: Array, count: int) -> list[Array]:
    """Return the rows in each of `count` cells."""
    return np.split(np.argsort(cell, kind="stable"), np.cumsum(np.bincount(cell, minlength=count))[:-1])
