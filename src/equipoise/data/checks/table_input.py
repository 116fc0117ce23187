"""Check tables in any container (arrays, tensors, chunked arrays, data frames), and distance matrices."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from ..._plural import plural
from ..._types import Array, Matrix
from ...arrays.blocks import rows_per_block
from ...arrays.csr import check_indices, entry_rows, make_csr
from ...arrays.namespace import check_finite, column_label, entry_place, is_cupy, require_size, to_numpy
from ...arrays.numbers import as_numbers
from ...neighbors import Graph

# Column types that NumPy converts silently to numbers or objects: prefixes of their names in pandas, polars, Arrow.
DATES = r"date|time|period|duration"
CATEGORIES = r"categor|enum|dictionary"
# In the messages of NumPy about an entry that is not a number.
NOT_A_NUMBER = ("could not convert string", "float() argument", "with a sequence", "too large to convert")


def as_array(X: Any) -> Any:
    """Return X as a NumPy array or SciPy matrix in memory; lists, data frames and unknown types are returned unchanged.

    Raise ValueError if an entry is masked, the number of rows is unknown, a column contains dates or categories, or two
    columns have the same name. An array whose elements are not aligned, such as a view of a byte buffer, is copied,
    because the compiled core needs aligned elements. Arrays of dask, zarr and PyTorch are recognised by their
    attributes, so these packages are not imported.
    """
    if isinstance(X, np.ma.MaskedArray):
        return _aligned(_unmasked(X))
    if isinstance(X, np.ndarray | list | tuple) or sparse.issparse(X):
        return _aligned(X)
    require_size(X)
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
    """Return the column names of X, or None if it has none."""
    names = getattr(X, "column_names", None)
    return getattr(X, "columns", None) if names is None else names  # `columns` of Arrow tables are not names


def _unmasked(X: np.ma.MaskedArray[Any, Any]) -> Array:
    """Return the data of a masked array; raise if an entry is masked."""
    masked = np.argwhere(np.ma.getmaskarray(X))
    if masked.size:
        at = ", ".join(f"{name} {i}" for name, i in zip(("row", "column"), masked[0], strict=False))
        more = f" and in {plural(len(masked) - 1, 'more entry', 'more entries')}" if len(masked) > 1 else ""
        raise ValueError(f"X is masked at {at}{more}; fill in the masked entries, or drop their rows")
    return X.data


def _from_tensor(X: Any) -> Array:
    """Return a tensor as an array on the CPU."""
    X = X.detach().cpu()
    try:  # NumPy has no bfloat16; float32 represents every number of up to two bytes
        return np.asarray(X.float() if X.element_size() <= 2 else X)
    except (TypeError, RuntimeError) as error:
        raise ValueError(
            f"X, a tensor of {X.dtype}, cannot be converted to an array ({error}); pass a dense tensor of numbers"
        ) from error


def _require_numbers(X: Any) -> None:
    """Raise if a column contains dates or categories, or if two columns have the same name.

    A column of text raises later, when it is converted to numbers.
    """
    names = column_names(X)
    if names is None:  # a single column
        return
    first: dict[Any, int] = {}
    for j, (name, dtype) in enumerate(zip(names, X.dtypes, strict=True)):
        if first.setdefault(name, j) != j:
            raise ValueError(f"columns {first[name]} and {j} of X have the same name {str(name)!r}; rename one of them")
        kind = str(dtype).partition("(")[0]
        subject = f"X must contain numbers, but column {j} ({str(name)!r})"
        if re.match(DATES, kind.lower()):
            raise ValueError(
                f"{subject} contains times ({kind}); drop it or convert it to numbers, for example days since a date,"
                ' or use metric="mixed"'
            )
        if re.match(CATEGORIES, kind.lower()):
            raise ValueError(f'{subject} contains categories ({kind}); drop or encode it, or use metric="mixed"')


def _read(X: Any) -> Array:
    """Return a chunked array (n, D) as float64, read in blocks of whole chunks to avoid a second copy of the table."""
    kind = np.dtype(X.dtype).kind
    if kind not in "biuf":
        raise ValueError(f"X must contain numbers, but its dtype is {X.dtype}; convert it with X.astype(float)")
    (n, D), (high, wide) = X.shape, X.chunks or (None, None)
    table = np.empty((n, D))
    for rows in _spans(high, n, rows_per_block(8 * D)):
        for columns in _spans(wide, D, rows_per_block(8 * (rows.stop - rows.start))):
            table[rows, columns] = np.asarray(X[rows, columns])
    return table


def _read_sparse(X: Any) -> Matrix:
    """Return a dask array of sparse chunks as one CSR matrix."""
    blocks = [sparse.csr_matrix(X[rows].compute()) for rows in _spans(X.chunks[0], X.shape[0], 1)]
    return sparse.vstack(blocks, format="csr")


def _spans(chunks: Any, length: int, largest: int) -> list[slice]:
    """Return slices of whole chunks that cover an axis, each of up to `largest` entries but at least one chunk.

    `chunks` is a tuple with the length of each chunk (dask), one length for all chunks (zarr, HDF5), or None if
    the axis is not divided into chunks.
    """
    if isinstance(chunks, tuple):
        ends = np.cumsum(chunks).tolist()
    else:
        ends = [*range(step := int(chunks or max(largest, 1)), length, step), length]
    edges = [0]
    for end, following in pairwise([*ends, ends[-1]]):
        if end == length or following - edges[-1] > largest:
            edges.append(end)
    return [slice(start, end) for start, end in pairwise(edges) if start < end]


def check_table(X: Any, min_rows: int = 2, order: str = "C") -> Array:
    """Return X (n, D) as float64; raise if an entry is not a finite number.

    Parameters
    ----------
    X : array-like, shape (n, D)
    min_rows : int, default=2
        Minimum number of rows.
    order : "C" or "rows", default="C"
        Memory layout of the result: "C" is a C-contiguous array; "rows" also allows gaps between the rows, as in
        `X[:, :5]`.
    """
    columns = column_names(X)
    X = check_rows(X, min_rows, accept_sparse=False, order=order)
    check_finite(X, "X", columns)
    return np.asarray(X)


def check_rows(X: Any, min_rows: int, accept_sparse: Any = "csr", order: str = "C") -> Matrix:
    """Return X (n, D) as float64, dense or CSR; raise if an entry is not numeric. NaN and inf are allowed."""
    X = as_array(X)
    if _is_plain_table(X, min_rows, order):
        return X
    if getattr(getattr(X, "dtype", None), "kind", "f") in "mM":
        raise ValueError(
            f"X must contain numbers, but contains times ({X.dtype}); convert them, for example to days since a date"
        )
    _require_rows(X, min_rows)
    try:
        return as_numbers(X, order="C", accept_sparse=accept_sparse, ensure_min_samples=min_rows)
    except (TypeError, ValueError) as error:
        if any(words in str(error) for words in NOT_A_NUMBER):
            _raise_for_entry(X, error)
        raise


def _require_rows(X: Any, min_rows: int) -> None:
    """Raise if X is one-dimensional, or a table of fewer than `min_rows` rows."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 1:
        raise ValueError(
            f"X must be a 2D array, got 1D array of shape {tuple(shape)}. Reshape your data with X.reshape(-1, 1) if it"
            " is one column, or X.reshape(1, -1) if it is one row."
        )
    if len(shape) == 2 and shape[0] < min_rows:
        raise ValueError(f"X has {plural(shape[0], 'sample (row)', 'samples (rows)')}; pass at least {min_rows}")


