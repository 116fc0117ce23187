"""Read Parquet and Feather (Arrow IPC) files, a few columns at a time, into one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._names import quote
from ..._types import Array
from ...arrays.blocks import rows_per_block
from ..dataset import Dataset
from .decode_errors import decoding
from .finite import check_block_finite
from .selection import Selection, to_texts

PANDAS_INDEX = "__index_level_0__"  # pandas' name for an index without a name

Load = Callable[[Sequence[str]], Iterator[Any]]  # column names → their values, a table or batch per group of rows


def read_parquet(path: Path, selection: Selection) -> Dataset:
    """Return the data set of a Parquet file: X has the columns to embed, in float64; `extra` has the other columns."""
    from pyarrow import parquet

    with decoding(str(path), "Parquet"):
        file = parquet.ParquetFile(path)
    with file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        with decoding(str(path), "Parquet"):
            for i, size in enumerate(sizes):
                if size < 0:
                    raise ValueError(f"the metadata of row group {i} says {size} rows; write the file again")

        def read_group(i: int, names: Sequence[str]) -> Any:
            group = file.read_row_group(i, list(names))
            if group.num_rows != sizes[i]:
                raise ValueError(
                    f"row group {i} has {group.num_rows} rows, but its metadata says {sizes[i]}; write the file again"
                )
            return group

        def load(names: Sequence[str]) -> Iterator[Any]:
            return _validated((read_group(i, names) for i in range(len(sizes))), path, "Parquet")

        return _read_columns(load, file.schema_arrow, sizes, str(path), selection)


def read_feather(path: Path, selection: Selection) -> Dataset:
    """Return the data set of a Feather (Arrow IPC) file, with X and `extra` as in `read_parquet`."""
    from pyarrow import OSFile, ipc

    with decoding(str(path), "Feather"):
        source = OSFile(str(path))  # a memory map would crash if the file were truncated meanwhile
    with source:
        with decoding(str(path), "Feather"):
            schema = ipc.open_file(source).schema
        index = {name: j for j, name in enumerate(schema.names)}

        def load(names: Sequence[str]) -> Iterator[Any]:
            with decoding(str(path), "Feather"):
                options = ipc.IpcReadOptions(included_fields=[index[name] for name in names])
                file = ipc.open_file(source, options=options)
            return _validated((file.get_batch(i) for i in range(file.num_record_batches)), path, "Feather")

        sizes = [batch.num_rows for batch in load(schema.names[:1])]
        return _read_columns(load, schema, sizes, str(path), selection)


def _validated(groups: Iterator[Any], path: Path, kind: str) -> Iterator[Any]:
    """Yield each table or batch after checking its contents, such as offsets; Arrow does not check them on reading."""
    while True:
        with decoding(str(path), kind):
            group = next(groups, None)
            if group is None:
                return
            group.validate(full=True)
        yield group


def _read_columns(load: Load, schema: Any, sizes: Sequence[int], source: str, selection: Selection) -> Dataset:
    """Read a data set a few columns at a time, because loading takes several times the memory of the loaded columns.

    Parameters
    ----------
    load : callable
        Takes column names and yields these columns, as one table or batch for each group of rows.
    schema : pyarrow.Schema
    sizes : sequence of int
        Number of rows in each group of rows.
    source : str
        Name of the file, for error messages.
    selection : Selection
        Selected columns.
    """
    names = [str(name) for name in schema.names]
    selection.check(names, source)
    if selection.id is None and PANDAS_INDEX in names and PANDAS_INDEX not in selection.named:
        selection = replace(selection, id=PANDAS_INDEX)
    roles = (selection.label, selection.id, *selection.exclude)
    embedded = selection.columns or tuple(
        name for name, type in zip(names, schema.types, strict=True) if _is_numeric(type) and name not in roles
    )
    if selection.every_kind:  # all columns are kept as they are
        embedded = ()
    elif not embedded:
        raise ValueError(f"{source} has no numeric column to embed; convert a column to numbers")
    if not sum(sizes):
        raise ValueError(f"{source} has no rows; expected a row for each point")
    step = rows_per_block(8 * max(sizes))  # columns of float64
    X = np.empty((sum(sizes), len(embedded)))
    for first in range(0, len(embedded), step):
        part = embedded[first : first + step]
        start = 0
        for group in load(part):
            block = X[start : start + group.num_rows, first : first + step]
            for j, name in enumerate(part):
                block[:, j] = _to_float64(group.column(name), source, name)
            is_last = start + len(block) == len(X) and first + len(part) == len(embedded)
            check_block_finite(block, start, source, part, is_part=not is_last)
            start += group.num_rows
    kept = set(embedded)
    others = tuple(name for name in names if name not in kept)
    extra: dict[str, Array] = {}
    for first in range(0, len(others), step):
        part = others[first : first + step]
        groups = [[_to_values(group.column(name)) for name in part] for group in load(part)]
        extra |= {name: np.concatenate(values) for name, values in zip(part, zip(*groups, strict=True), strict=True)}
    return selection.dataset(source, X, embedded, extra)


def _is_numeric(type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(type) or types.is_floating(type) or types.is_decimal(type))


def _to_float64(column: Any, source: str, name: str) -> Array:
    """Return a column of a batch in float64, with NaN for missing values."""
    import pyarrow

    try:
        return np.asarray(column.cast("float64", safe=False).to_numpy(zero_copy_only=False))
    except pyarrow.ArrowException as error:  # text, or a type without numbers
        raise ValueError(
            f"{source}, column {quote(name)}: values of type {column.type} are not numbers; select other columns"
        ) from error


def _to_values(column: Any) -> Array:
    """Return a column that is not embedded: numbers as float64, anything else as str."""
    if _is_numeric(column.type):
        return np.asarray(column.cast("float64", safe=False).to_numpy(zero_copy_only=False))
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return to_texts(values)
