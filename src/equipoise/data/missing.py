"""Turn tables of columns of every kind into tables of numbers, and drop or fill in missing values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._names import list_names
from .._plural import plural
from .._types import Array
from ..mixed.frame import WORDS, Column, make_column, read_columns
from ..mixed.gaps import describe_gaps, require_not_infinite
from .dataset import Dataset


def is_frame_of_columns(X: Any) -> bool:
    """Return whether a table is an Arrow table of columns of every kind, as `read(every_kind=True)` returns."""
    return hasattr(X, "column_names")


def keep_numbers(dataset: Dataset, columns: Any = None) -> tuple[Dataset, str]:
    """Return a data set with the numbers of an Arrow table as X, and what was left out, in words.

    Missing values are NaN. Text that contains only numbers, such as "1,234" and "007", is read as numbers. Raise
    ValueError if there are no numbers, or if one of `columns`, if given, does not contain numbers.
    """
    arrays = read_columns(dataset.X)
    read = [make_column(name, array, codes_are_numbers=True) for name, array in arrays.items()]
    empty = [column.name for column in read if np.isnan(column.values).all()]
    others = [column for column in read if column.kind != "number" and column.name not in empty]
    for column in others:
        if columns is not None and column.name in columns:
            raise ValueError(
                f"column {column.name!r} of {dataset.name} contains {WORDS[column.kind][1]}, not numbers; leave it"
                ' out, or use metric="mixed"'
            )
    numbers = [column for column in read if column.kind == "number" and column.name not in empty]
    if not numbers:
        raise ValueError(f'{dataset.name} has no column of numbers; use metric="mixed"')
    X = np.column_stack([column.values for column in numbers])
    chosen = [column.name for column in numbers]
    require_not_infinite(X, dataset.name, chosen)
    left = [column for column in read if column.name not in chosen]
    extra = {**dataset.extra, **{column.name: _side_values(column, arrays[column.name]) for column in left}}
    reasons = {"not numbers": [column.name for column in others], "empty": empty}
    text = ", ".join(f"{list_names(names)} ({reason})" for reason, names in reasons.items() if names)
    return replace(dataset, X=X, columns=tuple(chosen), extra=extra), text


def side_columns(X: Any, names: Any) -> dict[str, Array]:
    """Return columns of an Arrow table by name as columns that are not embedded."""
    arrays = read_columns(X.select(list(names)))
    return {name: _side_values(make_column(name, array), array) for name, array in arrays.items()}


def _side_values(column: Column, array: Any) -> Array:
    """Return a column that is not embedded: numbers as float64, dates and categories as text, "" where missing."""
    if column.kind == "number":
        return column.values
    missing = np.isnan(column.values)
    if column.kind == "date":
        texts = np.array([str(text).strip() for text in array.cast("string").to_pylist()], dtype=object)
        texts[missing] = ""
        return texts
    names = np.array([*column.levels, ""], dtype=object)
    return names[np.where(missing, len(column.levels), column.values).astype(np.intp)]


def drop_incomplete_rows(dataset: Dataset) -> tuple[Dataset, str]:
    """Return a data set without the rows that have a missing value, and in words how many these are."""
    frame = is_frame_of_columns(dataset.X)
    columns = [make_column(n, a).values for n, a in read_columns(dataset.X).items()] if frame else None
    values = dataset.X if columns is None else np.column_stack(columns)
    values = values[:, ~np.isnan(values).all(axis=0)]  # a column without any value makes no row incomplete
    keep = ~np.isnan(values).any(axis=1)
    if keep.all():
        return dataset, ""
    if keep.sum() < 2:
        raise ValueError(
            f"{plural(int(keep.sum()), 'row')} of {dataset.name} has no missing value; exclude the columns with the"
            " most missing values, or fill them in"
        )
    text = f"{describe_gaps(values)}; {plural(int((~keep).sum()), 'row')} dropped, {int(keep.sum()):,} left"
    return (
        replace(
            dataset,
            X=dataset.X.filter(keep) if frame else dataset.X[keep],
            labels=None if dataset.labels is None else np.asarray(dataset.labels)[keep],
            ids=None if dataset.ids is None else dataset.ids[keep],
            extra={name: values[keep] for name, values in dataset.extra.items()},
        ),
        text,
    )


def fill_values(dataset: Dataset, how: str) -> Array:
    """Return the mean or median (D,) of the values that each column of numbers has."""
    X = dataset.X
    if (empty := np.flatnonzero(np.isnan(X).all(axis=0))).size:
        raise ValueError(f"column {dataset.columns[empty[0]]!r} of {dataset.name} is empty; exclude it")
    return np.asarray(np.nanmedian(X, axis=0) if how == "median" else np.nanmean(X, axis=0))
