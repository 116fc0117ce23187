"""Linear time: the field of any kernel by one FFT of one potential on a B-spline mesh (docs/math.md, section 10).

The user asks for a tolerance on the force; the engine measures on the map itself how coarse a mesh keeps it. Where a
kernel is too sharp for an affordable mesh it is split: a smooth part on the mesh, and the rest, which is zero beyond a
short radius a, summed over near pairs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from ... import _core
from ..._tags import tagged
from ..._types import Array, Matrix
from ..._warn import warn
from ...arrays.namespace import host
from ...divergences import antiderivative
from ...kernels import Kernel
from ..base import Field
from ..cpu import CpuEngine
from ..exact import Exact
from ..tables import Compiled, Table, tabulate
from .plan import Plan, plan
from .transform import Source, Transform

RUNGS = 4  # extents come in 4 steps per octave: a growing map rarely needs a new kernel transform
CACHE = 4  # kernel transforms kept: a map's extents change by one rung at a time
# When and how the tolerance is checked; chosen, and seen to keep it wherever a test or a benchmark looked.
MOVED = 2  # rungs that an extent moves before it is checked again
CHECK = 50  # fields after which it is checked again in any case
MARGIN = 0.8  # of the tolerance, allowed on the points that are checked
CHECKED = 128  # points checked, more while they make fewer pairs than
PAIRS = 2**20
LOWEST, HIGHEST = -32, 4  # levels: the pair error is between tol / 2^16 and 4 tol


@tagged("engines.grid.Grid")
class Grid(CpuEngine):
    """Edges over the stored pairs, field on a mesh; force error at most `tol`, relative. d = 1, 2, 3."""

    name = "grid"
    dtype = np.float32
    needs_sparse_P = True
    gains_from_locality = True
    cache = CACHE

    def __init__(self, n_threads: int, tol: float):
        self.n_threads = n_threads
        self.tol = tol
        self._exact = Exact(n_threads)
        self._tables: dict[tuple[Kernel, float], Table] = {}
        self._transforms: OrderedDict[tuple[object, ...], Transform] = OrderedDict()
        self._compiled = Compiled()
        self._trust: dict[tuple[Kernel, bool, int], Trust] = {}
        self._known: list[Trust] = []  # restored, and not yet asked for

    @property
    def settings(self) -> dict[str, Any]:
        return {"tol": float(self.tol)}

    def state(self) -> list[dict[str, Any]]:
        return [asdict(trust) for trust in (*self._trust.values(), *self._known)]

    def restore(self, state: list[dict[str, Any]]) -> None:
        self._trust, self._known = {}, [Trust(**trust) for trust in state]

    def __getstate__(self) -> dict[str, Any]:
        return {"n_threads": self.n_threads, "tol": self.tol, "state": self.state()}  # the rest is made again

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["n_threads"], state["tol"])  # type: ignore[misc]
        self.restore(state["state"])

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        if Y.dtype == np.float64 or not sparse.issparse(A):
            return self._exact.edges(Y, A, kernel, b, potential=potential)
        native, b = self._native(kernel, b)
        return self._exact.native_edges(native, Y, A, b, potential=potential)

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        source, d = self._source(Y, charges), Y.shape[1]
        transform = self._transform(kernel, source)
        potential, gradient = transform.solve(source, self.n_threads)(source.Y)
        potential -= transform.at_zero * source.charges  # the mesh holds the point itself
        return Field(potential.reshape(source.shape), gradient.reshape(*source.shape, d))

    def freeze(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Callable[[Array], Field]:
        source = self._source(Y, charges)
        margin = 0.05 * (source.high - source.low) + kernel.length  # new points may fall a little outside
        source.widen(margin)
        at = self._transform(kernel, source).solve(source, self.n_threads)

        def frozen(targets: Array) -> Field:
            potential, gradient = at(targets)
            shape = (len(targets), *source.shape[1:])
            return Field(potential.reshape(shape), gradient.reshape(*shape, targets.shape[1]))

        return frozen

    def edges_to(self, targets: Array, Y: Array, A: Matrix, kernel: Kernel, b: float) -> Array:
        native, _ = self._native(kernel, b)
        force = np.empty(targets.shape)
        indptr, indices = A.indptr.astype(np.int64, copy=False), A.indices.astype(np.int32, copy=False)
        targets, Y = (np.ascontiguousarray(V, dtype=np.float32) for V in (targets, Y))
        values = np.ascontiguousarray(A.data, dtype=np.float32)
        if not _core.edges_to(native, indptr, indices, values, targets, Y, force, self.n_threads):
            return self._exact.edges_to(targets, Y, A, kernel, b)
        return force

    def _source(self, Y: Array, charges: Array | None) -> Source:
        if Y.shape[1] > 3:
            raise ValueError(
                f'engine="grid" works in 1, 2 or 3 dimensions, not {Y.shape[1]}; use engine="sampled" or "exact"'
            )
        return Source(Y, charges)

    def _native(self, kernel: Kernel, b: float) -> tuple[_core.Kernel, float]:
        """Return the compiled kernel and exponent for edges: itself where k'/k is rational, else a table for b = −1."""
        native = kernel.native()
        if native is not None and b == -1 and native.rational:
            return native, b
        return _core.Kernel.tabulated(*self._table(kernel, b)), -1.0

    def _table(self, kernel: Kernel, b: float) -> Table:
        """Return the table of ψ_b and its slope k^b k', from the cache or a new one."""
        if (kernel, b) not in self._tables:
            self._tables[kernel, b] = tabulate(
                lambda d2: antiderivative(kernel.log_value(d2), b + 1),
                lambda d2: np.exp((b + 1) * kernel.log_value(d2)) * kernel.log_slope(d2),
                1e-6 * kernel.length,
                1e6 * kernel.length,
                kernel.kink,
            )
        return self._tables[kernel, b]

    def _transform(self, kernel: Kernel, source: Source) -> Transform:
        """Return the kernel transform for a map of this extent: one that keeps the tolerance on this map."""
        span = source.high - source.low
        least = max(float(span.max()) / 64, 1e-12 * kernel.length)
        rungs = tuple(int(np.ceil(RUNGS * np.log2(max(s, least) / kernel.length))) for s in span)
        trust = self._trust_in(kernel, source.charged, len(rungs))
        trust.fields += 1
        moved = max(abs(a - b) for a, b in zip(rungs, trust.rungs, strict=True)) if trust.rungs else MOVED
        if moved < MOVED and trust.fields < CHECK:
            return self._make(kernel, self._plan(kernel, len(source.Y), rungs, trust.level))
        trust.rungs, trust.fields = rungs, 0
        return self._keep(kernel, source, trust)

    def _trust_in(self, kernel: Kernel, charged: bool, d: int) -> Trust:
        """Return what is known of a kernel, of what was restored the first of its kind."""
        key = (kernel, charged, d)
        if key not in self._trust:
            new = Trust(type(kernel).__name__, charged, d)
            same = [
                known for known in self._known if (known.kernel, known.charged, known.d) == (new.kernel, charged, d)
            ]
            self._trust[key] = (same or [new])[0]
            self._known = [known for known in self._known if known is not self._trust[key]]
        return self._trust[key]

    def _keep(self, kernel: Kernel, source: Source, trust: Trust) -> Transform:
        """Return a transform that keeps the tolerance: refined until it does, coarsened where that still does."""
        check = Check(kernel, source, self._direct(kernel, source), self.n_threads)

        def planned(level: int) -> Plan:
            return self._plan(kernel, len(source.Y), trust.rungs, level)

        def excess(level: int) -> float:
            """Return the error found with a plan of this level, over what is allowed."""
            return check.error(self._make(kernel, planned(level))) / (MARGIN * self.tol)

        error, stalled = excess(trust.level), 0
        if error <= 0.5 and trust.level < HIGHEST:
            level = min(HIGHEST, trust.level + (int(-2 * np.log2(error)) if error > 0 else HIGHEST))
            if planned(level) == planned(trust.level) or excess(level) <= 1:
                trust.level = level
        while error > 1 and trust.level > LOWEST and stalled < 3:
            tried = planned(trust.level)
            trust.level = max(LOWEST, trust.level - int(np.ceil(2 * np.log2(error))))
            if planned(trust.level) != tried:
                last, error = error, excess(trust.level)
                stalled = stalled + 1 if error > 0.9 * last else 0
        if error * MARGIN > 1 and not trust.warned:
            trust.warned = True
            warn(
                f"the mesh reaches a force error of {error * MARGIN * self.tol:.2g}, not tol={self.tol:g}, for"
                f' {kernel} on this map; engine="exact" has none',
            )
        return self._make(kernel, planned(trust.level))

    def _plan(self, kernel: Kernel, n: int, rungs: tuple[int, ...], level: int) -> Plan:
        span = tuple(kernel.length * 2.0 ** (rung / RUNGS) for rung in rungs)
        return plan(kernel, self.tol * 2 ** (level / 2), n, span)

    def _make(self, kernel: Kernel, of: Plan) -> Transform:
        """Return a transform from the cache, or a new one."""
        key = (kernel, of)
        if key not in self._transforms:
            self._transforms[key] = self._made(kernel, of)
            if len(self._transforms) > self.cache:
                self._transforms.popitem(last=False)
        self._transforms.move_to_end(key)
        return self._transforms[key]

    def _direct(self, kernel: Kernel, source: Source) -> Callable[[Array], tuple[Array, Array]]:
        """Return Φ and ∇Φ by direct sums, self terms included, as a function of targets (t, d)."""
        compiled, m = self._compiled(kernel), source.charges.shape[1]

        def at(targets: Array) -> tuple[Array, Array]:
            potential, half = np.empty((len(targets), m)), np.empty((len(targets), m, targets.shape[1]))
            _core.field_at(compiled, source.charges, targets, source.Y, potential, half, self.n_threads)
            return potential, 2 * half

        return at

    def _made(self, kernel: Kernel, of: Plan) -> Transform:
        return Transform(kernel, of.h, of.size, of.radius, of.dtype)


