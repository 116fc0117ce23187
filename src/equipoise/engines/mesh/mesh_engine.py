"""Computes the field of any kernel in linear time, by FFTs on a B-spline mesh (docs/math.md, section 10).

The user sets `tol`, the maximum relative error of the force. The engine measures, on the embedding itself, how coarse
the mesh can be without exceeding it. On the CPU, a kernel too sharp for an affordable mesh is split into two parts: a
smooth part, which the mesh resolves, and a near part, which is zero beyond a short radius and is summed over the pairs
within this radius. `MeshEngine` is the base class of the engines `Grid`, on the CPU, and `Torch`, in PyTorch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ... import _core
from ..._tags import tagged
from ..._types import Array, Matrix
from ..._warn import warn
from ...kernels import Kernel
from ..base import Field, Stepper, Traits
from ..cpu import CompiledKernels, CpuEngine, ForceCheck, FusedSteps, Solution, SteadyMesh, StoredEdges
from ..exact import Exact
from .plan import THIN, TINY, Plan, Source, Transform, bounding_box, check_span, plan, rungs_of, span_limits, span_of

CACHE = 4  # kernel transforms cached: the extents of an embedding change by one rung at a time
# When and how the tolerance is checked. Chosen; it was met in every test and benchmark that measures it.
LOWEST, HIGHEST = -32, 4  # range of levels (see ToleranceRecord): the pair error is between tol / 2^16 and 4 tol
# The error of a spline of order 6 grows by 2^6 from one octave of the box to the next, so that below this fraction of
# the allowed error the next check can wait for an octave.
AMPLE = 1e-3


@dataclass
class ToleranceRecord:
    """How fine a mesh must be for one kernel to meet the tolerance, and when this was last checked.

    The fineness is stored as a level: the mesh is planned so that the force between two points has a relative error of
    at most tol · 2^(level/2). A lower level means a finer mesh. Checkpoints store the attributes under their names.
    """

    kernel: str  # the name of the kernel's class
    charged: bool  # whether the field was computed for given charges
    d: int  # dimension of the embedding
    level: int = 0
    rungs: tuple[int, ...] = ()  # sides of the box, see rungs_of: for "grid" at the last check, for "torch" of its mesh
    checked: tuple[int, ...] = ()  # for "torch": the value of `rungs` at the last check
    fields: int = 0  # number of fields computed since the last check
    warned: bool = False
    double: bool = False  # whether rounding errors in float32 exceeded the tolerance at the last check
    ample: bool = False  # whether the error at the last check was at most AMPLE of the allowed error, at level HIGHEST

    @classmethod
    def restored(cls, plain: dict[str, Any]) -> ToleranceRecord:
        """Return the record whose attributes `plain` were read from a file.

        Raise ValueError if attributes are missing or unknown, if a number is not an integer, or if `rungs` or `checked`
        has neither 0 nor d entries, where d is the stored dimension of the embedding.
        """
        try:
            record = cls(**plain)
            integers = (record.d, record.level, record.fields, *record.rungs, *record.checked)
            sides = {len(record.rungs), len(record.checked)}
        except TypeError:  # attributes are missing or unknown, or the rungs are not a sequence
            raise ValueError(
                "the tolerance record of the mesh has the wrong form: an attribute is missing or unknown, or"
                " 'rungs' or 'checked' is not a sequence"
            ) from None
        if not (all(isinstance(value, int | np.integer) for value in integers) and sides <= {0, record.d}):
            raise ValueError(
                "the tolerance record of the mesh has the wrong form: 'd', 'level', 'fields' and the entries of 'rungs'"
                " and 'checked' must be integers, and 'rungs' and 'checked' must each have 0 or d entries"
            )
        return record


class MeshEngine(ABC):
    """Base class of engines that compute the field on a mesh; it plans the mesh and checks the tolerance.

    A subclass defines `edges`, `field`, `edges_to`, the abstract methods and the attributes below. To reuse meshes, the
    sides of the box around the embedding are rounded up to fixed lengths, called rungs.

    Parameters
    ----------
    n_threads : int
    tol : float
        The maximum relative error of the force.

    Attributes
    ----------
    MARGIN : float, default=0.8
        The fraction of `tol` allowed at the checked points.
    RUNGS : int
        Number of rungs per octave, that is, per factor of 2: the ratio of two consecutive rungs is 2^(1/RUNGS).
    MOVED : int
        The tolerance is checked again when a side of the box has changed by this number of rungs.
    CHECK : int
        The tolerance is checked again after this number of fields, even if the box has not changed.
    """

    MARGIN = 0.8
    RUNGS: int
    MOVED: int
    CHECK: int
    cache = CACHE

    def __init__(self, n_threads: int, tol: float):
        self.n_threads = n_threads
        self.tol = tol
        self._transforms: OrderedDict[tuple[Kernel, Plan], Any] = OrderedDict()
        self._records: dict[tuple[Kernel, bool, int], ToleranceRecord] = {}
        self._restored: list[ToleranceRecord] = []  # not yet assigned to a kernel

    @property
    def settings(self) -> dict[str, Any]:
        return {"tol": float(self.tol)}

    def state(self) -> list[dict[str, Any]]:
        return [asdict(record) for record in (*self._records.values(), *self._restored)]

    def restore(self, state: list[dict[str, Any]]) -> None:
        self._records, self._restored = {}, [ToleranceRecord.restored(record) for record in state]

    def __getstate__(self) -> dict[str, Any]:
        return {"n_threads": self.n_threads, "tol": self.tol, "state": self.state()}  # caches are rebuilt

    def freeze(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Callable[[Array], Field]:
        source = self._source(Y, charges)
        margin = 0.05 * (source.high - source.low) + kernel.length  # new points may lie slightly outside
        source.widen(margin)
        solution = self._transform(kernel, source).solve(source, self.n_threads)

        def field(targets: Array) -> Field:
            potential, gradient = solution(targets)
            shape = (len(targets), *source.shape[1:])
            return Field(potential.reshape(shape), gradient.reshape(*shape, targets.shape[1]))

        return field

    @abstractmethod
    def _source(self, Y: Any, charges: Any) -> Any:
        """Return the points with their charges and bounding box."""

    @abstractmethod
    def _transform(self, kernel: Kernel, source: Any) -> Any:
        """Return a kernel transform that meets the tolerance on this embedding."""

    @abstractmethod
    def _choose_mesh(self, kernel: Kernel, error: float, n: int, span: tuple[float, ...]) -> Plan:
        """Return the plan of a mesh for n points in a box with sides `span`.

        `error` is the maximum relative error of the force between two points.
        """

    @abstractmethod
    def _make_transform(self, kernel: Kernel, of: Plan) -> Any:
        """Compute the transform of a kernel for the plan `of`, without a cache."""

    @abstractmethod
    def _direct(self, kernel: Kernel, source: Any) -> Solution:
        """Return a function of targets (t, d) that gives Φ and ∇Φ by direct sums over all points of the source.

        At a target that coincides with a point of the source, that point contributes too (a self term). If the targets
        are the array `source.Y` itself, some engines omit the self terms, so pass a copy.
        """

    def _force_check(self, kernel: Kernel, source: Any) -> ForceCheck:
        """Return the object that measures the error of transforms on this embedding."""
        return ForceCheck(kernel, source, self._direct(kernel, source), self.n_threads)

    def _pair_error(self, level: int) -> float:
        """Return the maximum relative error of the force between two points at a level (see `ToleranceRecord`)."""
        return float(self.tol * 2 ** (level / 2))

    def _plan(self, kernel: Kernel, n: int, rungs: tuple[int, ...], record: ToleranceRecord) -> Plan:
        """Return the plan of a mesh for n points in a box with sides `rungs`, as fine and precise as `record` says."""
        span = span_of(rungs, kernel.length, self.RUNGS)
        of = self._choose_mesh(kernel, self._pair_error(record.level), n, span)
        return of._replace(dtype=np.float64) if record.double and of.h > 0 else of

    def _planned(self, kernel: Kernel, n: int, rungs: tuple[int, ...], record: ToleranceRecord) -> Any:
        """Return the transform, from the cache or new, for the plan that `_plan` returns."""
        return self._cached_transform(kernel, self._plan(kernel, n, rungs, record))

    def _check_due(self, record: ToleranceRecord, rungs: tuple[int, ...], checked: tuple[int, ...]) -> bool:
        """Return whether the tolerance must be checked now.

        A check is due if there was none before, if a side of the box has changed by at least MOVED rungs since the last
        check, or by an octave if the error was very small, or if at least CHECK fields were computed since then.
        """
        moved = self.RUNGS if record.ample else self.MOVED
        far = not checked or max(abs(a - b) for a, b in zip(rungs, checked, strict=True)) >= moved
        return far or record.fields >= self.CHECK

    def _cached_transform(self, kernel: Kernel, of: Plan) -> Any:
        """Return the transform of a kernel for the plan `of` from the cache; compute it if it is not there."""
        key = (kernel, of)
        if key not in self._transforms:
            self._transforms[key] = self._make_transform(kernel, of)
            if len(self._transforms) > self.cache:
                self._transforms.popitem(last=False)
        self._transforms.move_to_end(key)
        return self._transforms[key]

    def _record(self, kernel: Kernel, charged: bool, d: int) -> ToleranceRecord:
        """Return the record of a kernel: the one in use, else the first match from a checkpoint, else a new one."""
        key = (kernel, charged, d)
        if key not in self._records:
            new = ToleranceRecord(type(kernel).__name__, charged, d)
            same = [old for old in self._restored if (old.kernel, old.charged, old.d) == (new.kernel, charged, d)]
            self._records[key] = (same or [new])[0]
            self._restored = [old for old in self._restored if old is not self._records[key]]
        return self._records[key]

    def _meet_tolerance(self, kernel: Kernel, source: Any, record: ToleranceRecord) -> Any:
        """Return a transform that meets the tolerance, after refining the plan if needed or coarsening it if possible.

        Refining helps until rounding errors dominate; then float64 is tried. If nothing helps any more, return the
        finest transform tried; if its error exceeds `tol`, warn, but only once for each record.
        """
        check = self._force_check(kernel, source)

        def planned(level: int) -> Plan:
            return self._plan(kernel, len(source.Y), record.rungs, replace(record, level=level))

        def excess(level: int) -> float:
            """Return the measured error of the plan for this level, divided by the allowed error MARGIN · tol."""
            return check.error(self._cached_transform(kernel, planned(level))) / (self.MARGIN * self.tol)

        def widened(error: float) -> float:
            """Use float64 from now on if it halves the error, which is in float32, and return the error."""
            if planned(record.level).dtype == np.float64:
                return error
            record.double = True
            in_float64 = excess(record.level)
            record.double = in_float64 <= error / 2
            return in_float64 if record.double else error

        was_double, record.double = record.double, False
        error, stalled = excess(record.level), 0
        if error > 1 and was_double:
            error = widened(error)
        if error <= 0.5 and record.level < HIGHEST:
            level = min(HIGHEST, record.level + (int(-2 * np.log2(error)) if error > 0 else HIGHEST))
            of_level = error if planned(level) == planned(record.level) else excess(level)
            if of_level <= 1:
                record.level, error = level, of_level
        while error > 1 and record.level > LOWEST and stalled < 3:
            tried = planned(record.level)
            record.level = max(LOWEST, record.level - int(np.ceil(2 * np.log2(error))))
            if planned(record.level) != tried:
                last, error = error, excess(record.level)
                if error > 1:
                    error = widened(error)
                stalled = stalled + 1 if error > 0.9 * last else 0
        record.ample = error <= AMPLE and record.level == HIGHEST
        if error * self.MARGIN > 1 and not record.warned:
            record.warned = True
            warn(
                f"the force of {kernel} on the mesh has a relative error of {error * self.MARGIN * self.tol:.2g}, more"
                f' than tol={self.tol:g}; use engine="exact" on the CPU, which computes the force without a mesh',
            )
        return self._cached_transform(kernel, planned(record.level))


@tagged("engines.grid.Grid")
class Grid(MeshEngine, CpuEngine):
    """An engine on the CPU that sums edges over the stored entries of a sparse matrix and computes the field on a mesh.

    It works in 1, 2 or 3 dimensions.

    Parameters
    ----------
    n_threads : int
    tol : float
        The maximum relative error of the force.
    """

    traits = Traits("grid", np.float32, needs_sparse_P=True, gains_from_locality=True)
    RUNGS = 4  # a growing embedding rarely needs a new kernel transform
    # Chosen by benchmarks/tolerance.py: with a margin of 0.8 and 2 rungs, errors between checks reached 2 tol.
    MARGIN, MOVED, CHECK = 0.55, 1, 50

    def __init__(self, n_threads: int, tol: float):
        super().__init__(n_threads, tol)
        self._edges = StoredEdges(n_threads, Exact)
        self._compiled = CompiledKernels()

    @property
    def stepper(self) -> Stepper:  # type: ignore[override]
        return FusedSteps(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["n_threads"], state["tol"])  # type: ignore[misc]
        self.restore(state["state"])

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        return self._edges.edges(Y, A, kernel, b, potential=potential)

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        return self._edges.edges_to(targets, Y, A, kernel, b)

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        source, d = self._source(Y, charges), Y.shape[1]
        transform = self._transform(kernel, source)
        potential, gradient = transform.solve(source, self.n_threads)(source.Y)
        potential -= transform.at_zero * source.charges  # the mesh includes the point itself
        return Field(potential.reshape(source.shape), gradient.reshape(*source.shape, d))

    def _source(self, Y: Array, charges: Array | None) -> Source:
        if Y.shape[1] > 3:
            raise ValueError(
                f'engine="grid" works in 1, 2 or 3 dimensions, not {Y.shape[1]}; use engine="sampled" or "exact"'
            )
        return Source(Y, charges)

    def _transform(self, kernel: Kernel, source: Source) -> Transform:
        check_span(source.high - source.low)
        rungs = rungs_of(source.high - source.low, kernel.length, self.RUNGS)
        record = self._record(kernel, source.charged, len(rungs))
        record.fields += 1
        if not self._check_due(record, rungs, record.rungs):
            return self._planned(kernel, len(source.Y), rungs, record)
        record.rungs, record.fields = rungs, 0
        return self._meet_tolerance(kernel, source, record)

    def compiled_edges(self, kernel: Kernel) -> _core.Kernel:
        """Return the compiled kernel of edges with b = −1."""
        return self._edges.native(kernel, -1.0)[0]

    def steady_mesh(self, kernel: Kernel, Y: Array, charges: Array | None) -> SteadyMesh | None:
        """Return the mesh of the next fields of Y, after a check of the tolerance if one is due; None if not finite."""
        low, high = bounding_box(Y)
        span = high - low
        if not np.isfinite(span).all():
            return None
        rungs = rungs_of(span, kernel.length, self.RUNGS)
        record = self._record(kernel, charges is not None, len(rungs))
        if record.fields >= self.CHECK - 1 or self._check_due(record, rungs, record.rungs):
            record.rungs, record.fields = rungs, -1  # the next field belongs to the check
            transform = self._meet_tolerance(kernel, self._source(Y, charges), record)
        else:
            transform = self._planned(kernel, len(Y), rungs, record)
        limits = span_limits(rungs, kernel.length, self.RUNGS)
        return SteadyMesh(transform.compiled, *limits, THIN, TINY * kernel.length, self.CHECK - 1 - record.fields)

    def count_fields(self, kernel: Kernel, d: int, charged: bool, count: int) -> None:
        """Count fields in d dimensions that were computed by steps of the core."""
        self._record(kernel, charged, d).fields += count

    def _choose_mesh(self, kernel: Kernel, error: float, n: int, span: tuple[float, ...]) -> Plan:
        return plan(kernel, error, n, span)

    def _make_transform(self, kernel: Kernel, of: Plan) -> Transform:
        return Transform(kernel, of, self.n_threads)

    def _direct(self, kernel: Kernel, source: Source) -> Solution:
        compiled, m = self._compiled(kernel), source.charges.shape[1]

        def solution(targets: Array) -> tuple[Array, Array]:
            potential, half = np.empty((len(targets), m)), np.empty((len(targets), m, targets.shape[1]))
            _core.field_at(compiled, source.charges, targets, source.Y, potential, half, self.n_threads)
            return potential, 2 * half

        return solution
