"""Headers of collectives: what each rank is about to send, compared before anything is sent.

A header is a row of int64: the operation, the dtype, the shape, and for `all_to_all` the number of rows for each rank.
Every collective exchanges headers first, so that ranks that call different collectives, or pass arrays that do not
fit together, all raise the same error, which names the ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._types import Array
from .rank_error import name_ranks

OPERATIONS = ("all_reduce sum", "all_reduce max", "all_reduce min", "all_gather", "all_to_all", "broadcast", "barrier")
MAX_DIMENSIONS = 8
_DTYPE_BYTES = 24
_FIXED = 2 + _DTYPE_BYTES // 8 + MAX_DIMENSIONS  # operation, number of dimensions, dtype, shape


@dataclass(frozen=True)
class Header:
    """The operation, dtype and shape that one rank announces."""

    operation: str
    dtype: str
    shape: tuple[int, ...]
    rows_for: tuple[int, ...] = ()  # all_to_all: the number of rows for each rank; broadcast: the source

    def encode(self, size: int) -> Array:
        """Return the header as a row of int64 with room for `size` ranks."""
        row = np.zeros(_FIXED + size, np.int64)
        row[0] = OPERATIONS.index(self.operation)
        row[1] = len(self.shape)
        row[2 : 2 + _DTYPE_BYTES // 8] = np.frombuffer(self.dtype.encode().ljust(_DTYPE_BYTES, b"\0"), np.int64)
        row[_FIXED - MAX_DIMENSIONS : _FIXED - MAX_DIMENSIONS + len(self.shape)] = self.shape
        row[_FIXED : _FIXED + len(self.rows_for)] = self.rows_for
        return row

    @classmethod
    def decode(cls, row: Array) -> Header:
        """Return the header encoded in a row."""
        shape = tuple(int(n) for n in row[_FIXED - MAX_DIMENSIONS :][: int(row[1])])
        dtype = row[2 : 2 + _DTYPE_BYTES // 8].tobytes().rstrip(b"\0").decode()
        return cls(OPERATIONS[int(row[0])], dtype, shape, tuple(int(n) for n in row[_FIXED:]))


def check_headers(headers: Sequence[Header], same: str) -> None:
    """Raise a ValueError that names the ranks if the headers do not fit together.

    Parameters
    ----------
    headers : sequence of Header
        One header from each rank.
    same : {"shape", "trailing shape", "target"}
        What must be the same on all ranks: dtype and shape, dtype and shape after axis 0, or `rows_for`.
    """
    operation = headers[0].operation
    _refuse_different("the ranks called different collectives", [header.operation for header in headers])
    if same == "target":
        _refuse_different(f"{operation}: the source differs", [str(header.rows_for[0]) for header in headers])
        return
    _refuse_different(f"{operation}: the dtype differs", [header.dtype for header in headers])
    if same == "shape":
        _refuse_different(f"{operation}: the shape differs", [str(header.shape) for header in headers])
    else:
        trailing = [str(("n", *header.shape[1:])).replace("'", "") if header.shape else "()" for header in headers]
        _refuse_different(f"{operation}: the shape after axis 0 differs", trailing)


def _refuse_different(what: str, values: Sequence[str]) -> None:
    if len(set(values)) > 1:
        raise ValueError(f"{what}: {describe_groups(values)}")


def describe_groups(values: Sequence[str]) -> str:
    """Return which ranks have which value: "float32 on rank 0, float64 on ranks 1, 2"."""
    groups: dict[str, list[int]] = {}
    for rank, value in enumerate(values):
        groups.setdefault(value, []).append(rank)
    return ", ".join(f"{value} on {name_ranks(ranks)}" for value, ranks in groups.items())
