"""Rows of Zarr arrays, of AnnData in H5AD files and Zarr stores, and of Dask arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._optional import import_optional
from .._types import Array
from .row_source import RowSource, as_floats, float_type


class StoredRows:
    """The rows of an array that is read by slices: `values[start:stop]` returns them, dense or sparse."""

    def __init__(self, values: Any, name: str):
        if len(values.shape) != 2:
            raise ValueError(f"{name} has {len(values.shape)} axes; a table has two")
        self.name, self.shape, self._values = name, (int(values.shape[0]), int(values.shape[1])), values
        self.dtype = float_type(values.dtype)

    def read(self, start: int, stop: int) -> Array:
        block = self._values[start:stop]
        return as_floats(block.toarray() if sparse.issparse(block) else block)


class DaskRows(StoredRows):
    """The rows of a Dask array; each block computes the chunks that it touches."""

    def __init__(self, values: Any):
        if any(np.isnan(size) for size in values.shape):
            raise ValueError("the Dask array has chunks of unknown size; call compute_chunk_sizes() first")
        super().__init__(values, "the Dask array")

    def read(self, start: int, stop: int) -> Array:
        block = self._values[start:stop].compute(scheduler="synchronous")
        return as_floats(block.toarray() if sparse.issparse(block) else block)


def open_zarr(source: Any, key: str | None) -> RowSource:
    """Return the rows of a Zarr array, of an array in a Zarr group, or of AnnData in a Zarr store."""
    zarr = import_optional("zarr", "anndata", "reading Zarr")
    name = str(source) if isinstance(source, str | Path) else "the Zarr array"
    node = zarr.open(str(source), mode="r") if isinstance(source, str | Path) else source
    if hasattr(node, "shape"):
        if key is not None:
            raise ValueError(f"{name} is one array, so that key={key!r} names nothing; use key=None")
        return StoredRows(node, name)
    if node.attrs.get("encoding-type") == "anndata":
        return _annotated_group(node, key, name)
    if key is None:
        arrays = sorted(name for name, item in node.members() if hasattr(item, "shape"))
        if len(arrays) != 1:
            raise ValueError(f"{name} contains the arrays {', '.join(map(repr, arrays)) or 'none'}; choose one by key=")
        key = arrays[0]
    if key not in node:
        raise ValueError(f"{name} has no array {key!r}")
    return StoredRows(node[key], f"{name}/{key}")


def open_annotated(source: Any, key: str | None) -> RowSource:
    """Return the rows of X or of an entry of obsm, of an AnnData object or an H5AD file, which stays on disk."""
    if isinstance(source, Path):
        import_optional("anndata", "anndata", "reading H5AD")
        h5py = import_optional("h5py", "anndata", "reading H5AD")
        return _annotated_group(h5py.File(source, "r"), key, str(source))
    values = source.X if key in (None, "X") else source.obsm.get(key)
    if values is None:
        raise ValueError(f"the AnnData object has no {'X' if key is None else f'obsm[{key!r}]'}")
    return StoredRows(values, "AnnData" + (".X" if key in (None, "X") else f".obsm[{key!r}]"))


def _annotated_group(group: Any, key: str | None, name: str) -> RowSource:
    path = "X" if key in (None, "X") else f"obsm/{key}"
    if path not in group:
        raise ValueError(
            f"{name} has no {path}; its obsm has {', '.join(sorted(group.get('obsm', {}))) or 'no entries'}"
        )
    node = group[path]
    if hasattr(node, "shape"):
        return StoredRows(node, f"{name}/{path}")
    anndata_io = import_optional("anndata.io", "anndata", "reading AnnData")
    return StoredRows(anndata_io.sparse_dataset(node), f"{name}/{path}")
