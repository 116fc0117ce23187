"""Code shared by the CPU engines: placement of arrays, compiled kernels, edges of a CSR matrix, fused steps, checks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache, wraps
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from scipy import sparse

from .. import _core
from .._types import Array, Matrix
from ..arrays.csr import compiled_pattern, entry_values, is_sparse, sum_positive
from ..arrays.namespace import array_namespace, spread, to_numpy, total
from ..geometry import Pairs
from ..kernels import Kernel
from .base import Engine, PlannedStep, PointSums, StepPlan
from .tables import Table, edge_table, kernel_table

F = TypeVar("F", bound=Callable[..., Any])
CHECKED = 128  # points checked, at least
PAIRS = 2**20  # pairs of a checked point and any point; on small embeddings more points are checked, up to this number
FEW = 32  # forces are uneven if the largest 1/32 of those checked make up more than half of the sum of squares

Solution = Callable[[Any], tuple[Any, Any]]  # targets (t, d) → Φ (t, m) and ∇Φ (t, m, d)


class RunningSum:
    """A sum over all entries of a matrix that this process holds."""

    def __init__(self, start: float):
        self._total: Any = start

    def add(self, part: slice, x: Any) -> None:
        self._total += total(x)

    def total(self) -> Any:
        return self._total


class WholeMap:
    """Reductions of a process that holds all points."""

    def count(self, U: Any) -> int:
        return int(U.shape[0])

    def total(self, x: Any) -> Any:
        return total(x)

    def entry_total(self, A: Matrix, f: Callable[[Any], Any]) -> float:
        return sum_positive(A, f)

    def entry_sum(self, A: Matrix, start: float = 0.0) -> RunningSum:
        return RunningSum(start)

    def maximum(self, value: float) -> float:
        return value

    def spread(self, U: Any) -> float:
        return spread(U)

    def squared_norm(self, x: Any) -> float:
        return float((x**2).sum())

    def all_finite(self, U: Any) -> bool:
        return bool(array_namespace(U).isfinite(U).all())


WHOLE_MAP: PointSums = WholeMap()


class HostPlacement:
    """Placement in host memory: converts arrays to NumPy, and returns sparse matrices unchanged."""

    device = "cpu"
    sums: PointSums = WHOLE_MAP

    def to_device(self, array: Any, dtype: Any = None) -> Any:
        return array if is_sparse(array) else np.asarray(to_numpy(array), dtype=dtype)

    def indices_where(self, mask: Any) -> Array:
        return to_numpy(mask).nonzero()[0]

    def column_points(self, Y: Array) -> Array:
        return Y

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
    return c, np.ascontiguousarray(c.reshape(n, int(np.prod(c.shape[1:]))))  # not −1: n may be 0


class CompiledKernels:
    """Converts kernels for the C++ core; one without compiled code, such as a user-defined kernel, becomes a table."""

    def __init__(self) -> None:
        self._tables: dict[Kernel, Table] = {}  # they must outlive the compiled kernels
        self._edge_tables: dict[tuple[Kernel, float], Table] = {}

    def __call__(self, kernel: Kernel) -> _core.Kernel:
        native = kernel.native()
        if native is not None:
            return native
        if kernel not in self._tables:
            self._tables[kernel] = kernel_table(kernel)
        return _core.Kernel.tabulated(*self._tables[kernel])

    def edges(self, kernel: Kernel, b: float) -> tuple[_core.Kernel, float]:
        """Return a table of ψ_b and k^b k', in place of log k and k'/k, and the exponent −1 for `native_edges`."""
        return _core.Kernel.tabulated(*self.edge_table(kernel, b)), -1.0

    def edge_table(self, kernel: Kernel, b: float) -> Table:
        """Return the table of ψ_b and its slope k^b k', from a cache."""
        if (kernel, b) not in self._edge_tables:
            self._edge_tables[kernel, b] = edge_table(kernel, b)
        return self._edge_tables[kernel, b]


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
        self._make_exact = exact
        self._compiled = CompiledKernels()

    @cached_property
    def exact(self) -> Engine:
        """The engine used for embeddings in float64 and for dense matrices; it keeps its tables."""
        return self._make_exact(self.n_threads)

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        """Return Ψ and E, as `Engine.edges` does."""
        if Y.dtype == np.float64 or not sparse.issparse(A):
            return self.exact.edges(Y, A, kernel, b, potential=potential)
        native, b = self.native(kernel, b)
        return native_edges(native, Y, A, b, potential=potential, n_threads=self.n_threads)

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        """Return E of the targets, as `Engine.edges_to` does."""
        native, _ = self.native(kernel, b)
        force = np.empty(targets.shape)
        targets, Y = (np.ascontiguousarray(V, dtype=np.float32) for V in (targets, Y))
        values = entry_values(A).astype(np.float32, copy=False)
        if not _core.edges_to(native, compiled_pattern(A), values, targets, Y, force, self.n_threads):
            return self.exact.edges_to(targets, Y, A, kernel, b)
        return force

    def table(self, kernel: Kernel, b: float) -> Table:
        """Return the table of ψ_b and its slope k^b k', from a cache."""
        return self._compiled.edge_table(kernel, b)

    def native(self, kernel: Kernel, b: float) -> tuple[_core.Kernel, float]:
        """Return a compiled kernel and an exponent for `native_edges`.

        If b = −1 and k'/k is rational, these are the kernel itself and b. Otherwise the kernel is a table, in which ψ_b
        and k^b k' take the place of log k and k'/k, and the exponent is −1.
        """
        native = kernel.native()
        if native is not None and b == -1 and native.rational:
            return native, b
        return self._compiled.edges(kernel, b)


