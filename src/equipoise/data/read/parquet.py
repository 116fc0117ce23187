"""Parquet, read in batches of rows into one table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..._optional import import_optional
from ..._types import Array
from ..dataset import Dataset
from .broken import decoding
from .values import check_block
from .wanted import Wanted, as_text, shown

ROWS = 65536  # rows of a batch; chosen
INDEX = "__index_level_0__"  # what pandas calls an index without a name


def read_parquet(path: Path, wanted: Wanted) -> Dataset:
    """Return the table of a Parquet file: its columns of numbers in float64, the others beside it."""
    parquet = import_optional("pyarrow.parquet", "tables", "reading Parquet")
    source = str(path)
    with decoding(source, "Parquet"), parquet.ParquetFile(path) as file:
        names, types, n = list(file.schema_arrow.names), list(file.schema_arrow.types), file.metadata.num_rows
    wanted.check(names, source)
    if wanted.id is None and INDEX in names and INDEX not in wanted.named:
        wanted = Wanted(wanted.columns, wanted.label, INDEX)
    aside = (wanted.label, wanted.id)
    picked = wanted.columns or tuple(
        name for name, type in zip(names, types, strict=True) if _is_number(type) and name not in aside
    )
    if n == 0 or not picked:
        raise ValueError(f"{source} has {n} rows and {len(picked)} columns of numbers to embed; both are needed")
    X = np.empty((n, len(picked)))
    others: dict[str, list[Array]] = {name: [] for name in names if name not in picked}
    start = 0
    for batch in _batches(parquet, path):
        end = start + batch.num_rows
        for c, name in enumerate(picked):
            X[start:end, c] = _numbers(batch.column(name), source, name)
        check_block(X[start:end], start, source, picked)
        for name, blocks in others.items():
            blocks.append(_values(batch.column(name)))
        start = end
    return wanted.dataset(source, X, picked, {name: np.concatenate(blocks) for name, blocks in others.items()})


def _is_number(type: Any) -> bool:
    types = import_optional("pyarrow.types", "tables", "reading Parquet")
    return bool(types.is_integer(type) or types.is_floating(type) or types.is_decimal(type))


def _batches(parquet: Any, path: Path) -> Iterator[Any]:
    with decoding(str(path), "Parquet"):
        file = parquet.ParquetFile(path)
    with file:
        batches = file.iter_batches(ROWS)
        while True:
            with decoding(str(path), "Parquet"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


def _numbers(column: Any, source: str, name: str) -> Array:
    """Return a column of a batch in float64, with NaN where there is no value."""
    try:
        return np.asarray(column.cast("float64", safe=False).to_numpy(zero_copy_only=False))
    except import_optional("pyarrow", "tables", "reading Parquet").ArrowException as error:  # not numeric
        raise ValueError(
            f"{source}, column {shown(name)}: values of type {column.type} are not numbers; choose other columns"
        ) from error


def _values(column: Any) -> Array:
    """Return a column that is not embedded: numbers as float64, anything else as objects."""
    if _is_number(column.type):
        return np.asarray(column.cast("float64", safe=False).to_numpy(zero_copy_only=False))
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return as_text(values)
