"""Direct sums in C++: tiled, vectorised, threaded; O(n²) time, O(n) memory beyond A."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from .. import _core
from .._tags import tagged
from .._types import Array, Matrix
from ..kernels import Kernel
from .base import Field
from .cpu import StatelessEngine, charge_columns
from .reference import Reference


@tagged("engines.exact.Exact")
class Exact(StatelessEngine):
    """Direct sums in the precision of Y, accumulated in float64. The same bytes for any number of threads.

    A user's kernel, known only to NumPy, goes through the reference engine's blocks.
    """

    name = "exact"
    dtype = np.float32
    needs_sparse_P = False
    gains_from_locality = False

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        self._numpy = Reference()

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        native = kernel.native()
        if native is None:
            return self._numpy.edges(Y, A, kernel, b, potential=potential)
        return self.native_edges(native, Y, A, b, potential=potential)

    def native_edges(
        self, native: _core.Kernel, Y: Array, A: Matrix, b: float, *, potential: bool
    ) -> tuple[float, Array]:
        """Return the edges of a compiled kernel."""
        Y = np.ascontiguousarray(Y)
        if A.shape != (len(Y), len(Y)):
            raise ValueError(f"A has shape {A.shape}, but there are {len(Y)} points")
        psi = np.empty(len(Y) if potential else 0)
        force = np.empty(Y.shape)
        if sparse.issparse(A):
            indptr, indices = A.indptr.astype(np.int64, copy=False), A.indices.astype(np.int32, copy=False)
            _core.edges_sparse(native, b, indptr, indices, A.data, Y, psi, force, self.n_threads)
        else:
            _core.edges_dense(native, b, A, Y, psi, force, self.n_threads)
        return (float(psi.sum()) if potential else np.nan), force

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        native = kernel.native()
        if native is None:
            return self._numpy.field(Y, kernel, charges)
        Y = np.ascontiguousarray(Y)
        c, columns = charge_columns(charges, len(Y))
        potential = np.empty(columns.shape)
        half_gradient = np.empty((*columns.shape, Y.shape[1]))
        _core.field(native, columns, Y, potential, half_gradient, self.n_threads)
        return Field(potential.reshape(c.shape), (2 * half_gradient).reshape(*c.shape, Y.shape[1]))

    def freeze(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Callable[[Array], Field]:
        return self._numpy.freeze(Y, kernel, charges)

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        return self._numpy.edges_to(targets, Y, A, kernel, b)
