"""Matrix products in which each row of the result is the same, to the last bit, in every batch of rows.

The number of rows that are multiplied together, and the memory layout of the arrays, do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from .._types import Array
from ..arrays.namespace import array_namespace, is_numpy
from .pca import one_blas_thread

ROWS = 64  # rows per call of BLAS: a multiple of the rows that its kernels compute together


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
    """Return function(A), computed in blocks of rows, so that the last bits of row i do not depend on the other rows.

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
    """Return v B for v (k,) and B (k, d).

    If v is row i of A, this equals row i of multiply_rows(A, B) to the last bit.
    """
    return multiply_rows(v[None, :], B)[0]
