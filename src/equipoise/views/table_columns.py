"""Read the columns of a table that an interactive map shows, and find the one that colours its points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._names import suggest_column
from .column import Classes, Column, read_column


def read_columns(table: Any, n: int, argument: str) -> dict[str, Column]:
    """Return the columns of a data frame or mapping by name; `argument` is its name in error messages."""
    if table is None:
        return {}
    keys = table.keys() if isinstance(table, Mapping) else getattr(table, "columns", None)
    if keys is None:
        raise ValueError(f"{argument} must be a data frame or a mapping of names to values, got {type(table).__name__}")
    columns = {str(key): read_column(table[key], n, f"{argument}[{key!r}]") for key in keys}
    return {name: replace(column, name=name) for name, column in columns.items()}


def choose_color(
    color: Any, names: Sequence[str] | None, columns: dict[str, Column], table: Any, n: int, argument: str
) -> tuple[dict[str, Column], int]:
    """Return the columns of a map of n points, and the index of the one that colours the points, −1 for none.

    Parameters
    ----------
    color : array-like of shape (n,) or str or None
        Values, which become the first column, or the name of one of `columns`.
    names : sequence of str or None
        Names of the classes 0, 1, …, if `color` contains integers.
    columns : dict of str to Column
        Result of `read_columns(table, n, argument)`.
    """
    color_index = -1
    if isinstance(color, str):
        if color not in columns:
            known = suggest_column(color, list(columns)) if columns else f"pass the table as {argument}=..."
            raise ValueError(f"color={color!r} is not a column of the table; {known}")
        if names is not None:
            columns[color] = read_column(table[color], n, color, names)
        color_index = list(columns).index(color)
    elif color is not None:
        column = read_column(color, n, "color", names)
        if getattr(color, "name", None) is None:
            column = replace(column, name="class" if isinstance(column, Classes) else "value")
        columns = {column.name: column, **{name: other for name, other in columns.items() if name != column.name}}
        color_index = 0
    elif names is not None:
        raise ValueError("`names` requires `color`; pass the class of each point as `color`, or omit `names`")
    return columns, color_index
