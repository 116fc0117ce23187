"""Neighbour search in large data, which is divided into cells around k-means centres.

The points of a cell are compared with those of nearby cells by matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from .. import _core
from .._types import Array
from ..arrays.blocks import FIXED_ENTRIES, FIXED_REGION_ROWS, FIXED_SCAN_ROWS
from ..linalg.pca import one_blas_thread, openmp_threads, run_on_threads
from ..progress import advance_callback
from .recall import estimate_recall, reach_for_recall, sample_rows

TRAINING = 32  # training points per cell for k-means; chosen, like the iterations and the number of cells
ITERATIONS = 4
LISTED = 32  # nearest cells stored for each point; chosen
COMPARED = 1024  # cell centres compared with a point to find its nearest cells; chosen
UNSURE = 1e-4  # acceptable rounding error, relative to the squared distance of the k-th neighbour; chosen
HALF_ULP = 2.0**-24  # relative error of one rounding in float32

Store = Callable[[Array, Array], None]  # receives rows (m,) and their neighbours (m, k)


@contextmanager
def faiss_threads(n_threads: int) -> Iterator[None]:
    """Set the number of threads of faiss for a `with` block, and restore it afterwards."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(openmp_threads(n_threads))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def without_self(found: Array, rows: Array) -> Array:
    """Return the neighbours `found` (m, k + 1) of the points `rows` (m,) without the points themselves, (m, k).

    If a point is not among its own neighbours, its last neighbour is left out instead.
    """
    m, width = found.shape
    own = found == rows[:, None]
    own[~own.any(axis=1), -1] = True  # not found, as among many points at distance 0
    return found[~own].reshape(m, width - 1)


