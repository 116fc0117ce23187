"""Read Zarr stores: an array, a group of arrays with one table, or AnnData."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..._optional import import_optional
from ..._types import Array
from ...arrays.blocks import row_blocks
from ..dataset import Dataset
from .annotated import from_anndata
from .decode_errors import decoding
from .finite import check_block_finite, check_shape_and_type
from .numpy_files import find_table
from .selection import Selection

METADATA = (".zarray", ".zgroup", ".zmetadata", "zarr.json")


def is_zarr(path: Path) -> bool:
    """Return whether a folder is a Zarr store."""
    return any((path / name).is_file() for name in METADATA)


def read_zarr(path: Path, selection: Selection) -> Dataset:
    """Return the data set of a Zarr store: X is its array, the table of a group (see `find_table`), or X of AnnData."""
    zarr = import_optional("zarr", "anndata", "reading Zarr")
    source = str(path)
    check_no_pickles(path)
    with decoding(source, "Zarr"):
        node = zarr.open(source, mode="r")
        attributes = dict(node.attrs)
    if isinstance(node, zarr.Group):
        if attributes.get("encoding-type") == "anndata":
            anndata = import_optional("anndata", "anndata", "reading AnnData")
            with decoding(source, "AnnData"):
                annotated = anndata.read_zarr(source)
            return from_anndata(annotated, source, selection)
        with decoding(source, "Zarr"):
            arrays = dict(node.arrays())
        node = arrays[find_table(arrays, source)]
    selection.require_none(source, "a Zarr array")
    return selection.dataset(source, _read_blocks(node, source), (), {})


def _read_blocks(array: Any, source: str) -> Array:
    """Return an array (n, D), read and checked in blocks of rows."""
    check_shape_and_type(array, source)
    with decoding(source, "Zarr"):
        X = np.empty(array.shape, array.dtype)
    for rows in row_blocks(len(X), X.dtype.itemsize * X.shape[1]):
        with decoding(source, "Zarr"):
            X[rows] = array[rows]
        check_block_finite(X[rows], rows.start, source, is_part=rows.stop < len(X))
    return X


def check_no_pickles(path: Path) -> None:
    """Raise if an array of the store would be decoded by unpickling, which can run arbitrary code.

    Raise also if a folder in the store is a symbolic link, because its target is not checked.
    """
    for folder, folders, names in os.walk(path):
        if linked := next((name for name in folders if Path(folder, name).is_symlink()), None):
            raise ValueError(
                f"{Path(folder, linked)} is a symbolic link and is not followed; replace it with a copy of its target"
            )
        for file in (Path(folder, name) for name in names if name in METADATA):
            with decoding(str(file), "JSON"):
                content = json.loads(file.read_bytes())
            if _names_pickle(content):
                raise ValueError(
                    f"{file} uses a pickle codec, which can run arbitrary code; write the array with another codec"
                )


def _names_pickle(content: Any) -> bool:
    if isinstance(content, dict):
        named = any("pickle" in str(content.get(key, "")).lower() for key in ("id", "name"))
        return named or any(map(_names_pickle, content.values()))
    return isinstance(content, list) and any(map(_names_pickle, content))
