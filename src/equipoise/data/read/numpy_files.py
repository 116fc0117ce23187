"""Read NumPy files: one array (NPY) or several named arrays (NPZ). Objects in them are never unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from ..._names import list_names
from ..._types import Array
from ..dataset import Dataset
from .decode_errors import decoding
from .finite import check_numbers
from .selection import Selection, UnknownColumn


def read_npy(path: Path, selection: Selection) -> Dataset:
    """Return the data set of an NPY file; X keeps the dtype of the file."""
    selection.require_none(str(path), "an NPY file")
    with decoding(str(path), "NPY"):
        try:
            np.lib.format.open_memmap(path, mode="r")  # raises if the file is shorter than its header declares
            with open(path, "rb") as file:  # not from the memory map, which crashes if the file is truncated meanwhile
                X = np.lib.format.read_array(file, allow_pickle=False)
        except ValueError as error:
            if "Python objects" not in str(error):
                raise
            raise ValueError("it contains Python objects; save a numeric table, for example X.astype(float)") from None
    return selection.dataset(str(path), check_numbers(X, str(path)), (), {})


def read_npz(path: Path, selection: Selection) -> Dataset:
    """Return the data set of an NPZ file: X (n, D) is found by `find_table`; arrays (n,) are the other columns."""
    with decoding(str(path), "NPZ"), ZipFile(path) as archive:
        arrays = {name.removesuffix(".npy"): _member(archive, name) for name in archive.namelist()}
    name = find_table(arrays, str(path))
    X = check_numbers(arrays[name], str(path))
    others = {name: array for name, array in arrays.items() if array.shape == X.shape[:1]}
    if selection.columns is not None:
        message = f"{path}: the table in an NPZ file has no column names; omit `columns` to embed the whole table"
        raise UnknownColumn(message, ())
    selection.check(list(others), str(path))
    return selection.dataset(str(path), X, (), others)


def _member(archive: ZipFile, name: str) -> Array:
    with archive.open(name) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def find_table(arrays: Mapping[str, Any], source: str) -> str:
    """Return "X" if a numeric table has this name, else the name of the only numeric table.

    Raise if there is none, or if there are several and none is named "X".
    """
    tables = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "biuf"]
    if len(tables) == 1 or "X" in tables:
        return "X" if "X" in tables else tables[0]
    raise ValueError(
        f"{source}: store one numeric table (n, D), or name one of the tables X; found "
        + (list_names(f"{name} {array.shape}" for name, array in arrays.items()) or "no arrays")
    )
