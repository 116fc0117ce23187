"""Find the k nearest neighbours of every row of a table whose rows are divided among ranks.

The table is read three times, a part of it by each rank. The first pass finds the mean and the extent of the vectors,
and random rows on which every rank trains the same k-means centres (survey.py); the second lists the cells near to each
row, the nearest of which is its own; the third sends each row to the rank that owns its position in the order of cells
(cell_order.py). Then each rank compares its rows with the rows of nearby cells, which it fetches from their owners in
batches (batch_search.py). The result is the same, to the last bit, for any number of ranks and threads.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from .. import progress
from .._types import Array
from ..arrays.namespace import is_integer, require
from ..neighbors.cells import CELLS, LISTED
from ..neighbors.centres import TRAINING
from ..neighbors.recall import SAMPLE, estimate_recall
from ..neighbors.search import EXACT_WORK, MIN_RECALL, check_n_threads
from .batch_search import MEASURED, BatchSearch, batch_points, point_bytes
from .cell_order import RankCells, list_cells, listed_dtype, position_rows, send_to_owners
from .cell_reach import LISTED_ROWS, OwnCells
from .exchange import ROUND
from .group import Group
from .partition import Partition
from .recall_sample import true_neighbors
from .row_vectors import RowVectors, check_metric_of_ranks, check_source, stored_dtype
from .survey import READ, survey


@dataclass(frozen=True, repr=False)
class RankNeighbors:
    """The nearest neighbours of the rows that a rank owns.

    Attributes
    ----------
    partition : Partition
        Which positions each rank owns.
    ids : array of int64, shape (count,)
        The index in the table of the row at each own position.
    indices : array of int32, shape (count, k)
        The positions of the neighbours of each own row, nearest first; ties by position.
    distances : array of float64, shape (count, k)
        The distances to them.
    recall : float
        Fraction of the true neighbours that were found, estimated on a sample; 1.0 if all pairs were compared.
    rows : array of shape (count, D)
        The own rows, in the order of positions, float32 or float64.
    vectors : RowVectors
        How rows become the vectors that were compared.
    """

    partition: Partition
    ids: Array
    indices: Array
    distances: Array
    recall: float
    rows: Array
    vectors: RowVectors

    def __repr__(self) -> str:
        (m, k), n = self.indices.shape, self.partition.n
        return f"<{k} neighbours of each of {m} of {n} points, recall {self.recall:.3g}>"


class Resources(NamedTuple):
    """The threads, memory and device of a rank's search. Only the device changes the result.

    Parameters
    ----------
    n_threads : int, default=1
        Number of threads.
    row_memory : int, optional
        If the own rows take more than this number of bytes, they are kept in a temporary file, mapped into memory. The
        file has no name, or is deleted when the rows are no longer used, also after an error. By default, rows stay in
        memory.
    device : {"cpu", "cuda"}, optional
        Compare rows with PyTorch on this device, where "cuda" is PyTorch's current GPU; by default, with the C++ core.
    """

    n_threads: int = 1
    row_memory: int | None = None
    device: str | None = None


def find_neighbors(
    group: Group,
    source: Any,
    k: int,
    metric: str = "euclidean",
    *,
    min_recall: float = MIN_RECALL,
    resources: Resources = Resources(),  # noqa: B008
) -> RankNeighbors:
    """Find the k nearest neighbours of each row of a table that the ranks read together.

    Each rank needs about `search_memory(n, D, k, size)` bytes.

    Parameters
    ----------
    group : Group
        The ranks; all of them call this function with the same arguments.
    source : RowSource
        Has `shape` (n, D), `dtype`, and `read(start, stop)`, which returns rows. Ranks read disjoint ranges of rows.
    k : int
        Number of neighbours, from 1 to n − 1.
    metric : {"euclidean", "l2", "sqeuclidean", "cosine", "correlation"}, default="euclidean"
    min_recall : float, default=0.99
        Minimum recall of the search in large data, estimated on a sample; small data are searched exactly.
    resources : Resources, optional
        Threads, memory for rows and device of each rank.

    Returns
    -------
    RankNeighbors
        The neighbours of the rows that this rank owns.

    Raises
    ------
    ValueError
        If an argument is out of range, if the metric is not supported or not defined for a row, or if the table
        contains a value that is not finite or whose square would overflow.
    """
    check_metric_of_ranks(metric)
    check_source(source)
    (n, D), settings = source.shape, [k, metric, min_recall]
    check_n_threads(resources.n_threads)
    require(min_recall, "min_recall", "between 0 and 1", lambda x: 0 <= x <= 1)
    if not (is_integer(k) and 0 < k < n):
        raise ValueError(f"k must be an integer from 1 to n_samples - 1 = {n - 1}, got {k!r}")
    row_memory = resources.row_memory
    if row_memory is not None and not (is_integer(row_memory) and row_memory >= 0):
        raise ValueError(f"row_memory must be a number of bytes or None, got {row_memory!r}")
    progress.stage("neighbours", -(-n // group.size))
    with group.stage("neighbours"):
        group.require_equal(
            "the table, k, metric or min_recall", [n, D, str(stored_dtype(source)), *map(str, settings)]
        )
        return _find(group, source, k, RowVectors(metric, D), min_recall, resources)


def _find(
    group: Group, source: Any, k: int, vectors: RowVectors, min_recall: float, resources: Resources
) -> RankNeighbors:
    (n, D), (n_threads, row_memory, device) = source.shape, resources
    exact = float(n) * n * D <= EXACT_WORK
    count = 1 if exact else int(CELLS * sqrt(n))
    seen = survey(group, source, vectors, 0 if exact else TRAINING * count, 0 if exact else SAMPLE)
    cells = RankCells(group, vectors.unit(seen.training, n_threads), count, n_threads)
    seen.free_training()
    listed = list_cells(group, source, vectors, cells, n_threads)
    positions, starts = position_rows(group, listed[:, 0], cells.count)
    partition = Partition.of(group, n)
    rows = empty_rows((partition.count, D), stored_dtype(source), row_memory)
    ids, listed = send_to_owners(group, source, positions, listed, rows)
    at = _positions_of(group, seen.measured_ids, positions)
    del positions
    own = OwnCells(partition, rows, cells, starts, listed, vectors, n_threads)
    own.share_ranks(group)
    if exact:
        indices, d2 = _search(group, own, k, 1, device).search()
        return RankNeighbors(partition, ids, indices, vectors.distances(d2), 1.0, rows, vectors)
    truth, true_d2 = true_neighbors(group, own, seen.measured, at, k)
    reach = own.reach(group, own.cell_of(at), own.cell_of(truth), min_recall)
    indices, d2 = _search(group, own, k, reach, device).search()
    recall = _recall(group, partition, at, d2, true_d2[:, -1])
    return RankNeighbors(partition, ids, indices, vectors.distances(d2), recall, rows, vectors)


def _search(group: Group, own: OwnCells, k: int, count: int, device: str | None) -> BatchSearch:
    """Return the search among the cells of rank below `count`, on a device of PyTorch if one is given."""
    if device is None:
        return BatchSearch(group, own, k, count)
    from .tensor_search import TensorSearch  # PyTorch is optional, and slow to import

    return TensorSearch(group, own, k, count, device=device)


def _positions_of(group: Group, ids: Array, positions: Array) -> Array:
    """Return the positions of some rows of the table; `positions` are those of the rows that this rank reads."""
    table = Partition.of(group, int(group.all_reduce(np.array([len(positions)], np.int64))[0]))
    mine = ids[(ids >= table.own.start) & (ids < table.own.stop)]
    return np.concatenate(group.all_gather(positions[mine - table.own.start]))


def _recall(group: Group, partition: Partition, at: Array, d2: Array, kth: Array) -> float:
    """Return the recall of the points at positions `at`, whose true k-th neighbours have squared distances `kth`."""
    mine = np.flatnonzero((at >= partition.own.start) & (at < partition.own.stop))
    found = np.concatenate(group.all_gather(d2[at[mine] - partition.own.start]))
    return estimate_recall(found, kth[np.concatenate(group.all_gather(mine))])


def empty_rows(shape: tuple[int, int], dtype: np.dtype[Any], row_memory: int | None) -> Array:
    """Return an array for rows, in a temporary file that is mapped into memory if it exceeds `row_memory` bytes.

    The file is removed when the array is no longer used, or when the process ends.
    """
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if row_memory is None or size <= row_memory:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="equipoise-rows-") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk is an error here, not a crash later
        return np.asarray(np.memmap(file, dtype, "r+" if hasattr(os, "posix_fallocate") else "w+", shape=shape))


def search_memory(n: int, D: int, k: int, size: int, itemsize: int = 8) -> int:
    """Return about how many bytes a rank needs for `find_neighbors`, without the source of the rows.

    Parameters
    ----------
    n, D : int
        Numbers of rows and columns of the table.
    k : int
        Number of neighbours.
    size : int
        Number of ranks.
    itemsize : int, default=8
        Bytes of a number in the rows as they are stored: 4 for float32, otherwise 8.

    Returns
    -------
    bytes : int
        An upper bound for usual data: the rows and neighbours of the rank and the buffers of a batch, or the training
        rows if they take more. If the cells near to a cell have more rows than a batch holds, as among very many equal
        rows, the search needs more.
    """
    own, row, exact = int(np.diff(Partition(n, size).bounds).max()), D * itemsize, float(n) * n * D <= EXACT_WORK
    training = 0 if exact else min(n, int(TRAINING * CELLS * sqrt(n))) * (row + 12 * D)
    cells = 1 if exact else int(CELLS * sqrt(n))
    near, measured = min(LISTED, cells), 0 if exact else min(n, SAMPLE) * (row + 8 * D)
    listed, points = min(own, LISTED_ROWS), n if exact else min(n, batch_points(D, itemsize))
    batch = points * point_bytes(D, itemsize) + listed * (4 * k + 4 * near + 8 * D) + measured
    batch += 3 * min(MEASURED, own * (32 * k + 8 * D)) + (2 * ROUND if size > 1 else 0)
    near *= listed_dtype(cells).itemsize
    moved = 4 * min(READ, 8 * D * own) + (4 * ROUND if size > 1 else 0)
    return max(training, own * (row + 28 + 2 * near) + moved, own * (row + 8 + near + 12 * k) + batch)
