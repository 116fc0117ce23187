"""Neighbours in large data: the points of a cell against those of the nearest cells, a matrix product at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from .. import _core
from .._types import Array
from ..linalg.blas import one_blas_thread
from ..progress import advance_callback

TRAINING = 32  # points per cell that k-means sees; chosen, as are its rounds and the number of cells
ROUNDS = 4
SAMPLE = 500  # rows whose recall is measured
BLOCK = 2**22  # distances at a time
LISTED = 32  # nearest cells that are known of each point; chosen
COMPARED = 1024  # centres of cells that a point is compared with, to know them; chosen
SCANNED = 128  # points whose distances to all are computed at once; chosen
UNSURE = 1e-4  # part of the squared distance of the k-th neighbour that rounding may be; chosen
HALF_ULP = 2.0**-24  # of float32: the relative error of one rounding
ROWS = 8192  # points assigned to regions at once

Put = Callable[[Array, Array], None]  # takes rows (m,) and what was found for them (m, k)


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


class Groups:
    """Points, one group after the other, so that those of a few groups are a few stretches of memory."""

    def __init__(self, points: Array, group: Array, count: int):
        self.rows = np.argsort(group, kind="stable")
        self.points = points[self.rows]  # (n, D) float32
        self.norms = np.einsum("ij,ij->i", self.points, self.points)
        self.sizes = np.bincount(group, minlength=count)
        self._ends = np.concatenate([[0], np.cumsum(self.sizes)])

    def stretch(self, group: int) -> slice:
        return slice(self._ends[group], self._ends[group + 1])

    def nearest(
        self, k: int, queries: Array, askers: list[Array], near: Callable[[int], Array], put: Put, n_threads: int
    ) -> None:
        """Put the k nearest points of each query, from near to far, among those of a few groups.

        The rows `askers[i]` of the queries look into the groups `near(i)`: they have the same candidates, so their
        distances are one matrix product. It is computed by one thread alone: the bytes do not depend on how many there
        are.
        """

        def answer(i: int) -> None:
            stretches = [self.stretch(group) for group in near(i)]
            rows, points, norms = (
                joined([of_all[stretch] for stretch in stretches]) for of_all in (self.rows, self.points, self.norms)
            )
            for part in np.array_split(askers[i], -(-len(askers[i]) * len(rows) // BLOCK)):
                put(part, rows[nearest_of(queries[part], points, norms, k)])

        with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(answer, [i for i, rows in enumerate(askers) if len(rows)]))


def nearest_of(Q: Array, points: Array, norms: Array, k: int) -> Array:
    """Return the k nearest of some points (m, D) to each query, (q, k) int32: by products, and by differences where the
    rounding of products could tell: where neighbours are much nearer to one another than to the origin.
    """
    dots, found = Q @ points.T, np.empty((len(Q), k), np.int32)
    _core.nearest(dots, norms, found)
    own, last = np.einsum("ij,ij->i", Q, Q), found[:, -1]
    d2 = own + norms[last] - 2 * dots[np.arange(len(Q)), last]
    # A product of float32 is off by some √D roundings of its terms, which for a near point add up to 4 ‖q‖².
    unsure = 8 * HALF_ULP * np.sqrt(Q.shape[1]) * own > UNSURE * d2
    if unsure.any():
        import faiss  # sums squared differences

        found[unsure] = faiss.knn(Q[unsure], points, k)[1]
    return found


def joined(parts: list[Array]) -> Array:
    """Return arrays one after the other; a single one is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def scan(base: Array, queries: Array, k: int, n_threads: int) -> Array:
    """Return the k nearest of all points of `base` (n, D), float32, without the point itself: (n, k) int32."""
    n = len(base)
    everyone = Groups(base, np.zeros(n, np.int64), 1)
    result, advance = np.empty((n, k), np.int32), advance_callback()

    def put(rows: Array, found: Array) -> None:
        result[rows] = without_self(found, rows)
        advance(len(rows))

    # Blocks of one size whatever the number of threads.
    askers = [np.arange(start, min(start + SCANNED, n)) for start in range(0, n, SCANNED)]
    everyone.nearest(k + 1, queries, askers, lambda i: np.zeros(1, np.int64), put, n_threads)
    return result


