"""What a table that is read in blocks of rows provides."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._types import Array


class RowSource(Protocol):
    """A table (n, D) of numbers that is read in blocks of rows.

    Attributes
    ----------
    name : str
        What error messages call the table.
    shape : tuple of int
    dtype : dtype
        That of the blocks: float32 or float64.
    """

    name: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def read(self, start: int, stop: int) -> Array:
        """Return the rows from `start` up to, not including, `stop` as a new C-contiguous array of floats."""
        ...


def check_table(shape: tuple[Any, ...], name: str) -> tuple[int, int]:
    """Return the shape (n, D) of a table as integers; raise ValueError unless it has two axes."""
    if len(shape) != 2:
        raise ValueError(f"{name} has shape {tuple(shape)}; a table has two axes, rows and columns")
    return int(shape[0]), int(shape[1])


def float_type(dtype: Any, name: str) -> np.dtype[Any]:
    """Return the type in which numbers of a type are read: float32 if it represents them, otherwise float64."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "iufb":
        raise ValueError(f"{name} has values of type {dtype}; a table of real numbers is needed")
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)
