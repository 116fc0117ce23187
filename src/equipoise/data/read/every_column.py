"""Gather columns of every kind, text and gaps included, in one table, for metrics that compare such columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..._cells import is_missing
from ..._types import Array
from ..dataset import Dataset
from .selection import Selection


def gather_columns(dataset: Dataset, selection: Selection) -> Dataset:
    """Return a data set whose X is an Arrow table of the columns to embed, taken from X and `extra`.

    Numbers have NaN for missing values. In columns of text, common spellings of a missing value, such as "n/a" and "?",
    become gaps.
    """
    import pyarrow

    known = {name: dataset.X[:, j] for j, name in enumerate(dataset.columns)} | dataset.extra
    names = selection.columns or tuple(name for name in known if name not in selection.exclude)
    if not names:
        raise ValueError(f"{dataset.name} has no column to embed; select one, or exclude fewer")
    columns = {name: pyarrow.array(_with_gaps(known[name]), from_pandas=True) for name in names}
    others = {name: values for name, values in dataset.extra.items() if name not in columns}
    return replace(dataset, X=pyarrow.table(columns), columns=tuple(names), extra=others)


def _with_gaps(values: Array) -> Any:
    if values.dtype != object:
        return np.ascontiguousarray(values)
    spelled = {text: None if is_missing(text) else text for text in set(values.tolist())}
    result = np.empty(len(values), dtype=object)
    result[:] = [spelled[text] for text in values.tolist()]
    return result
