"""The mesh engine of one rank, whose rows of the affinities and points are a part of the map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._types import Array, Matrix
from ..arrays.csr import entry_values
from ..engines.base import Field, PointSums, Stepper, Traits
from ..engines.cpu import ForceCheck, HostPlacement, SteadyMesh
from ..engines.mesh.mesh_engine import Grid
from ..engines.mesh.plan import Plan, rungs_of
from ..kernels import Kernel
from .halo import Halo
from .rank_mesh import RankForceCheck, RankSource, self_term, solve
from .rank_steps import RankSteps
from .shared_map import SharedMap


class RankPlacement(HostPlacement):
    """Host memory, with sums over the points of all ranks, and edges to points of other ranks."""

    def __init__(self, sums: PointSums, column_points: Callable[[Array], Array]):
        self.sums, self._column_points = sums, column_points

    def column_points(self, Y: Array) -> Array:
        return self._column_points(Y)


class RankGrid(Grid):
    """An engine that computes edges and field at the points of one rank, from the points of all ranks.

    Maps are the rows of own points (own, d), and affinities the rows (own, `halo.size`) that `Halo.localized` returns.
    All ranks call the same functions in the same order.

    Parameters
    ----------
    shared : SharedMap
    halo : Halo
    n_threads : int
    tol : float
        The maximum relative error of the force.
    """

    traits = Traits("grid", np.float32, needs_sparse_P=True, gains_from_locality=False)

    def __init__(self, shared: SharedMap, halo: Halo, n_threads: int, tol: float):
        super().__init__(n_threads, tol)
        self.shared, self.halo = shared, halo
        self.placement = RankPlacement(shared, self.extended)
        self._patterns: dict[int, tuple[Array, _core.Csr]] = {}
        self._extended: tuple[Array | None, Array | None] = None, None

    @property
    def stepper(self) -> Stepper:  # type: ignore[override]
        return RankSteps(self)

    def extended(self, Y: Array) -> Array:
        """Return the own points Y, followed by those of other ranks that are their neighbours."""
        if self._extended[0] is not Y:
            self._extended = Y, np.ascontiguousarray(self.halo.extended(Y))
        result = self._extended[1]
        assert result is not None
        return result

    def forget_halo(self) -> None:
        """Exchange positions again at the next call, also for the same array."""
        self._extended = None, None

    def start_halo(self, Y: Array) -> Callable[[], None]:
        """Start to exchange positions for the next sums over edges, and return a function that waits for them."""
        extended = self.halo.start(Y)

        def finish() -> None:
            self._extended = Y, np.ascontiguousarray(extended())

        return finish

    def pattern(self, A: Matrix) -> _core.Csr:
        """Return the pattern of A (own, size) as a square one, in which the points of other ranks have no entries."""
        known = self._patterns.get(id(A.indices))  # matrices with the same pattern share this array
        if known is None or known[0] is not A.indices:
            indptr = np.full(self.halo.size + 1, A.indptr[-1], np.int64)
            indptr[: len(A.indptr)] = A.indptr
            known = self._patterns[id(A.indices)] = A.indices, _core.Csr(indptr, A.indices, self.halo.size)
        return known[1]

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        native, b = self._edges.native(kernel, b) if Y.dtype == np.float32 else (self._compiled(kernel), b)
        force, psi = self.edge_sums(Y, A, native, b, potential=potential)
        return (self.shared.total(psi) if potential else np.nan), force

    def edge_sums(
        self, Y: Array, A: Matrix, native: _core.Kernel, b: float, *, potential: bool = False
    ) -> tuple[Array, Array]:
        """Return E (own, d) and Ψ (own,), which is empty unless `potential` is true."""
        every = self.extended(Y)
        psi, force = np.empty(len(every) if potential else 0), np.empty(every.shape)
        _core.edges_sparse(native, b, self.pattern(A), entry_values(A), every, psi, force, self.n_threads)
        return force[: len(Y)], psi[: len(Y)]

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        source = self._source(Y, charges)
        transform = self._transform(kernel, source)
        potential, half = solve(transform, source)(source.Y)
        potential -= self_term(transform) * source.charges
        return Field(potential.reshape(source.shape), (2 * half).reshape(*source.shape, Y.shape[1]))

    def freeze(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Callable[[Array], Field]:
        source = self._source(Y, charges)
        source.widen(0.05 * (source.high - source.low) + kernel.length)
        solution = solve(self._transform(kernel, source), source)

        def field(targets: Array) -> Field:
            potential, half = solution(targets)
            shape = (len(targets), *source.shape[1:])
            return Field(potential.reshape(shape), (2 * half).reshape(*shape, targets.shape[1]))

        return field

    def steady_mesh(self, kernel: Kernel, Y: Array, charges: Array | None) -> SteadyMesh | None:
        return None  # the core takes no steps by itself: its sums would be over own points only

    def steady_source(self, kernel: Kernel, source: RankSource) -> Any:
        """Return the transform of the next field of unit charges; None if the tolerance must be checked before."""
        span = source.high - source.low
        if not np.isfinite(span).all():
            return None
        rungs = rungs_of(span, kernel.length, self.RUNGS)
        record = self._record(kernel, False, len(rungs))
        if record.fields + 1 >= self.CHECK or self._check_due(record, rungs, record.rungs):
            return None
        record.fields += 1
        return self._planned(kernel, self.shared.partition.n, rungs, record)

    def _source(self, Y: Array, charges: Array | None) -> RankSource:
        return RankSource(Y, charges, self.shared)

    def _plan(self, kernel: Kernel, n: int, rungs: tuple[int, ...], record: Any) -> Plan:
        return super()._plan(kernel, self.shared.partition.n, rungs, record)

    def _force_check(self, kernel: Kernel, source: Any) -> ForceCheck:
        return RankForceCheck(kernel, source, self._compiled(kernel))
