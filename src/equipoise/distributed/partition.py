"""Which rows a rank owns, and sums over all rows that do not depend on the number of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._types import Array
from ..arrays.namespace import is_integer
from .blocked_sums import blocked_sum
from .group import Group

SMALLEST_BLOCK = _core.STEP_BLOCK  # rows: sums over a map in the core add blocks of as many
GATHERED = 2**22  # partial sums gathered at a time, 32 MB
MOST_BLOCKS = 4096  # a sum over all rows gathers one partial sum per block; chosen


class Partition:
    """Divides n rows into blocks whose size depends only on n, and the blocks among ranks.

    Rows are numbered by *positions* 0, ..., n − 1. A rank owns a contiguous range of positions, cut at boundaries of
    blocks, so that a block belongs to one rank; the shares of the ranks differ by at most one block. If there are
    fewer blocks than ranks, some ranks own no rows.

    Parameters
    ----------
    n : int
        Number of rows of all ranks together.
    size : int
        Number of ranks.
    rank : int, default=0
        The rank to which `own` and `count` refer.

    Attributes
    ----------
    block : int
        Rows per block, a power of two; the last block can be shorter.
    bounds : array of int64, shape (size + 1,)
        Rank r owns the positions from bounds[r] to bounds[r + 1] − 1.
    """

    def __init__(self, n: int, size: int, rank: int = 0):
        for name, value, least in (("n", n, 1), ("size", size, 1), ("rank", rank, 0)):
            if not (is_integer(value) and value >= least):
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        if rank >= size:
            raise ValueError(f"rank={rank} is not a rank of {size}; the ranks are 0 to {size - 1}")
        self.n, self.size, self.rank = int(n), int(size), int(rank)
        self.block = SMALLEST_BLOCK
        while self.n > MOST_BLOCKS * self.block:
            self.block *= 2
        self.n_blocks = -(-self.n // self.block)
        self._first_block = np.arange(self.size + 1, dtype=np.int64) * self.n_blocks // self.size
        self.bounds = np.minimum(self._first_block * self.block, self.n)

    @classmethod
    def of(cls, group: Group, n: int) -> Partition:
        """Return the partition of n rows among the ranks of a group, seen from this rank."""
        return cls(n, group.size, group.rank)

    @property
    def own(self) -> slice:
        """The positions that this rank owns."""
        return slice(int(self.bounds[self.rank]), int(self.bounds[self.rank + 1]))

    @property
    def count(self) -> int:
        """The number of rows that this rank owns."""
        return int(self.bounds[self.rank + 1] - self.bounds[self.rank])

    def owner(self, positions: Array) -> Array:
        """Return the rank that owns each of some positions, int64."""
        return np.searchsorted(self.bounds, positions, side="right").astype(np.int64, copy=False) - 1

    def blocks(self, rank: int | None = None) -> list[tuple[int, slice]]:
        """Return the blocks of a rank, by default this one: pairs of the index of a block and its positions."""
        r = self.rank if rank is None else rank
        return [
            (b, slice(b * self.block, min((b + 1) * self.block, self.n)))
            for b in range(int(self._first_block[r]), int(self._first_block[r + 1]))
        ]

    def runs(self, bytes_per_row: float, most: float) -> list[slice]:
        """Return runs of whole blocks of this rank, of at most `most` bytes but at least one block, as positions."""
        step = self.block * max(1, int(most // max(1.0, bytes_per_row * self.block)))
        stop = self.own.stop
        return [slice(start, min(start + step, stop)) for start in range(self.own.start, stop, step)]

    def own_blocks(self) -> list[slice]:
        """Return the blocks of this rank as slices of its own rows."""
        first = self.own.start
        return [slice(rows.start - first, rows.stop - first) for _, rows in self.blocks()]

    def sum_rows(self, group: Group, x: Any) -> Array:
        """Return the float64 sum over all rows of all ranks, the same to the last bit for any number of ranks.

        Parameters
        ----------
        group : Group
        x : array of shape (count, ...)
            Values of the rows that this rank owns, in the order of positions.
        """
        x = self._checked(x)
        partial = np.zeros((len(self.blocks()), *x.shape[1:]))
        for b, rows in enumerate(self.own_blocks()):
            partial[b] = np.ascontiguousarray(x[rows], dtype=np.float64).sum(axis=0)
        return self.sum_blocks(group, partial)

    def sum_blocks(self, group: Group, partial: Array) -> Array:
        """Return the sum (...) of the float64 sums over blocks, of which `partial` (own blocks, ...) has this rank's.

        The partial sums of all ranks are gathered for some elements at a time, to limit memory.
        """
        flat = partial.reshape(len(partial), int(np.prod(partial.shape[1:], dtype=np.int64)))
        step = max(1, GATHERED // self.n_blocks)
        sums = [blocked_sum(group, flat[:, first : first + step]) for first in range(0, flat.shape[1], step)]
        return np.concatenate(sums or [np.zeros(0)]).reshape(partial.shape[1:])

    def mean(self, group: Group, x: Any) -> Array:
        """Return the float64 mean over all rows of all ranks of x (count, ...)."""
        return self.sum_rows(group, x) / self.n

    def minimum(self, group: Group, x: Any) -> Array:
        """Return the smallest values over all rows of all ranks of x (count, ...)."""
        return self._extreme(group, x, "min")

    def maximum(self, group: Group, x: Any) -> Array:
        """Return the largest values over all rows of all ranks of x (count, ...)."""
        return self._extreme(group, x, "max")

    def _extreme(self, group: Group, x: Any, op: str) -> Array:
        x = self._checked(x)
        if x.dtype.kind == "f":
            start = np.inf if op == "min" else -np.inf
        else:
            limits = np.iinfo(x.dtype)
            start = limits.max if op == "min" else limits.min
        reduce = np.minimum if op == "min" else np.maximum
        own = np.asarray(reduce.reduce(x, axis=0, initial=start), dtype=x.dtype)
        return group.all_reduce(own, op)

    def _checked(self, x: Any) -> Array:
        x = np.asarray(x)
        if not x.ndim or len(x) != self.count:
            raise ValueError(
                f"rank {self.rank} owns {self.count} of {self.n} rows, but the array has the shape {x.shape};"
                " pass one value or row for each of the rank's own rows"
            )
        return x
