"""The neighbours of a rank's rows, a batch of rows at a time, among the cells near to theirs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._types import Array
from ..neighbors.panels import Members, Panels
from ..neighbors.vectors import EuclideanVectors
from ..progress import advance_callback
from .cell_reach import LISTED_ROWS, OwnCells
from .exchange import fetch
from .group import Group

BATCH = 2**27  # bytes of the points compared in one batch, 128 MB; chosen
MEASURED = 2**24  # bytes of the arrays for some queries and their distances in float64; chosen


@dataclass(frozen=True)
class Batch:
    """Rows of this rank and the cells in which their neighbours are searched.

    Attributes
    ----------
    positions : slice
        The rows: those of consecutive cells that this rank owns.
    near : list of array of int32
        For each of these cells that is not empty, the cells to be searched, ascending.
    """

    positions: slice
    near: list[Array]


def point_bytes(D: int, itemsize: int) -> int:
    """Return the bytes needed for a point of a batch: the row, two copies in float32, and indices."""
    return D * (itemsize + 8) + 32


def batch_points(D: int, itemsize: int) -> int:
    """Return how many points a batch has, unless the cells near to one cell have more."""
    return max(1, BATCH // point_bytes(D, itemsize))


class BatchSearch:
    """Searches the cells near to the rows of this rank for their k nearest neighbours.

    Parameters
    ----------
    group : Group
    own : OwnCells
    k : int
    count : int
        Cells of rank below `count` are searched.
    """

    def __init__(self, group: Group, own: OwnCells, k: int, count: int):
        self.group, self.own, self.k, self.count = group, own, k, count

    def search(self) -> tuple[Array, Array]:
        """Return the positions (count, k), int32, of the neighbours of own rows, and their squared distances.

        Neighbours are sorted by squared distance, in float64, and then by position. Points that other ranks own are
        fetched for one batch at a time; all ranks take part until the last has finished.
        """
        own, k = self.own.partition.own, self.k
        indices, d2 = np.empty((own.stop - own.start, k), np.int32), np.empty((own.stop - own.start, k))
        batches, advance = self._batches(), advance_callback()
        while True:
            batch = next(batches, None)
            if not self.group.all_reduce(np.array([batch is not None], np.int64), "max")[0]:
                return indices, d2
            points = _points(batch, self.own.starts, self.own.partition.n)
            rows = fetch(self.group, self.own.partition, self.own.rows, points)
            if batch is not None:
                at = slice(batch.positions.start - own.start, batch.positions.stop - own.start)
                self._compare(batch, points, rows, (indices[at], d2[at]))
                advance(at.stop - at.start)

    def _batches(self) -> Iterator[Batch]:
        """Yield the batches of this rank: consecutive cells, as many as the limit on points allows."""
        own, starts = self.own.partition.own, self.own.starts
        most = batch_points(self.own.rows.shape[1], self.own.rows.itemsize)
        at = own.start
        while at < own.stop:
            last = int(self.own.cell_of(np.array([min(at + LISTED_ROWS, own.stop) - 1]))[0])
            stop = min(int(starts[last + 1]), own.stop)
            near = self.own.near_cells(slice(at, stop), self.count, self.k + 1)
            yield from self._divide(slice(at, stop), near, most)
            at = stop

    def _divide(self, positions: slice, near: list[Array], most: int) -> Iterator[Batch]:
        """Divide consecutive cells, with the cells near to each, into batches of at most `most` points."""
        sizes, taken = np.diff(self.own.starts), np.zeros(self.own.cells.count, bool)
        ends = np.unique(self.own.starts)  # of cells that are not empty
        ends = np.append(ends[(ends > positions.start) & (ends < positions.stop)], positions.stop).tolist()
        first, begin, points = positions.start, 0, 0
        for t, cells in enumerate(near):
            more = int(sizes[cells[~taken[cells]]].sum())
            if t > begin and points + more > most:
                yield Batch(slice(first, ends[t - 1]), near[begin:t])
                taken[:] = False
                first, begin, points, more = ends[t - 1], t, 0, int(sizes[cells].sum())
            taken[cells] = True
            points += more
        yield Batch(slice(first, positions.stop), near[begin:])

    def _compare(self, batch: Batch, points: Array, rows: Array, out: tuple[Array, Array]) -> None:
        """Write the positions and the squared distances, both (m, k), of the neighbours of the rows of a batch.

        `rows` are those at the positions `points`, which contain the cells near to each row.
        """
        queries = np.searchsorted(points, np.arange(batch.positions.start, batch.positions.stop))
        found = self._nearest(batch, points, rows, queries)
        numbers = points.astype(np.int32)
        step = max(1, MEASURED // (32 * self.k + 8 * rows.shape[1]))
        for start in range(0, len(found), step):
            part = slice(start, start + step)
            d2 = self._measure(rows, queries[part], found[part])
            near_rows, out[1][part] = sorted_by_distance(found[part], d2)
            np.take(numbers, near_rows, out=out[0][part], mode="clip")

    def _nearest(self, batch: Batch, points: Array, rows: Array, queries: Array) -> Array:
        """Return the indices in `rows` (m, k), int32, of the neighbours of rows[queries], in any order."""
        own, starts = self.own, self.own.starts
        near = np.unique(np.concatenate(batch.near))
        near = near[starts[near] < starts[near + 1]]
        begin, end = (np.searchsorted(points, at) for at in (starts[near], starts[near + 1]))
        edges = np.concatenate([[0], np.column_stack([begin, end]).ravel(), [len(points)]])
        groups = np.repeat(np.arange(len(edges) - 1), np.diff(edges))  # cell t is group 2 t + 1
        panels = Panels(own.vectors.unit(rows, own.n_threads), Members(groups, len(edges) - 1), own.n_threads)
        place = np.full(own.cells.count, -1, np.int32)
        place[near] = 2 * np.arange(len(near), dtype=np.int32) + 1
        lists = [place[cells][place[cells] >= 0] for cells in batch.near]
        indptr = np.concatenate([[0], np.cumsum([len(cells) for cells in lists])])
        _, group = np.unique(own.cell_of(np.arange(batch.positions.start, batch.positions.stop)), return_inverse=True)
        return panels.nearest(
            self.k,
            own.unit(batch.positions),
            Members(group, len(lists)),
            (indptr, np.concatenate(lists)),
            self_ids=queries.astype(np.int32),
        )

    def _measure(self, rows: Array, queries: Array, found: Array) -> Array:
        """Return the squared distances (m, k), float64, between rows[queries] and the rows `found` (m, k)."""
        used = np.zeros(len(rows), bool)
        used[found] = True
        used[queries] = True
        place = np.cumsum(used, dtype=np.int32) - 1
        at = place[queries]
        listed = np.zeros((int(used.sum()), found.shape[1]), np.int32)
        listed[at] = place[found]
        table = EuclideanVectors(self.own.vectors.vectors(rows[used]), "sqeuclidean")
        return table.own_distances(listed, self.own.n_threads, at)[at]


def sorted_by_distance(found: Array, d2: Array) -> tuple[Array, Array]:
    """Return each row of `found` and of `d2`, both (m, k), sorted by d2; equal ones by the numbers in `found`."""
    order = np.argsort(d2, axis=1)
    found, d2 = np.take_along_axis(found, order, axis=1), np.take_along_axis(d2, order, axis=1)
    tied = np.flatnonzero((d2[:, 1:] == d2[:, :-1]).any(axis=1))
    found[tied] = np.take_along_axis(found[tied], np.lexsort((found[tied], d2[tied]), axis=1), axis=1)
    return found, d2


def _points(batch: Batch | None, starts: Array, n: int) -> Array:
    """Return the positions, int64 and ascending, of the points of a batch: whole panels that contain its near cells.

    The compiled search compares whole panels, also with points of other cells. Panels are therefore at the same
    positions for any number of ranks.
    """
    if batch is None:
        return np.empty(0, np.int64)
    cells = np.unique(np.concatenate(batch.near))
    cells = cells[starts[cells] < starts[cells + 1]]
    first, last = starts[cells] // _core.PANEL, (starts[cells + 1] - 1) // _core.PANEL + 1
    first[1:] = np.maximum(first[1:], last[:-1])  # a panel that two cells share
    sizes = np.maximum(last - first, 0)
    panels = np.arange(sizes.sum()) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
    points = (panels[:, None] * _core.PANEL + np.arange(_core.PANEL)).ravel()
    return points[points < n]
