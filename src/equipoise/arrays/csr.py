"""Sparse matrices as the core wants them: scipy CSR with int32 columns, of any size, made without copies."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .. import _core
from .._types import Array, Matrix


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


def is_sparse(A: Any) -> bool:
    """Return whether A is a sparse matrix, of SciPy's or on a device."""
    return sparse.issparse(A) or is_on_device(A)


def is_on_device(A: Any) -> bool:
    """Return whether A is a sparse matrix on a device (device/rows.py)."""
    return getattr(A, "is_device_csr", False)


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
    n, entries = A.shape[0], A.nnz
    indptr = np.empty(n + 1, np.int64)
    indices, values = np.empty(2 * entries, np.int32), np.empty(2 * entries, A.dtype)
    indptr_A, indices_A = A.indptr.astype(np.int64, copy=False), A.indices.astype(np.int32, copy=False)
    size = _core.symmetrize(indptr_A, indices_A, A.data, indptr, indices, values, n_threads)
    for array in (indices, values):
        array.resize(size, refcheck=False)  # gives back what is left, without a copy
    S = make_csr(values, indices, indptr, A.shape)
    S.has_sorted_indices = True
    S.has_canonical_format = True
    return S
