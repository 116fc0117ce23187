"""Neighbour search in large data, which is divided into cells around k-means centres.

The points of a cell are compared with those of nearby cells by matrix products.
"""

from __future__ import annotations

import numpy as np

from .. import _core
from .._types import Array
from ..progress import advance_callback
from .centres import Centres
from .panels import Members, Panels, one_group
from .recall import estimate_recall, reach_for_recall, sample_rows

# Cells per √n. Measured on Fashion-MNIST and on mixtures, k = 15 and 90: from 4 to 6 the search saves a tenth, and from
# 8 on it saves no more than the larger number of centres costs.
CELLS = 6
LISTED = 32  # nearest cells stored for each point; chosen
# The same for a recall above HIGH. Cells that no point of a cell stores are searched in the order of their centres, and
# many more are needed: on MNIST, 70,000 points, k = 14 and a recall of 0.997, 337 cells instead of 57, and 1.0 s
# instead of 0.7 s on two threads.
MORE_LISTED, HIGH = 64, 0.99


def listed_for(min_recall: float) -> int:
    """Return how many of the nearest cells to store for each point."""
    return MORE_LISTED if min_recall > HIGH else LISTED


class Cells:
    """Divides points into about `CELLS` √n cells around k-means centres, and searches nearby cells for neighbours.

    Each point ranks the cells by distance. The rank of cell B seen from cell A is the best rank that a member of A
    gives to B. A query in cell A is compared with all points of the cells that have the best ranks seen from A. So
    points at the border of a cell find as many of their neighbours as points in its middle.

    Parameters
    ----------
    base, queries : array of float32, shape (n, D)
    n_threads : int
    listed : int, default=LISTED
        Number of nearest cells that each point ranks.
    """

    def __init__(self, base: Array, queries: Array, n_threads: int, listed: int = LISTED):
        self.base, self.queries, self._n_threads = base, queries, n_threads
        # From the end: the sample on which the recall is estimated is from the start, and must not be trained on.
        rows = np.random.RandomState(0).permutation(len(base))[::-1]
        centres = Centres(base, rows, int(CELLS * np.sqrt(len(base))), n_threads)
        self._centres, count = centres.points, len(centres.points)
        self._listed = centres.nearest(queries, min(listed, count))
        self._own = np.ascontiguousarray(self._listed[:, 0])
        self._cell = self._own if queries is base else centres.nearest(base, 1)[:, 0]
        self._members = Members(self._own, count)  # queries in each cell
        self._points = Panels(base, self._members if queries is base else Members(self._cell, count), n_threads)

    @property
    def order(self) -> Array:
        """The queries (n,), sorted by cell."""
        return self._members.order

    def search_with_recall(self, k: int, min_recall: float) -> tuple[Array, float]:
        """Return the indices (n, k), int32, of the k other points nearest to each point, and the recall.

        As many cells are searched as `min_recall` requires; this number and the recall are estimated on a sample.
        """
        rows = sample_rows(len(self.queries))
        truth = self._true_neighbors(rows, k)
        found = self.search(k, self.reach(rows, truth, min_recall))
        kth, d2 = self._squared(rows, truth).max(axis=1), self._squared(rows, found[rows])
        return found, estimate_recall(d2, kth)

    def _true_neighbors(self, rows: Array, k: int) -> Array:
        """Return the k points nearest to each of the queries `rows`, (m, k), from all cells."""
        count = len(self._centres)
        near = np.array([0, count]), np.arange(count, dtype=np.int32)
        return self._points.nearest(k, self.queries[rows], one_group(len(rows)), near, self_ids=rows.astype(np.int32))

    def _squared(self, rows: Array, near: Array) -> Array:
        """Return the squared distances (m, k), float32, of the queries `rows` (m,) to the points `near` (m, k)."""
        d2 = np.empty(near.shape, np.float32)
        _core.listed_distances(self.base, self.queries[rows], near, d2, self._n_threads)
        return d2

    def reach(self, rows: Array, truth: Array, min_recall: float) -> int:
        """Return the smallest `count` with which `search` reaches the recall `min_recall` on the points `rows` (m,).

        `truth` (m, k) contains the true neighbours of these points.
        """
        cells, place = np.unique(self._own[rows], return_inverse=True)
        ranks = np.empty((len(cells), len(self._centres)), np.int32)
        _core.cell_ranks(*self._lists(), cells, ranks, self._n_threads)
        return reach_for_recall(ranks[place[:, None], self._cell[truth]], min_recall)

    def search(self, k: int, count: int) -> Array:
        """Return the indices (n, k), int32, of the k other points nearest to each point.

        Cells of rank below `count` are searched. If these have fewer than k + 1 points, further cells are searched
        in order of rank.
        """
        indptr, indices = np.empty(len(self._centres) + 1, np.int64), np.empty(0, np.int32)
        for _ in range(2):  # the first call counts
            _core.cells_in_reach(*self._lists(), count, k + 1, indptr, indices, self._n_threads)
            indices = indices if indices.size else np.empty(indptr[-1], np.int32)
        self_ids = np.arange(len(self.queries), dtype=np.int32)
        return self._points.nearest(
            k, self.queries, self._members, (indptr, indices), self_ids=self_ids, advance=advance_callback()
        )

    def _lists(self) -> tuple[Array, Array, _core.Csr, Array]:
        return self._centres, self._listed, self._members.csr, self._points.members.starts
