"""Checks the index arrays of a user's sparse matrix, before compiled code of this package or of SciPy uses them.

SciPy's constructors check most of this, but a user can replace or change the arrays of a matrix later. With wrong
indices, compiled code would read and write outside the arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._plural import plural
from .._types import Array, Matrix


def check_structure(A: Any, name: str = "X") -> Matrix:
    """Return the sparse matrix A if SciPy can safely convert it; raise ValueError if its arrays are inconsistent.

    If SciPy's flag `has_canonical_format` of A claims that its indices are sorted and have no duplicates, but this is
    false, a new matrix without that flag is returned; otherwise A itself. `name` is the name of A in the message.
    """
    if len(A.shape) != 2:
        raise ValueError(f"{name} must have two dimensions (n, D), got a sparse array of shape {A.shape}")
    if A.format in ("csr", "csc", "bsr"):
        _check_compressed(A, name)
        return _without_false_claims(A)
    check = {"coo": _check_coordinates, "lil": _check_lists, "dok": _check_keys, "dia": _check_diagonals}.get(A.format)
    if check is not None:
        check(A, name)
    return A


def _check_compressed(A: Any, name: str) -> None:
    """Check the arrays of a CSR, CSC or BSR matrix."""
    _check_types({"data": A.data, "indices": A.indices, "indptr": A.indptr}, name)
    rows, columns = A.shape if A.format != "csc" else A.shape[::-1]
    what, other = ("column", "row") if A.format == "csc" else ("row", "column")
    if A.format == "bsr":
        if A.data.ndim != 3 or 0 in A.data.shape[1:] or rows % A.data.shape[1] or columns % A.data.shape[2]:
            raise ValueError(
                f"{name} is a BSR matrix of shape {A.shape} with data of shape {A.data.shape}; data must have the shape"
                " (blocks, rows per block, columns per block), and the matrix must consist of whole blocks"
            )
        rows, columns = rows // A.data.shape[1], columns // A.data.shape[2]
        what, other = "block row", "block column"
    indptr = A.indptr
    if indptr.shape != (rows + 1,):
        raise ValueError(
            f"{name} has {plural(rows, what)}, so its indptr must have the shape ({rows + 1},), got {indptr.shape}"
        )
    if indptr[0] != 0:
        raise ValueError(f"indptr of {name} must start at 0, got indptr[0] = {indptr[0]}")
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falls.size:
        i = int(falls[0])
        raise ValueError(f"indptr of {name} must not decrease, but {what} {i} goes from {indptr[i]} to {indptr[i + 1]}")
    size, stored = int(indptr[-1]), min(len(A.indices), len(A.data))
    if size > stored or len(A.indices) != len(A.data):
        raise ValueError(
            f"{name} has {plural(len(A.data), 'value')} and {plural(len(A.indices), 'index', 'indices')}, but its"
            f" indptr counts {plural(size, 'entry', 'entries')}; rebuild the matrix from consistent arrays"
        )
    if (t := _first_outside(A.indices[:size], columns)) is not None:
        i = int(np.searchsorted(indptr, t, side="right")) - 1
        raise _out_of_range(name, f"{what} {i}", other, A.indices[t], columns)


def _check_coordinates(A: Any, name: str) -> None:
    """Check the arrays of a COO matrix."""
    row, column = A.row, A.col
    _check_types({"data": A.data, "row": row, "col": column}, name)
    if not len(row) == len(column) == len(A.data):
        raise ValueError(
            f"data, row and col of the sparse matrix {name} must have the same length, got {len(A.data)}, {len(row)}"
            f" and {len(column)}"
        )
    for indices, length, what in ((row, A.shape[0], "row"), (column, A.shape[1], "column")):
        if (t := _first_outside(indices, length)) is not None:
            raise _out_of_range(name, f"entry {t}", what, indices[t], length)


def _check_lists(A: Any, name: str) -> None:
    """Check a LIL matrix, which has a list of columns and a list of values for each row."""
    if not len(A.rows) == len(A.data) == A.shape[0]:
        raise ValueError(
            f"{name} has {plural(A.shape[0], 'row')}, but {plural(len(A.rows), 'list')} of indices and"
            f" {plural(len(A.data), 'list')} of values; rebuild the matrix"
        )
    for i, (columns, values) in enumerate(zip(A.rows, A.data, strict=True)):
        if len(columns) != len(values):
            raise ValueError(
                f"row {i} of {name} has {plural(len(columns), 'index', 'indices')}, but {plural(len(values), 'value')};"
                " rebuild the matrix"
            )
        if (t := _first_outside(np.asarray(columns, dtype=np.int64), A.shape[1])) is not None:
            raise _out_of_range(name, f"row {i}", "column", columns[t], A.shape[1])


def _check_keys(A: Any, name: str) -> None:
    """Check a DOK matrix, a dictionary from (row, column) to values."""
    keys = np.array(list(A.keys()), dtype=np.int64).reshape(-1, 2)
    for axis, what in enumerate(("row", "column")):
        if (t := _first_outside(keys[:, axis], A.shape[axis])) is not None:
            raise _out_of_range(name, f"entry {t}", what, keys[t, axis], A.shape[axis])


def _check_diagonals(A: Any, name: str) -> None:
    """Check a DIA matrix, which has a row of values for each diagonal."""
    _check_types({"data": A.data, "offsets": A.offsets}, name)
    if A.data.ndim != 2 or A.offsets.shape != A.data.shape[:1] or len(np.unique(A.offsets)) != len(A.offsets):
        raise ValueError(
            f"{name} is a DIA matrix with data of shape {A.data.shape} and offsets {A.offsets.tolist()}; it needs one"
            " row of data for each offset, and no offset twice"
        )


def _check_types(arrays: dict[str, Any], name: str) -> None:
    """Raise ValueError unless `data` contains numbers, and the other arrays are one-dimensional with integers."""
    for part, array in arrays.items():
        kinds, wanted = ("biufc", "numbers") if part == "data" else ("iu", "integers")
        if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
            found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise ValueError(f"{part} of the sparse matrix {name} must be an array of {wanted}, got {found}")
        if array.ndim != 1 and part != "data":
            raise ValueError(f"{part} of the sparse matrix {name} must have one dimension, got shape {array.shape}")


def _first_outside(indices: Array, length: int) -> int | None:
    """Return the position of the first index that is not in [0, length), or None."""
    if not indices.size or (indices.min() >= 0 and indices.max() < length):
        return None
    return int(((indices < 0) | (indices >= length)).argmax())


def _out_of_range(name: str, where: str, what: str, index: Any, length: int) -> ValueError:
    valid = f"{what} indices run from 0 to {length - 1}" if length else f"there are no {what}s"
    return ValueError(f"{where} of {name} has the {what} index {index}, but {valid}; correct the index or the shape")


def _without_false_claims(A: Any) -> Any:
    """Return A, or a new matrix with the same arrays if A falsely claims sorted indices without duplicates."""
    if A.format == "bsr" or not A.has_canonical_format:
        return A
    size = int(A.indptr[-1])
    rises = A.indices[1:size] > A.indices[: max(size - 1, 0)]
    starts = A.indptr[1:-1]
    rises[starts[(starts > 0) & (starts < size)] - 1] = True  # a row may begin with a smaller index
    return A if rises.all() else type(A)((A.data, A.indices, A.indptr), shape=A.shape)
