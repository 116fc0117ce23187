"""Values of columns as text: one cell for a tooltip, all cells of some rows for a file, and the rows that match."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..._types import Array
from ..column import Classes, Column, Numbers
from ..dates import iso_length

DIGITS = 5  # significant digits of a float in the widget; chosen


def cell_text(column: Column, row: int) -> str:
    """Return the value of a row as text; empty if missing."""
    if isinstance(column, Classes):
        code = int(column.codes[row])
        return column.names[code] if code >= 0 else ""
    value = float(column.values[row])
    if np.isnan(value):
        return ""
    if column.dates:
        return date_texts(column.values[row : row + 1], 19)[0].removesuffix("T00:00:00").replace("T", " ")
    return str(int(value)) if column.integral and np.isfinite(value) else f"{value:.{DIGITS}g}"


def date_texts(seconds: Array, length: int) -> list[str]:
    """Return seconds since 1970 as ISO dates with `length` characters; empty if missing."""
    stamps = np.full(len(seconds), "NaT", "datetime64[ms]")
    known = np.isfinite(seconds)
    stamps[known] = np.round(1000 * seconds[known]).astype("int64").astype("datetime64[ms]")
    texts = np.datetime_as_string(stamps)
    return ["" if text == "NaT" else text[:length] for text in texts.tolist()]


def column_cells(column: Column, rows: Array) -> Array:
    """Return the values of some rows for a file: floats, or objects (text and integers), "" if missing."""
    if isinstance(column, Classes):
        names = np.array([*column.names, ""], dtype=object)
        return names[column.codes[rows]]
    if column.dates:
        return np.array(date_texts(column.values[rows], iso_length(column.values)), dtype=object)
    values = column.values[rows]
    if not column.integral:
        return values
    return np.array(["" if np.isnan(v) else int(v) if np.isfinite(v) else v for v in values.tolist()], dtype=object)


def find_rows(text: str, columns: Iterable[Column], n: int) -> Array:
    """Return the rows of n that match a search, ascending; none for an empty text.

    A row matches if its number is the text, if a class or identifier contains the text in any case, if a number is
    shown as the text, or if a date begins with it.
    """
    wanted = text.strip().lower()
    if not wanted:
        return np.empty(0, np.int64)
    found = np.zeros(n, bool)
    if wanted.isdecimal() and int(wanted) < n:
        found[int(wanted)] = True
    for column in columns:
        if isinstance(column, Classes):
            matches = np.array([wanted in name.lower() for name in column.names] + [False])
            found |= matches[column.codes]
        else:
            found |= _number_matches(column, wanted)
    return np.flatnonzero(found)


def _number_matches(column: Numbers, wanted: str) -> Array:
    """Return which numbers are shown as the text `wanted`; which dates lie in the year, month, day … `wanted`."""
    none = np.zeros(len(column.values), bool)
    try:
        if column.dates:
            first: Any = np.datetime64(wanted.replace(" ", "t").upper())
            start, end = ((first + k).astype("datetime64[ms]").astype(np.int64) / 1000 for k in (0, 1))
            return (column.values >= start) & (column.values < end)
        number = float(wanted)
    except ValueError:
        return none
    if column.integral:
        return column.values == number
    close = np.isclose(column.values, number, rtol=2 * 10.0 ** (1 - DIGITS), atol=0)
    for row in np.flatnonzero(close).tolist():
        none[row] = cell_text(column, row) == wanted
    return none
