"""Sparse matrices as the core wants them: scipy CSR with int32 columns, of any size, made without copies."""

from __future__ import annotations

import atexit
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .. import _core
from .._types import Array, Matrix
from .namespace import is_tensor


def make_csr(values: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Matrix:
    """Return the CSR matrix that holds these very arrays; columns are int32 always.

    Row pointers are int32 below 2³¹ entries, as everything in scipy expects, and int64 from there on. scipy's own
    constructor would then widen the columns too, to twice their memory; products, sums and slices take the mixture as
    it is, conversions such as `tocoo` do not.
    """
    M = sparse.csr_matrix(shape, dtype=values.dtype)
    M.data, M.indices = values, indices.astype(np.int32, copy=False)
    M.indptr = indptr.astype(np.int32 if len(values) < 2**31 else np.int64, copy=False)
    return M


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
atexit.register(_of_matrix.clear)  # nanobind reports its objects that still exist at the end


def compiled_pattern(A: Matrix) -> _core.Csr:
    """Return the pattern of CSR A for the compiled core, which checks row pointers and column indices.

    The check runs once for all matrices that share their index arrays, as long as one of them exists; it does not
    notice if the elements of these arrays change later. Raises ValueError with the row and the column.
    """
    key = id(A)
    known = _of_matrix.get(key)
    if known is not None and known[0]() is A and known[1].fits(A):
        return known[1].csr
    checked = _of_indices.get(id(A.indices))
    if checked is None or not checked.fits(A):
        csr = _core.Csr(np.ascontiguousarray(A.indptr, dtype=np.int64), _narrow_indices(A), A.shape[1])
        if csr.shape != A.shape:
            raise ValueError(f"a matrix of shape {A.shape} has row pointers for {csr.shape[0]} rows")
        checked = _of_indices[id(A.indices)] = _Checked(csr, A.indptr, A.indices)
    _of_matrix[key] = weakref.ref(A, lambda _: _of_matrix.pop(key, None)), checked
    return checked.csr


def check_indices(A: Matrix) -> None:
    """Raise ValueError, with the row and the column, if CSR A has an index that is out of range."""
    if sparse.issparse(A):
        compiled_pattern(A)


def _narrow_indices(A: Matrix) -> Array:
    """Return the column indices of the stored entries of CSR A, int32."""
    indices = A.indices[: A.nnz]  # SciPy may have allocated more
    narrow = np.ascontiguousarray(indices, dtype=np.int32)
    if narrow.dtype != indices.dtype and (narrow != indices).any():
        row, column = entry_place(A, int((narrow != indices).argmax()))
        raise ValueError(
            f"row {row} has column index {column}, but the matrix has {A.shape[1]} columns, counted from 0"
        )
    return narrow


def entry_values(A: Matrix) -> Array:
    """Return the values of the stored entries of CSR A; SciPy may have allocated more."""
    return np.ascontiguousarray(A.data[: A.nnz])


def is_sparse(A: Any) -> bool:
    """Return whether A is a sparse matrix, of SciPy's or on a device."""
    return sparse.issparse(A) or is_on_device(A)


def is_on_device(A: Any) -> bool:
    """Return whether A is a sparse matrix on a device (device/rows.py)."""
    return is_tensor(getattr(A, "indptr", None))


def on_host(A: Any) -> Matrix:
    """Return a matrix as one of SciPy's or NumPy's."""
    return A.host() if is_on_device(A) else A


def row_sums(A: Any) -> Any:
    """Return the sum of each row of a matrix in float64, where the matrix is."""
    return A.row_sums() if is_on_device(A) else np.asarray(A.sum(axis=1, dtype=np.float64)).ravel()


def entry_rows(A: Matrix) -> Array:
    """Return the row of each stored entry of CSR A, int32."""
    return np.repeat(np.arange(A.shape[0], dtype=np.int32), np.diff(A.indptr))


def entry_place(A: Matrix, t: int) -> tuple[int, int]:
    """Return row and column of entry t: the t-th stored one of CSR A, the t-th of all of a dense A."""
    if sparse.issparse(A):
        return int(np.searchsorted(A.indptr, t, side="right")) - 1, int(A.indices[t])
    return int(t // A.shape[1]), int(t % A.shape[1])


def symmetrized(A: Matrix, n_threads: int = 1) -> Matrix:
    """Return A + Aᵀ for CSR A (n, n) without duplicates, columns sorted.

    The memory it takes is that of twice the entries of A, and what the result does not need of it is given back.
    """
    if is_on_device(A):
        return A.symmetrized()
    pattern, n, entries = compiled_pattern(A), A.shape[0], A.nnz
    indptr = np.empty(n + 1, np.int64)
    indices, values = np.empty(2 * entries, np.int32), np.empty(2 * entries, A.dtype)
    size = _core.symmetrize(pattern, entry_values(A), indptr, indices, values, n_threads)
    for array in (indices, values):
        array.resize(size, refcheck=False)  # gives back what is left, without a copy
    S = make_csr(values, indices, indptr, A.shape)
    S.has_sorted_indices = True
    S.has_canonical_format = True
    return S
