"""The field of a map whose points several ranks share: integer charges on a mesh that all ranks add up.

Each rank spreads its own points. The sums of integers have the same bytes in any order, every rank convolves the whole
mesh, and interpolates at its own points. docs/math.md, section 22.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import _core
from .._types import Array
from ..engines.cpu import ForceCheck, charge_columns, checked_points
from ..engines.mesh.plan import PADDING, Source, Transform, bounding_box, near_table, split
from ..kernels import Kernel
from .exact_sum import ExactSum
from .shared_map import SharedMap

# Units of a charge of 1 on the mesh of integers: as many as float32 resolves, and as many as the core adds in float64.
UNITS = {np.float32: 2.0**24, np.float64: 2.0**30}


class RankSource(Source):
    """The own points of this rank with their charges, and the box around the points of all ranks."""

    def __init__(self, Y: Array, charges: Array | None, shared: SharedMap):
        self.Y, self.shared = np.ascontiguousarray(Y), shared
        c, self.charges = charge_columns(charges, len(Y))
        self.shape, self.charged = c.shape, charges is not None
        nothing = np.full(Y.shape[1], np.inf), np.full(Y.shape[1], -np.inf)  # this rank may have no points
        self.low, self.high = shared.box(*(bounding_box(Y) if len(Y) else nothing))
        m = self.charges.shape[1]
        if charges is None:
            self.scale, self.totals = np.ones(m), np.full(m, float(shared.partition.n))
        else:
            largest = shared.group.all_reduce(np.abs(self.charges).max(axis=0, initial=0.0), "max")
            self.scale = 2.0 ** np.ceil(np.log2(np.where(largest > 0, largest, 1.0)))  # powers of two
            self.totals = shared.columns(self.charges)

    def move_to(self, boxes: Array) -> None:
        """Take over points that have been moved in place; `boxes` (blocks, 2, d) has the corners of their blocks."""
        low, high = boxes[:, 0].min(axis=0, initial=np.inf), boxes[:, 1].max(axis=0, initial=-np.inf)
        self.low, self.high = self.shared.box(low, high)


def solve(transform: Transform, source: RankSource) -> Callable[[Array], tuple[Array, Array]]:
    """Return a function of targets (t, d) that gives Φ (t, m) and ½∇Φ (t, m, d) of all points of all ranks.

    At a point of the map, Φ includes its own term: c_i times `self_term`.
    """
    shared, m, n_threads = source.shared, source.charges.shape[1], source.shared.n_threads
    mesh, nodes = transform.place(source.low, source.high), int(np.prod(transform.size))
    Y, unit = source.Y.astype(transform.dtype, copy=False), UNITS[transform.dtype]
    charges = np.ascontiguousarray(source.charges / source.scale)
    whole = np.empty(m * nodes + PADDING, np.int64)
    _core.spread_integers(mesh, Y, charges, unit, whole, n_threads)
    whole = shared.group.all_reduce(whole) if shared.group.size > 1 else whole
    grid = np.zeros(m * nodes + PADDING, transform.dtype)
    values = grid[: m * nodes].reshape(m, nodes)
    np.multiply(whole[: m * nodes].reshape(m, nodes), (source.scale / unit)[:, None], out=values, casting="same_kind")
    _core.convolve(mesh, transform.frequencies, values, n_threads)
    shift = transform.shift * source.totals
    near = _near_pairs(transform, source)

    def at(targets: Array) -> tuple[Array, Array]:
        T = np.ascontiguousarray(targets, dtype=transform.dtype)
        potential, half = np.empty((len(T), m)), np.empty((len(T), m, T.shape[1]))
        _core.gather(mesh, T, grid, potential, half, n_threads)
        potential += shift
        near(T, potential, half)
        return potential, half

    return at


def self_term(transform: Transform) -> float:
    """Return what a point with charge 1 contributes to its own potential in `solve`."""
    if transform.radius == 0:
        return transform.at_zero
    return transform.at_zero + float(split(transform.kernel, transform.radius).near(np.zeros(1))[0])


def _near_pairs(transform: Transform, source: RankSource) -> Callable[[Array, Array, Array], None]:
    """Return a function that adds the pairs closer than `transform.radius`; every rank gathers all points for it."""
    if transform.radius == 0:
        return lambda targets, potential, half: None
    gather, d = source.shared.group.all_gather, source.Y.shape[1]
    rows = np.concatenate(gather(np.hstack([source.Y.astype(np.float64), source.charges])))
    Y, charges = rows[:, :d].astype(transform.dtype), np.ascontiguousarray(rows[:, d:])
    counts = np.floor((source.high - source.low) / transform.radius).astype(np.int64) + 1
    cells = _core.Mesh(source.low, transform.radius, counts)
    table = near_table(transform.kernel, transform.radius)

    def add(targets: Array, potential: Array, half: Array) -> None:
        _core.near(cells, *table, targets.copy(), Y, charges, potential, half, source.shared.n_threads)

    return add


class RankForceCheck(ForceCheck):
    """Measures the error of transforms at a sample of the points of all ranks; the same on every rank."""

    def __init__(self, kernel: Kernel, source: RankSource, compiled: _core.Kernel):
        shared, own = source.shared, source.shared.partition.own
        chosen = checked_points(shared.partition.n)
        mine = chosen[(chosen >= own.start) & (chosen < own.stop)] - own.start
        self.source, self.kernel = source, kernel
        self.targets = np.concatenate(shared.group.all_gather(source.Y[mine]))
        charges = np.concatenate(shared.group.all_gather(source.charges[mine]))
        potential, self.force = self._direct(compiled)
        self._study(kernel, shared.partition.n, potential, charges)

    def _direct(self, compiled: _core.Kernel) -> tuple[Array, Array]:
        """Return Φ (t, m) and ∇Φ (t, m, d) at the targets by direct sums over blocks, which are added exactly."""
        shared, m = self.source.shared, self.source.charges.shape[1]
        t, d = self.targets.shape
        blocks = shared.partition.own_blocks()
        sums, potential, half = np.empty((len(blocks), t, m, 1 + d)), np.empty((t, m)), np.empty((t, m, d))
        for b, rows in enumerate(blocks):
            c, Y = np.ascontiguousarray(self.source.charges[rows]), np.ascontiguousarray(self.source.Y[rows])
            _core.field_at(compiled, c, self.targets, Y, potential, half, shared.n_threads)
            sums[b, ..., 0], sums[b, ..., 1:] = potential, half
        exact = ExactSum((t, m, 1 + d), shared.maximum(np.abs(sums).max(initial=0.0)) * shared.partition.n_blocks)
        for block in sums:
            exact.add(block)
        total = exact.result(shared.group)
        return np.ascontiguousarray(total[..., 0]), 2 * total[..., 1:]

    def error(self, transform: Transform) -> float:
        solution = solve(transform, self.source)
        everywhere = np.inf
        if self.uneven:
            everywhere = 2 * float(np.sqrt(self.source.shared.squared_norm(solution(self.source.Y)[1])))
        return self._relative(2 * solution(self.targets)[1], everywhere)
