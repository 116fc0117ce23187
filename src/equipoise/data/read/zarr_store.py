"""Zarr stores in a folder: an array read in blocks, a group with one table, or AnnData."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..._optional import import_optional
from ..._types import Array
from ..dataset import Dataset
from .annotated import from_anndata
from .arrays import the_table
from .broken import decoding
from .values import check_block, check_kind
from .wanted import Wanted

METADATA = (".zarray", ".zgroup", ".zmetadata", "zarr.json")
CELLS = 1 << 22  # cells of a block; chosen: 32 MB as float64


def is_zarr(path: Path) -> bool:
    """Return whether a folder is a Zarr store."""
    return any((path / name).is_file() for name in METADATA)


def read_zarr(path: Path, wanted: Wanted) -> Dataset:
    """Return the array of a store, the only table or X of a group, or X of AnnData."""
    zarr = import_optional("zarr", "anndata", "reading Zarr")
    source = str(path)
    _refuse_pickles(path)
    with decoding(source, "Zarr"):
        node = zarr.open(source, mode="r")
        attributes = dict(node.attrs)
    if isinstance(node, zarr.Group):
        if attributes.get("encoding-type") == "anndata":
            anndata = import_optional("anndata", "anndata", "reading AnnData")
            with decoding(source, "AnnData"):
                annotated = anndata.read_zarr(source)
            return from_anndata(annotated, source, wanted)
        with decoding(source, "Zarr"):
            arrays = dict(node.arrays())
        node = arrays[the_table(arrays, source)]
    wanted.refuse(source, "a Zarr array")
    return wanted.dataset(source, _read_blocks(node, source), (), {})


def _read_blocks(array: Any, source: str) -> Array:
    check_kind(array, source)
    with decoding(source, "Zarr"):
        X = np.empty(array.shape, array.dtype)
    rows = max(CELLS // X.shape[1], 1)
    for start in range(0, len(X), rows):
        with decoding(source, "Zarr"):
            X[start : start + rows] = array[start : start + rows]
        check_block(X[start : start + rows], start, source)
    return X


def _refuse_pickles(path: Path) -> None:
    """Raise if any array of a store is to be decoded by unpickling, which can run any code."""
    for folder, folders, names in os.walk(path):
        if linked := next((name for name in folders if Path(folder, name).is_symlink()), None):
            raise ValueError(f"{Path(folder, linked)} is a link, which is not followed; copy what it leads to")
        for file in (Path(folder, name) for name in names if name in METADATA):
            with decoding(str(file), "JSON"):
                content = json.loads(file.read_bytes())
            if _names_pickle(content):
                raise ValueError(f"{file} asks for pickles, which can run any code; write the array with another codec")


def _names_pickle(content: Any) -> bool:
    if isinstance(content, dict):
        named = any("pickle" in str(content.get(key, "")).lower() for key in ("id", "name"))
        return named or any(map(_names_pickle, content.values()))
    return isinstance(content, list) and any(map(_names_pickle, content))
