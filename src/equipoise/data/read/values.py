"""Tables that are numbers already: are they finite, and is there a row?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..._types import Array, Matrix
from ...arrays.csr import entry_place
from .wanted import shown

ROWS = 65536  # rows looked at once, so that nothing of the table's size is made beside it


def check_table_of_numbers(X: Matrix, source: str, columns: Sequence[str] = ()) -> Matrix:
    """Return X, dense or CSR, if it is a table of finite numbers with a row and a column, or say what it is."""
    check_kind(X, source)
    if sparse.issparse(X):
        bad = np.flatnonzero(~np.isfinite(X.data))
        if bad.size:
            raise not_finite(source, *entry_place(X, int(bad[0])), X.data[bad[0]], columns)
        return X
    for start in range(0, len(X), ROWS):
        check_block(X[start : start + ROWS], start, source, columns)
    return X


def check_kind(X: Any, source: str) -> None:
    """Raise if X, of which only shape and type are looked at, is not a table of numbers."""
    if len(X.shape) != 2 or 0 in X.shape:
        raise ValueError(f"{source} holds an array of shape {X.shape}; a table (rows, columns) is needed")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{source} holds values of type {X.dtype}; real numbers are needed")


def check_block(block: Array, start: int, source: str, columns: Sequence[str] = ()) -> None:
    """Raise if a block of rows, of which the first is row `start`, holds NaN or inf."""
    if block.dtype.kind == "f" and not np.isfinite(block).all():
        i, j = (int(k) for k in np.argwhere(~np.isfinite(block))[0])
        raise not_finite(source, start + i, j, block[i, j], columns)


def not_finite(source: str, i: int, j: int, value: float, columns: Sequence[str]) -> ValueError:
    column = shown(columns[j]) if columns else j
    what = "no value (NaN)" if np.isnan(value) else "an infinite value"
    return ValueError(f"{source}, row {i}, column {column}: {what}; fill it in, drop that row, or leave the column out")
