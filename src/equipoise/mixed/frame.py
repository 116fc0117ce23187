"""Read tables of any kind into named columns of numbers or categories: data frames, Arrow tables, arrays, lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._cells import is_code, is_missing, is_number
from .._names import quote
from .._optional import import_optional
from .._types import Array
from ..arrays.namespace import is_cupy, is_tensor, require_size, to_numpy

DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}  # ticks of a unit in a day
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")  # 1,234 and -12,345.67
DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z?)?")  # ISO 8601, without offsets
WORDS = {
    "number": ("number", "numbers"),
    "date": ("date", "dates"),
    "ordered": ("ordered category", "ordered categories"),
    "boolean": ("boolean", "booleans"),
    "category": ("category", "categories"),
}
FORMS = {"number": "write numbers such as 1234.5", "date": "write dates as year-month-day, such as 2020-08-18"}
EPOCH = datetime(1970, 1, 1)


class Column(NamedTuple):
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : {"number", "date", "ordered", "boolean", "category"}
        What the values are; "ordered" is a category with an order, whose values are the ranks of its levels.
    values : array of float64, shape (n,)
        Numbers, days since 1970, ranks, or indices of `levels`; NaN where the value is missing.
    levels : list of str
        Names of the categories; empty for numbers and dates.
    """

    name: str
    kind: str
    values: Array
    levels: list[str]

    @property
    def is_category(self) -> bool:
        """Whether two values are only equal or different."""
        return self.kind in ("boolean", "category")


def is_frame(X: Any) -> bool:
    """Return whether X is a table with named columns, such as a data frame or an Arrow table."""
    return getattr(X, "columns", None) is not None and hasattr(X, "shape") and not isinstance(X, np.ndarray)


def read_columns(X: Any) -> dict[str, Any]:
    """Return the columns of a table as Arrow arrays by name; the columns of an array are called "0", "1", …."""
    require_size(X)
    if sparse.issparse(X):
        raise ValueError("a metric over columns needs a dense table, but X is sparse; use X.toarray()")
    if is_tensor(X) or is_cupy(X):
        X = to_numpy(X)
    columns: dict[str, Any] = {}
    for name, values in _frame_columns(X) if is_frame(X) else _array_columns(X):
        if name in columns:
            raise ValueError(f"two columns of X are named {name!r}; rename one of them")
        columns[name] = _flat(name, values)
    if not columns or not len(next(iter(columns.values()))):
        raise ValueError(f"X has shape {np.shape(X)}; pass a table with at least one row and one column")
    return columns


def _frame_columns(X: Any) -> Iterator[tuple[str, Any]]:
    import pyarrow

    if hasattr(X, "iloc"):  # pandas: column by column, so that an error names the column
        for j, name in enumerate(X.columns):
            yield str(name), _to_arrow(str(name), X.iloc[:, j])
        return
    if not isinstance(X, pyarrow.Table | pyarrow.RecordBatch):
        if not hasattr(X, "__arrow_c_stream__"):
            narwhals = import_optional("narwhals", "tables", f"reading {type(X).__name__}")
            X = narwhals.from_native(X, eager_only=True).to_arrow()
        X = pyarrow.table(X)
    for field, values in zip(X.schema, X.columns, strict=True):
        is_enum = any(key.startswith(b"_PL_ENUM") for key in field.metadata or ())  # polars gives every Enum an order
        yield str(field.name), _without_order(values) if is_enum else values


def _without_order(values: Any) -> Any:
    import pyarrow

    array = _flat("", values)
    return pyarrow.DictionaryArray.from_arrays(array.indices, array.dictionary)


def _array_columns(X: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(X, np.ndarray):
        X = np.array([list(row) for row in X], dtype=object) if isinstance(X, list | tuple) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must be a table (n, D), but it has shape {X.shape}")
    for j in range(X.shape[1]):
        yield str(j), _to_arrow(str(j), np.ascontiguousarray(X[:, j]))


def _to_arrow(name: str, values: Any) -> Any:
    import pyarrow

    try:
        return pyarrow.array(values, from_pandas=True)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError) as error:
        kinds = sorted({type(value).__name__ for value in values if value is not None and value == value})
        raise ValueError(
            f"column {name!r} contains values of the types {', '.join(kinds)}; convert it to one type, for example to"
            " text with .astype(str), or leave it out"
        ) from error


def _flat(name: str, values: Any) -> Any:
    """Return a column as one Arrow array; raise ValueError for types without a meaning as a column of a table."""
    import pyarrow
    from pyarrow import types

    array = values.combine_chunks() if isinstance(values, pyarrow.ChunkedArray) else values
    kind = array.type.value_type if types.is_dictionary(array.type) else array.type
    if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        raise ValueError(f"column {name!r} contains values of type {kind}; drop it, or convert it to numbers or text")
    return array


def make_column(name: str, array: Any, as_category: bool = False, codes_are_numbers: bool = False) -> Column:
    """Return an Arrow array as a column of numbers, dates, ranks or categories.

    Text is read as numbers if every cell is a number ("1,234" is one, "01234" is a code), as dates if every cell is an
    ISO date, and as categories otherwise. With `codes_are_numbers`, "01234" is a number too.
    """
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind) and kind.ordered and not as_category:
        ranks = array.indices.to_numpy(zero_copy_only=False).astype(np.float64)
        return Column(name, "ordered", ranks, [text.strip() for text in _texts(array.dictionary)])
    if types.is_boolean(kind):
        return Column(name, "boolean", _floats(array), ["False", "True"])
    if not (types.is_dictionary(kind) or _is_text(kind) or as_category):
        return Column(name, *_quantity(array), [])
    if _is_text(kind) and not as_category and (read := _read_text(array, codes_are_numbers)) is not None:
        return Column(name, *read, [])
    return Column(name, "category", *_categories(array))


