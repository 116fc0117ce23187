"""Check the shape, the type and the values of numeric tables read from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..._names import quote
from ..._types import Array, Matrix
from ...arrays.blocks import row_blocks
from ...arrays.namespace import entry_place


def check_numbers(X: Matrix, source: str, columns: Sequence[str] = ()) -> Matrix:
    """Return X (n, D), dense or CSR; raise if it is empty or contains values other than finite real numbers."""
    check_shape_and_type(X, source)
    if sparse.issparse(X):
        bad = np.flatnonzero(~np.isfinite(X.data))
        if bad.size:
            raise not_finite(source, *entry_place(X, int(bad[0])), X.data[bad[0]], columns)
        return X
    for rows in row_blocks(len(X), X.dtype.itemsize * X.shape[1]):
        check_block_finite(X[rows], rows.start, source, columns)
    return X


def check_shape_and_type(X: Any, source: str) -> None:
    """Raise if X is not a nonempty table of real numbers, judged by its `shape` and `dtype`."""
    if len(X.shape) != 2 or 0 in X.shape:
        raise ValueError(f"{source} contains an array of shape {X.shape}; expected a nonempty table (rows, columns)")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{source} contains values of type {X.dtype}; expected real numbers")


def check_block_finite(block: Array, start: int, source: str, columns: Sequence[str] = ()) -> None:
    """Raise if a block that begins at row `start` contains NaN or inf."""
    if block.dtype.kind == "f" and not np.isfinite(block).all():
        i, j = (int(k) for k in np.argwhere(~np.isfinite(block))[0])
        raise not_finite(source, start + i, j, block[i, j], columns)


def not_finite(source: str, i: int, j: int, value: float, columns: Sequence[str]) -> ValueError:
    """Return the error for a value at row i, column j that is not finite."""
    column = quote(columns[j]) if columns else j
    missing = bool(np.isnan(value))
    what = "missing value (NaN); fill it in" if missing else "infinite value; replace it"
    options = " (on the command line: --missing, --exclude, or --metric mixed)" if missing else ""
    return ValueError(f"{source}, row {i}, column {column}: {what}, drop the row, or exclude the column{options}")
