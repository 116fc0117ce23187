"""Find out whether a cell of a text table is a number, a missing value or text, and convert it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from ..._cells import MISSING, is_missing, is_number
from ..._names import quote
from ..._types import Array
from .finite import remedy

MISSING_SPELLINGS = sorted(
    "".join(letters) for word in MISSING for letters in product(*({letter, letter.upper()} for letter in word))
)


def is_finite(cell: str) -> bool:
    """Return whether a cell is a finite number."""
    return is_number(cell) and bool(np.isfinite(float(cell)))


def to_finite(cells: Sequence[str]) -> Array | None:
    """Return cells as float64, or None if one of them is not a finite number."""
    if "_" in "".join(cells):  # float() reads 12_34 as 1234
        return None
    try:
        values = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def to_numbers(cells: Sequence[str]) -> Array | None:
    """Return cells as float64, with NaN for missing values, or None if one of them is text."""
    if (values := to_finite(cells)) is not None:
        return values
    if not all(is_number(cell) or is_missing(cell) for cell in cells):
        return None
    return np.array([np.nan if is_missing(cell) else float(cell) for cell in cells])


def describe_fault(cell: str, count: int, more: str) -> str:
    """Return what is wrong with a cell that should be a finite number, and what to do about it.

    `count` is the number of missing values, and `more` says where they are besides this cell, as in `finite.others`.
    """
    if is_missing(cell):
        return f"missing value ({quote(cell)}){more}; {remedy(count)}"
    if is_number(cell):
        return f"{quote(cell)} is not a finite double-precision number; correct it or drop the row"
    if "," in cell and is_number(cell.replace(",", "")):
        return f"{quote(cell)} contains a comma; write it as a plain number, such as 1234.5"
    return f"{quote(cell)} is not a number; correct it, or exclude the column by selecting others"
