"""Code shared by the CPU engines: placement of arrays, compiled kernels, edges over a CSR matrix, and fused steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from .. import _core
from .._types import Array, Matrix
from ..arrays.csr import compiled_pattern, entry_values, is_sparse
from ..arrays.namespace import to_numpy
from ..geometry import Pairs
from ..kernels import Kernel
from .base import Engine, PlannedStep, StepPlan
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


class SteadyMesh(NamedTuple):
    """A kernel on a mesh for the next steps of a map, and for which maps it serves."""

    compiled: Any  # a _core.MeshKernel32 or _core.MeshKernel64
    lower: Array  # the sides (d,) of the box around the map must be longer than these, and shorter than `upper`
    upper: Array
    thin: float  # a side is treated as at least this fraction of the widest, and as at least `tiny`
    tiny: float
    left: int  # number of fields before the tolerance must be checked


class TakesSteps(Protocol):
    """What `FusedSteps` needs of an engine."""

    n_threads: int

    def compiled_edges(self, kernel: Kernel) -> _core.Kernel:
        """Return the compiled kernel of edges with b = −1."""
        ...

    def steady_mesh(self, kernel: Kernel, Y: Array, charges: Array | None) -> SteadyMesh | None:
        """Return the mesh of the next fields of Y, which meets the tolerance; None if Y is not finite.

        The charges are those of the field; None if every charge is 1.
        """
        ...

    def count_fields(self, kernel: Kernel, d: int, charged: bool, count: int) -> None:
        """Count fields in d dimensions that were computed by steps of the core."""
        ...


class FusedSteps:
    """Takes planned steps in the core: edges, field, momentum and centring, without Python between them.

    Maps have the same bytes as with single steps. A call of the core ends where the tolerance must be checked or the
    mesh changes. Steps of a map that is not finite or too narrow are left to the optimiser.
    """

    SLICE = 0.1  # seconds after which a call returns to Python, for signals and other threads; chosen

    def __init__(self, engine: TakesSteps):
        self._engine = engine

    def replay_steps(self, step: Callable[[Any], None], key: object, state: Any, count: int, min_extent: float) -> int:
        plan = step.plan(state, count) if isinstance(step, PlannedStep) else None
        if plan is None or not self._is_supported(plan, state.U):
            return 0
        taken = 0
        while taken < count and (new := self._take(plan, state, taken, min_extent)):
            taken += new
        return taken

    def free_buffers(self) -> None:
        """Do nothing: there are no buffers."""

    def _is_supported(self, plan: StepPlan, U: Array) -> bool:
        A = plan.force.A
        return is_sparse(A) and U.dtype == np.float32 and entry_values(A).dtype == np.float32 and U.shape[1] <= 3

    def _take(self, plan: StepPlan, state: Any, taken: int, min_extent: float) -> int:
        """Take steps from number `taken` of the plan on, and return how many.

        The state is replaced in one statement, so that an interrupted run has a complete one.
        """
        force, engine, charged = plan.force, self._engine, plan.force.charges is not None
        if (mesh := engine.steady_mesh(force.apart, state.U, force.charges)) is None:
            return 0
        charges = np.empty((0, 2)) if force.charges is None else force.charges
        moving = {name: np.array(getattr(state, name), order="C") for name in ("U", "velocity", "gain")}
        take: Any = _core.mesh_steps  # its overloads do not know unpacked arguments
        steps = take(
            mesh.compiled,
            engine.compiled_edges(force.kernel),
            compiled_pattern(force.A),
            entry_values(force.A),
            force.pull,
            force.push,
            np.ascontiguousarray(charges, dtype=np.float64),
            *plan[1:-1],
            plan.momentum[taken : taken + mesh.left],
            *mesh[1:-1],
            min_extent,
            self.SLICE,
            *moving.values(),
            engine.n_threads,
        )
        if steps:
            engine.count_fields(force.apart, state.U.shape[1], charged, steps)
            vars(state).update(**moving, age=state.age + steps, iteration=state.iteration + steps)
        return int(steps)


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
        native, b = self.native(kernel, b)
        return native_edges(native, Y, A, b, potential=potential, n_threads=self.n_threads)

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        """Return E of the targets, as `Engine.edges_to` does."""
        native, _ = self.native(kernel, b)
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

    def native(self, kernel: Kernel, b: float) -> tuple[_core.Kernel, float]:
        """Return a compiled kernel and an exponent for `native_edges`.

        If b = −1 and k'/k is rational, these are the kernel itself and b. Otherwise the kernel is a table, in which ψ_b
        and k^b k' take the place of log k and k'/k, and the exponent is −1.
        """
        native = kernel.native()
        if native is not None and b == -1 and native.rational:
            return native, b
        return _core.Kernel.tabulated(*self.table(kernel, b)), -1.0