class Cells:
    """About 4 √n cells around k-means centres; a query is compared with all points of the cells near its own.

    A cell is as near to another as it is to the member that it is nearest to: by its rank among the cells nearest to
    that one. So the points at the border of a cell find as many of their neighbours as those in its middle.
    """

    def __init__(self, base: Array, queries: Array, n_threads: int):
        self.base, self.queries, self._n_threads = base, queries, n_threads  # (n, D) float32
        rows = np.random.RandomState(0).permutation(len(base))
        self._sample = np.sort(rows[:SAMPLE])
        centres = _Centres(base, rows, int(4 * np.sqrt(len(base))))
        self._centres, count = centres.points, len(centres.points)
        self._listed = centres.nearest(queries, min(LISTED, count), n_threads)
        self._own = self._listed[:, 0]
        self._cell = self._own if queries is base else centres.nearest(base, 1, n_threads)[:, 0]
        self._groups = Groups(base, self._cell, count)
        self._askers = _by_group(self._own, count)
        self._every = count + self._listed.shape[1]  # more than any rank

    def _ranks(self, cell: int, below: int) -> Array:
        """Return the rank of every cell, seen from this one: the best over its members, or `below` if not below it."""
        listed = self._listed[self._askers[cell]]
        ranks = np.full(len(self._centres), below, np.int32)
        if below > listed.shape[1]:  # after those that are listed, in the order of the centres
            d2 = ((self._centres - self._centres[cell]) ** 2).sum(axis=1)
            order = np.argsort(d2, kind="stable")[: below - listed.shape[1]]
            ranks[order] = np.arange(len(order)) + listed.shape[1]
        for rank in range(min(below, listed.shape[1]) - 1, -1, -1):
            ranks[listed[:, rank]] = rank
        return ranks

    def reach(self, k: int, min_recall: float) -> tuple[int, float]:
        """Return the rank up to which cells must be looked at for this recall of k neighbours, and the recall."""
        import faiss

        rows = self._sample
        truth = without_self(faiss.knn(self.queries[rows], self.base, k + 1)[1], rows)
        needed = np.array([self._ranks(self._own[i], self._every)[self._cell[truth[t]]] for t, i in enumerate(rows)])
        count = int(np.sort(needed, axis=None)[int(np.ceil(min_recall * needed.size)) - 1]) + 1
        return count, float((needed < count).mean())

    def search(self, k: int, count: int) -> Array:
        """Return the k nearest of the points in cells of rank below `count`, (n, k) int32, without the point itself."""
        sizes = self._groups.sizes

        def near(cell: int) -> Array:
            for below in (count, self._every):  # all, if the first have fewer points than are asked for
                ranks = self._ranks(cell, below)
                order = np.argsort(ranks, kind="stable")
                reached = int((ranks < count).sum())
                total = np.cumsum(sizes[order])
                if total[reached - 1] > k:
                    return order[:reached]
            return order[: int(np.searchsorted(total, k + 1)) + 1]

        result, advance = np.empty((len(self.queries), k), np.int32), advance_callback()

        def put(rows: Array, found: Array) -> None:
            result[rows] = without_self(found, rows)
            advance(len(rows))

        self._groups.nearest(k + 1, self.queries, self._askers, near, put, self._n_threads)
        return result


class _Centres:
    """Centres of cells by k-means in two levels: √count regions, then each region by itself."""

    def __init__(self, X: Array, rows: Array, count: int):  # rows: all of X in random order
        import faiss

        R = int(np.sqrt(count))
        self._regions = _k_means(X[np.sort(rows[: TRAINING * R])], R)
        sample = X[np.sort(rows[: TRAINING * count])]
        parts = [sample[members] for members in _by_group(self._region(sample), R)]
        centres = [_k_means(part, max(1, round(len(part) / TRAINING))) if len(part) else part for part in parts]
        self.points = np.concatenate(centres)
        self._groups = Groups(self.points, np.repeat(np.arange(R), [len(of_region) for of_region in centres]), R)
        self._order = faiss.knn(self._regions, self._regions, R)[1]

    def _region(self, points: Array) -> Array:
        """Return the region of each point."""
        import faiss

        blocks = range(0, len(points), ROWS)
        return np.concatenate([faiss.knn(points[start : start + ROWS], self._regions, 1)[1][:, 0] for start in blocks])

    def nearest(self, points: Array, k: int, n_threads: int) -> Array:
        """Return the k nearest cells of each point, (n, k) int32 from near to far, of those in the nearest regions."""
        sizes = self._groups.sizes
        enough = min(COMPARED, len(self.points))

        def near(region: int) -> Array:
            order = self._order[region]
            return order[: int(np.searchsorted(np.cumsum(sizes[order]), enough)) + 1]

        result = np.empty((len(points), k), np.int32)
        askers = _by_group(self._region(points), len(sizes))
        self._groups.nearest(k, points, askers, near, result.__setitem__, n_threads)
        return result


def _k_means(X: Array, count: int) -> Array:
    """Return `count` centres of the rows of X."""
    import faiss

    means = faiss.Clustering(X.shape[1], count)
    means.seed, means.niter, means.min_points_per_centroid = 0, ROUNDS, 1
    means.train(X, faiss.IndexFlatL2(X.shape[1]))
    return faiss.vector_to_array(means.centroids).reshape(-1, X.shape[1])


def _by_group(group: Array, count: int) -> list[Array]:
    """Return the rows in each of `count` groups."""
    return np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group, minlength=count))[:-1])
