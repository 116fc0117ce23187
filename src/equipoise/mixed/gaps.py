"""Say how many values of a table are missing, and check that every row has one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._names import quote
from .._plural import plural
from .._types import Array


def describe_gaps(values: Array) -> str:
    """Return how many values (n, C) are NaN: "99 values (4.7%) in 91 rows and 2 columns"; empty if there are none."""
    gaps = np.isnan(values)
    if not gaps.any():
        return ""
    rows, columns = int(gaps.any(axis=1).sum()), int(gaps.any(axis=0).sum())
    cells = plural(int(gaps.sum()), "value")
    return f"{cells} ({gaps.mean():.1%}) in {plural(rows, 'row')} and {plural(columns, 'column')}"


def require_not_infinite(values: Array, source: str, columns: Sequence[str] = ()) -> None:
    """Raise ValueError if a value (n, C) is infinite; the message names its row and its column. NaN is allowed."""
    infinite = np.argwhere(np.isinf(values))
    if infinite.size:
        i, j = map(int, infinite[0])
        column = quote(columns[j]) if columns else j
        raise ValueError(f"{source}, row {i}, column {column}: infinite value; replace it, or drop the row")


def require_values(values: Array) -> None:
    """Raise ValueError if all values of a row (n, C) are NaN."""
    empty = np.flatnonzero(np.isnan(values).all(axis=1))
    if empty.size:
        rows = f"row {empty[0]} has" if len(empty) == 1 else f"row {empty[0]} and {len(empty) - 1:,} more have"
        raise ValueError(f"{rows} no value in any column that is compared; drop such rows")
