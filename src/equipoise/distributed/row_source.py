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
    """

    name: str
    shape: tuple[int, int]

    def read(self, start: int, stop: int) -> Array:
        """Return the rows from `start` up to, not including, `stop` as a new C-contiguous array of floats."""
        ...


def as_floats(block: Any) -> Array:
    """Return a block as a C-contiguous array of float32 or float64; other numbers become float32 or float64."""
    block = np.asarray(block)
    if block.dtype.kind not in "iufb":
        raise ValueError(f"the values have dtype {block.dtype}; a table of numbers is needed")
    wide = block.dtype.itemsize > 4 or block.dtype in (np.int32, np.uint32)
    return np.ascontiguousarray(block, dtype=np.float64 if wide else np.float32)
