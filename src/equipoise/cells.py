"""Neighbours in large data: the points of a cell against those of the nearest cells, a matrix product at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from . import _core
from ._types import Array

TRAINING = 64  # points per cell that k-means sees; chosen, as its 6 rounds and the number of cells
SAMPLE = 500  # rows whose recall is measured
BLOCK = 2**22  # distances at a time
LISTED = 32  # nearest cells that are known of each point; chosen
ROWS = 65536  # points looked up at once


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
    """4 √n cells around k-means centres; a query is compared with all points of the cells near its own.

    All queries of a cell have the same candidates, so their distances are one matrix product. A cell is as near to
    another as it is to the member that it is nearest to: by its rank among the cells nearest to that one. So the
    points at the border of a cell find as many of their neighbours as those in its middle.
    """

    def __init__(self, base: Array, queries: Array):
        import faiss

        self.base, self.queries = base, queries  # (n, D) float32
        n, D = base.shape
        rows = np.random.RandomState(0).permutation(n)
        self._sample = np.sort(rows[:SAMPLE])
        means = faiss.Clustering(D, int(4 * np.sqrt(n)))
        means.seed, means.niter, means.min_points_per_centroid = 0, 6, 1
        index = faiss.IndexFlatL2(D)
        means.train(base[np.sort(rows[: TRAINING * means.k])], index)
        centres = faiss.vector_to_array(means.centroids).reshape(-1, D)
        listed = _nearest_cells(index, queries, min(LISTED, means.k))
        own = listed[:, 0]
        self._cell = own if queries is base else _nearest_cells(index, base, 1)[:, 0]
        self._members = _by_cell(self._cell, means.k)
        self._askers = self._members if queries is base else _by_cell(own, means.k)
        # (cells, cells): the best rank over the members; beyond what is listed, the order of the centres.
        order = faiss.knn(centres, centres, means.k)[1]
        self._rank = np.empty(order.shape, np.int32)
        np.put_along_axis(self._rank, order, np.arange(means.k, dtype=np.int32)[None] + listed.shape[1], axis=1)
        for rank in range(listed.shape[1] - 1, -1, -1):
            self._rank[own, listed[:, rank]] = rank
        self._own = own

    def reach(self, k: int, min_recall: float) -> tuple[int, float]:
        """Return the rank up to which cells must be looked at for this recall of k neighbours, and the recall."""
        import faiss

        rows = self._sample
        truth = without_self(faiss.knn(self.queries[rows], self.base, k + 1)[1], rows)
        needed = np.sort(self._rank[self._own[rows, None], self._cell[truth]], axis=None)  # ranks until each is found
        count = int(needed[int(np.ceil(min_recall * len(needed))) - 1]) + 1
        return count, float((needed < count).mean())

    def search(self, k: int, count: int, n_threads: int) -> Array:
        """Return the k nearest of the points in cells of rank below `count`, (n, k) int32, without the point itself."""
        result = np.empty((len(self.queries), k), np.int32)
        norms = np.einsum("ij,ij->i", self.base, self.base)
        sizes = np.array([len(rows) for rows in self._members])

        def answer(cell: int) -> None:
            rows = self._askers[cell]
            if len(rows) == 0:
                return
            near = np.argsort(self._rank[cell], kind="stable")
            reached = int((self._rank[cell] < count).sum())
            enough = max(reached, int(np.searchsorted(np.cumsum(sizes[near]), k + 1)) + 1)
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


def _nearest_cells(index: Any, points: Array, count: int) -> Array:
    """Return the nearest cells of each point, (n, count) int32, from near to far."""
    result = np.empty((len(points), count), np.int32)
    for start in range(0, len(points), ROWS):
        result[start : start + ROWS] = index.search(points[start : start + ROWS], count)[1]
    return result


def _by_cell(cell: Array, count: int) -> list[Array]:
    """Return the rows in each of `count` cells."""
    return np.split(np.argsort(cell, kind="stable"), np.cumsum(np.bincount(cell, minlength=count))[:-1])
