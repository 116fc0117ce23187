"""Hints about the columns of a table: which are left out, which only number the rows, and which one dominates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from .._cells import is_missing, is_number
from .._names import quote
from .._types import Array
from ..data import Dataset
from ..data.dominance import dominant_column
from ..mixed.row_numbers import numbers_rows

SAMPLE = 1000  # cells of a column that are checked
ADDED = re.compile(r"[,\s%$€£]")  # what people add to numbers: separators of thousands, units
OTHER_DATE = re.compile(r"(\d\d?([./-])\d\d?\2(\d{4}|\d\d)|\d{4}([./])\d\d?\4\d\d?)([T ]\d\d?:\d\d(:\d\d)?)?")
SCALE_DEPENDENT = ("euclidean", "sqeuclidean", "l2", "minkowski", "manhattan", "cityblock", "l1", "chebyshev")


def hints(dataset: Dataset, metric: object, is_scaled: bool) -> Iterator[str]:
    """Yield a sentence for each column of a table that its user may want to treat in another way.

    Parameters
    ----------
    dataset : Dataset
        The table before its preparation.
    metric : object
        The metric of the method; None for a method without one, such as PCA, which depends on the scale of columns.
    is_scaled : bool
        Whether the columns are standardised.
    """
    for name, values in dataset.extra.items():
        if values.dtype == object and (cell := _disguised_number(values)) is not None:
            yield (
                f"column {quote(name)} is not embedded, because cells such as {quote(cell)} are text; write plain"
                " numbers, such as 1234.5"
            )
    if sparse.issparse(dataset.X) or not dataset.columns or metric not in (None, *SCALE_DEPENDENT):
        return
    X = np.asarray(dataset.X)
    numbering = [j for j in range(X.shape[1]) if numbers_rows(X[:, j])]
    for j in numbering:
        name = dataset.columns[j]
        yield f"column {quote(name)} numbers the rows; --id {name} uses it for their names instead of embedding it"
    if is_scaled or (dominant := dominant_column(X)) is None or dominant[0] in numbering:
        return
    j, fraction = dominant
    yield (
        f"column {quote(dataset.columns[j])} has {fraction:.1%} of the variance, so that the map shows little else;"
        " --standardize gives all columns the same weight"
    )


def date_hints(X: Any) -> Iterator[str]:
    """Yield a sentence for each column of text of an Arrow table whose cells are dates such as 18.08.2020."""
    for name in X.column_names:
        if not str(X.schema.field(name).type).endswith("string"):
            continue
        cells = [cell for cell in X[name][:SAMPLE].to_pylist() if cell is not None and not is_missing(cell)]
        if cells and all(OTHER_DATE.fullmatch(cell.strip()) for cell in cells):
            yield (
                f"column {quote(name)} is read as text, because cells such as {quote(cells[0])} are not read as dates;"
                " write dates as year-month-day, such as 2020-08-18"
            )


def _disguised_number(values: Array) -> str | None:
    """Return the first cell that is a number but for separators or a unit; None unless at least 9 of 10 cells are."""
    cells = [cell for cell in values[:SAMPLE].tolist() if not is_missing(cell)]
    disguised = [cell for cell in cells if not is_number(cell) and is_number(ADDED.sub("", cell))]
    plain = sum(map(is_number, cells))
    return disguised[0] if disguised and len(disguised) + plain >= 0.9 * len(cells) else None
