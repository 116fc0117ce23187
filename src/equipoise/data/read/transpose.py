"""Exchange the rows and columns of a data set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ..._names import list_names
from ..._types import Array
from ..dataset import Dataset


def transpose(dataset: Dataset, source: str) -> Dataset:
    """Return a data set whose rows are the columns of another; row names become column names, and vice versa.

    Raise if the data set has classes, text or further columns, which would become rows that are not numbers.
    """
    others = [*dataset.extra, *([] if dataset.labels is None else [dataset.label])]
    if others:
        raise ValueError(
            f"{source} cannot be transposed with the columns {list_names(others)}, which are not embedded; select the"
            f" column that names the rows, as in id={others[0]!r} (--id {others[0]}), and remove other columns of text"
        )
    table = _numbers(dataset.X, source) if hasattr(dataset.X, "column_names") else dataset.X
    X = sparse.csr_matrix(table.T) if sparse.issparse(table) else np.ascontiguousarray(table.T)
    columns = () if dataset.ids is None else tuple(map(str, dataset.ids))
    ids = np.array(dataset.columns, dtype=object) if dataset.columns else None
    return replace(dataset, X=X, columns=columns, ids=ids, image_shape=())


def _numbers(table: Any, source: str) -> Array:
    """Return an Arrow table of columns of every kind as an array; raise if a column does not contain numbers."""
    columns = [column.to_numpy() for column in table.columns]
    if any(column.dtype.kind not in "biuf" for column in columns):
        raise ValueError(
            f"{source}: transpose needs a table of numbers; omit transpose, or the metric mixed and missing"
        )
    return np.column_stack(columns)
