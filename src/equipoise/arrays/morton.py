"""The order of points along a Morton curve, which puts neighbours in space close together in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .. import _core
from .._types import Array, Matrix
from .csr import compiled_pattern, entry_values, is_on_device, make_csr
from .namespace import array_namespace

BITS = {1: 20, 2: 12, 3: 8}  # bits per axis, by the number of axes


def locality(U: Any) -> Any:
    """Return the order (n,) of the points U (n, d) along a Morton curve through their bounding box.

    Only the first three axes are used. The result has the array library and the device of U.
    """
    xp = array_namespace(U)
    axes = [xp.astype(U[:, c], xp.float64) for c in range(min(3, U.shape[1]))]  # each contiguous
    axes = [axis - xp.min(axis) for axis in axes]
    d, bits = len(axes), BITS[len(axes)]
    extent = xp.max(xp.stack([xp.max(axis) for axis in axes]))
    extent = xp.where(extent > 0, extent, 1.0)
    cells = [xp.astype(axis / extent * (2**bits - 1), xp.int64) for axis in axes]
    code = xp.zeros_like(cells[0])
    for bit in range(bits):
        for c, cell in enumerate(cells):
            code |= ((cell >> bit) & 1) << (bit * d + c)
    return xp.argsort(code, stable=True)


def permuted(A: Matrix, order: Array) -> Matrix:
    """Return A[order][:, order] for a dense or CSR matrix A; the entries of a sparse row keep their order."""
    if is_on_device(A):
        return A.permuted(order)
    if not sparse.issparse(A):
        return A[np.ix_(order, order)]
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    source = entry_values(A)
    indptr, indices = np.empty(len(order) + 1, np.int64), np.empty(len(source), np.int32)
    values = np.empty_like(source)
    _core.permute(compiled_pattern(A), source, order, position, indptr, indices, values)
    return make_csr(values, indices, indptr, A.shape)
