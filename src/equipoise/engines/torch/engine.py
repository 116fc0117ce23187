"""Defines the engine "torch", which computes edges and field in PyTorch, on a GPU or on the CPU."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..._tags import tagged
from ..._types import Array, Matrix
from ...arrays.csr import is_sparse, on_host
from ...arrays.device_csr import Rows
from ...arrays.namespace import array_namespace, is_tensor, to_numpy
from ...arrays.to_device import available_device
from ...geometry import Pairs
from ...kernels import Kernel
from ...linalg.row_products import padded_blocks
from ..base import Field, Traits
from ..cpu import Solution, StoredEdges
from ..exact import Exact
from ..mesh.mesh_engine import MeshEngine, ToleranceRecord
from ..mesh.plan import Plan, check_span
from ..sampled import HIGH_CROSSOVER
from ..tables import kernel_table
from .device_arrays import DevicePlacement, DeviceSource, like_input
from .device_plan import DIRECT, RUNGS, SAMPLED, device_plan, extent_limits, rungs_with_room
from .direct import Direct
from .edges import stored_edges
from .lookup import Lookup
from .particle_mesh import ParticleMesh
from .partners import WIDEST, Partners
from .replay import CudaGraph, PlannedSteps

TARGETS = 256  # new points whose field is computed at once on the CPU; chosen


@tagged("engines.torch.Torch")
class Torch(MeshEngine):
    """An engine in PyTorch that sums edges over the stored entries of a matrix and computes the field on a mesh.

    Field: as by engine="grid", a kernel too sharp for an affordable mesh is split into a smooth part, on the mesh, and
    a near part, summed over near pairs. If the mesh would be too large or cost more than direct sums, the field is
    summed over all pairs. In more than three dimensions there is no mesh: the field is sampled, as by engine="sampled",
    if there are many points (see `sum_exactly`), and otherwise summed over all pairs.

    Edges: they are summed on the CPU, as by engine="exact", if Y is a NumPy array and either Y is in float64 or A is
    dense. Edges to new points are always summed on the CPU.

    Edges and direct sums read every kernel, even a user-defined one, from a table. There is one exception: on a GPU in
    up to three dimensions, edges compute a rational k'/k by its formula if Ψ is not needed.

    Parameters
    ----------
    n_threads : int
        Number of threads for the sums on the CPU.
    tol : float
        The maximum relative error of the force.
    device : str
        "cpu" or "cuda".
    deterministic : bool, default=True
        Whether sums run in a fixed order or over integers, so that every run on one device gives identical results, bit
        for bit.
    seed : int, default=0
        Seed of the sample of pairs, in more than three dimensions.
    """

    traits = Traits("torch", np.float32, needs_sparse_P=True, gains_from_locality=True)
    pairs: Pairs | None = None  # flat space only
    RUNGS = RUNGS
    MOVED = RUNGS // 2  # a factor of √2
    CHECK = 100
    cache = 8  # a mesh and direct sums for each kernel of a loss, current and previous

    def __init__(self, n_threads: int, tol: float, device: str, deterministic: bool = True, seed: int = 0):
        super().__init__(n_threads, tol)
        self.device = torch.device(device)
        self.deterministic = deterministic
        self.seed = seed
        self._graph = CudaGraph(self.device)
        self.placement = DevicePlacement(self.device, self._graph)
        self._host_edges = StoredEdges(n_threads, Exact)
        self._always: Rows | None = None
        self._rows: dict[int, Rows] = {}
        self._lookups: dict[tuple[Kernel, float], Lookup] = {}

    @property
    def stepper(self) -> GraphStepper:
        return GraphStepper(self, self._graph)  # not stored: a reference cycle would delay freeing GPU memory

    @property
    def settings(self) -> dict[str, Any]:
        own = {"device": self.device.type, "deterministic": self.deterministic}
        drawn = {} if self._always is None else {"seed": int(self.seed)}
        return {**super().settings, **own, **drawn}

    def __getstate__(self) -> dict[str, Any]:
        own = {"device": self.device.type, "deterministic": self.deterministic, "seed": self.seed}
        return {**super().__getstate__(), **own, "always": None if self._always is None else self._always.host()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        device = available_device(state["device"]).type
        self.__init__(  # type: ignore[misc]
            state["n_threads"], state["tol"], device, state["deterministic"], state["seed"]
        )
        self._always = None if state["always"] is None else Rows.of(state["always"], self.device)
        self.restore(state["state"])

    def sum_exactly(self, P: Any, d: int) -> None:
        """From now on, sample the field if d > 3, P is sparse, and there are at least HIGH_CROSSOVER points.

        Every sample then includes each pair that P stores in either direction.
        """
        if d > 3 and P.shape[0] >= HIGH_CROSSOVER and is_sparse(P):
            rows = P if isinstance(P, Rows) else Rows.of(P, self.device)
            pairs = rows.with_data(torch.ones_like(rows.data)).symmetrized()
            self._always = pairs.where(pairs.indices != pairs.entry_rows())

    def edges(self, Y: Any, A: Any, kernel: Kernel, b: float, *, potential: bool) -> tuple[Any, Any]:
        if not is_tensor(Y) and (Y.dtype == np.float64 or not is_sparse(A)):
            return self._host_edges.edges(Y, on_host(A), kernel, b, potential=potential)
        rows = A if isinstance(A, Rows) else self._on_device(A)
        psi, force = stored_edges(self._to_float32(Y), rows, self._edge_lookup(kernel, b), potential=potential)
        return (psi if is_tensor(Y) else float(psi)) if potential else np.nan, like_input(Y, force)

    def _edge_lookup(self, kernel: Kernel, b: float) -> Lookup:
        """Return the table of ψ_b and its slope on the device, from a cache."""
        if (kernel, b) not in self._lookups:
            rational = kernel.rational if b == -1 else None
            self._lookups[kernel, b] = Lookup(self._host_edges.table(kernel, b), self.device, rational)
        return self._lookups[kernel, b]

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        return self._host_edges.edges_to(targets, to_numpy(Y), A, kernel, b)

    def field(self, Y: Any, kernel: Kernel, charges: Any = None) -> Field:
        source = self._source(Y, charges)
        potential, gradient = self._transform(kernel, source).solve(source, self.n_threads)(source.Y)
        shape = source.shape
        return Field(
            like_input(Y, potential.reshape(shape)), like_input(Y, gradient.reshape(*shape, source.Y.shape[1]))
        )

    def freeze(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Callable[[Array], Field]:
        field = super().freeze(Y, kernel, charges)
        if self.device.type != "cpu":  # on a GPU the sums of a target do not depend on the other targets
            return field

        def in_blocks(targets: Array) -> Field:
            """Return the field at targets, computed in blocks of one size.

            PyTorch adds numbers in an order that depends on the size of a block. With blocks of one size, the result
            for a target does not depend on the number of targets.
            """
            parts = [[array[:m] for array in field(block)] for block, m in padded_blocks(targets, TARGETS)]
            xp = array_namespace(targets)
            return Field(*(xp.concat(arrays) for arrays in zip(*parts, strict=True))) if parts else field(targets)

        return in_blocks

    def _to_float32(self, array: Any) -> Any:
        return self.placement.to_device(array, np.float32)

    def _source(self, Y: Any, charges: Any) -> DeviceSource:
        amounts = None if charges is None else self._to_float32(charges)
        return DeviceSource(self._to_float32(Y), amounts, self.placement.concurrently)

    def _on_device(self, A: Matrix) -> Rows:
        """Return a CSR matrix on the device, cached as long as A exists."""
        if id(A) not in self._rows:
            self._rows[id(A)] = Rows.of(A, self.device)
            weakref.finalize(A, self._rows.pop, id(A), None)
        return self._rows[id(A)]

    def _transform(self, kernel: Kernel, source: DeviceSource) -> Any:
        """Return the transform for this embedding; first, if needed, plan a new mesh and check the tolerance.

        While a step is recorded, nothing is planned; instead, the recorded step sets the flag of the CUDA graph if the
        embedding no longer fits its mesh. In more than three dimensions there is no mesh, and nothing is planned.
        """
        if source.Y.shape[1] > 3:
            if self._graph.recording:
                self._graph.flag_narrow(source.box)
            return self._cached_transform(kernel, DIRECT if self._always is None else SAMPLED)
        record = self._record(kernel, source.charged, source.Y.shape[1])
        if self._graph.recording:
            self._graph.flag_extent(source.box, *self._limits(kernel, record))
        else:
            self._update_plan(kernel, source, record)
            record.fields += 1
        return self._planned(kernel, len(source.Y), record.rungs, record)

    def _update_plan(self, kernel: Kernel, source: DeviceSource, record: ToleranceRecord) -> bool:
        """Plan a new mesh if the embedding no longer fits its mesh, and check the tolerance if a check is due.

        Return whether either was done.
        """
        span = (source.box[1] - source.box[0]).cpu().numpy()  # float32, as in the check on the device
        check_span(span)
        outside = not record.rungs or not self._inside(kernel, record, span)
        if outside:
            record.rungs = rungs_with_room(kernel, self._pair_error(record.level), span.astype(np.float64))
        if due := self._check_due(record, record.rungs, record.checked):
            record.fields, record.checked = 0, record.rungs
            self._meet_tolerance(kernel, source, record)
        elif outside:  # fill the caches of a new mesh before it is recorded in a CUDA graph
            mesh = self._planned(kernel, len(source.Y), record.rungs, record)
            mesh.solve(source, self.n_threads)(source.Y[:1])
        return outside or due

    def replayable(self, n: int, count: int) -> tuple[list[Any] | None, list[tuple[int, ...]], int]:
        """Return the meshes planned for n points, their rungs, and how many steps to replay before the next check.

        The number is at most `count`. In more than three dimensions, the transforms that sample partners take the place
        of meshes, and there is no check. If a field is computed by direct sums, no step can be replayed: return None,
        an empty list and 0.
        """
        records = self._records.values()
        if not records:  # more than three dimensions
            sampled = [transform for (_, of), transform in self._transforms.items() if of == SAMPLED]
            return (sampled, [], count) if sampled else (None, [], 0)
        meshes = [self._planned(kernel, n, r.rungs, r) for (kernel, *_), r in self._records.items()]
        if any(isinstance(mesh, Direct) for mesh in meshes):
            return None, [], 0
        return meshes, [record.rungs for record in records], min([count, *(self.CHECK - r.fields for r in records)])

    def count_fields(self, count: int) -> None:
        """Count the fields of replayed steps towards the next check of the tolerance."""
        for record in self._records.values():
            record.fields += count

    def plan_ahead(self, U: Any) -> bool:
        """Plan for the embedding U, as the next step would, and return whether a new mesh or a check was due.

        The charges of the next step are unknown: if any field so far was computed with explicit charges, do nothing and
        return False.
        """
        if any(record.charged for record in self._records.values()):
            return False
        source = self._source(U, None)
        return any([self._update_plan(kernel, source, record) for (kernel, *_), record in self._records.items()])

    def _limits(self, kernel: Kernel, record: ToleranceRecord) -> tuple[tuple[float, ...], float]:
        """Return the limits of the sides of the embedding outside which it needs a new mesh (see `extent_limits`)."""
        return extent_limits(kernel, self._pair_error(record.level), record.rungs)

    def _inside(self, kernel: Kernel, record: ToleranceRecord, span: Array) -> bool:
        """Return whether an embedding with sides `span` fits its mesh, that is, is within the limits of `_limits`."""
        max_sides, min_widest = self._limits(kernel, record)
        return bool((span <= np.array(max_sides, np.float32)).all() and span.max() >= np.float32(min_widest))

    def _choose_mesh(self, kernel: Kernel, error: float, n: int, span: tuple[float, ...]) -> Plan:
        return device_plan(kernel, error, n, span)

    def _make_transform(self, kernel: Kernel, of: Plan) -> Any:
        if of not in (DIRECT, SAMPLED):
            return ParticleMesh(kernel, of, self.device, self.deterministic or self.device.type != "cuda")
        table = kernel_table(kernel)
        if of == DIRECT or self._always is None:
            return Direct(kernel, table, self.device)
        return Partners(kernel, table, self.device, self.seed, self._always)

    def _direct(self, kernel: Kernel, source: DeviceSource) -> Solution:
        return self._cached_transform(kernel, DIRECT).solve(source, self.n_threads)


class GraphStepper:
    """Replays optimiser steps as a CUDA graph, as long as the embedding fits its meshes.

    It replays no steps on the CPU, or if a field is computed by direct sums.
    """

    def __init__(self, engine: Torch, graph: CudaGraph):
        self._engine, self._graph = engine, graph

    def replay_steps(self, step: Callable[[Any], None], key: object, state: Any, count: int, min_extent: float) -> int:
        if self._graph.device.type != "cuda" or state.U.shape[1] > WIDEST:
            return 0
        taken = 0
        while True:
            meshes, rungs, ahead = self._engine.replayable(len(state.U), count - taken)
            if meshes is None:
                return taken
            # The key keeps the meshes alive.
            planned = PlannedSteps.of(self._engine, step, state, ahead)
            replayed = self._graph.replay(planned or step, (key, meshes, rungs), state, ahead, min_extent)
            self._engine.count_fields(replayed)
            taken += replayed
            if taken == count or not self._engine.plan_ahead(state.U):
                return taken

    def free_buffers(self) -> None:
        self._graph.free()
