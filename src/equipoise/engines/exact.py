"""Computes edges and field by direct sums in C++, vectorised and threaded.

The sums take O(n²) time and O(n) memory in addition to the weights of the edges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._tags import tagged
from .._types import Array, Matrix
from ..kernels import Kernel
from .base import Field, Traits
from .cpu import CompiledKernels, CpuEngine, charge_columns, native_edges
from .reference import Reference


@tagged("engines.exact.Exact")
class Exact(CpuEngine):
    """An engine that sums directly, in the precision of Y, and accumulates in float64.

    Results are identical, bit for bit, for any number of threads. Kernels without compiled code, which are user-defined
    kernels and the squares of most built-in kernels, are read from tables if Y is in float32, as in a fit; in float64
    the reference engine computes their sums, and the sums for new points.

    Parameters
    ----------
    n_threads : int
    """

    traits = Traits("exact", np.float32, needs_sparse_P=False, gains_from_locality=False)

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        self._numpy = Reference()
        self._compiled = CompiledKernels()  # of this engine alone: a user-defined kernel may change between two fits

    def __getstate__(self) -> dict[str, Any]:
        return {"n_threads": self.n_threads}  # tables are computed again

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["n_threads"])  # type: ignore[misc]

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        native = kernel.native()
        if native is None:
            if Y.dtype == np.float64:
                return self._numpy.edges(Y, A, kernel, b, potential=potential)
            native, b = self._compiled.edges(kernel, b)
        return native_edges(native, Y, A, b, potential=potential, n_threads=self.n_threads)

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        if kernel.native() is None and Y.dtype == np.float64:
            return self._numpy.field(Y, kernel, charges)
        native = self._compiled(kernel)  # or its table
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