class ForceCheck:
    """Measures the error of transforms, by comparing their forces at a sample of points with direct sums.

    The error is that of all points, ‖F − F*‖ / ‖F*‖, estimated from the sample. In a clump with outliers, these bear
    nearly all of ‖F*‖, and a sample with too many of them would hide the error. If few points of the sample bear most
    of its force, ‖F*‖ is at most that of all points, as the transform gives it.
    """

    def __init__(self, kernel: Kernel, source: Any, direct: Solution, n_threads: int):
        chosen = checked_points(len(source.Y))
        self.n_threads, self.source, self.targets = n_threads, source, source.Y[chosen]
        potential, self.force = (to_numpy(part) for part in direct(self.targets))
        self._study(kernel, len(source.Y), potential, to_numpy(source.charges[chosen]))

    def _study(self, kernel: Kernel, n: int, potential: Array, charges: Array) -> None:
        """Set the rounding error of the sample, out of n points, and whether few points bear most of its force."""
        # Differences below the rounding error of the potential, or of the point's own term in it, are ignored.
        own = kernel.value(np.zeros(1)) * charges
        self.n, self.noise = n, float(1e-9 * np.linalg.norm(potential - own) + 1e-15 * np.linalg.norm(own))
        self.noise /= kernel.length
        squares = np.sort((self.force.astype(np.float64) ** 2).sum(axis=(1, 2)))
        few = len(squares) // FEW
        self.uneven = bool(few and squares[-few:].sum() > squares[:-few].sum() and len(squares) < n)

    def error(self, transform: Any) -> float:
        """Return the relative error of the force that this transform gives."""
        solution = transform.solve(self.source, self.n_threads)
        everywhere = float(np.linalg.norm(to_numpy(solution(self.source.Y)[1]))) if self.uneven else np.inf
        return self._relative(to_numpy(solution(self.targets)[1]), everywhere)

    def _relative(self, force: Array, everywhere: float) -> float:
        """Return the relative error of forces at the sample; `everywhere` is the norm of the forces at all points."""
        size = min(float(np.linalg.norm(self.force)), everywhere * (len(force) / self.n) ** 0.5)
        return max(0.0, float(np.linalg.norm(force - self.force)) - self.noise) / size if size > 0 else 0.0


@lru_cache(maxsize=8)
def checked_points(n: int) -> Array:
    """Return the indices of the points, out of n, at which the force is checked."""
    return np.sort(np.random.RandomState(0).permutation(n)[: max(CHECKED, PAIRS // n)])


def cached_by_kernel(maxsize: int) -> Callable[[F], F]:
    """Return a decorator like `lru_cache` for functions whose first argument is a kernel.

    A user-defined kernel whose attributes have changed, but not its hash, is another kernel.
    """

    def decorate(function: F) -> F:
        @lru_cache(maxsize)
        def cached(_: Any, *args: Any) -> Any:
            return function(*args)

        @wraps(function)
        def call(kernel: Kernel, *args: Any) -> Any:
            return cached(_attributes(kernel), kernel, *args)

        vars(call)["cache_clear"] = cached.cache_clear
        return cast(F, call)

    return decorate


def _attributes(value: Any) -> Any:
    """Return a hashable object that differs if an attribute of a kernel does."""
    if isinstance(value, Kernel):
        return tuple((name, _attributes(item)) for name, item in sorted(vars(value).items()))
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