@dataclass
class Trust:
    """What is known of a kernel and its charges: the pair error allowed, tol · 2^(level/2), and where that was."""

    kernel: str  # its class
    charged: bool
    d: int
    level: int = 0
    rungs: tuple[int, ...] = ()
    checked: tuple[int, ...] = ()  # by "torch": the rungs when the tolerance was last checked, which meshes outgrow
    fields: int = 0
    warned: bool = False


@lru_cache(maxsize=8)
def _chosen(n: int) -> Array:
    """Return which of n points are checked."""
    return np.sort(np.random.RandomState(0).permutation(n)[: max(CHECKED, PAIRS // n)])


class Check:
    """The true force on some points of a map, by direct sums."""

    def __init__(self, kernel: Kernel, source: Source, direct: Callable[[Array], tuple[Array, Array]], n_threads: int):
        n = len(source.Y)
        chosen = _chosen(n)
        self.n_threads, self.source = n_threads, source
        self.targets = source.Y[chosen]
        potential, self.force = (host(part) for part in direct(self.targets))
        # Forces lost in the rounding of the potential, or of the point's own part of it, do not count.
        own = kernel.value(np.zeros(1)) * host(source.charges[chosen])
        self.noise = float(1e-9 * np.linalg.norm(potential - own) + 1e-15 * np.linalg.norm(own)) / kernel.length

    def error(self, transform: Transform) -> float:
        """Return the relative error of the force with this transform."""
        force = host(transform.solve(self.source, self.n_threads)(self.targets)[1])
        size = float(np.linalg.norm(self.force))
        wrong = max(0.0, float(np.linalg.norm(force - self.force)) - self.noise)
        return wrong / size if size > 0 else 0.0
