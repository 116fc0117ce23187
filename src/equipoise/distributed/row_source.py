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


def float_type(dtype: Any) -> np.dtype[Any]:
    """Return the type in which numbers of a type are read: float32 if it represents them, otherwise float64."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "iufb":
        raise ValueError(f"the values have dtype {dtype}; a table of numbers is needed")
    return np.dtype(np.float32 if np.can_cast(dtype, np.float32) else np.float64)


def as_floats(block: Any) -> Array:
    """Return a block as a C-contiguous array of the type that `float_type` names."""
    block = np.asarray(block)
    return np.ascontiguousarray(block, dtype=float_type(block.dtype))