def _aligned(X: Any) -> Any:
    """Return X, or an aligned copy if it is an array of elements that are not aligned, such as a view of a byte buffer.

    NumPy does not pass an unaligned array to BLAS, so products with it would differ in the last digits.
    """
    return X.copy() if isinstance(X, np.ndarray) and not X.flags.aligned else X


def _is_plain_table(X: Any, min_rows: int, order: str) -> bool:
    """Return whether X is a float64 array (n, D) with n >= `min_rows`, D >= 1 and the layout `order`.

    `check_table` explains `order`. `check_rows` returns such an array unchanged.
    """
    if not (type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2):
        return False
    has_layout = X.flags.c_contiguous or (order == "rows" and X.strides[1] == X.itemsize and X.strides[0] > 0)
    return has_layout and X.shape[0] >= min_rows and X.shape[1] > 0


def check_sparse_table(X: Any, min_rows: int = 2) -> Matrix:
    """Return sparse X (n, D) as float64 CSR with sorted indices and no duplicates; raise if an entry is not finite."""
    X = as_numbers(X, accept_sparse="csr", ensure_min_samples=min_rows)
    X = sparse.csr_matrix(X)
    check_indices(X)
    if not X.has_canonical_format:
        X = X.copy()  # leave the caller's matrix unchanged
        X.sum_duplicates()
    check_finite(X, "X")
    return X


