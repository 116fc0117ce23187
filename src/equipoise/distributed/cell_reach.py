"""Which cells are searched for the neighbours of the rows of a cell, when ranks own different rows of it.

As on one machine (neighbors/cells.py), the rank of cell B seen from cell A is the best rank that a row of A gives to
B. If several ranks own rows of A, the smallest of their ranks counts.
"""

from __future__ import annotations

import numpy as np

from .. import _core
from .._types import Array
from ..neighbors.panels import Members
from ..neighbors.recall import reach_for_recall
from .cell_order import RankCells
from .group import Group
from .partition import Partition
from .row_vectors import RowVectors

NONE = np.iinfo(np.int32).max  # rank seen from no row
LISTED_ROWS = 2**15  # rows whose cells are ranked at a time; chosen
RANKED = 2**24  # ranks of cells computed at a time, 64 MB


class OwnCells:
    """The rows that this rank owns, in the order of their cells, and the cells near to theirs.

    Parameters
    ----------
    partition : Partition
    rows : array of shape (count, D)
        The rows of this rank, in the order of positions.
    cells : RankCells
    starts : array of int64, shape (cells.count + 1,)
        The position at which each cell starts.
    listed : array of int, shape (count, m)
        The cells nearest to each of these rows, nearest first.
    vectors : RowVectors
    n_threads : int
    """

    def __init__(
        self,
        partition: Partition,
        rows: Array,
        cells: RankCells,
        starts: Array,
        listed: Array,
        vectors: RowVectors,
        n_threads: int,
    ):
        self.partition, self.rows, self.cells, self.starts, self._listed = partition, rows, cells, starts, listed
        self.vectors, self.n_threads = vectors, n_threads
        self._shared: dict[int, Array] = {}

    def cell_of(self, positions: Array) -> Array:
        """Return the cell, int64, of each of some positions."""
        return np.searchsorted(self.starts, positions, side="right").astype(np.int64, copy=False) - 1

    def unit(self, positions: slice) -> Array:
        """Return the unit vectors of own rows, float32."""
        first = self.partition.own.start
        return self.vectors.unit(self.rows[positions.start - first : positions.stop - first], self.n_threads)

    def reach(self, group: Group, cell: Array, near: Array, min_recall: float) -> int:
        """Return up to which rank cells must be searched so that the recall is `min_recall`.

        Parameters
        ----------
        group : Group
        cell : array of int64, shape (m,)
            The cells of some points.
        near : array of int64, shape (m, k)
            The cells of their true neighbours.
        min_recall : float
        """
        ranks = np.full(near.shape, NONE, np.int32)
        seen, place = np.unique(cell, return_inverse=True)
        mine = np.flatnonzero(np.isin(seen, self._own_cells()))
        step = max(1, RANKED // self.cells.count)
        for start in range(0, len(mine), step):
            part = mine[start : start + step]
            found = self._ranks_from(seen[part])
            row = np.full(len(seen), -1)
            row[part] = np.arange(len(part))
            points = np.flatnonzero(row[place] >= 0)
            ranks[points] = found[row[place[points]][:, None], near[points]]
        return reach_for_recall(group.all_reduce(ranks, "min"), min_recall)

    def share_ranks(self, group: Group) -> None:
        """Find the ranks seen from the cells of which several ranks own rows; `near_cells` uses them."""
        bounds = self.partition.bounds[1:-1]
        bounds = bounds[bounds < self.partition.n]
        cells = self.cell_of(bounds)
        cells = np.unique(cells[self.starts[cells] < bounds])
        ranks = np.full((len(cells), self.cells.count), NONE, np.int32)
        mine = np.isin(cells, self._own_cells())
        if mine.any():
            ranks[mine] = self._ranks_from(cells[mine])
        self._shared = dict(zip(cells.tolist(), group.all_reduce(ranks, "min"), strict=True))

    def near_cells(self, positions: slice, count: int, least: int) -> list[Array]:
        """Return the cells, int32 and ascending, that are searched for the rows of each cell at some own positions.

        These have a rank below `count`. If they have fewer than `least` points, further cells are added in the order
        of rank.
        """
        first, last = (int(c) for c in self.cell_of(np.array([positions.start, positions.stop - 1])))
        indptr, indices = np.empty(self.cells.count + 1, np.int64), np.empty(0, np.int32)
        lists = self._lists(np.arange(positions.start, positions.stop))
        for _ in range(2):  # the first call counts
            _core.cells_in_reach(*lists, count, least, indptr, indices, self.n_threads)
            indices = indices if indices.size else np.empty(indptr[-1], np.int32)
        return [
            cells_within(self._shared[cell], np.diff(self.starts), count, least)
            if cell in self._shared
            else indices[indptr[cell] : indptr[cell + 1]]
            for cell in range(first, last + 1)
            if self.starts[cell] < self.starts[cell + 1]
        ]

    def _own_cells(self) -> Array:
        """Return the cells of own rows, ascending."""
        own = self.partition.own
        starts, stops = np.maximum(self.starts[:-1], own.start), np.minimum(self.starts[1:], own.stop)
        return np.flatnonzero(starts < stops)

    def _ranks_from(self, cells: Array) -> Array:
        """Return the ranks (m, cells.count) of all cells, seen by own rows of some cells, ascending."""
        own, ranks = self.partition.own, np.full((len(cells), self.cells.count), NONE, np.int32)
        starts, stops = np.maximum(self.starts[cells], own.start), np.minimum(self.starts[cells + 1], own.stop)
        sizes = stops - starts
        positions = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        for at in range(0, len(positions), LISTED_ROWS):
            part = positions[at : at + LISTED_ROWS]
            lists = self._lists(part)
            seeing = np.flatnonzero((cells >= self.cell_of(part[:1])) & (cells <= self.cell_of(part[-1:])))
            found = np.empty((len(seeing), self.cells.count), np.int32)
            _core.cell_ranks(*lists, cells[seeing].astype(np.int32), found, self.n_threads)
            ranks[seeing] = np.minimum(ranks[seeing], found)
        return ranks

    def _lists(self, positions: Array) -> tuple[Array, Array, _core.Csr, Array]:
        """Return what the core needs to rank cells as seen by the own rows at some positions."""
        listed = self._listed[positions - self.partition.own.start].astype(np.int32, copy=False)
        members = Members(self.cell_of(positions), self.cells.count)
        return self.cells.points, listed, members.csr, self.starts


def cells_within(ranks: Array, sizes: Array, count: int, least: int) -> Array:
    """Return the cells of rank below `count`, and further ones in the order of rank until they have `least` points.

    Parameters
    ----------
    ranks, sizes : array of int, shape (cells,)
        The rank and the number of points of each cell.
    count, least : int
    """
    found = np.flatnonzero(ranks < count)
    if sizes[found].sum() < least:
        order = np.argsort(ranks, kind="stable")
        before = np.cumsum(sizes[order]) - sizes[order]
        found = np.sort(order[(before < least) | (ranks[order] < count)])
    return found.astype(np.int32)
