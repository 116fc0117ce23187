"""Rows of Parquet files, read in batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Array
from ..data.read.decode_errors import decoding
from .row_source import float_type

BATCH = 2**22  # bytes of rows decoded at a time, 4 MB; chosen
BUFFER = 2**16  # bytes of a column read from the file at a time: row groups may be larger than memory; chosen


class ParquetRows:
    """The rows of a Parquet file, or of all `*.parquet` files of a folder in the order of their names.

    The position in the files is kept, so that rows read in ascending order are decoded once; no more than a batch is in
    memory. Rows before the position are decoded from the beginning of their row group.

    Parameters
    ----------
    path : Path
    vectors : str or None
        A column of lists of numbers, all of one length; None to use numeric columns.
    columns : list of str or None
        The numeric columns to use; None for all numeric ones.
    """

    def __init__(self, path: Path, vectors: str | None, columns: list[str] | None):
        from pyarrow import parquet

        self.name, self._vectors, self._files = str(path), vectors, []
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not files:
            raise ValueError(f"{path} contains no *.parquet files")
        for file in files:
            with decoding(str(file), "Parquet"):
                self._files.append(parquet.ParquetFile(file, buffer_size=BUFFER))
        self._schema = self._files[0].schema_arrow
        for file, opened in zip(files, self._files, strict=True):
            found = opened.schema_arrow
            if (found.names, found.types) != (self._schema.names, self._schema.types):
                raise ValueError(
                    f"{file} has other columns than {files[0]}; all files must have columns of the same names and types"
                )
        groups = [(f, g) for f, opened in enumerate(self._files) for g in range(opened.metadata.num_row_groups)]
        counts = [self._files[f].metadata.row_group(g).num_rows for f, g in groups]
        self._groups, self._starts = groups, np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._columns = [vectors] if vectors is not None else self._numeric(columns)
        kinds = [self._number_type(name) for name in self._columns]
        self.dtype = np.result_type(*kinds) if kinds else np.dtype(np.float64)
        self.shape = int(self._starts[-1]), len(self._columns) if vectors is None else self._list_width(vectors)
        self._rows = max(1, BATCH // (8 * max(1, self.shape[1])))  # of a batch
        self._group, self._at, self._batch = -1, 0, np.empty((0, self.shape[1]), self.dtype)
        self._batches: Iterator[Any] = iter(())

    def read(self, start: int, stop: int) -> Array:
        result, at = np.empty((stop - start, self.shape[1]), self.dtype), start
        while at < stop:
            self._seek(at)
            part = self._batch[at - self._at : stop - self._at]
            result[at - start : at - start + len(part)] = part
            at += len(part)
        return result

    def _seek(self, row: int) -> None:
        """Make the current batch the one with this row."""
        group = int(np.searchsorted(self._starts, row, side="right")) - 1
        if group != self._group or row < self._at:
            (f, g), self._group = self._groups[group], group
            self._at, self._batch = int(self._starts[group]), self._batch[:0]
            self._batches = self._files[f].iter_batches(self._rows, row_groups=[g], columns=self._columns)
        skipped = self._at + len(self._batch)
        while row >= skipped:
            batch = next(self._batches, None)
            if batch is None:
                self._group = -1
                raise ValueError(f"row group {self._groups[group][1]} has fewer rows than the file says")
            self._at, skipped = skipped, skipped + batch.num_rows
            self._batch = self._values(batch) if row < skipped else self._batch[:0]

    def _values(self, batch: Any) -> Array:
        """Return the numbers of a batch, (rows, D)."""
        width = self.shape[1]
        if self._vectors is None:
            values = np.empty((batch.num_rows, width), self.dtype)
            for j, name in enumerate(self._columns):
                values[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
            return values
        column = batch.column(0)
        lengths = _list_lengths(column)
        if (lengths != width).any():
            i = int(np.flatnonzero(lengths != width)[0])
            raise ValueError(f"row {self._at + i} has a list of {lengths[i]} numbers, expected {width}")
        flat = column.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(len(column), width).astype(self.dtype, copy=False)

    def _numeric(self, columns: list[str] | None) -> list[str]:
        if columns is not None:
            return columns
        from pyarrow import types

        return [field.name for field in self._schema if types.is_integer(field.type) or types.is_floating(field.type)]

    def _number_type(self, name: str) -> np.dtype[Any]:
        """Return the type in which the numbers of a column are read; raise ValueError if it has none."""
        from pyarrow import types

        names = self._schema.names
        if name not in names:
            listed = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
            raise ValueError(f"{self.name} has no column {name!r}; its columns are {listed}")
        stored = self._schema.field(name).type
        kind, wanted = stored, "numbers"
        if self._vectors is not None:
            is_list = types.is_list(stored) or types.is_large_list(stored) or types.is_fixed_size_list(stored)
            kind, wanted = stored.value_type if is_list else None, "lists of numbers"
        if kind is None or not (types.is_integer(kind) or types.is_floating(kind)):
            raise ValueError(f"column {name!r} of {self.name} has type {stored}; a column of {wanted} is needed")
        return float_type(kind.to_pandas_dtype(), self.name)

    def _list_width(self, vectors: str) -> int:
        """Return the number of entries of the first list."""
        kind = self._schema.field(vectors).type
        if hasattr(kind, "list_size"):
            return int(kind.list_size)
        for opened in self._files:
            for batch in opened.iter_batches(1, columns=[vectors]):
                return int(_list_lengths(batch.column(0))[0])
        return 0


def _list_lengths(column: Any) -> Array:
    """Return the number of entries of each list of a column, 0 for a missing list."""
    from pyarrow import compute

    return np.asarray(compute.list_value_length(column).fill_null(0))
