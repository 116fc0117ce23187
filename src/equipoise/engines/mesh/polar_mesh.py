"""The field in the hyperbolic plane: a polar mesh, Fourier transforms over the angle, matrices over the radius.

docs/math.md, section 21, has the equations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import fft

from ... import _core
from ..._types import Array
from ...arrays.csr import run_on_threads
from ...geometry import HyperbolicPairs
from ...kernels import Kernel
from ..cpu import cached_by_kernel, charge_columns
from ..tables import Table, tabulate
from .plan import CLUMP, ORDER, PADDING, RADIUS, SPLINE, mesh_width, near_radius, needs_float64, split, step_up
from .torus_mesh import AFTER, BEFORE, fold, symbol, unfold

# Rings beyond the points, on either side. A spline needs 3; the error at the ends of a collocation that is continued
# linearly decreases by a factor of 0.43 per ring (the pole of the quintic spline).
MARGIN = 10
FEWEST = 4 * ORDER  # angles
LEVELS = 12  # at most: the inner rings have down to 2^-12 of the frequencies of the outermost
# Frequencies kept at a ring, relative to those that a mesh of the same width has along a straight line, and in
# addition to them. Measured on the force at random points: factors of 1.0, 1.25 and 1.5 give the same error.
KEPT, KEPT_MORE = 1.25, 8
CENTRE = 0.02  # in mesh widths: nearer to the origin, the direction of the force is that at this distance


# The cost of a step in nanoseconds on one thread, measured on the hyperbolic map of 70,000 digits of MNIST.
# Per entry of the matrices: 0.5 for the product, and a share of the 10 to 20 for computing it when the disk grows.
ENTRY = 2.0
NODE = 20.0  # per node of the mesh, with its Fourier transform
NEAR, RUNS = 0.4, 300.0  # per pair of the near field, as `_cheapest` counts them, and per point for finding them
FINEST = 2**28  # matrix entries, 1 GB: finer meshes are not used; chosen
BLOCK = 2**18  # entries of the matrices that a thread handles at a time; chosen


class PolarPlan(NamedTuple):
    """The parameters of a transform on a polar mesh."""

    h: float  # distance of the rings, and of the angles on the outermost
    rings: int
    levels: int  # the number of angles is divisible by 2^(levels + 1)
    angles: int
    reach: float  # radius of the near field, 0 for none
    dtype: type[np.floating]


class PolarSource:
    """Points Y (n, 2) with their charges (n, m).

    `high` − `low` is R sinh(r/R) for the largest distance r from the origin: the circumference of their disk over 2π.
    """

    def __init__(self, Y: Array, charges: Array | None, radius: float):
        self.Y = np.ascontiguousarray(Y)
        c, self.charges = charge_columns(charges, len(Y))
        self.shape, self.charged = c.shape, charges is not None
        x, y = np.ascontiguousarray(self.Y.T, dtype=np.float64)
        largest = float(np.sqrt((x**2 + y**2).max()))
        self.low, self.high = np.zeros(1), radius * np.sinh(np.array([largest / radius]))

    def widen(self, margin: Array) -> None:
        """Add a margin (1,) to the circumference over 2π."""
        self.high = self.high + margin


@cached_by_kernel(4096)
def polar_plan(kernel: Kernel, error: float, n: int, span: float, radius: float) -> PolarPlan:
    """Return the cheapest plan for n points in the disk whose circumference is 2π · `span`.

    `error` is the maximum relative error of the force between two points, in the flat plane.
    """
    largest = radius * float(np.arcsinh(span / radius))
    h, reach = _cheapest(kernel, error, n, span, radius)
    rings, levels, angles = _mesh_size(h, span, largest)
    double = needs_float64(kernel, n, (largest,), (rings, angles)) or angles > 2**15
    return PolarPlan(h, rings, levels, angles, reach, np.float64 if double else np.float32)


def _mesh_size(h: float, span: float, largest: float) -> tuple[int, int, int]:
    """Return the number of rings, of levels and of angles of a mesh of width h."""
    rings = int(np.ceil(largest / h)) + 2 * MARGIN + 1
    angles = max(int(np.ceil(2 * np.pi * span / h)), FEWEST)
    levels = min(LEVELS, int(np.log2(angles / FEWEST)))
    unit = 2 ** (levels + 1)  # every level has an even number of angles
    return rings, levels, unit * fft.next_fast_len(-(-angles // unit), real=True)


def _cheapest(kernel: Kernel, error: float, n: int, span: float, radius: float) -> tuple[float, float]:
    """Return the mesh width and the radius of the near field (0 for none) of the cheapest mesh."""
    largest = radius * float(np.arcsinh(span / radius))
    area = 4 * np.pi * (radius * float(np.sinh(largest / (2 * radius)))) ** 2

    def cost(h: float) -> tuple[float, float]:
        """Return the cost of a mesh of width h, and the entries of its matrices."""
        rings, angles = largest / h + 2 * MARGIN, max(2 * np.pi * span / h, FEWEST)
        entries = angles / 2 * min(rings**2, 2 * (radius / h + MARGIN) ** 2)  # see _group
        return ENTRY * entries + NODE * rings * angles, entries

    widest = step_up(largest / 8, kernel.length)
    h = min(mesh_width(kernel, error, 2), widest)
    plain, entries = cost(h) if h > 0 else (np.inf, np.inf)
    if entries > FINEST:
        plain = np.inf
    widths = widest * 2.0 ** (-np.arange(20) / 2)
    pairs = n * np.minimum(n, CLUMP * n * np.pi * (RADIUS * widths) ** 2 / area)
    costs = [cost(width)[0] + NEAR * count + RUNS * n for width, count in zip(widths, pairs, strict=True)]
    best = int(np.argmin(costs))
    if plain <= costs[best]:
        return h, 0.0
    return float(widths[best]), near_radius(kernel, error, 2, float(widths[best]))


@dataclass(frozen=True)
class NearPart(Kernel):
    """The near part of a kernel as a kernel, zero beyond `reach`; see `split`."""

    kernel: Kernel
    reach: float

    def value(self, d2: Array) -> Array:
        return split(self.kernel, self.reach).near(d2)

    def slope(self, d2: Array) -> Array:
        return split(self.kernel, self.reach).near_slope(d2)


@cached_by_kernel(16)
def polar_near_table(kernel: Kernel, reach: float, pairs: HyperbolicPairs) -> Table:
    """Return the table of the near part of a kernel, in the squared chords that compiled pairs give."""
    near = pairs.radial(NearPart(kernel, reach))
    end = 2 * pairs.radius * float(np.sinh(reach / (2 * pairs.radius)))
    return tabulate(near.value, near.slope, 1e-6 * min(kernel.length, reach), end, pairs.radial(kernel).kink)


class PolarTransform:
    """The matrices of a kernel over the radius, one for every frequency of the angle.

    Ring a has the radius r_a = (a − MARGIN) h; the radius may be negative, which stands for the opposite angle. At
    frequency m, only the rings whose circumference has room for m periods enter: at the others, a kernel that the mesh
    resolves has no such frequency. Rings are grouped by levels: those of level l have angles/2^(l+1) frequencies.
    """

    def __init__(self, kernel: Kernel, plan: PolarPlan, radius: float, n_threads: int = 1):
        self.kernel, self.plan, self.pairs = kernel, plan, HyperbolicPairs(radius)
        h, rings, levels, angles, reach, self.dtype = plan
        self.near = split(kernel, reach).near if reach > 0 else None
        self.at_zero = float(kernel.value(np.zeros(1))[0])
        r = (np.arange(rings) - MARGIN) * h
        # A constant shift changes no force; the value at the largest distance keeps the digits of a small embedding.
        self.shift = float(kernel.value(np.array([(2 * r[-1]) ** 2]))[0])
        needed = KEPT * np.pi / h * radius * np.sinh((np.abs(r) + h) / radius) + KEPT_MORE
        level = np.clip(np.floor(np.log2(angles / 2 / needed)), 0, levels).astype(int)
        self.starts = [int(np.argmax(level <= q)) for q in range(levels + 1)]  # the first ring of each level
        blocks = [self._block(r, r[level == q], self.starts[q], angles >> q, n_threads) for q in range(levels + 1)]
        self.groups = [self._group(q, blocks, level, n_threads) for q in range(levels + 1)]

    def _block(self, r: Array, own: Array, start: int, angles: int, n_threads: int) -> Array:
        """Return the transform of the kernel between the rings `own` of a level and all rings from `start` on.

        The result has shape (own rings, rings, angles/2 + 1).
        """
        block = np.empty((len(own), len(r) - start, angles // 2 + 1), self.dtype)

        def compute(part: slice) -> None:
            block[part] = self._between(own[part], r[start:], angles)

        run_on_threads(compute, _slices(len(own), block[:1].size), n_threads)
        return block

    def _between(self, a: Array, b: Array, angles: int) -> Array:
        """Return the transform of the kernel between rings of the radii a and b, (a, b, angles/2 + 1)."""
        R = self.pairs.radius
        a, b = a[:, None, None] / R, b[None, :, None] / R
        t = np.pi * np.arange(angles // 2 + 1) / (angles // 2)
        along, turn = np.sinh((a - b) / 2) ** 2, np.sinh(a) * np.sinh(b)
        s = along.astype(self.dtype) + turn.astype(self.dtype) * (np.sin(t / 2) ** 2).astype(self.dtype)
        d2 = self.pairs.squared(np.maximum(s, 0.0))
        k = self.kernel.value(d2) - self.shift
        if self.near is not None:
            inside = d2 < self.plan.reach**2
            k[inside] -= self.near(d2[inside])
        return fft.dct(k, type=1, axis=-1, overwrite_x=True) * (self.plan.angles / angles)

    def _group(self, q: int, blocks: list[Array], level: Array, n_threads: int) -> tuple[int, int, Array]:
        """Return the first frequency of a group, the first ring and the matrices (frequencies, rings, rings).

        The group of level q contains the frequencies that the rings of this level have and those inside do not.
        """
        angles, last = self.plan.angles, q == len(blocks) - 1
        first, end = 0 if last else (angles >> (q + 2)) + 1, (angles >> (q + 1)) + 1
        start, rings = self.starts[q], self.plan.rings
        K = np.zeros((max(end - first, 0), rings - start, rings - start), self.dtype)
        inverse = np.linalg.inv(collocation(rings - start)).astype(self.dtype)
        scale = (1 / symbol(angles)[first:end] ** 2).astype(self.dtype)
        members = [(p, own - start) for p in range(q + 1) if len(own := np.flatnonzero(level == p))]

        def fill(some: slice) -> None:
            for p, inner in members:
                part = np.moveaxis(blocks[p][:, :, first + some.start : first + some.stop], -1, 0)
                outer = np.arange(self.starts[p] - start, rings - start)
                K[some, inner[:, None], outer] = part
                K[some, outer[:, None], inner] = np.swapaxes(part, 1, 2)
            K[some] = inverse @ K[some] @ inverse.T * scale[some, None, None]

        run_on_threads(fill, _slices(len(K), K[:1].size), n_threads)
        return first, start, K

    def solve(self, source: PolarSource, n_threads: int) -> Callable[[Array], tuple[Array, Array]]:
        """Return a function of targets (t, 2) that gives Φ (t, m) and ∇Φ (t, m, 2) of a source.

        At the source's own points, Φ_i includes the self term c_i k(0) (`at_zero`).
        """
        m, (h, rings, _, angles, _, dtype) = source.charges.shape[1], self.plan
        size = np.array([rings, angles + BEFORE + AFTER], np.int64)
        mesh = _core.Mesh(np.array([-float(MARGIN), -float(BEFORE)]), 1.0, size)
        nodes = int(np.prod(size))
        grid = np.zeros(m * nodes + PADDING, dtype)
        Y = np.ascontiguousarray(source.Y, dtype=dtype)
        own = self._nodes(Y, n_threads)
        _core.spread(mesh, own, source.charges, grid, n_threads)
        whole = grid[: m * nodes].reshape(m, *size)
        unfold(self._convolved(fold(whole, 2), n_threads), 2, out=whole)
        shift = self.shift * source.charges.sum(axis=0)

        def at(targets: Array) -> tuple[Array, Array]:
            same = targets is source.Y
            T = Y if same else np.ascontiguousarray(targets, dtype=dtype)
            at_nodes = own if same else self._nodes(T, n_threads)
            np.maximum(at_nodes[:, 0], CENTRE, out=at_nodes[:, 0])
            potential, half = np.empty((len(T), m)), np.empty((len(T), m, 2))
            _core.gather(mesh, at_nodes, grid, potential, half, n_threads)
            _core.polar_gradient(h, float(angles), CENTRE * h, T, half, n_threads)
            potential += shift
            if self.near is not None:
                self._add_near(source, targets, potential, half, n_threads)
            half *= 2
            return potential, half

        return at

    def _add_near(self, source: PolarSource, targets: Array, potential: Array, half: Array, n_threads: int) -> None:
        """Add the near pairs to Φ (t, m) and ½∇Φ (t, m, 2) at the targets."""
        reach, space = self.plan.reach, self.pairs.native()
        Y = np.ascontiguousarray(source.Y, dtype=np.float32)
        T = Y if targets is source.Y else np.ascontiguousarray(targets, dtype=np.float32)
        table = polar_near_table(self.kernel, reach, self.pairs)
        _core.polar_near(space, *table, reach, T, Y, source.charges, potential, half, n_threads)

    def _nodes(self, Y: Array, n_threads: int) -> Array:
        """Return positions on the mesh, in mesh widths from the origin and nodes from the angle 0, in the type of Y."""
        nodes = np.empty_like(Y)
        _core.polar_nodes(self.plan.h, float(self.plan.angles), Y, nodes, n_threads)
        return nodes

    def _convolved(self, grid: Array, n_threads: int) -> Array:
        """Return the potential (m, rings, angles) of charges on the nodes."""
        C = fft.rfft(grid, axis=2, workers=n_threads)
        out = np.zeros_like(C)

        def multiply(item: tuple[int, int, Array]) -> None:
            first, start, K = item
            end = first + len(K)
            part = np.ascontiguousarray(C[:, start:, first:end].transpose(2, 1, 0))  # (frequencies, rings, m)
            real = part.view(self.dtype).reshape(*part.shape[:2], -1)
            result = np.matmul(K, real).view(part.dtype).reshape(part.shape)
            out[:, start:, first:end] = result.transpose(2, 1, 0)

        items = [
            (first + part.start, start, K[part])
            for first, start, K in self.groups
            for part in _slices(len(K), K[:1].size)
        ]
        run_on_threads(multiply, items, n_threads)
        return fft.irfft(out, self.plan.angles, axis=2, workers=n_threads)


def _slices(n: int, entries: int) -> list[slice]:
    """Return slices of n items of `entries` entries each, with about BLOCK entries in a slice."""
    step = max(1, BLOCK // max(entries, 1))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def collocation(size: int) -> Array:
    """Return the values of the splines centred at nodes 0 … size − 1, (size, size); row a is node a.

    The coefficients continue linearly beyond the ends.
    """
    A = np.zeros((size, size))
    for a in range(size):
        for offset, weight in zip((-2, -1, 0, 1, 2), (SPLINE[2], SPLINE[1], *SPLINE), strict=True):
            b = a + offset
            if 0 <= b < size:
                A[a, b] += weight
            else:  # c_{−k} = (k + 1) c_0 − k c_1
                beyond, end, step = (-b, 0, 1) if b < 0 else (b - size + 1, size - 1, -1)
                A[a, end] += (beyond + 1) * weight
                A[a, end + step] -= beyond * weight
    return A
