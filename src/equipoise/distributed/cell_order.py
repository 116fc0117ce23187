"""Cells around k-means centres that all ranks agree on, and positions: rows in the order of their cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..neighbors.cells import LISTED
from ..neighbors.centres import Centres
from .exchange import most_rounds, send
from .group import Group
from .partition import Partition
from .row_vectors import RowVectors, read_rows, stored_dtype
from .survey import READ


class RankCells:
    """Cells around centres trained on rows that every rank has, numbered so that near cells have near numbers.

    Parameters
    ----------
    group : Group
    training : array of float32, shape (m, D)
        Training vectors, the same on all ranks.
    count : int
        Approximate number of cells; 1 for a single cell that contains everything.
    n_threads : int

    Attributes
    ----------
    points : array of float32, shape (count, D)
        The centres.
    """

    def __init__(self, group: Group, training: Array, count: int, n_threads: int):
        self._centres, self._number = None, np.zeros(1, np.int32)
        self.points = np.zeros((1, training.shape[1]), np.float32)
        if count > 1:
            order = np.random.RandomState(0).permutation(len(training))
            self._centres = Centres(training, order, count, n_threads)
            tour = group.broadcast(near_order(self._centres.points) if group.rank == 0 else None)
            self.points = np.ascontiguousarray(self._centres.points[tour])
            self._number = np.empty(len(tour), np.int32)
            self._number[tour] = np.arange(len(tour), dtype=np.int32)

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self.points)

    def nearest(self, vectors: Array, k: int) -> Array:
        """Return the k cells (m, k), int32, nearest to each of some vectors (m, D), float32, nearest first."""
        if self._centres is None or not len(vectors):
            return np.zeros((len(vectors), k), np.int32)
        return self._number[self._centres.nearest(vectors, k)]


def near_order(points: Array) -> Array:
    """Return an order, int64, of points (count, D) in which points near each other tend to be close together.

    The points are divided into halves along the line through two points far from each other, and the halves again.
    """
    points, parts, order = points.astype(np.float64), [np.arange(len(points))], []
    while parts:
        part = parts.pop()
        if len(part) <= 2:
            order.append(part)
            continue
        P = points[part]
        first = P[_squared(P, P.mean(axis=0)).argmax()]
        last = P[_squared(P, first).argmax()]
        along = part[np.argsort((P * (last - first)).sum(axis=1), kind="stable")]
        parts += [along[len(part) // 2 :], along[: len(part) // 2]]
    return np.concatenate(order).astype(np.int64)


def _squared(P: Array, point: Array) -> Array:
    return np.square(P - point).sum(axis=1)


def listed_dtype(count: int) -> np.dtype[Any]:
    """Return the type in which the numbers of `count` cells are stored."""
    return np.dtype(np.uint16 if count <= 2**16 else np.int32)


def list_cells(group: Group, source: Any, vectors: RowVectors, cells: RankCells, n_threads: int) -> Array:
    """Read the table and return the cells (m, `LISTED`) nearest to each row that this rank reads, nearest first.

    The first is the cell of the row. There are fewer columns if there are fewer cells.
    """
    table, width = Partition.of(group, source.shape[0]), min(LISTED, cells.count)
    result = np.zeros((table.count, width), listed_dtype(cells.count))
    for run in table.runs(8 * source.shape[1], READ) if cells.count > 1 else []:
        unit = vectors.unit(read_rows(source, run), n_threads)
        result[run.start - table.own.start : run.stop - table.own.start] = cells.nearest(unit, width)
    return result


def position_rows(group: Group, cell: Array, count: int) -> tuple[Array, Array]:
    """Return the position, int64, of each row that this rank reads, and where each of `count` cells starts.

    Positions are sorted by cell; rows of a cell are in the order of the table.
    """
    own = np.bincount(cell, minlength=count).astype(np.int64)
    counts = group.all_gather(own)
    starts = np.concatenate([[0], np.cumsum(np.sum(counts, axis=0))])
    before = starts[:-1] + np.sum(counts[: group.rank], axis=0, dtype=np.int64)
    order = np.argsort(cell, kind="stable")
    positions = np.empty(len(cell), np.int64)
    positions[order] = np.arange(len(cell)) + np.repeat(before - (np.cumsum(own) - own), own)
    return positions, starts


def send_to_owners(group: Group, source: Any, positions: Array, listed: Array, rows: Array) -> tuple[Array, Array]:
    """Read the table and send each row, with the cells listed for it, to the rank that owns its position.

    Parameters
    ----------
    group : Group
    source : RowSource
    positions : array of int64
        The position of each row that this rank reads.
    listed : array of shape (m, ...)
        Its nearest cells.
    rows : array of shape (count, D)
        Filled with the rows that this rank owns, in the order of positions.

    Returns
    -------
    ids : array of int64, shape (count,)
        The index in the table of each row of `rows`.
    near : array of shape (count, ...)
        The cells listed for each row of `rows`.
    """
    table, D = Partition.of(group, source.shape[0]), source.shape[1]
    ids, first, near = np.empty(table.count, np.int64), table.own.start, np.empty_like(listed)
    runs = table.runs(8 * D, READ)
    for r in range(most_rounds(group, len(runs))):
        run = runs[r] if r < len(runs) else slice(first, first)
        X = read_rows(source, run) if r < len(runs) else np.empty((0, D), stored_dtype(source))
        part = slice(run.start - first, run.stop - first)
        at, numbers = positions[part], np.arange(run.start, run.stop)
        where, found, number, cells = send(group, table.owner(at), [at, X, numbers, listed[part]])
        rows[where - first] = found
        ids[where - first] = number
        near[where - first] = cells
    return ids, near
