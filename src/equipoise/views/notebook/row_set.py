"""A trait for a set of rows: what is selected or found in a widget."""

from __future__ import annotations

from typing import Any

import numpy as np
from traitlets import TraitType

from ..._types import Array


def check_rows(value: Any, n: int, name: str) -> Array:
    """Return row numbers or a boolean mask as int64 row numbers, ascending, without duplicates and read-only."""
    rows = np.asarray(value)
    if rows.size == 0 and rows.ndim == 1 and rows.dtype != bool:
        rows = rows.astype(np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iub":
        raise ValueError(
            f"{name} must be a one-dimensional array of row numbers or a boolean mask, got {rows.dtype} of shape"
            f" {rows.shape}"
        )
    if rows.dtype == bool:
        if len(rows) != n:
            raise ValueError(f"a mask for {name} must have one value for each of the {n:,} points, got {len(rows):,}")
        rows = np.flatnonzero(rows)
    wrong = rows[(rows < 0) | (rows >= n)]
    if len(wrong):
        raise ValueError(f"{name} contains the row {wrong[0]}, but the rows of the map are 0 to {n - 1}")
    rows = np.unique(rows).astype(np.int64)
    rows.flags.writeable = False
    return rows


class RowSet(TraitType[Any, Any]):
    """Rows of the map; the object that owns the trait says how many there are in `n_points`."""

    default_value = check_rows([], 0, "rows")
    info_text = "row numbers or a boolean mask"

    def validate(self, obj: Any, value: Any) -> Array:
        return check_rows(value, obj.n_points, str(self.name))

    def set(self, obj: Any, value: Any) -> None:
        """Set the rows, and notify observers if they change; traitlets cannot compare arrays itself."""
        rows: Any = self._validate(obj, value)
        before: Any = self.get(obj)
        obj._trait_values[self.name] = rows
        if not np.array_equal(before, rows):
            obj._notify_trait(self.name, before, rows)


def rows_to_bytes(rows: Array, widget: Any) -> bytes:
    """Return rows as bytes of uint32, for the browser."""
    return rows.astype("<u4").tobytes()


def rows_from_bytes(data: Any, widget: Any) -> Array:
    """Return the rows that the browser sent as bytes of uint32."""
    return np.frombuffer(data, "<u4").astype(np.int64)
