"""Products whose rows have the same bytes however many rows are multiplied and however the arrays lie in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from .._types import Array
from ..arrays.namespace import array_namespace, is_numpy
from .pca import one_blas_thread

ROWS = 64  # rows per call of BLAS: a multiple of the rows that its kernels compute at once


def multiply_rows(A: Any, B: Any) -> Any:
    """Return A B for A (m, k), dense or sparse, and B (k, d).

    The order in which BLAS adds depends on the number of rows and on the memory layout of the arrays. Therefore dense
    arrays and tensors are multiplied by `by_row_blocks`, NumPy arrays in float64 and C order: row i of the result
    depends only on B and on row i of A.
    """
    if sparse.issparse(A):
        return A @ B
    if is_numpy(A):
        A, B = np.ascontiguousarray(A, dtype=np.float64), np.ascontiguousarray(B, dtype=np.float64)
    return by_row_blocks(lambda rows: rows @ B, A)


def by_row_blocks(function: Callable[[Any], Any], A: Any) -> Any:
    """Return function(A), computed in blocks of rows, so that the bytes of row i do not depend on the other rows.

    A (m, k) is an array of any library. `function` maps rows (q, k) to rows (q, d), and may use matrix products. It is
    called with contiguous blocks of `ROWS` rows; the last block is padded with copies of its first row.
    """
    with one_blas_thread():
        return array_namespace(A).concat([function(block)[:m] for block, m in padded_blocks(A, ROWS)])


def padded_blocks(A: Any, size: int) -> Iterator[tuple[Any, int]]:
    """Yield pairs: a block of `size` rows of A, and how many of these rows are not padding.

    The last block is padded with copies of its first row. All blocks have one size, because the order in which matrix
    products and sums add depends on the size. If A has no rows, one empty block is yielded.
    """
    xp = array_namespace(A)
    for start in range(0, max(len(A), 1), size):
        rows = A[start : start + size]
        yield xp.concat([rows] + [rows[:1]] * (size - len(rows))), len(rows)


def multiply_vector(v: Any, B: Any) -> Array:
    """Return v B for v (k,) and B (k, d), with the bytes that a row v of A has in multiply_rows(A, B)."""
    return multiply_rows(v[None, :], B)[0]
