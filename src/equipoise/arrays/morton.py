"""An order of points in which neighbours in space are neighbours in memory: along Morton's curve."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .. import _core
from .._types import Array, Matrix
from .csr import compiled_pattern, entry_values, is_on_device, make_csr
from .namespace import is_tensor

BITS = {1: 20, 2: 12, 3: 8}  # per axis


def locality(U: Array) -> Array:
    """Return the order (n,) of the points U (n, d) along a Morton curve through their box, on the first 3 axes."""
    if is_tensor(U):
        return _locality_there(U)
    axes = np.ascontiguousarray(U.T[:3], dtype=np.float64)
    d, bits = len(axes), BITS[min(3, len(axes))]
    axes -= axes.min(axis=1, keepdims=True)
    cells = (axes / (axes.max() or 1.0) * (2**bits - 1)).astype(np.int64)
    code = np.zeros(axes.shape[1], np.int64)
    for bit in range(bits):
        for axis, cell in enumerate(cells):
            code |= ((cell >> bit) & 1) << (bit * d + axis)
    return np.argsort(code, kind="stable")


def _locality_there(U: Any) -> Any:
    """Return the same for a tensor, where it is."""
    axes = U.T[:3].double()
    d, bits = len(axes), BITS[min(3, len(axes))]
    axes = axes - axes.amin(dim=1, keepdim=True)
    cells = (axes / axes.max().clamp(min=1e-300) * (2**bits - 1)).long()
    code = cells[0] * 0
    for bit in range(bits):
        for axis, cell in enumerate(cells):
            code |= ((cell >> bit) & 1) << (bit * d + axis)
    return code.argsort(stable=True)


def permuted(A: Matrix, order: Array) -> Matrix:
    """Return A[order][:, order] for CSR or dense A; the entries of a sparse row keep their order."""
    if is_on_device(A):
        return A.permuted(order)
    if not sparse.issparse(A):
        return A[np.ix_(order, order)]
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    given = entry_values(A)
    indptr, indices = np.empty(len(order) + 1, np.int64), np.empty(len(given), np.int32)
    values = np.empty_like(given)
    _core.permute(compiled_pattern(A), given, order, place, indptr, indices, values)
    return make_csr(values, indices, indptr, A.shape)