class Groups:
    """Stores points sorted by group, so that each group is contiguous in memory, and searches groups for neighbours."""

    def __init__(self, points: Array, group: Array, count: int):
        self.rows = np.argsort(group, kind="stable")
        self.points = points[self.rows]  # (n, D) float32
        self.norms = np.einsum("ij,ij->i", self.points, self.points)
        self.sizes = np.bincount(group, minlength=count)
        self._ends = np.concatenate([[0], np.cumsum(self.sizes)])

    def slice_of(self, group: int) -> slice:
        """Return the slice of `rows`, `points` and `norms` that belongs to a group."""
        return slice(self._ends[group], self._ends[group + 1])

    def nearest(
        self, k: int, queries: Array, parts: list[Array], near: Callable[[int], Array], store: Store, n_threads: int
    ) -> None:
        """Find the k nearest points of each query in the groups given by `near`, and pass them to `store`.

        Each matrix product is computed by a single thread, so that the result does not depend on `n_threads`.

        Parameters
        ----------
        k : int
        queries : array of float32, shape (m, D)
        parts : list of int arrays
            Each array contains the indices of queries with the same candidates.
        near : callable
            near(i) returns the groups that contain the candidates of parts[i].
        store : callable
            Called as store(rows, found): row i of `found` contains the k neighbours of query rows[i], nearest first.
        n_threads : int
        """

        def search(i: int) -> None:
            slices = [self.slice_of(group) for group in near(i)]
            rows, points, norms = (
                joined([array[part] for part in slices]) for array in (self.rows, self.points, self.norms)
            )
            for part in np.array_split(parts[i], -(-len(parts[i]) * len(rows) // FIXED_ENTRIES)):
                store(part, rows[nearest_of(queries[part], points, norms, k)])

        with one_blas_thread():
            run_on_threads(search, [i for i, rows in enumerate(parts) if len(rows)], n_threads)


def nearest_of(Q: Array, points: Array, norms: Array, k: int) -> Array:
    """Return the indices (q, k), int32, of the k `points` (m, D) nearest to each query of Q (q, D).

    `norms` (m,) are the squared norms of the points. Squared distances are computed from matrix products. If a
    query is so much nearer to its neighbours than to the origin that rounding could change the result, its distances
    are computed again from differences.
    """
    dots, found = Q @ points.T, np.empty((len(Q), k), np.int32)
    _core.nearest(dots, norms, found)
    own, last = np.einsum("ij,ij->i", Q, Q), found[:, -1]
    d2 = own + norms[last] - 2 * dots[np.arange(len(Q)), last]
    # The error of a product in float32 is about √D roundings of its terms, which add up to 4 ‖q‖² for a near point.
    unsure = 8 * HALF_ULP * np.sqrt(Q.shape[1]) * own > UNSURE * d2
    if unsure.any():
        import faiss  # sums squared differences

        with faiss_threads(1):  # the caller is one of several threads, each with its own setting
            found[unsure] = faiss.knn(Q[unsure], points, k)[1]
    return found


def joined(parts: list[Array]) -> Array:
    """Return the arrays `parts` concatenated; a single array is returned without a copy."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def scan(base: Array, queries: Array, k: int, n_threads: int) -> Array:
    """Return the indices (n, k), int32, of the k points of `base` (n, D) nearest to each of `queries` (n, D), float32.

    All pairs are compared. Query i represents point i of `base`, which is left out of the neighbours of query i.
    """
    n = len(base)
    all_points = Groups(base, np.zeros(n, np.int64), 1)
    result, advance = np.empty((n, k), np.int32), advance_callback()

    def store(rows: Array, found: Array) -> None:
        result[rows] = without_self(found, rows)
        advance(len(rows))

    # The size of the blocks does not depend on the number of threads.
    parts = [np.arange(start, min(start + FIXED_SCAN_ROWS, n)) for start in range(0, n, FIXED_SCAN_ROWS)]
    all_points.nearest(k + 1, queries, parts, lambda i: np.zeros(1, np.int64), store, n_threads)
    return result


class Cells:
    """Divides points into about 4 √n cells around k-means centres, and searches nearby cells for neighbours.

    Each point ranks the cells by distance. The rank of cell B seen from cell A is the best rank that a member of A
    gives to B. A query in cell A is compared with all points of the cells that have the best ranks seen from A. So
    points at the border of a cell find as many of their neighbours as points in its middle.
    """

    def __init__(self, base: Array, queries: Array, n_threads: int):
        self.base, self.queries, self._n_threads = base, queries, n_threads  # (n, D) float32
        rows = np.random.RandomState(0).permutation(len(base))
        centres = _Centres(base, rows, int(4 * np.sqrt(len(base))))
        self._centres, count = centres.points, len(centres.points)
        self._listed = centres.nearest(queries, min(LISTED, count), n_threads)
        self._own = self._listed[:, 0]
        self._cell = self._own if queries is base else centres.nearest(base, 1, n_threads)[:, 0]
        self._groups = Groups(base, self._cell, count)
        self._members = _by_group(self._own, count)
        self._all_ranks = count + self._listed.shape[1]  # larger than any rank

    def _ranks(self, cell: int, below: int) -> Array:
        """Return the rank of every cell seen from the cell with index `cell`; ranks above `below` become `below`."""
        listed = self._listed[self._members[cell]]
        ranks = np.full(len(self._centres), below, np.int32)
        if below > listed.shape[1]:  # beyond the listed cells, by the distance between centres
            d2 = ((self._centres - self._centres[cell]) ** 2).sum(axis=1)
            order = np.argsort(d2, kind="stable")[: below - listed.shape[1]]
            ranks[order] = np.arange(len(order)) + listed.shape[1]
        for rank in range(min(below, listed.shape[1]) - 1, -1, -1):
            ranks[listed[:, rank]] = rank
        return ranks

    def search_with_recall(self, k: int, min_recall: float) -> tuple[Array, float]:
        """Return the indices (n, k), int32, of the k other points nearest to each point, and the recall.

        As many cells are searched as `min_recall` requires; this number and the recall are estimated on a sample.
        """
        rows = sample_rows(len(self.queries))
        truth = self._true_neighbors(rows, k)
        found = self.search(k, self.reach(rows, truth, min_recall))
        kth = np.array([self._squared(i, near).max() for i, near in zip(rows, truth, strict=True)])
        d2 = np.array([self._squared(i, found[i]) for i in rows])
        return found, estimate_recall(d2, kth)

    def _true_neighbors(self, rows: Array, k: int) -> Array:
        import faiss

        return without_self(faiss.knn(self.queries[rows], self.base, k + 1)[1], rows)

    def _squared(self, i: int, near: Array) -> Array:
        return np.square(self.base[near] - self.queries[i]).sum(axis=1)

    def reach(self, rows: Array, truth: Array, min_recall: float) -> int:
        """Return the smallest `count` with which `search` reaches the recall `min_recall` on the points `rows` (m,).

        `truth` (m, k) contains the true neighbours of these points.
        """
        ranks = np.empty(truth.shape, np.int32)
        for t, i in enumerate(rows):
            ranks[t] = self._ranks(self._own[i], self._all_ranks)[self._cell[truth[t]]]
        return reach_for_recall(ranks, min_recall)

    def search(self, k: int, count: int) -> Array:
        """Return the indices (n, k), int32, of the k other points nearest to each point.

        Cells of rank below `count` are searched. If these have fewer than k + 1 points, further cells are searched
        in order of rank.
        """
        sizes = self._groups.sizes

        def near(cell: int) -> Array:
            for below in (count, self._all_ranks):  # all cells, if those of rank below `count` have too few points
                ranks = self._ranks(cell, below)
                order = np.argsort(ranks, kind="stable")
                reached = int((ranks < count).sum())
                total = np.cumsum(sizes[order])
                if total[reached - 1] > k:
                    return order[:reached]
            return order[: int(np.searchsorted(total, k + 1)) + 1]

        result, advance = np.empty((len(self.queries), k), np.int32), advance_callback()

        def store(rows: Array, found: Array) -> None:
            result[rows] = without_self(found, rows)
            advance(len(rows))

        self._groups.nearest(k + 1, self.queries, self._members, near, store, self._n_threads)
        return result


class _Centres:
    """Finds centres of about `count` cells by k-means on two levels: √count regions, then cells within each region."""

    def __init__(self, X: Array, rows: Array, count: int):  # rows: a random permutation of the rows of X
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
        """Return the index of the region of each point."""
        import faiss

        step = FIXED_REGION_ROWS
        parts = [points[start : start + step] for start in range(0, len(points), step)]
        return np.concatenate([faiss.knn(part, self._regions, 1)[1][:, 0] for part in parts])

    def nearest(self, points: Array, k: int, n_threads: int) -> Array:
        """Return the indices (n, k), int32, of the k cells nearest to each point, nearest first.

        Only nearby regions are searched.
        """
        sizes = self._groups.sizes
        enough = min(COMPARED, len(self.points))

        def near(region: int) -> Array:
            order = self._order[region]
            return order[: int(np.searchsorted(np.cumsum(sizes[order]), enough)) + 1]

        result = np.empty((len(points), k), np.int32)
        parts = _by_group(self._region(points), len(sizes))
        self._groups.nearest(k, points, parts, near, result.__setitem__, n_threads)
        return result


def _k_means(X: Array, count: int) -> Array:
    """Return `count` k-means centres of the rows of X."""
    import faiss

    means = faiss.Clustering(X.shape[1], count)
    means.seed, means.niter, means.min_points_per_centroid = 0, ITERATIONS, 1
    means.train(X, faiss.IndexFlatL2(X.shape[1]))
    return faiss.vector_to_array(means.centroids).reshape(-1, X.shape[1])


def _by_group(group: Array, count: int) -> list[Array]:
    """Return the row indices of each of `count` groups."""
    return np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group, minlength=count))[:-1])
