"""Patterns of CSR matrices for the compiled core: checked once, shared by matrices with the same index arrays."""

from __future__ import annotations

import atexit
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .. import _core
from .._types import Array, Matrix


@dataclass(eq=False)
class _Checked:
    """A pattern that the core has checked, and the index arrays it was made from."""

    csr: _core.Csr
    indptr: Array
    indices: Array

    def fits(self, A: Matrix) -> bool:
        return self.indptr is A.indptr and self.indices is A.indices and self.csr.shape == A.shape


# A matrix keeps its pattern alive; matrices with the same index arrays share one. Keys are ids, of matrices and of
# `indices`, since SciPy's matrices have no hash.
_of_matrix: dict[int, tuple[weakref.ref[Any], _Checked]] = {}
_of_indices: weakref.WeakValueDictionary[int, _Checked] = weakref.WeakValueDictionary()
atexit.register(_of_matrix.clear)  # nanobind reports objects that still exist at exit


def compiled_pattern(A: Matrix) -> _core.Csr:
    """Return the pattern of CSR A for the compiled core, which checks row pointers and column indices.

    The check runs once for all matrices that share their index arrays, as long as one of them exists. It does not
    notice if the elements of these arrays change later. Raises ValueError with the row and the column.
    """
    key = id(A)
    known = _of_matrix.get(key)
    if known is not None and known[0]() is A and known[1].fits(A):
        return known[1].csr
    checked = _of_indices.get(id(A.indices))
    if checked is None or not checked.fits(A):
        csr = _core.Csr(np.ascontiguousarray(A.indptr, dtype=np.int64), _column_indices(A), A.shape[1])
        if csr.shape != A.shape:
            raise ValueError(f"a matrix of shape {A.shape} has row pointers for {csr.shape[0]} rows")
        checked = _of_indices[id(A.indices)] = _Checked(csr, A.indptr, A.indices)
    _of_matrix[key] = weakref.ref(A, lambda _: _of_matrix.pop(key, None)), checked
    return checked.csr


def check_indices(A: Matrix) -> None:
    """Raise ValueError, with the row and the column, if CSR A has an index that is out of range."""
    if sparse.issparse(A):
        compiled_pattern(A)


def entry_values(A: Matrix) -> Array:
    """Return the values of the stored entries of CSR A; SciPy's array may be longer."""
    return np.ascontiguousarray(A.data[: A.nnz])


def _column_indices(A: Matrix) -> Array:
    """Return the column indices of the stored entries of CSR A, int32."""
    indices = A.indices[: A.nnz]  # SciPy's array may be longer
    narrow = np.ascontiguousarray(indices, dtype=np.int32)
    if narrow.dtype != indices.dtype and (narrow != indices).any():
        t = int((narrow != indices).argmax())
        row = int(np.searchsorted(A.indptr, t, side="right")) - 1
        raise ValueError(
            f"row {row} has column index {indices[t]}, but the matrix has {A.shape[1]} columns, counted from 0"
        )
    return narrow
