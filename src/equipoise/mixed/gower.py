"""The distance of Gower (1971) fitted to a table: ranges and categories of its columns, and rows as codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import cdist

from .._plural import plural
from .._suggest import closest
from .._tags import tagged
from .._types import Array
from .._warn import warn
from .frame import Column, make_column, make_column_like, read_columns

if TYPE_CHECKING:
    from .settings import Mixed

FEW_ROWS = 20  # in a smaller table, different texts and increasing numbers are often data; chosen
NAMES_OF_ROWS = 0.9  # fraction of values that differ from all others, above which text is the name of a row; chosen
WORDS = {
    "number": ("number", "numbers"),
    "date": ("date", "dates"),
    "ordered": ("ordered category", "ordered categories"),
    "boolean": ("boolean", "booleans"),
    "category": ("category", "categories"),
}
UNWEIGHTED = "weight 0"
SHOWN = 5  # columns named in a message; chosen


@tagged("mixed.gower.Gower")
class Gower:
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

    Attributes
    ----------
    weights : array, shape (C,)
    is_category : array of bool, shape (C,)
    """

    def __init__(self, settings: Mixed, columns: Sequence[Column], left_out: dict[str, str]):
        self.settings, self.left_out = settings, left_out
        self.names = [column.name for column in columns]
        self.kinds = [column.kind for column in columns]
        self.levels = [np.array(column.levels, dtype=object) for column in columns]
        self.is_category = np.array([column.is_category for column in columns])
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
                    meant = closest(name, arrays)
                    hint = f"did you mean {meant!r}?" if meant else f"the columns are {_listed(list(arrays))}"
                    raise ValueError(f"{role} names a column {name!r}, which X does not have; {hint}")
        columns = [make_column(name, array, name in settings.categories) for name, array in arrays.items()]
        reasons = {c.name: _reason_to_leave_out(c, (settings.weights or {}).get(c.name)) for c in columns}
        left_out = {name: reason for name, reason in reasons.items() if reason}
        used = [column for column in columns if column.name not in left_out]
        if not used:
            raise ValueError(f"no column of X can be compared: {_reasons(left_out)}")
        unasked = {name: reason for name, reason in left_out.items() if reason != UNWEIGHTED}
        if unasked and not quiet:
            warn(f"left out of the distance: {_reasons(unasked)}; give a column a weight to use it, or drop it")
        gower = cls(settings, used, left_out)
        return gower, gower._codes(used)

    def encode(self, X: Any) -> Array:
        """Return new rows as codes (m, C); warn of categories that the fitted table does not contain."""
        arrays = read_columns(X)
        if missing := [name for name in self.names if name not in arrays]:
            raise ValueError(
                f"X lacks {plural(len(missing), 'column')} of the fitted data, {_listed(missing)}; add them"
            )
        columns = [
            make_column_like(name, arrays[name], kind, list(levels))
            for name, kind, levels in zip(self.names, self.kinds, self.levels, strict=True)
        ]
        for column, levels in zip(columns, self.levels, strict=True):
            _check_finite(column)
            new = column.levels[len(levels) :]
            if new and column.kind == "ordered":
                raise ValueError(
                    f"column {column.name!r} has an order, but contains {new[0]!r}, which was not in the fitted data"
                )
            if new:
                warn(f"column {column.name!r} has categories that were not in the fitted data: {_listed(new)}")
        return self._codes(columns)

    def _codes(self, columns: Sequence[Column]) -> Array:
        codes = np.column_stack([column.values for column in columns])
        if self.fill is not None:
            codes = np.where(np.isnan(codes), self.fill, codes)
        codes -= self.low
        codes /= self.range
        empty = np.flatnonzero(np.isnan(codes).all(axis=1))
        if empty.size:
            rows = f"row {empty[0]} has" if len(empty) == 1 else f"row {empty[0]} and {len(empty) - 1:,} more have"
            raise ValueError(f"{rows} no value in any column that is compared; drop such rows")
        return codes

    # Distances between rows given as codes

    def block(self, A: Array, B: Array) -> Array:
        """Return the distances (m, k) from rows A to rows B; each is computed on its own."""
        gaps = np.isnan(A).any(axis=0) | np.isnan(B).any(axis=0)
        total = np.zeros((len(A), len(B)))
        numbers = ~self.is_category & ~gaps
        if numbers.any():
            w = self.weights[numbers]
            total += cdist(A[:, numbers] * w, B[:, numbers] * w, "cityblock")
        weight = np.full(total.shape, self.weights[~gaps].sum())
        for c in np.flatnonzero(self.is_category & ~gaps):
            total += self.weights[c] * (A[:, c, None] != B[None, :, c])
        for c in np.flatnonzero(gaps).tolist():
            self._add_column(c, A[:, c, None], B[None, :, c], total, weight)
        return _mean(total, weight)

    def pairs(self, A: Array, B: Array) -> Array:
        """Return the distances between rows of A and rows of B, arrays (…, C) of codes that broadcast."""
        total = np.zeros(np.broadcast_shapes(A.shape[:-1], B.shape[:-1]))
        weight = np.zeros(total.shape)
        for c in range(len(self.weights)):
            self._add_column(c, A[..., c], B[..., c], total, weight)
        return _mean(total, weight)

    def _add_column(self, c: int, a: Array, b: Array, total: Array, weight: Array) -> None:
        """Add w s of column c to `total`, and w to `weight`, for pairs where both rows have a value."""
        difference = (a != b).astype(np.float64) if self.is_category[c] else np.abs(a - b)
        both = ~(np.isnan(a) | np.isnan(b))
        total += np.where(both, self.weights[c] * difference, 0.0)
        weight += np.where(both, self.weights[c], 0.0)

    def features(self, codes: Array, most_levels: int = 20) -> Array:
        """Return rows as vectors for an initial map: weighted numbers, and indicators of the frequent categories.

        Missing values are replaced by the mean of the column.
        """
        parts = []
        for c, w in enumerate(np.sqrt(self.weights)):
            values = codes[:, c]
            if self.is_category[c]:
                present, counts = np.unique(values[~np.isnan(values)], return_counts=True)
                frequent = present[np.argsort(-counts, kind="stable")[:most_levels]]
                part = (values[:, None] == frequent) / np.sqrt(2)
                part[np.isnan(values)] = part[~np.isnan(values)].mean(axis=0)
            else:
                part = np.where(np.isnan(values), np.nanmean(values), values)[:, None]
            parts.append(w * part)
        return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _span(column: Column) -> tuple[float, float]:
    """Return the smallest and the largest number; 0 and 1 for categories, so that their codes stay integers."""
    if column.is_category:
        return 0.0, 1.0
    _check_finite(column)
    low, high = float(np.nanmin(column.values)), float(np.nanmax(column.values))
    if not np.isfinite(high - low):
        raise ValueError(f"the range of column {column.name!r} overflows; divide the column by a constant")
    return low, high


