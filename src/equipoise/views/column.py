"""One value for each point, as numbers or as classes: what is coloured, and what a page shows of a point."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array

FEW = 20  # distinct whole numbers that are taken for classes, more for a quantity; chosen
EXACT = 2**53  # whole numbers from here on are no float64: they are identifiers, kept as text


@dataclass(frozen=True)
class Numbers:
    """A quantity: values (n,) in float64, NaN where missing."""

    name: str
    values: Array
    whole: bool = False  # whether all are whole numbers


@dataclass(frozen=True)
class Classes:
    """Classes: codes (n,) in int32 number the names, −1 where missing."""

    name: str
    codes: Array
    names: tuple[str, ...]


Column = Numbers | Classes


def read_column(values: Any, n: int, argument: str, names: Any = None) -> Column:
    """Return n values as classes or as numbers, by what they are.

    Text, truth values and categories are classes, and whole numbers of at most 20 different values; other numbers are a
    quantity. `names` makes classes of whole numbers: it names number i by `names[i]`.
    """
    name = getattr(values, "name", None)
    name = argument if name is None else str(name)
    nullable = str(getattr(values, "dtype", "")).startswith(("Int", "UInt"))  # of pandas: an array of it may be floats
    values = np.asarray(values)
    if values.shape != (n,):
        raise ValueError(f"{argument} must hold a value for each of the {n} points, got shape {values.shape}")
    missing = _missing(values)
    numbers = _numbers(values, missing)
    if names is not None:
        return _named(name, argument, numbers, missing, names)
    if numbers is None:
        return _texts(name, values, missing)
    known = numbers[~missing]
    whole = bool((known == np.round(known)).all()) and (values.dtype.kind != "f" or nullable)
    if whole and len(different := np.unique(known)) <= FEW:
        codes = np.where(missing, -1, np.searchsorted(different, numbers)).astype(np.int32)
        return Classes(name, codes, tuple(str(int(value)) for value in different))
    return Numbers(name, numbers, whole)


def _missing(values: Array) -> Array:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "M":
        return np.isnat(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), bool)
    absent = ("NAType", "NaTType")  # of pandas, which need not be there
    return np.array(
        [v is None or type(v).__name__ in absent or (isinstance(v, float) and v != v) for v in values], bool
    )


def _numbers(values: Array, missing: Array) -> Array | None:
    """Return the values in float64, NaN where missing, or nothing if they are no numbers."""
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


def _texts(name: str, values: Array, missing: Array) -> Classes:
    texts = values.astype(str) if values.dtype.kind != "O" else np.array([str(v) for v in values], dtype=object)
    found, codes = np.unique(texts[~missing], return_inverse=True)
    order = np.array(sorted(range(len(found)), key=lambda i: _parts(str(found[i]))), dtype=np.int64)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order))
    result = np.full(len(values), -1, np.int32)
    result[~missing] = place[codes]
    return Classes(name, result, tuple(str(text) for text in found[order]))


def _parts(name: str) -> list[Any]:
    """Return what a name is sorted by: text and numbers in turn, so that 10 comes after 9."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split("([0-9]{1,18})", name))]


def _named(name: str, argument: str, numbers: Array | None, missing: Array, names: Any) -> Classes:
    names = tuple(str(one) for one in names)
    if numbers is None:
        raise ValueError(f"names belong to class numbers, but {argument} holds text; leave names out")
    wrong = ~missing & ~((numbers >= 0) & (numbers < len(names)) & (numbers == np.round(numbers)))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"{argument} is {numbers[i]:g} at row {i}, but there are names for 0 to {len(names) - 1}")
    return Classes(name, np.where(missing, -1, numbers).astype(np.int32), names)
