"""Convert containers of tables: masked arrays, tensors, chunked arrays (dask, zarr, HDF5) and data frames."""

from __future__ import annotations

import re
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..arrays.namespace import is_cupy, to_numpy

BLOCK = 2**22  # numbers of a chunked array read at a time, 32 MB in float64, unless its chunks are larger; chosen

# Column types that NumPy converts silently to numbers or objects: prefixes of their names in pandas, polars, Arrow.
DATES = r"date|time|period|duration"
CATEGORIES = r"categor|enum|dictionary"


def as_array(X: Any) -> Any:
    """Return X as a NumPy array or SciPy matrix in memory; lists and data frames are returned unchanged.

    dask, zarr and torch are recognised by their attributes and not imported.
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
    """Return the column names, or None. In Arrow tables `columns` are the columns themselves."""
    names = getattr(X, "column_names", None)
    return getattr(X, "columns", None) if names is None else names


def _unmasked(X: np.ma.MaskedArray[Any, Any]) -> Array:
    """Return the data of a masked array; raise if an entry is masked."""
    masked = np.argwhere(np.ma.getmaskarray(X))
    if masked.size:
        at = ", ".join(f"{name} {i}" for name, i in zip(("row", "column"), masked[0], strict=False))
        more = f" and {len(masked) - 1} more places" if len(masked) > 1 else ""
        raise ValueError(f"X is masked at {at}{more}; drop these rows or fill them in")
    return X.data


def _require_size(X: Any) -> None:
    """Raise for a lazy table with an unknown number of rows."""
    shape = getattr(X, "shape", ())
    lazy = not hasattr(X, "shape") and hasattr(X, "collect")
    if lazy or not all(isinstance(length, Integral) for length in shape):
        raise ValueError(
            f"X ({type(X).__name__}) has an unknown number of rows; compute it first, with X.collect() in polars,"
            " X.compute_chunk_sizes() or X.to_dask_array(lengths=True) in dask"
        )


def _from_tensor(X: Any) -> Array:
    """Return a tensor as an array on the CPU."""
    X = X.detach().cpu()
    try:  # NumPy has no bfloat16; float32 represents every number of up to two bytes
        return np.asarray(X.float() if X.element_size() <= 2 else X)
    except (TypeError, RuntimeError) as error:
        raise ValueError(f"X, a tensor of {X.dtype}, cannot be converted to an array: {error}") from error


def _require_numbers(X: Any) -> None:
    """Raise for columns of dates or categories; text fails later, when it is converted."""
    for j, (name, dtype) in enumerate(zip(column_names(X), X.dtypes, strict=True)):
        kind = str(dtype).partition("(")[0]
        place = f"X must contain numbers, but column {j} ({str(name)!r})"
        if re.match(DATES, kind.lower()):
            raise ValueError(
                f"{place} contains times ({kind}); drop it or convert it to numbers, for example days since a date"
            )
        if re.match(CATEGORIES, kind.lower()):
            raise ValueError(f"{place} contains categories ({kind}); drop or encode it")


def _read(X: Any) -> Array:
    """Return a chunked array (n, D) as float64, read in blocks of whole chunks to avoid a second copy."""
    kind = np.dtype(X.dtype).kind
    if kind not in "biuf":
        raise ValueError(f"X must contain numbers, but its dtype is {X.dtype}")
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
    """Return slices of whole chunks that cover an axis, each of up to `most` entries but at least one chunk.

    `chunks` is a tuple with the length of each (dask), one length for all (zarr, HDF5), or None.
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