def _check_finite(column: Column) -> None:
    infinite = np.flatnonzero(np.isinf(column.values))
    if infinite.size:
        raise ValueError(f"column {column.name!r} is infinite in row {infinite[0]}; replace the value, or drop the row")


def _mean(total: Array, weight: Array) -> Array:
    """Return total/weight, and 1 for pairs of rows without a common column."""
    return np.divide(total, weight, out=np.ones(total.shape), where=weight > 0)


def _fill(column: Column, how: str) -> float:
    """Return the value that replaces missing ones: the mean or median of numbers, else the most frequent category."""
    present = column.values[~np.isnan(column.values)]
    if column.is_category:
        values, counts = np.unique(present, return_counts=True)
        return float(values[counts.argmax()])
    return float(np.mean(present) if how == "mean" else np.median(present))


def _reason_to_leave_out(column: Column, weight: float | None) -> str:
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
        return "differs in nearly every row, like a name"
    if column.kind == "number" and (np.diff(present) > 0).all() and (present == np.floor(present)).all():
        return "counts the rows"
    return ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more


def _reasons(left_out: dict[str, str]) -> str:
    """Return the columns that are left out, grouped by the reason: "'id' (counts the rows), 'a', 'b' (constant)"."""
    reasons = dict.fromkeys(left_out.values())
    return ", ".join(
        f"{_listed([name for name, other in left_out.items() if other == reason])} ({reason})" for reason in reasons
    )


def _summary(columns: Sequence[Column], left_out: dict[str, str], settings: Mixed) -> str:
    """Return in words which columns are compared, which are left out, and how many values are missing."""
    counts = {kind: sum(column.kind == kind for column in columns) for kind in WORDS}
    parts = [plural(count, *WORDS[kind]) for kind, count in counts.items() if count]
    lines = [f"compared: {', '.join(parts)}"]
    if left_out:
        lines.append(f"left out: {_reasons(left_out)}")
    gaps = np.array([np.isnan(column.values) for column in columns])
    if gaps.any():
        how = {
            "distance": "rows are compared in the columns where both have a value",
            "mean": "filled in by the mean, categories by the most frequent one",
            "median": "filled in by the median, categories by the most frequent one",
        }[settings.missing]
        lines.append(
            f"missing: {plural(int(gaps.sum()), 'value')} ({gaps.mean():.1%}) in"
            f" {plural(int(gaps.any(axis=0).sum()), 'row')} and {plural(int(gaps.any(axis=1).sum()), 'column')}; {how}"
        )
    return "\n".join(lines)
