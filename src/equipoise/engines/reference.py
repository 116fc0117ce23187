"""Computes edges and field (docs/math.md, section 0) by direct sums in NumPy, in float64.

Every other engine is tested against this one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.blocks import FIXED_REFERENCE_ROWS, row_blocks, rows_per_block
from ..divergences import antiderivative
from ..geometry.flat import Pairs, compare
from ..kernels import Kernel
from .base import Field, Traits
from .cpu import CpuEngine, charge_columns


@tagged("engines.reference.Reference")
class Reference(CpuEngine):
    """An engine that computes every sum directly, in float64; slow, but simple.

    Parameters
    ----------
    pairs : Pairs, optional
        How points are compared; by their Euclidean distances by default.
    """

    traits: Traits = Traits("reference", np.float64, needs_sparse_P=False, gains_from_locality=False)
    pairs: Pairs | None = None

    def __init__(self, pairs: Pairs | None = None):
        if pairs is not None:
            self.pairs = pairs

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        Y = np.asarray(Y, dtype=np.float64)
        force = np.zeros_like(Y)
        psi = 0.0
        if sparse.issparse(A):
            A = A.tocoo()
            i, j, a = A.row, A.col, A.data.astype(np.float64)
            d2, diff = compare(self.pairs, Y[i], Y[j])
            weight = a * _power(kernel, d2, b + 1) * kernel.log_slope(d2)
            for c in range(Y.shape[1]):
                force[:, c] = np.bincount(i, weight * diff[:, c], minlength=len(Y))
            if potential:
                psi = float((a * antiderivative(kernel.log_value(d2), b + 1)).sum())
        else:
            for rows, diff, d2, off in self._row_blocks(Y, FIXED_REFERENCE_ROWS):
                a = np.where(off, A[rows], 0.0)
                weight = a * _power(kernel, d2, b + 1) * kernel.log_slope(d2)
                force[rows] = np.einsum("ij,ijc->ic", weight, diff)
                if potential:
                    psi += float((a * antiderivative(kernel.log_value(d2), b + 1)).sum())
        return (psi if potential else np.nan), force

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        Y = np.asarray(Y, dtype=np.float64)
        c, columns = charge_columns(charges, len(Y))
        potential = np.empty(columns.shape)
        gradient = np.empty((*columns.shape, Y.shape[1]))
        for rows, diff, d2, off in self._row_blocks(Y, rows_per_block(8 * Y.size)):
            value, slope = np.where(off, kernel.value(d2), 0.0), np.where(off, kernel.slope(d2), 0.0)
            for q, charge in enumerate(columns.T):
                potential[rows, q] = (value * charge).sum(axis=1)
                gradient[rows, q] = 2 * np.einsum("ij,ijd->id", slope * charge, diff)
        return Field(potential.reshape(c.shape), gradient.reshape(*c.shape, Y.shape[1]))

    def freeze(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Callable[[Array], Field]:
        Y = np.asarray(Y, dtype=np.float64)
        c, columns = charge_columns(charges, len(Y))

        def at(targets: Array) -> Field:
            potential = np.empty((len(targets), columns.shape[1]))
            gradient = np.empty((*potential.shape, Y.shape[1]))
            for rows in row_blocks(len(targets), 8 * Y.size):
                d2, diff = compare(self.pairs, targets[rows, None, :].astype(np.float64), Y)
                value, slope = kernel.value(d2), kernel.slope(d2)
                for q, charge in enumerate(columns.T):
                    potential[rows, q] = (value * charge).sum(axis=1)
                    gradient[rows, q] = 2 * np.einsum("ij,ijd->id", slope * charge, diff)
            shape = (len(targets), *c.shape[1:])
            return Field(potential.reshape(shape), gradient.reshape(*shape, Y.shape[1]))

        return at

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        i = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        d2, diff = compare(self.pairs, targets[i].astype(np.float64), Y[A.indices])
        weight = A.data * np.exp((b + 1) * kernel.log_value(d2)) * kernel.log_slope(d2)
        return np.column_stack([np.bincount(i, weight * x, minlength=len(targets)) for x in diff.T])

    def _row_blocks(self, Y: Array, step: int):  # type: ignore[no-untyped-def]
        """Yield row indices i, the directions from all j, d2 and the mask j ≠ i, for blocks of `step` rows i."""
        n = len(Y)
        for start in range(0, n, step):
            rows = np.arange(start, min(start + step, n))
            d2, diff = compare(self.pairs, Y[rows, None, :], Y[None, :, :])
            yield rows, diff, d2, rows[:, None] != np.arange(n)


def _power(kernel: Kernel, d2: Array, e: float) -> Array:
    """Return k(d2)^e, computed as exp(e log k); infinite where this overflows."""
    with np.errstate(over="ignore"):
        return np.exp(e * kernel.log_value(d2))
