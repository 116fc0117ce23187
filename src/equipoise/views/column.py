"""Read a column of values, one per point, as numbers or as classes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._cells import is_missing
from .._types import Array
from .dates import read_dates

MAX_INTEGER_CLASSES = 20  # integers or dates with more distinct values are a quantity, not classes; chosen
MAX_CLASSES = 200  # a text column with more distinct values may be an identifier, see `Classes.is_identifier`; chosen
EXACT = 2**53  # larger integers are not exact in float64: they are treated as identifiers and stored as text


@dataclass(frozen=True)
class Numbers:
    """A numeric column.

    Attributes
    ----------
    name : str
    values : ndarray of float64, shape (n,)
        NaN where missing.
    integral : bool, default=False
        Whether all values are integers; False for an array of dtype float, even if it contains only integers.
    dates : bool, default=False
        Whether the values are dates, in seconds since 1970 (UTC).
    """

    name: str
    values: Array
    integral: bool = False
    dates: bool = False


@dataclass(frozen=True)
class Classes:
    """A column of classes.

    Attributes
    ----------
    name : str
    codes : ndarray of int32, shape (n,)
        Index into `names`, −1 where missing.
    names : tuple of str
    """

    name: str
    codes: Array
    names: tuple[str, ...]

    @property
    def is_identifier(self) -> bool:
        """Whether the values identify points rather than classes.

        They do if the number of distinct values exceeds both 200 and half the number of points that have a value.
        """
        return len(self.names) > max(MAX_CLASSES, (self.codes >= 0).sum() / 2)


Column = Numbers | Classes


def read_column(values: Any, n: int, argument: str, names: Any = None) -> Column:
    """Return n values as classes or as numbers, depending on their type.

    Booleans and text other than dates become classes. Integers become classes if they have at most 20 distinct values,
    or if one has a magnitude of 2**53 or more; otherwise they stay numbers, as floats do. Dates are datetime64, date
    objects, or text such as 2024-05-31 or 2024-05-31T12:00:00Z, among which "" or "n/a" may mark gaps. They become
    classes if they have at most 20 distinct values, and otherwise seconds since 1970. A pandas categorical is read like
    the array of its values.

    Parameters
    ----------
    values : array-like of shape (n,), or a Column
        A Column is returned as it is.
    n : int
        Number of points.
    argument : str
        Name of the argument, for error messages and as the name of unnamed columns.
    names : sequence of str, optional
        Class names: the integer i is the class `names[i]`.
    """
    if isinstance(values, Classes | Numbers):
        return values
    if isinstance(values, str):
        raise ValueError(
            f"{argument}={values!r} is text; pass {n:,} values, one per point, such as the column table[{values!r}]"
        )
    name = getattr(values, "name", None)
    name = argument if name is None else str(name)
    # NumPy may convert the nullable integers of pandas to floats.
    nullable = str(getattr(values, "dtype", "")).startswith(("Int", "UInt"))
    values = np.asarray(values)
    if values.shape != (n,):
        raise ValueError(f"{argument} must have shape ({n},), one value per point, got shape {values.shape}")
    missing = _missing(values)
    numbers = _as_numbers(values, missing)
    if names is not None:
        return _named_classes(name, argument, numbers, missing, names)
    if numbers is None:
        seconds = read_dates(values, missing | _blank(values))
        if seconds is not None and len(np.unique(seconds[~np.isnan(seconds)])) > MAX_INTEGER_CLASSES:
            return Numbers(name, seconds, dates=True)
        return _text_classes(name, values, missing)
    known = numbers[~missing]
    integral = bool((known == np.round(known)).all()) and (values.dtype.kind != "f" or nullable)
    if integral and len(distinct := np.unique(known)) <= MAX_INTEGER_CLASSES:
        codes = np.where(missing, -1, np.searchsorted(distinct, numbers)).astype(np.int32)
        return Classes(name, codes, tuple(str(int(value)) for value in distinct))
    return Numbers(name, numbers, integral)


def _missing(values: Array) -> Array:
    """Return a boolean mask (n,) of the missing values."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "M":
        return np.isnat(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), bool)
    absent = ("NAType", "NaTType")  # of pandas, by name because pandas is optional
    return np.array(
        [v is None or type(v).__name__ in absent or (isinstance(v, float) and v != v) for v in values], bool
    )


def _blank(values: Array) -> Array:
    """Return a boolean mask (n,) of the texts that mark a missing value, such as "" and "n/a"."""
    if values.dtype.kind not in "UO":
        return np.zeros(len(values), bool)
    return np.array([isinstance(value, str) and is_missing(value) for value in values], bool)


def _as_numbers(values: Array, missing: Array) -> Array | None:
    """Return the values as float64, NaN where missing; None if they are not numbers."""
    if values.dtype.kind not in "iufO":
        return None
    known = values[~missing]
    if values.dtype.kind != "O":
        return None if values.dtype.kind != "f" and (abs(known) >= EXACT).any() else values.astype(np.float64)
    if not all(isinstance(v, int | float | np.integer | np.floating) and not isinstance(v, bool) for v in known):
        return None
    if any(isinstance(v, int | np.integer) and abs(int(v)) >= EXACT for v in known):
        return None
    numbers = np.full(len(values), np.nan)
    numbers[~missing] = known.astype(np.float64)
    return numbers


def _text_classes(name: str, values: Array, missing: Array) -> Classes:
    """Return the distinct texts as classes, in natural order."""
    texts = values.astype(str) if values.dtype.kind != "O" else np.array([str(v) for v in values], dtype=object)
    distinct, codes = np.unique(texts[~missing], return_inverse=True)
    order = np.array(sorted(range(len(distinct)), key=lambda i: _natural_key(str(distinct[i]))), dtype=np.int64)
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order))
    result = np.full(len(values), -1, np.int32)
    result[~missing] = position[codes]
    return Classes(name, result, tuple(str(text) for text in distinct[order]))


def _natural_key(name: str) -> list[Any]:
    """Return a sort key that compares digits as numbers, so that "10" comes after "9"."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split("([0-9]{1,18})", name))]


def _named_classes(name: str, argument: str, numbers: Array | None, missing: Array, names: Any) -> Classes:
    """Return integers as classes; the integer i is the class `names[i]`."""
    names = tuple(str(label) for label in names)
    if numbers is None:
        raise ValueError(
            f"{argument} must contain integers if `names` is given, but contains other values; omit `names`"
        )
    wrong = ~missing & ~((numbers >= 0) & (numbers < len(names)) & (numbers == np.round(numbers)))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"row {i} of {argument} is {numbers[i]:.15g}, but if `names` is given, each value must be an integer from 0"
            f" to len(names) - 1 = {len(names) - 1}; correct this value, or add the missing names"
        )
    return Classes(name, np.where(missing, -1, numbers).astype(np.int32), names)
