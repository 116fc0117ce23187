"""Parquet and Feather (Arrow IPC), read in batches of rows into one table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..._types import Array
from ..dataset import Dataset
from .decode_errors import decoding
from .finite import check_block_finite
from .growing import GrowingTable
from .selection import Selection, quote, to_texts

ROWS = 65536  # per batch; chosen
PANDAS_INDEX = "__index_level_0__"  # pandas' name for an index without a name


def read_parquet(path: Path, selection: Selection) -> Dataset:
    """Return the table of a Parquet file: numeric columns in float64, the others in `extra`."""
    from pyarrow import parquet

    with decoding(str(path), "Parquet"):
        file = parquet.ParquetFile(path)
    with file:
        batches = _decoded(file.iter_batches(ROWS), path, "Parquet")
        return _read_batches(batches, file.schema_arrow, file.metadata.num_rows, str(path), selection)


def read_feather(path: Path, selection: Selection) -> Dataset:
    """Return the table of a Feather (Arrow IPC) file, as `read_parquet` does."""
    import pyarrow

    with decoding(str(path), "Feather"):
        source = pyarrow.OSFile(str(path))  # a memory map would crash if the file were truncated meanwhile
    with source:
        with decoding(str(path), "Feather"):
            file = pyarrow.ipc.open_file(source)
        batches = _decoded((file.get_batch(i) for i in range(file.num_record_batches)), path, "Feather")
        return _read_batches(batches, file.schema, 0, str(path), selection)


def _decoded(batches: Iterator[Any], path: Path, kind: str) -> Iterator[Any]:
    """Yield validated batches of at most ROWS rows: Arrow does not check the offsets in a file by itself."""
    while True:
        with decoding(str(path), kind):
            batch = next(batches, None)
            if batch is None:
                return
            batch.validate(full=True)
        for start in range(0, batch.num_rows, ROWS):
            yield batch.slice(start, ROWS)


def _read_batches(batches: Iterator[Any], schema: Any, n: int, source: str, selection: Selection) -> Dataset:
    """Return the data set of batches with a schema; n is the number of rows, or 0 if unknown."""
    names = [str(name) for name in schema.names]
    selection.check(names, source)
    if selection.id is None and PANDAS_INDEX in names and PANDAS_INDEX not in selection.named:
        selection = Selection(selection.columns, selection.label, PANDAS_INDEX)
    roles = (selection.label, selection.id)
    embedded = selection.columns or tuple(
        name for name, type in zip(names, schema.types, strict=True) if _is_numeric(type) and name not in roles
    )
    table = GrowingTable(len(embedded), n)
    others: dict[str, list[Array]] = {name: [] for name in names if name not in embedded}
    if not embedded:
        raise ValueError(f"{source} has no numeric column to embed")
    for batch in batches:
        X = np.array([_to_float64(batch.column(name), source, name) for name in embedded]).T
        check_block_finite(X, table.n, source, embedded)
        table.append(X)
        for name, blocks in others.items():
            blocks.append(_to_values(batch.column(name)))
    if not table.n:
        raise ValueError(f"{source} has no rows; expected a row for each point")
    return selection.dataset(
        source, table.finish(), embedded, {name: np.concatenate(blocks) for name, blocks in others.items()}
    )


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
