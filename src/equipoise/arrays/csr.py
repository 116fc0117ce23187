"""SciPy CSR matrices with int32 columns, as the core takes them, and functions shared with matrices on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .. import _core
from .._types import Array, Matrix
from .namespace import array_namespace, is_numpy, to_float64
from .pattern import compiled_pattern, entry_values


def make_csr(values: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Matrix:
    """Return a CSR matrix on these arrays, without copies; columns are always int32.

    Row pointers are int32 below 2³¹ entries, as SciPy expects, and int64 from there on. SciPy's constructor would then
    widen the columns too, to twice their memory. Products, sums and slices accept the mixture; conversions such as
    `tocoo` do not.
    """
    M = sparse.csr_matrix(shape, dtype=values.dtype)
    M.data, M.indices = values, indices.astype(np.int32, copy=False)
    M.indptr = indptr.astype(np.int32 if len(values) < 2**31 else np.int64, copy=False)
    return M


def is_sparse(A: Any) -> bool:
    """Return whether A is a sparse matrix: SciPy's, or CSR on a device."""
    return sparse.issparse(A) or is_on_device(A)


def is_on_device(A: Any) -> bool:
    """Return whether A is a CSR matrix on a device (device_csr.py)."""
    return getattr(A, "is_device_csr", False)


def on_host(A: Any) -> Matrix:
    """Return a matrix as a NumPy array or a SciPy matrix in host memory."""
    return A.host() if is_on_device(A) else A


def row_sums(A: Any) -> Any:
    """Return the sum of each row of a matrix in float64, on its device."""
    if is_on_device(A):
        return A.row_sums()
    xp = array_namespace(A)
    return np.asarray(A.sum(axis=1, dtype=np.float64)).ravel() if is_numpy(A) else xp.sum(A, axis=1, dtype=xp.float64)


def sum_positive(A: Any, f: Callable[[Any], Any]) -> float:
    """Return Σ f(a) over the entries a > 0 of a matrix in float64, one block of rows at a time on the CPU."""
    values = A.data if is_sparse(A) else A
    xp, total = array_namespace(values), 0.0
    step = max(1, 2**20 // max(1, values[:1].size)) if is_numpy(values) else max(1, len(values))
    for start in range(0, len(values), step):
        block = values[start : start + step]
        total += float(xp.sum(f(to_float64(block[block > 0]))))
    return total


def entry_rows(A: Matrix) -> Array:
    """Return the row of each stored entry of CSR A, int32."""
    return np.repeat(np.arange(A.shape[0], dtype=np.int32), np.diff(A.indptr))


def entry_place(A: Matrix, t: int) -> tuple[int, int]:
    """Return the row and the column of the t-th stored entry of CSR A, or of the t-th entry of a dense A."""
    if sparse.issparse(A):
        return int(np.searchsorted(A.indptr, t, side="right")) - 1, int(A.indices[t])
    return int(t // A.shape[1]), int(t % A.shape[1])


def symmetrized(A: Matrix, n_threads: int = 1) -> Matrix:
    """Return A + Aᵀ for CSR A (n, n) without duplicates, columns sorted.

    It takes the memory of twice the entries of A, and frees what the result does not use.
    """
    if is_on_device(A):
        return A.symmetrized()
    pattern, n, entries = compiled_pattern(A), A.shape[0], A.nnz
    indptr = np.empty(n + 1, np.int64)
    indices, values = np.empty(2 * entries, np.int32), np.empty(2 * entries, A.dtype)
    size = _core.symmetrize(pattern, entry_values(A), indptr, indices, values, n_threads)
    for array in (indices, values):
        array.resize(size, refcheck=False)  # frees the rest without a copy
    S = make_csr(values, indices, indptr, A.shape)
    S.has_sorted_indices = True
    S.has_canonical_format = True
    return S
