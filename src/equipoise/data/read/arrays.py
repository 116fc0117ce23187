"""NumPy's own files: one array (NPY) or several under names (NPZ). Objects in them are never unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from ..._types import Array
from ..dataset import Dataset
from .broken import decoding
from .values import check_table_of_numbers
from .wanted import Wanted, listed


def read_npy(path: Path, wanted: Wanted) -> Dataset:
    """Return the table of an NPY file in its own number type."""
    wanted.refuse(str(path), "an NPY file")
    with decoding(str(path), "NPY"):
        try:
            X = np.array(np.lib.format.open_memmap(path, mode="r"))  # less than the header says is refused
        except ValueError as error:
            if "Python objects" not in str(error):
                raise
            raise ValueError("it holds Python objects; a table of numbers is needed, as X.astype(float)") from None
    return wanted.dataset(str(path), check_table_of_numbers(X, str(path)), (), {})


def read_npz(path: Path, wanted: Wanted) -> Dataset:
    """Return the only table of an NPZ file, or the one called X; arrays of one value per row are columns beside it."""
    with decoding(str(path), "NPZ"), ZipFile(path) as archive:
        arrays = {name.removesuffix(".npy"): _member(archive, name) for name in archive.namelist()}
    name = the_table(arrays, str(path))
    X = check_table_of_numbers(arrays[name], str(path))
    others = {name: array for name, array in arrays.items() if array.shape == X.shape[:1]}
    if wanted.columns is not None:
        raise ValueError(f"{path}: the columns of an NPZ file have no names, so none can be chosen")
    wanted.check(list(others), str(path))
    return wanted.dataset(str(path), X, (), others)


def _member(archive: ZipFile, name: str) -> Array:
    with archive.open(name) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def the_table(arrays: Mapping[str, Any], source: str) -> str:
    """Return the name of the only table of numbers among arrays, or X, or say what there is."""
    tables = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "biuf"]
    if len(tables) == 1 or "X" in tables:
        return "X" if "X" in tables else tables[0]
    raise ValueError(
        f"{source}: one table (n, D) of numbers is needed, or one called X; there are "
        + (listed(f"{name} {array.shape}" for name, array in arrays.items()) or "no arrays")
    )
