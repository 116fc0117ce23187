"""Centres of cells, found by k-means on two levels, and the cells nearest to points."""

from __future__ import annotations

import numpy as np

from .. import _core
from .._types import Array
from .panels import ALL, Members, Panels, one_group

TRAINING = 16  # training points per cell for k-means; chosen, like the iterations
ITERATIONS = 4
COMPARED = 1024  # cell centres compared with a point to find its nearest cells; chosen


class Centres:
    """Finds centres of about `count` cells by k-means on two levels: √count regions, then cells within each region.

    Parameters
    ----------
    X : array of float32, shape (n, D)
    rows : array of int
        A random permutation of the rows of X.
    count : int
    n_threads : int

    Attributes
    ----------
    points : array of float32, shape (about count, D)
        The centres, sorted by region.
    """

    def __init__(self, X: Array, rows: Array, count: int, n_threads: int):
        self._n_threads = n_threads
        R = max(1, int(np.sqrt(count)))
        training = X[np.sort(rows[: TRAINING * R])]
        self._regions = self._k_means(training, one_group(len(training)), np.array([min(R, len(training))]))
        R = len(self._regions)
        sample = X[np.sort(rows[: TRAINING * count])]
        members = Members(self._region(sample), R)
        counts = np.where(members.sizes, np.maximum(1, np.rint(members.sizes / TRAINING)), 0).astype(np.int64)
        self.points = self._k_means(sample, members, counts)
        self._panels = Panels(self.points, Members(np.repeat(np.arange(R), counts), R), n_threads)
        d2 = ((self._regions[:, None] - self._regions) ** 2).sum(axis=2)
        self._order = np.argsort(d2, axis=1, kind="stable")

    def _k_means(self, X: Array, members: Members, counts: Array) -> Array:
        """Return counts[g] k-means centres of the rows of X in each group g of `members`, one group after the other.

        Training starts from the first rows of each group in a fixed random order.
        """
        rng, starts = np.random.RandomState(0), members.starts[:-1]
        chosen = [
            start + rng.permutation(size)[:count]
            for start, size, count in zip(starts, members.sizes, counts, strict=True)
        ]
        centres = X[members.order[np.concatenate(chosen)]]
        groups = Members(np.repeat(np.arange(len(counts)), counts), len(counts))
        near = np.arange(len(counts) + 1), np.arange(len(counts), dtype=np.int32)
        for _ in range(ITERATIONS):
            panels = Panels(centres, groups, self._n_threads)
            nearest = panels.nearest(1, X, members, near)[:, 0]
            _core.group_means(X, Members(nearest, len(centres)).csr, centres, self._n_threads)
        return centres

    def _region(self, points: Array) -> Array:
        """Return the index of the region of each point."""
        regions = Panels(self._regions, one_group(len(self._regions)), self._n_threads)
        return regions.nearest(1, points, one_group(len(points)), ALL)[:, 0]

    def nearest(self, points: Array, k: int) -> Array:
        """Return the indices (n, k), int32, of the k cells nearest to each point, nearest first.

        Only nearby regions are searched.
        """
        sizes = self._panels.members.sizes
        enough = min(COMPARED, len(self.points))
        counts = (np.cumsum(sizes[self._order], axis=1) < enough).sum(axis=1) + 1
        indptr = np.concatenate([[0], np.cumsum(counts)])
        near = [np.sort(order[:count]) for order, count in zip(self._order, counts, strict=True)]
        members = Members(self._region(points), len(sizes))
        return self._panels.nearest(k, points, members, (indptr, np.concatenate(near).astype(np.int32)))
