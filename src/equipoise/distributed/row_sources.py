"""Tables that are read in blocks of rows: arrays, memory maps, Zarr, Parquet, AnnData and Dask.

`open_rows` accepts a file or an object and returns a `RowSource`. A rank reads only the rows that it asks for, so that
the table may be larger than memory. Rows keep the index that they have in the table.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._plural import plural
from .._types import Array
from ..data.read.decode_errors import decoding
from .parquet_rows import ParquetRows
from .row_source import RowSource, check_table, float_type
from .stored_rows import open_annotated, open_stored, open_zarr


class ArrayRows:
    """The rows of a NumPy array or memory map."""

    def __init__(self, X: Array, name: str = "X"):
        self.name, self.shape, self._X = name, check_table(X.shape, name), X
        self.dtype = float_type(X.dtype, name)

    def read(self, start: int, stop: int) -> Array:
        return np.array(self._X[start:stop], dtype=self.dtype, order="C")


class CheckedRows:
    """Another source whose blocks are checked: they have the expected shape, and all their values are finite."""

    def __init__(self, source: RowSource):
        self.source, self.name, self.shape, self.dtype = source, source.name, source.shape, source.dtype

    def read(self, start: int, stop: int) -> Array:
        try:
            block = np.asarray(self.source.read(start, stop))
        except MemoryError:
            raise
        except Exception as error:  # decoders raise errors of many types
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
        An array or sparse matrix in memory, a Dask array, a Zarr array, a data set of h5py, an AnnData object (also
        backed or lazy), or the path of an NPY file (as a memory map), of a Zarr store (an array, or AnnData), of a
        Parquet file or a folder of Parquet files, or of an H5AD file. An object with `name`, `shape`, `dtype` and
        `read(start, stop)` is used as it is, see `RowSource`.
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
        with decoding(str(path), "NPY"):
            X = np.load(path, mmap_mode="r", allow_pickle=False)
        return ArrayRows(X, str(path))
    if suffix == ".zarr":
        return open_zarr(path, key)
    if suffix == ".h5ad":
        return open_annotated(path, key)
    if suffix in (".parquet", ".pq") or any(path.glob("*.parquet")):
        return ParquetRows(path, key, columns)
    raise ValueError(f"{path} is read in blocks of rows only as .npy, .zarr, .h5ad or .parquet; convert it first")


def _open_object(source: Any, key: str | None) -> RowSource:
    module = type(source).__module__.partition(".")[0]
    if module in ("dask", "h5py") or sparse.issparse(source):
        return open_stored(source, {"dask": "the Dask array", "h5py": "the HDF5 data set"}.get(module, "X"))
    openers: dict[str, Callable[[Any, str | None], RowSource]] = {"anndata": open_annotated, "zarr": open_zarr}
    if module in openers:
        return openers[module](source, key)
    if all(hasattr(source, name) for name in ("read", "shape", "dtype", "name")):
        check_table(source.shape, source.name)
        float_type(source.dtype, source.name)
        return source
    return ArrayRows(np.asarray(source))
