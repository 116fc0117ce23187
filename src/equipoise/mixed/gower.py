"""The distance of Gower (1971) fitted to a table: ranges and categories of its columns, and rows as codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._names import list_names, suggest_column
from .._plural import plural
from .._tags import tagged
from .._types import Array
from .._warn import LeftOutWarning, warn
from .base import ABSOLUTE, CATEGORY, ColumnDistance
from .frame import WORDS, Column, make_column, make_column_like, read_columns
from .gaps import describe_gaps, require_not_infinite, require_values
from .row_numbers import FEW_ROWS, numbers_rows

if TYPE_CHECKING:
    from .settings import Mixed

NAMES_OF_ROWS = 0.9  # fraction of values that differ from all others, above which text is the name of a row; chosen
HOW = {
    "distance": "rows are compared in the columns where both have a value",
    "mean": "filled in by the mean, categories by the most frequent one",
    "median": "filled in by the median, categories by the most frequent one",
}
# Why a column is not compared, besides "empty" and "constant".
UNWEIGHTED = "weight 0"
LIKE_A_NAME = "differs in nearly every row, like a name"
NUMBERS_ROWS = "numbers the rows"


@tagged("mixed.gower.Gower")
class Gower(ColumnDistance):
    """The distance `Mixed` with the ranges and categories of one table.

    Rows are stored as codes (n, C), float64: a number is divided by the range of its column, and a category is its
    index among the levels; NaN is a missing value.

    Parameters
    ----------
    settings : Mixed
    columns : list of Column
        The columns that are compared.
    left_out : dict of str to str
        The reason for which each other column is left out.
    """

    none = 1.0

    def __init__(self, settings: Mixed, columns: Sequence[Column], left_out: dict[str, str]):
        self.settings, self.left_out = settings, left_out
        self.names = [column.name for column in columns]
        self.column_kinds = [column.kind for column in columns]
        self.levels = [np.array(column.levels, dtype=object) for column in columns]
        self.kinds = np.array([CATEGORY if column.is_category else ABSOLUTE for column in columns], dtype=np.uint8)
        self.weights = np.array([(settings.weights or {}).get(name, 1.0) for name in self.names])
        low, high = np.array([_span(column) for column in columns]).T
        self.low, self.range = low, high - low
        self.fill = None if settings.missing == "distance" else np.array([_fill(c, settings.missing) for c in columns])
        self.summary = _summary(columns, left_out, settings)

    @classmethod
    def fit_encode(cls, X: Any, settings: Mixed, quiet: bool = False) -> tuple[Gower, Array]:
        """Return the distance with the ranges and categories of a table, and the rows of the table as codes.

        Warn of columns that are left out, unless `quiet`.
        """
        arrays = read_columns(X)
        for role, named in (("weights", settings.weights or {}), ("categories", settings.categories)):
            for name in named:
                if name not in arrays:
                    hint = suggest_column(name, list(arrays))
                    raise ValueError(f"{role} names a column {name!r}, which X does not have; {hint}")
        columns = [make_column(name, array, name in settings.categories) for name, array in arrays.items()]
        reasons = {c.name: reason_to_leave_out(c, (settings.weights or {}).get(c.name)) for c in columns}
        left_out = {name: reason for name, reason in reasons.items() if reason}
        used = [column for column in columns if column.name not in left_out]
        if not used:
            raise ValueError(f"no column of X can be compared: {_reasons(left_out)}")
        unasked = {name: reason for name, reason in left_out.items() if reason != UNWEIGHTED}
        if unasked and not quiet:
            message = f"left out of the distance: {_reasons(unasked)}; give a column a weight to use it, or drop it"
            warn(message, LeftOutWarning)
        gower = cls(settings, used, left_out)
        return gower, gower._codes(used)

    def encode(self, X: Any) -> Array:
        """Return new rows as codes (m, C); warn of categories that the fitted table does not contain."""
        arrays = read_columns(X)
        if missing := [name for name in self.names if name not in arrays]:
            raise ValueError(
                f"X lacks {plural(len(missing), 'column')} of the fitted data, {list_names(missing)}; add them"
            )
        columns = [
            make_column_like(name, arrays[name], kind, list(levels))
            for name, kind, levels in zip(self.names, self.column_kinds, self.levels, strict=True)
        ]
        for column, levels in zip(columns, self.levels, strict=True):
            require_not_infinite(column.values[:, None], "X", [column.name])
            new = column.levels[len(levels) :]
            if new and column.kind == "ordered":
                raise ValueError(
                    f"column {column.name!r} has an order, but contains {new[0]!r}, which was not in the fitted data"
                )
            if new:
                warn(f"column {column.name!r} has categories that were not in the fitted data: {list_names(new)}")
        return self._codes(columns)

    def _codes(self, columns: Sequence[Column]) -> Array:
        codes = np.column_stack([column.values for column in columns])
        if self.fill is not None:
            codes = np.where(np.isnan(codes), self.fill, codes)
        codes -= self.low
        codes /= self.range
        require_values(codes)
        return codes


def _span(column: Column) -> tuple[float, float]:
    """Return the smallest and the largest number; 0 and 1 for categories, so that their codes stay integers."""
    if column.is_category:
        return 0.0, 1.0
    require_not_infinite(column.values[:, None], "X", [column.name])
    low, high = float(np.nanmin(column.values)), float(np.nanmax(column.values))
    if not np.isfinite(high - low):
        raise ValueError(f"the range of column {column.name!r} overflows; divide the column by a constant")
    return low, high


def _fill(column: Column, how: str) -> float:
    """Return the value that replaces missing ones: the mean or median of numbers, else the most frequent category."""
    present = column.values[~np.isnan(column.values)]
    if column.is_category:
        values, counts = np.unique(present, return_counts=True)
        return float(values[counts.argmax()])
    return float(np.mean(present) if how == "mean" else np.median(present))


def reason_to_leave_out(column: Column, weight: float | None = None) -> str:
    """Return why a column is not compared, or an empty text if it is; `weight` is the one that the user gave."""
    if weight == 0:
        return UNWEIGHTED
    present = column.values[~np.isnan(column.values)]
    if not present.size:
        return "empty"
    if present.min() == present.max():
        return "constant"
    if weight is not None or len(present) < FEW_ROWS:
        return ""
    if column.kind == "category" and len(column.levels) > NAMES_OF_ROWS * len(present):
        return LIKE_A_NAME
    if column.kind == "number" and numbers_rows(present):
        return NUMBERS_ROWS
    return ""


def _reasons(left_out: dict[str, str]) -> str:
    """Return the columns that are left out, grouped by the reason: "'id' (numbers the rows), 'a', 'b' (constant)"."""
    reasons = dict.fromkeys(left_out.values())
    return ", ".join(
        f"{list_names([name for name, other in left_out.items() if other == reason])} ({reason})" for reason in reasons
    )


def _summary(columns: Sequence[Column], left_out: dict[str, str], settings: Mixed) -> str:
    """Return in words which columns are compared, by kind, which are left out, and how many values are missing."""
    counts = {kind: sum(column.kind == kind for column in columns) for kind in WORDS}
    parts = [plural(count, *WORDS[kind]) for kind, count in counts.items() if count]
    lines = [f"compared: {', '.join(parts)}"]
    for kind, count in counts.items():
        if count:
            names = list_names(column.name for column in columns if column.kind == kind)
            lines.append(f"{WORDS[kind][count > 1]}: {names}")
    if left_out:
        lines.append(f"left out: {_reasons(left_out)}")
    if missing := describe_gaps(np.column_stack([column.values for column in columns])):
        lines.append(f"missing: {missing}; {HOW[settings.missing]}")
    return "\n".join(lines)
