"""Sums over a map whose points several ranks share, the same for any number of ranks.

Integers, minima and maxima are reduced in any order. Floats are summed in blocks of rows that do not depend on the
ranks, and the sums of the blocks are added in the order of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._types import Array, Matrix
from ..arrays.blocks import FIXED_SUM
from ..engines.base import EntrySum
from ..saving.checkpoint import fingerprint
from .group import Group
from .partition import Partition


def _row_totals(indptr: Array, terms: Array) -> Array:
    """Return the sum over each row of one term per stored entry, for the rows that `indptr` (rows + 1,) delimits."""
    sums = np.zeros(len(indptr) - 1)
    filled = np.flatnonzero(np.diff(indptr))
    sums[filled] = np.add.reduceat(terms, indptr[filled]) if filled.size else 0.0
    return sums


class SharedEntrySum:
    """A sum over the stored entries of the rows of all ranks: first of each row, then of blocks of rows."""

    def __init__(self, shared: SharedMap, A: Matrix, start: float):
        self._shared, self._A, self._start, self._terms = shared, A, start, np.zeros(A.nnz)

    def add(self, part: slice, x: Array) -> None:
        self._terms[part] = x

    def total(self) -> float:
        """Return the sum; all ranks call this method."""
        return self._start + self._shared.total(_row_totals(self._A.indptr, self._terms))


class SharedMap:
    """Reductions over all points of a map, of which this rank holds the rows `partition.own`.

    Parameters
    ----------
    group : Group
    partition : Partition
    n_threads : int
    """

    def __init__(self, group: Group, partition: Partition, n_threads: int):
        self.group, self.partition, self.n_threads = group, partition, n_threads

    def count(self, U: Any) -> int:
        return self.partition.n

    def add_blocks(self, sums: Array) -> Array:
        """Return the sum (m,) over all ranks of the sums (blocks, m) of this rank's blocks of STEP_BLOCK rows."""
        if self.group.size > 1:
            sums = np.concatenate(self.group.all_gather(np.ascontiguousarray(sums)))
        return np.asarray(np.add.accumulate(sums)[-1])  # one after the other, docs/math.md, eq. (P1)

    def columns(self, x: Array) -> Array:
        """Return the column sums (m,) of x (own rows, m) over all points."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        sums = np.empty((-(-len(x) // _core.STEP_BLOCK), x.shape[1]))
        _core.block_sums(x, sums, self.n_threads)
        return self.add_blocks(sums)

    def total(self, x: Any) -> float:
        x = np.asarray(x)
        width = int(np.prod(x.shape[1:], dtype=np.int64))  # not −1: this rank may have no points
        return float(self.columns(x.reshape(len(x), width)).sum())

    def mean(self, U: Array) -> Array:
        """Return the mean row (d,) of the map U, in float64."""
        return self.columns(U) / self.partition.n

    def entry_total(self, A: Matrix, f: Callable[[Any], Any]) -> float:
        sums = np.zeros(len(A.indptr) - 1)
        step = max(1, FIXED_SUM * len(sums) // max(1, A.nnz))  # rows with about FIXED_SUM entries
        for first in range(0, len(sums), step):
            indptr = A.indptr[first : first + step + 1]
            values = A.data[indptr[0] : indptr[-1]].astype(np.float64)
            positive = values > 0
            if positive.all():
                values = f(values)
            else:
                values[~positive], values[positive] = 0.0, f(values[positive])
            sums[first : first + step] = _row_totals(indptr - indptr[0], values)
        return self.total(sums)

    def entry_sum(self, A: Matrix, start: float = 0.0) -> EntrySum:
        return SharedEntrySum(self, A, start)

    def maximum(self, value: float) -> float:
        return float(self.group.all_reduce(np.array([value], dtype=np.float64), "max")[0])

    def spread(self, U: Any) -> float:
        centred = U - self.mean(U)
        return float(np.sqrt(self.columns(centred**2) / self.partition.n).max())

    def squared_norm(self, x: Any) -> float:
        return self.total(np.square(x, dtype=np.float64))

    def all_finite(self, U: Any) -> bool:
        return not self.maximum(float(not np.isfinite(U).all()))

    def box(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the corners (d,) of the box around all points, from those around the points of this rank."""
        corners = np.concatenate([low, -high]).astype(np.float64)
        corners = self.group.all_reduce(corners, "min") if self.group.size > 1 else corners
        return corners[: len(low)], -corners[len(low) :]

    def gather(self, x: Array, root: int = 0) -> Array | None:
        """Return x (n, ...) of all points by position on the rank `root`; None on the others."""
        mine = [np.ascontiguousarray(x) if r == root else np.ascontiguousarray(x[:0]) for r in range(self.group.size)]
        parts = self.group.all_to_all(mine)
        return np.concatenate(parts) if self.group.rank == root else None

    def fingerprint(self, *arrays: Array) -> str:
        """Return a hash of arrays (own rows, ...) of all ranks that does not depend on the number of ranks."""
        block = self.partition.block
        starts = range(0, len(arrays[0]), block)
        digests = [bytes.fromhex(fingerprint(*(x[s : s + block] for x in arrays))) for s in starts]
        mine = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, 16)
        return fingerprint(np.concatenate(self.group.all_gather(mine)))
