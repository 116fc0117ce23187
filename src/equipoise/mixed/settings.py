"""Settings of the distance between rows of mixed columns (Gower 1971)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._tags import tagged
from ..arrays.namespace import is_finite

GAPS = ("distance", "mean", "median")


@tagged("mixed.settings.Mixed")
@dataclass(frozen=True)
class Mixed:
    """The distance of Gower (1971) between rows of numbers, dates, booleans and categories, some of them missing.

    The distance of two rows is the weighted mean of their differences in the columns where both have a value,

        d = Σ_k w_k s_k / Σ_k w_k,

    where s_k is |x − y| divided by the range of column k for numbers and dates, and 0 for equal, 1 for different
    booleans or categories. Categories with an order (ordered pandas categoricals) count as the numbers 0, 1, 2, ….
    Two rows without a value in any common column have the distance 1.

    Pass an object as `metric=`, or metric="mixed" for the defaults. A warning names columns that are left out: constant
    or empty columns, names of rows (text that is different in nearly every row), and, from 20 rows, counters of rows
    (integers that increase from row to row, or consecutive integers in any order). Columns of these two kinds are used
    if they have a weight.

    In new rows, a category that the fitted data do not contain differs from all others, and a number outside the range
    of the fitted data may differ by more than 1.

    Parameters
    ----------
    weights : mapping of str to float, optional
        Weights w_k of columns by name, 1 for those that are not named; 0 leaves a column out. The columns of an array
        are called "0", "1", ….
    categories : sequence of str, default=()
        Columns of numbers that are codes of categories.
    missing : {"distance", "mean", "median"}, default="distance"
        "distance" compares two rows in the columns where both have a value. "mean" and "median" fill in that of the
        column, and the most frequent category.

    Examples
    --------
    >>> import equipoise as eq
    >>> table = [["red", 1.0], ["red", 3.0], ["blue", 2.0], ["blue", None]]
    >>> eq.neighbors.nearest_neighbors(table, 1, eq.Mixed(weights={"1": 2})).distances.round(3).ravel()
    array([0.667, 0.667, 0.667, 0.   ])
    """

    weights: Mapping[str, float] | None = None
    categories: Sequence[str] = ()
    missing: str = "distance"

    def __post_init__(self) -> None:
        weights = {} if self.weights is None else self.weights
        if not isinstance(weights, Mapping):
            raise ValueError(f"weights must map names of columns to numbers, got {weights!r}")
        for name, weight in weights.items():
            if not (is_finite(weight) and weight >= 0):
                raise ValueError(f"the weight of column {str(name)!r} must be a number >= 0, got {weight!r}")
        if isinstance(self.categories, str) or not isinstance(self.categories, Sequence):
            raise ValueError(f"categories must be a list of names of columns, got {self.categories!r}")
        if self.missing not in GAPS:
            raise ValueError(f"missing must be one of {', '.join(map(repr, GAPS))}, got {self.missing!r}")
        object.__setattr__(self, "weights", {str(name): float(weight) for name, weight in weights.items()})
        object.__setattr__(self, "categories", tuple(map(str, self.categories)))

    def describe(self, X: Any) -> str:
        """Return in words how the columns of a table are compared, and how many values are missing."""
        from .gower import Gower

        return Gower.fit_encode(X, self, quiet=True)[0].summary
