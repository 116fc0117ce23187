"""NumPy's own files: one array (NPY) or several under names (NPZ). Objects in them are never unpickled."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..._types import Array
from ..check import check_finite
from ..dataset import Dataset
from .broken import decoding
from .wanted import Wanted, listed

ROWS = 65536  # rows looked at once for NaN


def read_npy(path: Path, wanted: Wanted) -> Dataset:
    """Return the table of an NPY file in its own number type."""
    wanted.refuse(str(path), "an NPY file")
    with decoding(str(path), "NPY"):
        X = np.array(np.load(path, mmap_mode="r", allow_pickle=False))  # a map of less than the header says is refused
    return wanted.dataset(str(path), check_numbers(X, str(path)), (), {})


def read_npz(path: Path, wanted: Wanted) -> Dataset:
    """Return the only table of an NPZ file, or the one called X; arrays of one value per row are columns beside it."""
    with decoding(str(path), "NPZ"), np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    tables = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "biuf"]
    if len(tables) != 1 and "X" not in tables:
        raise ValueError(
            f"{path}: one table (n, D) of numbers is needed, or one called X; there are "
            + listed(f"{name} {array.shape}" for name, array in arrays.items())
        )
    X = check_numbers(arrays.pop("X" if "X" in tables else tables[0]), str(path))
    others = {name: array for name, array in arrays.items() if array.shape == X.shape[:1]}
    if wanted.columns is not None:
        raise ValueError(f"{path}: the columns of an NPZ file have no names, so none can be chosen")
    wanted.check(list(others), str(path))
    return wanted.dataset(str(path), X, (), others)


def check_numbers(X: Array, source: str) -> Array:
    """Return X if it is a table of finite numbers with a row at least, or say what it is."""
    if X.ndim != 2 or X.size == 0:
        raise ValueError(f"{source} holds an array of shape {X.shape}; a table (rows, columns) is needed")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{source} holds values of type {X.dtype}; numbers are needed")
    for start in range(0, len(X), ROWS):
        try:
            check_finite(X[start : start + ROWS], "X")
        except ValueError:
            i, j = np.argwhere(~np.isfinite(X[start : start + ROWS]))[0]
            raise ValueError(
                f"{source}, row {start + i}, column {j}: {X[start + i, j]} is not a finite number;"
                " fill it in or drop that row"
            ) from None
    return X
