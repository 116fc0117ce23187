"""Check the shape, the type and the values of numeric tables read from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..._names import quote
from ..._plural import plural
from ..._types import Array, Matrix
from ...arrays.blocks import row_blocks

PLACES = 3  # missing values whose places are named in a message; chosen
OPTIONS = "(on the command line: --missing, --exclude, or --metric mixed)"


def check_numbers(X: Matrix, source: str, columns: Sequence[str] = ()) -> Matrix:
    """Return X (n, D), dense or CSR; raise if it is empty or contains values other than finite real numbers."""
    check_shape_and_type(X, source)
    if sparse.issparse(X):
        if not np.isfinite(X.data).all():
            stored = sparse.csr_matrix(X).tocoo()
            is_missing = bool(np.isnan(stored.data[np.isfinite(stored.data).argmin()]))
            bad = np.isnan(stored.data) if is_missing else np.isinf(stored.data)
            i, j = stored.row[bad], stored.col[bad]
            numbers = len(i), len(np.unique(i)), len(np.unique(j))
            cells = list(zip(i[:PLACES].tolist(), j[:PLACES].tolist(), strict=True))
            raise _not_finite(source, cells, numbers, columns, is_missing=is_missing, is_part=False)
        return X
    for rows in row_blocks(len(X), X.dtype.itemsize * X.shape[1]):
        if X.dtype.kind == "f" and not np.isfinite(X[rows]).all():
            raise _first_fault(X[rows.start :], rows.start, source, columns, is_part=False)
    return X


def check_shape_and_type(X: Any, source: str) -> None:
    """Raise if X is not a nonempty table of real numbers, judged by its `shape` and `dtype`."""
    if len(X.shape) != 2 or 0 in X.shape:
        raise ValueError(f"{source} contains an array of shape {X.shape}; expected a nonempty table (rows, columns)")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{source} contains values of type {X.dtype}; expected real numbers")


def check_block_finite(
    block: Array, start: int, source: str, columns: Sequence[str] = (), *, is_part: bool = True
) -> None:
    """Raise if a block that begins at row `start` contains NaN or inf; more blocks may follow if `is_part`."""
    if block.dtype.kind == "f" and not np.isfinite(block).all():
        raise _first_fault(block, start, source, columns, is_part=is_part)


def _first_fault(X: Array, start: int, source: str, columns: Sequence[str], *, is_part: bool) -> ValueError:
    """Return the error for the first value of X that is not finite; like values are counted block by block."""
    is_bad: Any = None
    count, rows, with_bad, cells = 0, 0, np.zeros(X.shape[1], bool), list[tuple[int, int]]()
    for part in row_blocks(len(X), X.dtype.itemsize * X.shape[1]):
        block = X[part]
        if is_bad is None:
            if (finite := np.isfinite(block)).all():
                continue
            is_bad = np.isnan if np.isnan(block.flat[finite.argmin()]) else np.isinf
        bad = is_bad(block)
        in_row = bad.any(axis=1)
        count, rows = count + int(bad.sum()), rows + int(in_row.sum())
        with_bad |= bad.any(axis=0)
        for i in np.flatnonzero(in_row)[: PLACES - len(cells)].tolist():
            cells += [(start + part.start + i, j) for j in np.flatnonzero(bad[i])[:PLACES].tolist()]
    numbers = count, rows, int(with_bad.sum())
    return _not_finite(source, cells, numbers, columns, is_missing=is_bad is np.isnan, is_part=is_part)


def _not_finite(
    source: str,
    cells: Sequence[tuple[int, int]],
    numbers: tuple[int, int, int],
    columns: Sequence[str],
    *,
    is_missing: bool,
    is_part: bool,
) -> ValueError:
    """Return the error for values that are not finite: the first cells, and the numbers of values, rows and columns."""
    places = [f"row {i}, column {quote(columns[j]) if columns else j}" for i, j in cells[:PLACES]]
    more = others(places[1:], *numbers, is_part=is_part)
    if is_missing:
        return ValueError(f"{source}, {places[0]}: missing value (NaN){more}; {remedy(numbers[0])}")
    return ValueError(f"{source}, {places[0]}: infinite value{more}; replace it, drop the row, or exclude the column")


def others(places: Sequence[str], count: int, rows: int, columns: int, *, is_part: bool) -> str:
    """Return where else cells have the fault of a first one, and how many there are; empty unless there are several.

    Parameters
    ----------
    places : sequence of str
        The next cells, such as "row 3, column 'a'", up to PLACES − 1.
    count, rows, columns : int
        Numbers of all such cells, and of the rows and columns that contain them.
    is_part : bool
        Whether the rest of the file has not been read.
    """
    if count <= 1:
        return ""
    least = "at least " if is_part else ""
    total = f"{least}{count:,} in all, in {plural(rows, 'row')} and {plural(columns, 'column')}"
    return f", also at {' and '.join(places)} ({total})"


def remedy(count: int) -> str:
    """Return what to do about a number of missing values."""
    if count == 1:
        return f"fill it in, drop the row, or exclude the column by selecting others {OPTIONS}"
    return f"fill them in, drop the rows, or exclude the columns by selecting others {OPTIONS}"