def make_column_like(name: str, array: Any, kind: str, levels: list[str]) -> Column:
    """Return an Arrow array as a column of a given kind, with values that refer to `levels`.

    A category that is not among the levels gets the index len(levels), or a larger one. Raise ValueError if the values
    are of another kind.
    """
    as_category = kind in ("boolean", "category", "ordered")
    column = make_column(name, array, as_category)
    if not as_category:
        if column.kind != kind and not np.isnan(column.values).all():
            raise ValueError(
                f"column {name!r} contains {WORDS[column.kind][1]}, such as {_first_of_another_kind(array, kind)}, but"
                f" contained {WORDS[kind][1]} when the method was fitted; {FORMS[kind]}"
            )
        return column._replace(kind=kind)
    index = {level: float(i) for i, level in enumerate(levels)}
    codes = np.array([index.setdefault(level, float(len(index))) for level in column.levels] + [np.nan])
    values = codes[np.where(np.isnan(column.values), -1, column.values).astype(np.intp)]
    return Column(name, kind, values, list(index))


def _first_of_another_kind(array: Any, kind: str) -> str:
    """Return the first value of a column that is not of a kind, in quotes."""
    distinct = array.unique()
    for i in range(len(distinct)):
        column = make_column("", distinct[i : i + 1])
        if column.kind != kind and not np.isnan(column.values).all():
            return quote(str(distinct[i].as_py()))
    return quote(str(distinct[0].as_py()))  # each value alone is of this kind, but not the column as a whole


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view")


def _floats(array: Any) -> Array:
    """Return an Arrow array of numbers or booleans as float64, with NaN for nulls."""
    values = array.cast("uint8") if str(array.type) == "bool" else array
    values = values.cast("float64", safe=False).to_numpy(zero_copy_only=False)
    return np.array(values, dtype=np.float64)


def _quantity(array: Any) -> tuple[str, Array]:
    """Return numbers as they are, and times as days."""
    from pyarrow import types

    kind = array.type
    if types.is_null(kind):
        return "number", np.full(len(array), np.nan)
    if types.is_date(kind):
        return "date", _floats(array.cast("date32").cast("int32"))
    if types.is_timestamp(kind) or types.is_duration(kind) or types.is_time(kind):
        bits = "int32" if types.is_time32(kind) else "int64"
        days = _floats(array.cast(bits)) / DAY[kind.unit]
        return ("date" if types.is_timestamp(kind) else "number"), days
    return "number", _floats(array)


def _texts(array: Any) -> list[str]:
    """Return Arrow values as text: whole numbers without a decimal point, so that 1.0 and 1 are the same category."""
    values = array.to_pylist()
    return [str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in values]


def _categories(array: Any) -> tuple[Array, list[str]]:
    """Return the index of each value in the sorted list of categories, and the list; blank text counts as missing."""
    from pyarrow import types

    if types.is_floating(array.type):
        import pyarrow

        array = pyarrow.array(_floats(array), from_pandas=True)  # NaN is missing too
    encoded = array if types.is_dictionary(array.type) else array.dictionary_encode()
    names = [text.strip() for text in _texts(encoded.dictionary)]
    used = np.zeros(len(names), dtype=bool)
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    present = ~np.isnan(indices) if indices.dtype.kind == "f" else np.ones(len(indices), dtype=bool)
    used[indices[present].astype(np.intp)] = True
    levels = sorted({name for name, is_used in zip(names, used, strict=True) if name and is_used})
    index = {level: float(i) for i, level in enumerate(levels)}
    codes = np.array([index.get(name, np.nan) for name in names] + [np.nan])
    return codes[np.where(present, indices, -1).astype(np.intp)], levels


def _read_text(array: Any, codes_are_numbers: bool) -> tuple[str, Array] | None:
    """Return text as numbers or dates, or None if a cell is neither, or no cell has a value."""
    encoded = array.dictionary_encode()
    cells = [text.strip() for text in encoded.dictionary.to_pylist()]
    present = [cell for cell in cells if not is_missing(cell)]
    values: dict[str, float] = {}
    if not present:
        return None
    if all(DATE.fullmatch(cell) for cell in present):
        kind, convert = "date", _days
    elif any(map(is_code, present)) and not codes_are_numbers:
        return None
    else:
        kind, convert = "number", _number
    for cell in present:
        value = convert(cell)
        if value is None:
            return None
        values[cell] = value
    codes = np.array([values.get(cell, np.nan) for cell in cells] + [np.nan])
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    return kind, codes[np.where(np.isnan(indices), -1, indices).astype(np.intp)]


def _number(cell: str) -> float | None:
    plain = cell.replace(",", "") if THOUSANDS.fullmatch(cell) else cell
    return float(plain) if is_number(plain) else None


def _days(cell: str) -> float | None:
    """Return an ISO date as days since 1970; None if there is no such day."""
    whole, _, fraction = cell.removesuffix("Z").partition(".")
    try:
        time = datetime.fromisoformat(whole)
    except ValueError:
        return None
    return (time - EPOCH) / timedelta(days=1) + float(f"0.{fraction or 0}") / 86_400
