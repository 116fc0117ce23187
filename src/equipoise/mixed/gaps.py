"""Say how many values of a table are missing, and check that every row has one."""

from __future__ import annotations

import numpy as np

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


def require_values(values: Array) -> None:
    """Raise ValueError if all values of a row (n, C) are NaN."""
    empty = np.flatnonzero(np.isnan(values).all(axis=1))
    if empty.size:
        rows = f"row {empty[0]} has" if len(empty) == 1 else f"row {empty[0]} and {len(empty) - 1:,} more have"
        raise ValueError(f"{rows} no value in any column that is compared; drop such rows")
