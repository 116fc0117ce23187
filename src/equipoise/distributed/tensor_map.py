"""Sums over a map of tensors whose points several ranks share, the same for any number of ranks.

PyTorch adds numbers in an order that depends on their number. Here each block of rows is halved, again and again, by
adding its second half to its first: elementwise sums have the same bytes on any number of rows. Then the sums of all
blocks are halved in the same way.
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch

from .._types import Array, Matrix
from ..arrays.device_csr import Rows
from ..arrays.namespace import is_tensor, to_numpy
from ..engines.base import EntrySum
from .group import Group
from .halo import Halo
from .partition import Partition
from .shared_map import SharedMap
from .tensor_exchange import TensorExchange


def halved(x: torch.Tensor) -> torch.Tensor:
    """Return the sums (b, m) of x (b, count, m) over axis 1, whose length is a power of two."""
    while (half := x.shape[1] // 2) > 0:
        x = x[:, :half] + x[:, half:]
    return x[:, 0]


def padded(x: torch.Tensor, count: int) -> torch.Tensor:
    """Return x with rows of zeros at the end, `count` rows in all."""
    return x if len(x) == count else torch.cat([x, x.new_zeros((count - len(x), *x.shape[1:]))])


class TensorMap(SharedMap):
    """Reductions over all points of a map, of which this rank holds the rows `partition.own` as a tensor.

    NumPy arrays are summed as by `SharedMap`.
    """

    def __init__(self, group: Group, partition: Partition, n_threads: int):
        super().__init__(group, partition, n_threads)
        self.exchange = TensorExchange(group)

    def columns(self, x: Any) -> Any:
        if not is_tensor(x):
            return super().columns(x)
        block, blocks = self.partition.block, self.partition.blocks()
        x = padded(x.double(), len(blocks) * block).reshape(len(blocks), block, x.shape[1])
        sums = self.exchange.gather_rows(halved(x), blocks[0][0] if blocks else 0, self.partition.n_blocks)
        return halved(padded(sums, 1 << (len(sums) - 1).bit_length())[None])[0]

    def total(self, x: Any) -> Any:
        """Return the sum of x (own rows, ...) over all points: a float, or for a tensor a float64 scalar."""
        if not is_tensor(x):
            return super().total(x)
        return self.columns(x.reshape(len(x), prod(x.shape[1:]))).sum()

    def entry_sum(self, A: Matrix, start: float = 0.0) -> EntrySum:
        return TensorEntrySum(self, A, start) if isinstance(A, Rows) else super().entry_sum(A, start)

    def spread(self, U: Any) -> float:
        if not is_tensor(U):
            return super().spread(U)
        return float((self.columns((U - self.mean(U)).square()) / self.partition.n).sqrt().max())

    def squared_norm(self, x: Any) -> float:
        return float(self.total(x.double().square())) if is_tensor(x) else super().squared_norm(x)

    def all_finite(self, U: Any) -> bool:
        return super().all_finite(to_numpy(U))

    def gather(self, x: Any, root: int = 0) -> Array | None:
        return super().gather(to_numpy(x), root)

    def gather_tensor(self, x: torch.Tensor) -> torch.Tensor:
        """Return x (n, ...) of all points by position on every rank."""
        return self.exchange.gather_rows(x, self.partition.own.start, self.partition.n)


class TensorEntrySum:
    """A sum over the stored entries of the rows of all ranks: first of each row, then of blocks of rows."""

    def __init__(self, shared: TensorMap, A: Rows, start: float):
        self._shared, self._A, self._start = shared, A, start
        self._terms = torch.zeros((A.nnz, 2), dtype=torch.float64, device=A.device)

    def add(self, part: slice, x: torch.Tensor) -> None:
        self._terms[part, 0] = x

    def total(self) -> Any:
        # With two columns, a GPU adds the entries of a row one by one; with one, in an order that depends on alignment.
        rows = torch.segment_reduce(self._terms, "sum", offsets=self._A.indptr, axis=0)
        return self._start + self._shared.total(rows[:, 0])


class TensorHalo:
    """Exchanges the positions of neighbours across ranks, as `Halo` does, on the device of the map."""

    def __init__(self, halo: Halo, exchange: TensorExchange, device: torch.device):
        self._sent, self._received = [len(rows) for rows in halo.sent], halo.received
        self._rows = torch.cat([torch.from_numpy(rows) for rows in halo.sent]).to(device)
        self._exchange = exchange
        self._known: tuple[Any, int, Any] = None, 0, None  # own points, their version, and the result

    def extended(self, Y: torch.Tensor) -> torch.Tensor:
        """Return the own points Y (own, d), followed by those of other ranks that are their neighbours."""
        if self._known[0] is not Y or self._known[1] != Y._version:  # a tensor changed in place has a new version
            others = self._exchange.swap(Y[self._rows], self._sent, self._received)
            self._known = Y, Y._version, torch.cat([Y, others])
        return self._known[2]
