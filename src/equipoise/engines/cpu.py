"""Code shared by the CPU engines: placement of arrays, compiled kernels, and edges over the entries of a CSR matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .. import _core
from .._types import Array, Matrix
from ..arrays.csr import compiled_pattern, entry_values, is_sparse
from ..arrays.namespace import to_numpy
from ..geometry import Pairs
from ..kernels import Kernel
from .base import Engine
from .tables import Table, edge_table, kernel_table


class HostPlacement:
    """Placement in host memory: converts arrays to NumPy, and returns sparse matrices unchanged."""

    device = "cpu"

    def to_device(self, array: Any, dtype: Any = None) -> Any:
        return array if is_sparse(array) else np.asarray(to_numpy(array), dtype=dtype)

    def indices_where(self, mask: Any) -> Array:
        return to_numpy(mask).nonzero()[0]

    def concurrently(self, first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
        return first(), second()


class SingleSteps:
    """A stepper that replays nothing: the optimiser takes every step itself."""

    def replay_steps(self, step: Callable[[Any], None], key: object, state: Any, count: int, min_extent: float) -> int:
        return 0

    def free_buffers(self) -> None:
        """Do nothing: there are no buffers."""


HOST = HostPlacement()


class CpuEngine:
    """Base class of the CPU engines: their arrays are in host memory, and no steps are replayed."""

    pairs: Pairs | None = None
    placement = HOST
    stepper = SingleSteps()


def charge_columns(charges: Array | None, n: int) -> tuple[Array, Array]:
    """Return the charges in float64 twice: in their original shape, and as columns (n, m); by default all are 1."""
    c = np.ones(n) if charges is None else np.asarray(charges, dtype=np.float64)
    return c, np.ascontiguousarray(c.reshape(n, -1))


class CompiledKernels:
    """Converts kernels for the C++ core; one without compiled code, such as a user-defined kernel, becomes a table."""

    def __init__(self) -> None:
        self._tables: dict[Kernel, Table] = {}  # they must outlive the compiled kernels

    def __call__(self, kernel: Kernel) -> _core.Kernel:
        native = kernel.native()
        if native is not None:
            return native
        if kernel not in self._tables:
            self._tables[kernel] = kernel_table(kernel)
        return _core.Kernel.tabulated(*self._tables[kernel])


def native_edges(
    native: _core.Kernel, Y: Array, A: Matrix, b: float, *, potential: bool, n_threads: int
) -> tuple[float, Array]:
    """Return Ψ and E, as `Engine.edges` does, for a compiled kernel."""
    Y = np.ascontiguousarray(Y)
    if A.shape != (len(Y), len(Y)):
        raise ValueError(f"A must have shape ({len(Y)}, {len(Y)}) for the {len(Y)} points of Y, got {A.shape}")
    psi = np.empty(len(Y) if potential else 0)
    force = np.empty(Y.shape)
    if sparse.issparse(A):
        _core.edges_sparse(native, b, compiled_pattern(A), entry_values(A), Y, psi, force, n_threads)
    else:
        _core.edges_dense(native, b, A, Y, psi, force, n_threads)
    return (float(psi.sum()) if potential else np.nan), force


class StoredEdges:
    """Sums edges over the stored entries (i, j) of a CSR matrix, in float32 and in any dimension.

    If b = −1 and k'/k is a rational function of d2, as for some built-in kernels, k'/k is computed directly. Otherwise
    k^b k' is read from a table.

    Parameters
    ----------
    n_threads : int
    exact : callable
        Takes a number of threads and returns the engine used for embeddings in float64 and for dense matrices.
    """

    def __init__(self, n_threads: int, exact: Callable[[int], Engine]):
        self.n_threads = n_threads
        self._exact = exact
        self._tables: dict[tuple[Kernel, float], Table] = {}

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        """Return Ψ and E, as `Engine.edges` does."""
        if Y.dtype == np.float64 or not sparse.issparse(A):
            return self._exact(self.n_threads).edges(Y, A, kernel, b, potential=potential)
        native, b = self._native(kernel, b)
        return native_edges(native, Y, A, b, potential=potential, n_threads=self.n_threads)

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        """Return E of the targets, as `Engine.edges_to` does."""
        native, _ = self._native(kernel, b)
        force = np.empty(targets.shape)
        targets, Y = (np.ascontiguousarray(V, dtype=np.float32) for V in (targets, Y))
        values = entry_values(A).astype(np.float32, copy=False)
        if not _core.edges_to(native, compiled_pattern(A), values, targets, Y, force, self.n_threads):
            return self._exact(self.n_threads).edges_to(targets, Y, A, kernel, b)
        return force

    def table(self, kernel: Kernel, b: float) -> Table:
        """Return the table of ψ_b and its slope k^b k', from a cache."""
        if (kernel, b) not in self._tables:
            self._tables[kernel, b] = edge_table(kernel, b)
        return self._tables[kernel, b]

    def _native(self, kernel: Kernel, b: float) -> tuple[_core.Kernel, float]:
        """Return a compiled kernel and an exponent for `native_edges`.

        If b = −1 and k'/k is rational, these are the kernel itself and b. Otherwise the kernel is a table, in which ψ_b
        and k^b k' take the place of log k and k'/k, and the exponent is −1.
        """
        native = kernel.native()
        if native is not None and b == -1 and native.rational:
            return native, b
        return _core.Kernel.tabulated(*self.table(kernel, b)), -1.0
