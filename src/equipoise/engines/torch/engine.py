"""The two primitives in PyTorch: on a GPU, or on the CPU, where they are tested."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import fft

from ..._tags import tagged
from ..._types import Array, Matrix
from ...arrays.csr import is_sparse, on_host
from ...arrays.device_csr import Rows
from ...arrays.namespace import host, is_tensor
from ...arrays.transfer import again
from ...kernels import Kernel
from ..base import Field
from ..choose import HIGH_CROSSOVER
from ..mesh.grid import Grid, Trust
from ..mesh.plan import BEYOND, DOUBLE, Plan, mesh_width
from ..tables import tabulate
from .device_arrays import DevicePlacement, DeviceSource, as_given
from .direct import Direct
from .edges import stored_edges
from .lookup import Lookup
from .particle_mesh import Mesh
from .partners import Partners
from .replay import CudaGraph

NODES = 2**24  # of a mesh; beyond, direct sums take its place: an FFT of the padded mesh would fill the memory; chosen
PAIRS_A_NODE = 4  # that cost no more than a node of the mesh; chosen
RUNGS = 16  # extents come in 16 steps per octave
# A mesh has room for the map to grow, in 1, 2 and 3 dimensions: many times where it is small, then up to so many nodes
# a side, and a little beyond. Chosen: a new mesh costs as much as 20 steps, a wider one its share of each.
ROOM, SIDES, LEAST = {1: 16.0, 2: 16.0, 3: 4.0}, {1: 4096, 2: 256, 3: 64}, 1.3
MOVED = RUNGS // 2  # rungs that an extent moves before the tolerance is checked again: as far as on the CPU
CHECK = 100  # fields after which the tolerance is checked again in any case
CELLS = 8  # of the mesh that the widest side of a map has, at least
SHRUNK = 4  # times that a map may shrink before its mesh does
DIRECT, SAMPLED = Plan(0.0, (), 0.0, np.float32), Plan(-1.0, (), 0.0, np.float32)


@tagged("engines.torch.Torch")
class Torch(Grid):
    """Edges over the stored pairs and field on a mesh, on a device; force error at most `tol`, relative.

    Kernels are read from tables, a user's own too. No kernel is split: where no mesh carries it the field is summed
    over all pairs. In more than three dimensions it is too, and for many points sampled, as by "sampled". Sums run in a
    fixed order, or over whole numbers: the same bytes every time on one device, unless `deterministic` is false. Edges
    of arrays in float64, or along matrices that are not sparse, are summed on the CPU as by "exact".
    """

    name = "torch"
    cache = 8  # a mesh and direct sums for each of the kernels of a loss, and what they were before

    def __init__(self, n_threads: int, tol: float, device: str, deterministic: bool = True, seed: int = 0):
        super().__init__(n_threads, tol)
        self.device = torch.device(device)
        self.deterministic = deterministic
        self.seed = seed
        self._always: Rows | None = None
        self._rows: dict[int, Rows] = {}
        self._lookups: dict[tuple[Kernel, float], Lookup] = {}
        self._graph = CudaGraph(self.device)
        self.placement = DevicePlacement(self.device, self._graph)

    @property
    def stepper(self) -> GraphStepper:
        return GraphStepper(self, self._graph)  # not stored: a reference cycle would keep GPU memory until collected

    @property
    def settings(self) -> dict[str, Any]:
        own = {"device": self.device.type, "deterministic": self.deterministic}
        drawn = {} if self._always is None else {"seed": int(self.seed)}
        return {**super().settings, **own, **drawn}

    def __getstate__(self) -> dict[str, Any]:
        own = {"device": self.device.type, "deterministic": self.deterministic, "seed": self.seed}
        return {**super().__getstate__(), **own, "always": None if self._always is None else self._always.host()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        there = again(state["device"]).type
        self.__init__(  # type: ignore[misc]
            state["n_threads"], state["tol"], there, state["deterministic"], state["seed"]
        )
        self._always = None if state["always"] is None else Rows.of(state["always"], self.device)
        self.restore(state["state"])

    def sum_exactly(self, P: Any, d: int) -> None:
        """Include the pairs stored in P in either direction in every sample, if there will be any."""
        if d > 3 and P.shape[0] >= HIGH_CROSSOVER and is_sparse(P):
            rows = P if isinstance(P, Rows) else Rows.of(P, self.device)
            pairs = rows.with_data(torch.ones_like(rows.data)).symmetrized()
            own = torch.arange(P.shape[0], device=self.device).repeat_interleave(pairs.counts(), output_size=pairs.nnz)
            self._always = pairs.where(pairs.indices != own)

    def edges(self, Y: Any, A: Any, kernel: Kernel, b: float, *, potential: bool) -> tuple[Any, Any]:
        if not is_tensor(Y) and (Y.dtype == np.float64 or not is_sparse(A)):
            return self._exact.edges(Y, on_host(A), kernel, b, potential=potential)
        if (kernel, b) not in self._lookups:
            rational = kernel.rational if b == -1 else None
            self._lookups[kernel, b] = Lookup(self._table(kernel, b), self.device, rational)
        rows = A if isinstance(A, Rows) else self._on_device(A)
        psi, force = stored_edges(self._to_float32(Y), rows, self._lookups[kernel, b], potential=potential)
        return (psi if is_tensor(Y) else float(psi)) if potential else np.nan, as_given(Y, force)

    def field(self, Y: Any, kernel: Kernel, charges: Any = None) -> Field:
        source = self._source(Y, charges)
        potential, gradient = self._transform(kernel, source).solve(source, self.n_threads)(source.Y)
        shape = source.shape
        return Field(as_given(Y, potential.reshape(shape)), as_given(Y, gradient.reshape(*shape, source.Y.shape[1])))

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        return super().edges_to(targets, host(Y), A, kernel, b)

    def _to_float32(self, array: Any) -> Any:
        return self.placement.to_device(array, np.float32)

    def _source(self, Y: Any, charges: Any) -> Any:
        return DeviceSource(self._to_float32(Y), None if charges is None else self._to_float32(charges))

    def _direct(self, kernel: Kernel, source: Any) -> Any:
        return self._make(kernel, DIRECT).solve(source, self.n_threads)

    def _on_device(self, A: Matrix) -> Rows:
        """Return a matrix on the device, where it stays as long as it is in use here."""
        if id(A) not in self._rows:
            self._rows[id(A)] = Rows.of(A, self.device)
            weakref.finalize(A, self._rows.pop, id(A), None)
        return self._rows[id(A)]

    def _transform(self, kernel: Kernel, source: Any) -> Any:
        """Return the transform that was planned, as long as the map is inside it and it was checked not long ago."""
        if source.Y.shape[1] > 3:
            return self._make(kernel, DIRECT if self._always is None else SAMPLED)
        trust = self._trust_in(kernel, source.charged, source.Y.shape[1])
        if self._graph.recording:
            self._graph.flag_extent(source.box, *self._limits(kernel, trust))
        else:
            self._settle(kernel, source, trust)
            trust.fields += 1
        return self._planned(kernel, len(source.Y), trust)

    def _planned(self, kernel: Kernel, n: int, trust: Trust) -> Any:
        """Return the transform that is planned for n points."""
        return self._make(kernel, self._plan(kernel, n, trust.rungs, trust.level))

    def _settle(self, kernel: Kernel, source: Any, trust: Trust) -> bool:
        """Plan for a map that has left its room, and check the tolerance where that is due; False if neither was."""
        span = (source.box[1] - source.box[0]).cpu().numpy()  # float32, as what watches it on the device
        if not np.isfinite(span).all():
            raise FloatingPointError("the map is no longer finite: the learning rate is too large for this data")
        outside = not trust.rungs or not self._inside(kernel, trust, span)
        if outside:
            trust.rungs = self._rungs(kernel, span.astype(np.float64), trust.level)
        far = not trust.checked or max(abs(a - b) for a, b in zip(trust.rungs, trust.checked, strict=True)) >= MOVED
        if due := far or trust.fields >= CHECK:
            trust.fields, trust.checked = 0, trust.rungs
            self._keep(kernel, source, trust)
        elif outside:  # what a mesh makes when it is first used is not left to a graph
            self._planned(kernel, len(source.Y), trust).solve(source, self.n_threads)(source.Y[:1])
        return outside or due

    def replayable(self, n: int, count: int) -> tuple[list[Any] | None, list[tuple[int, ...]], int]:
        """Return the meshes planned for n points, None if one is a direct sum, their rungs, and up to how many steps
        they serve before the tolerance is checked again, at most `count`."""
        trusts = self._trust.values()
        meshes = [self._planned(kernel, n, trust) for (kernel, *_), trust in self._trust.items()]
        if any(isinstance(mesh, Direct) for mesh in meshes):
            return None, [], 0
        return meshes, [trust.rungs for trust in trusts], min([count, *(CHECK - trust.fields for trust in trusts)])

    def count_fields(self, count: int) -> None:
        """Count the fields of replayed steps, as the tolerance is checked after a number of them."""
        for trust in self._trust.values():
            trust.fields += count

    def plan_ahead(self, U: Any) -> bool:
        """Plan for the embedding of the next step, as that step would; False if nothing is due or there are charges."""
        if any(trust.charged for trust in self._trust.values()):
            return False
        source = self._source(U, None)
        return any([self._settle(kernel, source, trust) for (kernel, *_), trust in self._trust.items()])

    def _rungs(self, kernel: Kernel, span: Array, level: int) -> tuple[int, ...]:
        """Return the rungs of a box with room around a map of this span."""
        d, widest = len(span), float(span.max())
        h = min(mesh_width(kernel, self.tol * 2 ** (level / 2), d), widest / CELLS)
        room = min(ROOM[d], max(LEAST, SIDES[d] * h / widest)) if h > 0 else LEAST
        least = max(widest / 64, 1e-12 * kernel.length)
        return tuple(int(np.ceil(RUNGS * np.log2(room * max(s, least) / kernel.length))) for s in span)

    def _limits(self, kernel: Kernel, trust: Trust) -> tuple[tuple[float, ...], float]:
        """Return the widest sides of a map inside its box, and what its widest side is at least."""
        sides = tuple(float(np.float32(kernel.length * 2.0 ** (rung / RUNGS))) for rung in trust.rungs)
        return sides, float(np.float32(max(sides) / SHRUNK / ROOM[trust.d]))

    def _inside(self, kernel: Kernel, trust: Trust, span: Array) -> bool:
        most, least = self._limits(kernel, trust)
        return bool((span <= np.array(most, np.float32)).all() and span.max() >= np.float32(least))

    def _plan(self, kernel: Kernel, n: int, rungs: tuple[int, ...], level: int) -> Plan:
        span = tuple(kernel.length * 2.0 ** (rung / RUNGS) for rung in rungs)
        h = mesh_width(kernel, self.tol * 2 ** (level / 2), len(rungs))
        if h == 0:
            return DIRECT
        h = min(h, max(span) / CELLS / ROOM[len(rungs)] / 2 ** (1 / RUNGS))
        if np.prod([s / h for s in span]) > NODES:  # of a map that comes apart; no integer holds its nodes
            return DIRECT
        size = tuple(fft.next_fast_len(int(np.ceil(s / h)) + BEYOND, real=True) for s in span)
        nodes = float(np.prod(size))
        if nodes > NODES or float(n) ** 2 < PAIRS_A_NODE * nodes:
            return DIRECT
        small = nodes <= DOUBLE[0] and n <= DOUBLE[1]
        return Plan(h, size, 0.0, np.float64 if small or max(span) < kernel.length else np.float32)

    def _made(self, kernel: Kernel, of: Plan) -> Any:
        if of not in (DIRECT, SAMPLED):
            return Mesh(kernel, of, self.device, self.deterministic or self.device.type != "cuda")
        ends = 1e-6 * kernel.length, 1e6 * kernel.length
        table = tabulate(kernel.value, kernel.slope, *ends, kernel.kink)
        if of == DIRECT or self._always is None:
            return Direct(kernel, table, self.device)
        return Partners(kernel, table, self.device, self.seed, self._always)


class GraphStepper:
    """Replays steps as CUDA graphs as long as the meshes planned for the embedding hold; on a CPU it replays none."""

    def __init__(self, engine: Torch, graph: CudaGraph):
        self._engine, self._graph = engine, graph

    def replay_steps(self, step: Callable[[Any], None], key: object, state: Any, count: int, min_extent: float) -> int:
        if self._graph.device.type != "cuda" or state.U.shape[1] > 3:
            return 0
        taken = 0
        while True:
            meshes, rooms, ahead = self._engine.replayable(len(state.U), count - taken)
            if meshes is None:
                return taken
            done = self._graph.replay(step, (key, meshes, rooms), state, ahead, min_extent)  # the key keeps the meshes
            self._engine.count_fields(done)
            taken += done
            if taken == count or not self._engine.plan_ahead(state.U):
                return taken

    def free_buffers(self) -> None:
        self._graph.free()
