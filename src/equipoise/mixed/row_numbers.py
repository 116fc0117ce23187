"""Recognise columns that only number the rows of a table."""

from __future__ import annotations

import numpy as np

from .._types import Array

FEW_ROWS = 20  # in a smaller table, increasing numbers and different texts are often data; chosen


def numbers_rows(values: Array) -> bool:
    """Return whether values only number the rows: increasing integers, or consecutive integers in any order."""
    n = len(values)
    if n < FEW_ROWS or not np.isfinite(values).all() or (values != np.round(values)).any():
        return False
    if (values[1:] > values[:-1]).all():
        return True
    return bool(values.max() - values.min() == n - 1) and len(np.unique(values)) == n
