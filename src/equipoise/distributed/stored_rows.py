"""Rows of Zarr arrays, of AnnData in H5AD files and Zarr stores, of HDF5 data sets, and of Dask arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._optional import import_optional
from .._types import Array
from ..data.read.decode_errors import decoding
from ..data.read.zarr_store import check_no_pickles
from .row_pieces import Pieces
from .row_source import RowSource, check_table, float_type


class StoredRows:
    """The rows of an array that is read by slices: `values[start:stop]` returns them, dense or sparse.

    Parameters
    ----------
    values : array
        Has `shape`, `dtype` and `chunks`, of which whole ones are read at a time.
    name : str
    """

    def __init__(self, values: Any, name: str):
        self.name, self.shape, self._values = name, check_table(values.shape, name), values
        self.dtype = float_type(values.dtype, name)
        row_bytes = self.shape[1] * np.dtype(values.dtype).itemsize
        self._pieces = Pieces(self._bounds(), self._slice, row_bytes)

    def read(self, start: int, stop: int) -> Array:
        return self._pieces.fill(np.empty((stop - start, self.shape[1]), self.dtype), start)

    def _bounds(self) -> Array:
        """Return where the chunks of rows begin, and the number of rows."""
        return np.append(np.arange(0, self.shape[0], int(self._values.chunks[0])), self.shape[0])

    def _slice(self, start: int, stop: int) -> Array:
        block = self._values[start:stop]
        return block.toarray() if sparse.issparse(block) else np.asarray(block)


class DirectRows(StoredRows):
    """The rows of an array without chunks, or of a sparse matrix; only the rows wanted are read."""

    def _bounds(self) -> Array:
        return np.array([0, self.shape[0]])

    def read(self, start: int, stop: int) -> Array:
        return np.ascontiguousarray(self._slice(start, stop), dtype=self.dtype)


class ZarrRows(StoredRows):
    """The rows of a Zarr array. Rows of which no chunk is in the store are refused, rather than read as fill values.

    Parameters
    ----------
    values : zarr.Array
    name : str
    folder : Path, optional
        The folder of the array, if it is in a local store.
    """

    def __init__(self, values: Any, name: str, folder: Path | None = None):
        self._folder = folder
        super().__init__(values, name)

    def _slice(self, start: int, stop: int) -> Array:
        block = np.asarray(self._values[start:stop])
        encode = getattr(getattr(self._values, "metadata", None), "encode_chunk_key", None)
        if self._folder is None or encode is None:
            return block
        rows, columns = (int(size) for size in getattr(self._values, "shards", None) or self._values.chunks)
        for i in range(start // rows, (stop - 1) // rows + 1):
            if (block[max(start, i * rows) - start] != self._values.fill_value).any():
                continue  # stored, because other values are
            files = [self._folder / encode((i, j)) for j in range(-(-self.shape[1] // columns))]
            if not any(file.is_file() for file in files):
                raise ValueError(
                    f"{files[0]} is missing; write the table again, with write_empty_chunks=True if all values of these"
                    f" rows are {self._values.fill_value}"
                )
        return block


class DaskRows(StoredRows):
    """The rows of a Dask array; each chunk is computed once if the rows are read in ascending order."""

    def __init__(self, values: Any, name: str = "the Dask array"):
        if any(np.isnan(size) for size in values.shape):
            raise ValueError(f"{name} has chunks of unknown size; call compute_chunk_sizes() first")
        super().__init__(values, name)

    def _bounds(self) -> Array:
        return np.concatenate([[0], np.cumsum(self._values.chunks[0])])

    def _slice(self, start: int, stop: int) -> Array:
        block = self._values[start:stop].compute(scheduler="synchronous")
        return block.toarray() if sparse.issparse(block) else np.asarray(block)


def open_stored(values: Any, name: str) -> RowSource:
    """Return the rows of an array in memory, in a file, or of Dask."""
    module = type(values).__module__.partition(".")[0]
    if module == "dask":
        return DaskRows(values, name)
    if module == "pandas":
        values = values.to_numpy()
    if sparse.issparse(values):
        return DirectRows(values.tocsr(), name)
    return StoredRows(values, name) if getattr(values, "chunks", None) is not None else DirectRows(values, name)


def open_zarr(source: Any, key: str | None) -> RowSource:
    """Return the rows of a Zarr array, of an array in a Zarr group, or of AnnData in a Zarr store."""
    zarr = import_optional("zarr", "anndata", "reading Zarr")
    path = Path(source) if isinstance(source, str | Path) else None
    name, node = str(source) if path is not None else "the Zarr array", source
    if path is not None:
        check_no_pickles(path)
        with decoding(name, "Zarr"):
            node = zarr.open(str(path), mode="r")
    if hasattr(node, "shape"):
        if key is not None:
            raise ValueError(f"{name} is one array, so that key={key!r} names nothing; use key=None")
        return ZarrRows(node, name, path)
    if node.attrs.get("encoding-type") == "anndata":
        return _annotated_group(node, key, name)
    if key is None:
        arrays = sorted(name for name, _ in node.arrays())
        if len(arrays) != 1:
            raise ValueError(f"{name} contains the arrays {', '.join(map(repr, arrays)) or 'none'}; choose one by key=")
        key = arrays[0]
    if key not in node or not hasattr(node[key], "shape"):
        raise ValueError(f"{name} has no array {key!r}")
    return ZarrRows(node[key], f"{name}/{key}", None if path is None else path / key)


def open_annotated(source: Any, key: str | None) -> RowSource:
    """Return the rows of X or of an entry of obsm, of an AnnData object or an H5AD file, which stays on disk."""
    if isinstance(source, Path):
        import_optional("anndata", "anndata", "reading H5AD")
        h5py = import_optional("h5py", "anndata", "reading H5AD")
        with decoding(str(source), "H5AD"):
            file = h5py.File(source, "r")
        return _annotated_group(file, key, str(source))
    path = "X" if key in (None, "X") else f"obsm[{key!r}]"
    values = source.X if path == "X" else source.obsm.get(key)
    if values is None:
        raise ValueError(f"the AnnData object has no {path}; its obsm has {_listed(source.obsm)}")
    return open_stored(values, f"AnnData.{path}")


def _annotated_group(group: Any, key: str | None, name: str) -> RowSource:
    path = "X" if key in (None, "X") else f"obsm/{key}"
    if path not in group:
        raise ValueError(f"{name} has no {path}; its obsm has {_listed(group.get('obsm', {}))}")
    node, label = group[path], f"{name}/{path}"
    if hasattr(node, "shape"):
        return open_stored(node, label)
    kind = node.attrs.get("encoding-type")
    if kind != "csr_matrix":
        raise ValueError(f"{label} is stored as {kind}; rows are read from arrays and csr_matrix: convert it first")
    anndata_io = import_optional("anndata.io", "anndata", "reading AnnData")
    return DirectRows(anndata_io.sparse_dataset(node), label)


def _listed(entries: Any) -> str:
    return ", ".join(sorted(entries)) or "no entries"
