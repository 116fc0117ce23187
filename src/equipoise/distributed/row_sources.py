"""Tables that are read in blocks of rows: arrays, memory maps, Zarr, Parquet, AnnData and Dask.

`open_rows` accepts a file or an object and returns a `RowSource`. A rank reads only the rows that it asks for, so that
the table may be larger than memory. Rows keep the index that they have in the table.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._plural import plural
from .._types import Array
from .parquet_rows import ParquetRows
from .row_source import RowSource, as_floats, float_type
from .stored_rows import DaskRows, open_annotated, open_zarr


class ArrayRows:
    """The rows of a NumPy array or memory map."""

    def __init__(self, X: Array, name: str = "X"):
        self.name, self.shape, self.dtype, self._X = name, X.shape, float_type(X.dtype), X

    def read(self, start: int, stop: int) -> Array:
        return as_floats(self._X[start:stop])


class CheckedRows:
    """Another source whose blocks are checked: they have the expected shape, and all their values are finite."""

    def __init__(self, source: RowSource):
        self.source, self.name, self.shape, self.dtype = source, source.name, source.shape, source.dtype

    def read(self, start: int, stop: int) -> Array:
        try:
            block = self.source.read(start, stop)
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise ValueError(f"rows {start} to {stop - 1} of {self.name} cannot be read: {error}") from error
        if block.shape != (stop - start, self.shape[1]):
            raise ValueError(
                f"rows {start} to {stop - 1} of {self.name} have shape {block.shape}, expected"
                f" {(stop - start, self.shape[1])}; a block of the table is missing or has other columns"
            )
        if not np.isfinite(block).all():
            i, j = np.argwhere(~np.isfinite(block))[0]
            raise ValueError(
                f"{self.name} has the value {block[i, j]} in row {start + i}, column {j}; fill or remove missing values"
            )
        return block


def open_rows(source: Any, *, key: str | None = None, columns: list[str] | None = None, min_rows: int = 2) -> RowSource:
    """Return a table that is read in blocks of rows, without reading it.

    Parameters
    ----------
    source : array, path or object
        A NumPy array, a Dask array, a Zarr array, an AnnData object (also backed or lazy), or the path of an NPY file
        (as a memory map), of a Zarr store (an array, or AnnData), of a Parquet file or a folder of Parquet files, or of
        an H5AD file.
    key : str, optional
        For AnnData: the entry to embed, "X" (the default) or an entry of obsm such as "X_pca". For a Zarr group: the
        path of the array in it. For Parquet: a column of lists that contains the vectors.
    columns : list of str, optional
        For Parquet: the numeric columns to use; all by default.
    min_rows : int, default=2
        The number of rows that the table needs at least.

    Returns
    -------
    RowSource
        A block with values that are not finite, or of another shape, raises ValueError when it is read.
    """
    found = _open_path(Path(source), key, columns) if isinstance(source, str | Path) else _open_object(source, key)
    n, D = found.shape
    if n < min_rows or D < 1:
        need = plural(min_rows, "row")
        raise ValueError(f"{found.name} has shape {found.shape}; a table needs at least {need} and 1 column")
    return CheckedRows(found)


def _open_path(path: Path, key: str | None, columns: list[str] | None) -> RowSource:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    suffix = path.suffix.lower()
    if suffix == ".npy":
        X = np.load(path, mmap_mode="r")
        if X.ndim != 2:
            raise ValueError(f"{path} has {X.ndim} axes; a table has two")
        return ArrayRows(X, str(path))
    if suffix == ".zarr":
        return open_zarr(path, key)
    if suffix == ".h5ad":
        return open_annotated(path, key)
    if suffix in (".parquet", ".pq") or (path.is_dir() and any(path.glob("*.parquet"))):
        return ParquetRows(path, key, columns)
    raise ValueError(f"{path} is read in blocks of rows only as .npy, .zarr, .h5ad or .parquet; convert it first")


def _open_object(source: Any, key: str | None) -> RowSource:
    module = type(source).__module__.partition(".")[0]
    openers: dict[str, Callable[[], RowSource]] = {
        "dask": lambda: DaskRows(source),
        "anndata": lambda: open_annotated(source, key),
        "zarr": lambda: open_zarr(source, key),
    }
    if module in openers:
        return openers[module]()
    if all(hasattr(source, name) for name in ("read", "shape", "dtype", "name")):
        return source
    X = np.asarray(source) if not isinstance(source, np.ndarray) else source
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; a table has two axes")
    return ArrayRows(X)
