"""What a table may come as: masked arrays, tensors, stored arrays read in blocks, frames with named columns."""

from __future__ import annotations

import re
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..arrays.namespace import is_cupy, to_numpy

BLOCK = 2**22  # numbers of a stored array that are read at once, 32 MB in float64, unless its own chunks are larger

# Kinds of columns that NumPy would turn into numbers, or into objects, without a word: by the beginnings of the names
# that pandas, polars and Arrow give them.
DATES = r"date|time|period|duration"
CATEGORIES = r"categor|enum|dictionary"


def as_array(X: Any) -> Any:
    """Return X as NumPy and SciPy have it, read into memory once; lists and frames are returned as they are.

    Neither dask, zarr nor torch is imported: an array that is stored elsewhere has `shape` and `chunks`, a tensor can
    be detached from its gradient.
    """
    if isinstance(X, np.ma.MaskedArray):
        return _unmasked(X)
    if isinstance(X, np.ndarray | list | tuple) or sparse.issparse(X):
        return X
    _require_size(X)
    if hasattr(X, "detach") and hasattr(X, "element_size"):
        return _from_tensor(X)
    if is_cupy(X):
        return to_numpy(X)
    if hasattr(X, "dtypes"):
        _require_numbers(X)
        return X
    if hasattr(X, "chunks") and hasattr(X, "__getitem__") and len(X.shape) == 2:
        return _read_sparse(X) if sparse.issparse(getattr(X, "_meta", None)) else _read(X)
    return X


def column_names(X: Any) -> Any:
    """Return the names of the columns, or None: Arrow has the columns themselves under the name that others use."""
    names = getattr(X, "column_names", None)
    return getattr(X, "columns", None) if names is None else names


def _unmasked(X: np.ma.MaskedArray[Any, Any]) -> Array:
    masked = np.argwhere(np.ma.getmaskarray(X))
    if masked.size:
        at = ", ".join(f"{name} {i}" for name, i in zip(("row", "column"), masked[0], strict=False))
        raise ValueError(f"X is masked at {at}, and at {len(masked) - 1} more places; drop these rows or fill them in")
    return X.data


def _require_size(X: Any) -> None:
    """Raise for a table whose number of rows is not known before it is computed."""
    shape = getattr(X, "shape", ())
    lazy = not hasattr(X, "shape") and hasattr(X, "collect")
    if lazy or not all(isinstance(length, Integral) for length in shape):
        raise ValueError(
            f"X ({type(X).__name__}) does not know its number of rows; compute it first: X.collect() in polars,"
            " X.compute_chunk_sizes() or X.to_dask_array(lengths=True) in dask"
        )


def _from_tensor(X: Any) -> Array:
    """Return a tensor without its gradient, from the device it is on."""
    X = X.detach().cpu()
    try:  # NumPy has no bfloat16; of two bytes and fewer, float32 holds every number
        return np.asarray(X.float() if X.element_size() <= 2 else X)
    except (TypeError, RuntimeError) as error:
        raise ValueError(f"X, a tensor of {X.dtype}, cannot be read as an array: {error}") from error


def _require_numbers(X: Any) -> None:
    """Raise for columns of dates and of categories; text is found where it cannot be read as a number."""
    for j, (name, dtype) in enumerate(zip(column_names(X), X.dtypes, strict=True)):
        kind = str(dtype).partition("(")[0]
        place = f"X must hold numbers, but column {j} ({str(name)!r})"
        if re.match(DATES, kind.lower()):
            raise ValueError(f"{place} holds times ({kind}); drop it, or make it a number: days since a day, say")
        if re.match(CATEGORIES, kind.lower()):
            raise ValueError(f"{place} holds categories ({kind}); drop it or encode it")


def _read(X: Any) -> Array:
    """Return a stored array (n, D) as float64, a block of whole chunks at a time, so that no second copy is made."""
    kind = np.dtype(X.dtype).kind
    if kind not in "biuf":
        raise ValueError(f"X must hold numbers, but its entries are {X.dtype}")
    (n, D), (high, wide) = X.shape, X.chunks or (None, None)
    table = np.empty((n, D))
    for rows in _spans(high, n, BLOCK // max(D, 1)):
        for columns in _spans(wide, D, BLOCK // (rows.stop - rows.start)):
            table[rows, columns] = np.asarray(X[rows, columns])
    return table


def _read_sparse(X: Any) -> Matrix:
    """Return a dask array of sparse chunks as one CSR matrix."""
    blocks = [sparse.csr_matrix(X[rows].compute()) for rows in _spans(X.chunks[0], X.shape[0], 1)]
    return sparse.vstack(blocks, format="csr")


def _spans(chunks: Any, length: int, most: int) -> list[slice]:
    """Return slices that cover an axis, each of whole chunks: as many as stay within `most` places, one at least.

    Chunks are as dask has them, a length for each, as zarr and HDF5 have them, one length for all, or None.
    """
    if isinstance(chunks, tuple):
        ends = np.cumsum(chunks).tolist()
    else:
        ends = [*range(step := int(chunks or max(most, 1)), length, step), length]
    edges = [0]
    for end, following in pairwise([*ends, ends[-1]]):
        if end == length or following - edges[-1] > most:
            edges.append(end)
    return [slice(start, end) for start, end in pairwise(edges) if start < end]
