"""A first pass over a table: mean and extent of its vectors, and random rows for training and for the recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array
from .group import Group
from .partition import Partition
from .row_vectors import RowVectors, read_rows, stored_dtype

READ = 2**24  # bytes of rows read at a time, 16 MB; chosen


@dataclass
class Survey:
    """What all ranks know of a table after the first pass.

    Attributes
    ----------
    training : array of shape (about `trained`, D)
        Random rows, in the order of the table, the same on all ranks.
    measured : array of shape (about `measured`, D)
        Random rows on which the recall is measured, which are not among the training rows if there are enough rows.
    measured_ids : array of int64
        The indices of these rows in the table.
    """

    training: Array
    measured: Array
    measured_ids: Array

    def free_training(self) -> None:
        """Free the memory of the training rows."""
        self.training = self.training[:0].copy()


def survey(group: Group, source: Any, vectors: RowVectors, trained: int, measured: int) -> Survey:
    """Read the table once; set the center and the scale of `vectors`, and draw random rows.

    From each block of rows, the same number of rows is drawn, up to one, by a generator that depends only on the index
    of the block. So the result does not depend on the number of ranks.

    Parameters
    ----------
    group : Group
    source : RowSource
    vectors : RowVectors
        Its `center` and `scale` are set.
    trained, measured : int
        Numbers of random rows.
    """
    (n, D), table = source.shape, Partition.of(group, source.shape[0])
    blocks = table.blocks()
    sums, extremes = np.zeros((len(blocks), D)), np.full((2, D), -np.inf)
    drawn: list[list[Array]] = [[np.empty(0, np.int64)], [np.empty(0, np.int64)]]
    kept: list[list[Array]] = [[np.empty((0, D), stored_dtype(source))] for _ in drawn]
    for run in table.runs(8 * D, READ):
        X = read_rows(source, run)
        V = vectors.vectors(X, run.start)
        np.maximum(extremes, (V.max(axis=0), -V.min(axis=0)), out=extremes)
        for start in range(run.start, run.stop, table.block):
            b, rows = start // table.block, slice(start - run.start, min(start + table.block, run.stop) - run.start)
            sums[b - blocks[0][0]] = V[rows].sum(axis=0)
            for ids, found, chosen in zip(drawn, kept, _draw(table, b, trained, measured), strict=True):
                ids.append(chosen)
                found.append(X[chosen - run.start])
    vectors.center = table.sum_blocks(group, sums) / n
    high, low = group.all_reduce(extremes, "max")
    extent = float(max((high - vectors.center).max(), (low + vectors.center).max()))
    vectors.scale = max(extent, np.finfo(np.float64).tiny)
    training, measured_rows = (np.concatenate(group.all_gather(np.concatenate(found))) for found in kept)
    return Survey(training, measured_rows, np.concatenate(group.all_gather(np.concatenate(drawn[1]))))


def _draw(table: Partition, b: int, trained: int, measured: int) -> tuple[Array, Array]:
    """Return the indices of the training rows and of the measured rows of block b, ascending."""
    first, size = b * table.block, min((b + 1) * table.block, table.n) - b * table.block
    order = np.random.default_rng([0, b]).permutation(size)
    head, tail = (_share(table, b, total, size) for total in (trained, measured))
    return first + np.sort(order[:head]), first + np.sort(order[size - tail :])


def _share(table: Partition, b: int, total: int, size: int) -> int:
    """Return how many of `total` rows are drawn from block b: in proportion to its rows, at most all of them."""
    first = b * table.block
    return min(size, total * (first + size) // table.n - total * first // table.n)
