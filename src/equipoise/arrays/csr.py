"""Create, check and transform sparse matrices in CSR format, in host memory or on a device.

The pattern of a matrix, its row pointers and column indices, is checked once before the compiled core reads it.
Operations on large matrices run on the number of threads set by `on_threads`: their callers, such as the losses, do not
know this number.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any

import numpy as np
from scipy import sparse

from .. import _core
from .._types import Array, Matrix
from .blocks import FIXED_SEARCH_TILE, FIXED_SUM
from .namespace import array_like, array_namespace, is_numpy, to_float64, to_numpy

LARGE = 2**20  # entries from which an array is read on several threads; chosen
PARTS = 64  # parts in which these read it; chosen
UNUSED = 1 / 16  # largest fraction of an array that stays allocated without being used; chosen


def make_csr(values: Array, indices: Array, indptr: Array, shape: tuple[int, int]) -> Matrix:
    """Return a CSR matrix that shares the given arrays where their types allow; column indices are always int32.

    Row pointers are int32 below 2³¹ entries, as SciPy expects, and int64 above. SciPy's constructor would then convert
    the column indices to int64 too, which doubles their memory, so the arrays are assigned without it. SciPy's
    products, sums and slices accept these mixed index types; conversions such as `tocoo` do not.
    """
    M = sparse.csr_matrix(shape, dtype=values.dtype)
    M.data, M.indices = values, indices.astype(np.int32, copy=False)
    M.indptr = indptr.astype(np.int32 if len(values) < 2**31 else np.int64, copy=False)
    return M


def shorten(array: Array, size: int) -> Array:
    """Return the first `size` elements of a vector, or the first `size` rows of a table, without a copy.

    If the rest is large, `array` is resized in place to free memory, so other arrays must not share the memory of
    `array`. NumPy 2.5 advises against resizing in place, but any other way needs a copy. (tracemalloc reports a
    copy here, but none is made.)
    """
    if len(array) - size > UNUSED * len(array):
        array.resize((size, *array.shape[1:]), refcheck=False)
        return array
    return array[:size]


def is_sparse(A: Any) -> bool:
    """Return whether A is a SciPy sparse matrix or a CSR matrix on a device."""
    return sparse.issparse(A) or is_on_device(A)


def is_on_device(A: Any) -> bool:
    """Return whether A is a CSR matrix on a device (`device_csr.Rows`)."""
    return getattr(A, "is_device_csr", False)


def on_host(A: Any) -> Matrix:
    """Return a CSR matrix on a device as a SciPy matrix in host memory, and anything else unchanged."""
    return A.host() if is_on_device(A) else A


def dense(A: Any) -> Any:
    """Return a sparse SciPy matrix as a dense array, and a dense array unchanged."""
    return A.toarray() if sparse.issparse(A) else A


def row_sums(A: Any) -> Any:
    """Return the row sums (n,) of a matrix A (n, m), in float64 and on the device of A."""
    if is_on_device(A):
        return A.row_sums()
    xp = array_namespace(A)
    return np.asarray(A.sum(axis=1, dtype=np.float64)).ravel() if is_numpy(A) else xp.sum(A, axis=1, dtype=xp.float64)


def times_map(A: Any, U: Any) -> Any:
    """Return the product A U (n, d) of a matrix A (n, n) and a map U (n, d), as an array of the library of U.

    If A is a SciPy matrix, the product is computed on the CPU.
    """
    return array_like(U, A @ to_numpy(U)) if sparse.issparse(A) else A @ U


def times_vector(A: Matrix, x: Array) -> Array:
    """Return A x for CSR A (n, m) and x (m,) of the same type, on `current_threads()` threads."""
    out = np.empty(A.shape[0], A.dtype)
    _core.times(compiled_pattern(A), entry_values(A), np.ascontiguousarray(x, A.dtype), out, current_threads())
    return out


def stored_values(A: Any) -> Any:
    """Return the stored values (nnz,) of a sparse matrix; a dense matrix is returned unchanged."""
    return A.data if is_sparse(A) else A


def with_values(A: Any, values: Any) -> Any:
    """Return a matrix with the sparsity pattern of A and new `values`, which have the shape of `stored_values(A)`."""
    if is_on_device(A):
        return A.with_data(values)
    return make_csr(values, A.indices, A.indptr, A.shape) if sparse.issparse(A) else values


def sum_positive(A: Any, f: Callable[[Any], Any]) -> float:
    """Return Σ f(a) over the positive entries a of a matrix, in float64; they are processed in blocks.

    Blocks of NumPy arrays run on `current_threads()` threads; the sums of the blocks are added in order.
    """
    values = stored_values(A)
    on_host = is_numpy(values)
    step = max(1, FIXED_SUM // max(1, values[:1].size)) if on_host else FIXED_SEARCH_TILE
    starts = range(0, values.shape[0], step)
    sums = [0.0] * len(starts)

    def add(b: int) -> None:
        sums[b] = _sum_positive(values[starts[b] : starts[b] + step, ...], f)

    run_on_threads(add, range(len(starts)), current_threads() if on_host else 1)
    return sum(sums, start=0.0)


def _sum_positive(values: Any, f: Callable[[Any], Any]) -> float:
    positive, xp = values > 0, array_namespace(values)
    # NumPy selects entries on one thread at a time.
    chosen = values if is_numpy(values) and bool(positive.all()) else values[positive]
    return float(xp.sum(f(to_float64(chosen)))) if chosen.shape[0] else 0.0


def entry_rows(A: Matrix) -> Array:
    """Return the row index of each stored entry of CSR A, (nnz,) int32, on the device of A."""
    if is_on_device(A):
        return A.entry_rows()
    return np.repeat(np.arange(A.shape[0], dtype=np.int32), np.diff(A.indptr))


def entries_where(A: Matrix, keep: Array) -> Matrix:
    """Return CSR A with only the stored entries for which `keep` (nnz,) is true."""
    if is_on_device(A):
        return A.where(keep)
    indptr = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])[A.indptr]
    return make_csr(A.data[keep], A.indices[keep], indptr, A.shape)


def symmetrized(A: Matrix, n_threads: int = 1) -> Matrix:
    """Return A + Aᵀ with sorted columns, for CSR A (n, n) without duplicate entries.

    Memory for twice the entries of A is allocated; if a large part remains unused, it is freed at the end.
    """
    if is_on_device(A):
        return A.symmetrized()
    pattern, n, entries = compiled_pattern(A), A.shape[0], A.nnz
    indptr = np.empty(n + 1, np.int64)
    indices, values = np.empty(2 * entries, np.int32), np.empty(2 * entries, A.dtype)
    size = _core.symmetrize(pattern, entry_values(A), indptr, indices, values, n_threads)
    S = make_csr(shorten(values, size), shorten(indices, size), indptr, A.shape)
    S.has_sorted_indices = True
    S.has_canonical_format = True
    return S


def permuted(A: Matrix, order: Array) -> Matrix:
    """Return A[order][:, order] for a dense or CSR matrix A; the entries of a sparse row stay in their stored order."""
    if is_on_device(A):
        return A.permuted(order)
    if not sparse.issparse(A):
        return A[np.ix_(order, order)]
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    source = entry_values(A)
    indptr, indices = np.empty(len(order) + 1, np.int64), np.empty(len(source), np.int32)
    values = np.empty_like(source)
    _core.permute(compiled_pattern(A), source, order, position, indptr, indices, values, current_threads())
    return make_csr(values, indices, indptr, A.shape)


@dataclass(eq=False)
class _Checked:
    """A sparsity pattern that the compiled core has checked, and the index arrays from which it was built."""

    csr: _core.Csr
    indptr: Array
    indices: Array

    def fits(self, A: Matrix) -> bool:
        """Return whether A has the shape of this pattern and the same index arrays (not copies)."""
        return self.indptr is A.indptr and self.indices is A.indices and self.csr.shape == A.shape


# A matrix keeps its pattern alive; matrices with the same index arrays share a pattern. The keys are ids of matrices
# and of `indices` arrays, because SciPy's matrices are not hashable.
_patterns_by_matrix: dict[int, tuple[weakref.ref[Any], _Checked]] = {}
_patterns_by_indices: weakref.WeakValueDictionary[int, _Checked] = weakref.WeakValueDictionary()


def compiled_pattern(A: Matrix) -> _core.Csr:
    """Return the sparsity pattern of CSR A as an object of the compiled core.

    When the core creates the pattern, it checks the row pointers and column indices; if a column index is out of range,
    it raises a ValueError that names the row. Matrices that share their index arrays also share the pattern, which is
    kept until all of them are deleted. Later changes to elements of the index arrays go unnoticed.
    """
    key = id(A)
    known = _patterns_by_matrix.get(key)
    if known is not None and known[0]() is A and known[1].fits(A):
        return known[1].csr
    checked = _patterns_by_indices.get(id(A.indices))
    if checked is None or not checked.fits(A):
        indptr = np.require(A.indptr, np.int64, ["C", "A"])
        csr = _core.Csr(indptr, _column_indices(A), A.shape[1], current_threads())
        if csr.shape != A.shape:
            raise ValueError(
                f"indptr of a sparse matrix of shape {A.shape} must have {A.shape[0] + 1} elements, got"
                f" {len(A.indptr)}; rebuild the matrix"
            )
        checked = _patterns_by_indices[id(A.indices)] = _Checked(csr, A.indptr, A.indices)
    _patterns_by_matrix[key] = weakref.ref(A, lambda _: _patterns_by_matrix.pop(key, None)), checked
    return checked.csr


def check_indices(A: Matrix) -> None:
    """Raise ValueError, naming the row, if CSR A has a column index that is out of range."""
    if sparse.issparse(A):
        compiled_pattern(A)


def entry_values(A: Matrix) -> Array:
    """Return the values of the stored entries of CSR A, without the unused end that `A.data` can have."""
    return np.require(A.data[: A.nnz], requirements=["C", "A"])


def _column_indices(A: Matrix) -> Array:
    """Return the column indices of the stored entries of CSR A, int32."""
    indices = A.indices[: A.nnz]  # A.indices may have an unused end
    narrow = np.require(indices, np.int32, ["C", "A"])
    if narrow.dtype != indices.dtype and (narrow != indices).any():
        t = int((narrow != indices).argmax())
        row = int(np.searchsorted(A.indptr, t, side="right")) - 1
        raise ValueError(
            f"row {row} of a sparse matrix has column index {indices[t]}, but the column indices run from 0 to"
            f" {A.shape[1] - 1}; correct the index"
        )
    return narrow


# Threads

_threads: ContextVar[int] = ContextVar("threads", default=1)


def current_threads() -> int:
    """Return the number of threads set by `on_threads`; 1 outside of it."""
    return _threads.get()


@contextmanager
def on_threads(n_threads: int) -> Iterator[None]:
    """Set the number of threads for a `with` block; results do not depend on it."""
    token = _threads.set(n_threads)
    try:
        yield
    finally:
        _threads.reset(token)


def run_on_threads(work: Callable[[Any], None], items: Sequence[Any], n_threads: int) -> None:
    """Call work(item) for each item on up to n_threads threads, one of which is the calling thread.

    Fewer threads are used if the system refuses to start more. After an exception no further item is started, and the
    exception is raised when the threads have ended.
    """
    left, lock, errors = iter(range(len(items))), Lock(), list[BaseException]()

    def run() -> None:
        while not errors:
            with lock:
                i = next(left, None)
            if i is None:
                return
            try:
                work(items[i])
            except BaseException as error:
                errors.append(error)

    started: list[Thread] = []
    try:
        for _ in range(min(n_threads, len(items)) - 1):
            started.append(Thread(target=run))
            try:
                started[-1].start()
            except RuntimeError:  # no memory for its stack, or too many threads
                started.pop()
                break
        run()
        for thread in started:
            thread.join()
    except BaseException as error:  # Ctrl-C between items
        errors.append(error)
        for thread in started:
            if thread.is_alive():
                thread.join()
        raise
    if errors:
        raise errors[0]


def largest_magnitude(X: Array) -> float:
    """Return the largest magnitude in X, 0 if X is empty and NaN if it contains NaN."""

    def largest(part: Array) -> float:
        return float(np.maximum(part.max(initial=0.0), -part.min(initial=0.0)))

    if X.size < LARGE:
        return largest(X)
    parts = np.array_split(X, PARTS)
    found = np.empty(PARTS)

    def read(i: int) -> None:
        found[i] = largest(parts[i])

    run_on_threads(read, range(PARTS), current_threads())
    return float(found.max())
