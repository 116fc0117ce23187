"""Rows of Parquet files, read by row groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._types import Array


class ParquetRows:
    """The rows of a Parquet file, or of all `*.parquet` files of a folder in the order of their names.

    Parameters
    ----------
    path : Path
    vectors : str or None
        A column of lists of numbers, all of one length; None to use numeric columns.
    columns : list of str or None
        The numeric columns to use; None for all numeric ones.
    """

    def __init__(self, path: Path, vectors: str | None, columns: list[str] | None):
        import pyarrow as pa
        from pyarrow import parquet

        self.name = str(path)
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        self._files = [parquet.ParquetFile(file) for file in files]
        schema = self._files[0].schema_arrow
        for file, opened in zip(files, self._files, strict=True):
            if opened.schema_arrow.names != schema.names:
                raise ValueError(f"{file} has other columns than {files[0]}; all files must have the same columns")
        self._vectors, self._columns = vectors, columns
        if vectors is None:
            numeric = [f.name for f in schema if pa.types.is_integer(f.type) or pa.types.is_floating(f.type)]
            self._columns = _known(columns, schema.names, self.name) if columns is not None else numeric
            width, kinds = len(self._columns), [schema.field(name).type for name in self._columns]
        else:
            _known([vectors], schema.names, self.name)
            width, kinds = self._list_width(schema.field(vectors).type), [schema.field(vectors).type.value_type]
        self.dtype = np.dtype(np.float32 if all(kind == pa.float32() for kind in kinds) else np.float64)
        counts = [
            (f, g, opened.metadata.row_group(g).num_rows)
            for f, opened in enumerate(self._files)
            for g in range(opened.metadata.num_row_groups)
        ]
        self._groups = [(f, g) for f, g, _ in counts]
        self._starts = np.concatenate([[0], np.cumsum([count for *_, count in counts])])
        self.shape = (int(self._starts[-1]), width)

    def _list_width(self, kind: Any) -> int:
        import pyarrow as pa

        if pa.types.is_fixed_size_list(kind):
            return int(kind.list_size)
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            raise ValueError(f"column {self._vectors!r} of {self.name} has type {kind}; a column of lists is needed")
        for opened in self._files:
            for batch in opened.iter_batches(1, columns=[self._vectors]):
                return len(batch.column(0)[0])
        return 0

    def read(self, start: int, stop: int) -> Array:
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        parts = []
        for q in range(max(first, 0), len(self._groups)):
            begin, end = int(self._starts[q]), int(self._starts[q + 1])
            if begin >= stop:
                break
            rows = slice(max(start - begin, 0), min(stop, end) - begin)
            parts.append(self._group(q)[rows])
        return np.ascontiguousarray(np.concatenate(parts)) if parts else np.empty((0, self.shape[1]), self.dtype)

    def _group(self, q: int) -> Array:
        """Return row group q."""
        (f, g), width = self._groups[q], self.shape[1]
        if self._vectors is not None:
            column = self._files[f].read_row_group(g, columns=[self._vectors]).column(0).combine_chunks()
            flat = np.asarray(column.flatten())
            if column.null_count or len(flat) != len(column) * width:
                lengths = [len(v) if v is not None else -1 for v in column.to_pylist()]
                i = next((i for i, size in enumerate(lengths) if size != width), 0)
                raise ValueError(
                    f"row {int(self._starts[q]) + i} has a list of {max(lengths[i], 0)} numbers, expected {width}"
                )
            values = flat.reshape(len(column), width)
        else:
            table = self._files[f].read_row_group(g, columns=self._columns)
            values = np.column_stack([np.asarray(table.column(name)) for name in self._columns or ()])
        return np.asarray(values, dtype=self.dtype)


def _known(wanted: list[str], names: list[str], source: str) -> list[str]:
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ValueError(f"{source} has no column {missing[0]!r}; its columns are {', '.join(map(repr, names[:10]))}")
    return wanted