def check_distances(D: Any, name: str = "the precomputed distance matrix") -> Matrix:
    """Return a distance matrix (n, n) as float64, dense or CSR.

    Distances must be finite and nonnegative. A dense matrix must be symmetric with a zero diagonal. The stored entries
    of a CSR matrix are the distances to neighbours; entries on its diagonal are removed.
    """
    D = as_numbers(D, order="C", accept_sparse="csr", ensure_min_samples=2)
    D = _aligned(D)
    if D.shape[0] != D.shape[1]:
        raise ValueError(f"{name} must be square, got shape {D.shape}")
    check_indices(D)
    if sparse.issparse(D) and not D.has_sorted_indices:
        D = D.sorted_indices()  # leave the caller's matrix unchanged
    if (bad := bad_entry(D)) is not None:
        i, j, value, kind = bad
        raise ValueError(f"{name} must be finite and nonnegative: D[{i}, {j}] = {value:g} is {kind}")
    if sparse.issparse(D):
        return _without_diagonal(D)
    if D.diagonal().any():
        k = int(np.flatnonzero(D.diagonal())[0])
        raise ValueError(f"{name} must have a zero diagonal, but D[{k}, {k}] = {D[k, k]:g}")
    asymmetric = np.argwhere(np.abs(D - D.T) > 1e-8 * D.max())
    if asymmetric.size:
        i, j = asymmetric[0]
        raise ValueError(
            f"{name} is not symmetric: D[{i}, {j}] = {D[i, j]:g} but D[{j}, {i}] = {D[j, i]:g};"
            " symmetrise it, for example with (D + D.T) / 2"
        )
    return D


def _without_diagonal(D: Matrix) -> Matrix:
    """Return CSR D without its diagonal entries; if there are none, the result shares the arrays of D."""
    rows = entry_rows(D)
    off = rows != D.indices
    if off.all():
        return make_csr(D.data, D.indices, D.indptr, D.shape)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[off], minlength=D.shape[0]))])
    return make_csr(D.data[off], D.indices[off], indptr, D.shape)


def bad_entry(A: Matrix) -> tuple[int, int, float, str] | None:
    """Return (row, column, value, description) of the first negative, NaN or infinite entry; None if there is none."""
    values = (A.data if sparse.issparse(A) else A).ravel()
    wrong = np.flatnonzero(~(values >= 0) | np.isinf(values))
    if not wrong.size:
        return None
    value = float(values[wrong[0]])
    kind = "negative" if value < 0 else "not a number" if np.isnan(value) else "infinite"
    return *entry_place(A, wrong[0]), value, kind


def _raise_for_entry(X: Any, error: TypeError | ValueError) -> None:
    """Raise an error that names the first entry of X that is not a number, if X is a table with such an entry."""
    try:
        table = np.asarray(X, dtype=object)
    except ValueError:
        return
    for i, row in enumerate(table if table.ndim == 2 else ()):
        for j, entry in enumerate(row):
            try:
                float(np.nan if entry is None else entry)
            except OverflowError:
                place = f"row {i}, {column_label(j, column_names(X))}"
                raise ValueError(
                    f"X contains an integer beyond the range of float64 at {place}; rescale the column"
                ) from error
            except (TypeError, ValueError):
                kind = "text" if isinstance(entry, str) else f"of type {type(entry).__name__}"
                remedy = (
                    "fill it in" if kind.endswith("NAType") else 'drop or encode that column, or use metric="mixed"'
                )
                offender = f"{entry!r} at row {i}, {column_label(j, column_names(X))}"
                reason = f" ({error})" if isinstance(error, TypeError) else ""
                raise type(error)(f"X must contain numbers, but {offender} is {kind}; {remedy}{reason}") from error


def is_neighbors(X: Any) -> bool:
    """Return whether X is a `Graph` or a pair of tables (indices, distances), rather than a matrix of two rows."""
    return isinstance(X, Graph) or (isinstance(X, tuple | list) and len(X) == 2 and np.ndim(X[0]) == 2)


def check_dimension(data: Any, n_components: int, needed: int) -> None:
    """Raise ValueError if a map with `n_components` needs more dimensions than the data, an `Input`, can fill."""
    if (excess := needed - data.limit) > 0:
        raise ValueError(
            f"n_components={n_components} is too large for {data.limited_by}; use at most {n_components - excess}"
        )
