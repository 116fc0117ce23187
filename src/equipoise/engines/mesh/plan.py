"""Plans the cheapest mesh for a kernel, and computes the Fourier transform of the kernel on this mesh.

A kernel that a coarse mesh cannot resolve is split, and its near part summed over pairs (docs/math.md, section 10).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from ... import _core
from ..._types import Array
from ...kernels import Kernel
from ..cpu import cached_by_kernel, charge_columns
from ..tables import Table, tabulate

# Constants of the core that the PyTorch mesh and the Triton kernels share.
ORDER = _core.MESH_ORDER  # nodes of a spline along an axis: quintic B-splines
PADDING = _core.MESH_PADDING  # elements after a mesh that the core may read, with weight 0
FIXED_POINT_BITS = _core.FIXED_POINT_BITS  # maximum number of fractional bits of a charge on an integer mesh
VECTOR_BYTES = _core.VECTOR_BYTES  # size of a SIMD vector in the core
SPLINE = (66 / 120, 26 / 120, 1 / 120)  # the central quintic B-spline at 0, ±1, ±2
# Nodes beyond the embedding. The periodic kernel has a kink at the largest lag, and dividing by the symbol of the
# spline spreads it with a factor of 0.43 per node (the pole of the quintic spline): less than 1e-3 remains after 10.
BEYOND = ORDER + 10
THIN, TINY = 1 / 64, 1e-12  # the shortest side of a box for which a mesh is planned, by its widest and by the kernel
ROUNDING = 1e-9  # relative; far above the rounding error of a logarithm
STEPS = 8  # mesh widths come in 8 steps per octave
# The cost of a step in nanoseconds on one thread, measured on embeddings of digits, 6,000 digits of MNIST, and
# Fashion-MNIST (benchmarks/crossover.py).
NODE = 16.0  # per node of the mesh: its convolution
PAIR = 5.0  # per pair of the near field
CLUMP = 3.0  # near pairs, relative to a uniform embedding; 1.5 to 6 were measured
RADIUS = 5.0  # of the near field in mesh widths, before it is measured for the kernel
PARALLEL = 2**13  # nodes from which a transform is computed on several threads; chosen
DOUBLE = 2**12, 2**14  # nodes and points up to which float64 costs little; chosen


class Plan(NamedTuple):
    """The parameters of a transform on a mesh."""

    h: float  # mesh width
    size: tuple[int, ...]  # nodes along each axis
    radius: float  # distance up to which pairs are summed directly (the near field); 0 for no near field
    dtype: type[np.floating]


class Source:
    """Holds points Y (n, d), their charges (n, m), and the corners `low` and `high` (d,) of their bounding box."""

    def __init__(self, Y: Array, charges: Array | None):
        self.Y = np.ascontiguousarray(Y)
        c, self.charges = charge_columns(charges, len(Y))
        self.shape, self.charged = c.shape, charges is not None
        self.low, self.high = bounding_box(Y)

    def widen(self, margin: Array) -> None:
        """Add a margin (d,) on either side of the box."""
        self.low, self.high = self.low - margin, self.high + margin


def bounding_box(Y: Array) -> tuple[Array, Array]:
    """Return the lower and the upper corner (d,) of the box around the points Y (n, d), in float64."""
    axes = np.ascontiguousarray(Y.T)  # NumPy reduces along rows many times faster than along columns
    return axes.min(axis=1).astype(np.float64), axes.max(axis=1).astype(np.float64)


class Transform:
    """Computes the field of a kernel on a mesh, from the Fourier transform of the kernel.

    The mesh is padded to twice its size. The transform is divided by the square of the spline's symbol, which is the
    Fourier transform of the B-spline on the mesh: spreading charges to the mesh and interpolating the potential each
    multiply by the symbol (docs/math.md, section 10). If the plan has a near field, only the smooth part of the kernel
    is transformed (see `split`), and the near part is summed over near pairs.
    """

    def __init__(self, kernel: Kernel, plan: Plan, n_threads: int = 1):
        self.kernel, (self.h, self.size, self.radius, self.dtype) = kernel, plan
        h, size, radius, dtype = plan
        d2 = sum(np.ix_(*((h * np.arange(n + 1)) ** 2 for n in size)), start=np.zeros(1))
        # A constant shift changes no force. The value at the largest lag keeps the digits of an embedding much smaller
        # than the kernel, where k is nearly constant.
        k = kernel.value(d2)
        self.shift = float(k.flat[-1])
        if radius > 0:
            inside = d2 < radius**2
            k[inside] -= split(kernel, radius).near(d2[inside])
        self.at_zero = float(k.flat[0])
        K = fft.dctn(k - self.shift, type=1, workers=n_threads if k.size > PARALLEL else 1)  # at lags −n … n
        for axis, n in enumerate(size):
            omega = np.pi * np.arange(n + 1) / n
            b = SPLINE[0] + 2 * SPLINE[1] * np.cos(omega) + 2 * SPLINE[2] * np.cos(2 * omega)
            K /= (2 * n * b**2).reshape([-1 if a == axis else 1 for a in range(len(size))])
        self.frequencies = group_frequencies(K / 2, size, dtype)

    @cached_property
    def compiled(self) -> Any:
        """The transform as an object of the core, for `mesh_steps`."""
        kind = _core.MeshKernel32 if self.dtype == np.float32 else _core.MeshKernel64
        near = near_table(self.kernel, self.radius) if self.radius > 0 else (np.zeros((1, 4), np.float32), 0, 1.0)
        size = np.array(self.size, dtype=np.int64)
        return kind(self.h, size, self.frequencies, self.shift, self.at_zero, self.radius, *near)

    def place(self, low: Array, high: Array) -> _core.Mesh:
        """Return the mesh, centred on the box with corners `low` and `high`."""
        size = np.array(self.size)
        origin = (low + high) / 2 - (size - 1) / 2 * self.h
        return _core.Mesh(origin, self.h, size.astype(np.int64))

    def solve(self, source: Source, n_threads: int) -> Callable[[Array], tuple[Array, Array]]:
        """Return a function of targets (t, d) that gives the field of the source: Φ (t, m) and ∇Φ (t, m, d).

        At the source's own points, Φ_i includes a self term from the mesh, c_i · `at_zero`. Here `at_zero` is the value
        at distance 0 of the part of the kernel that is on the mesh. The near field has no self terms.
        """
        m = source.charges.shape[1]
        mesh = self.place(source.low, source.high)
        Y = source.Y.astype(self.dtype, copy=False)
        grid = self.potential(mesh, Y, source.charges, n_threads)
        shift = self.shift * np.ascontiguousarray(source.charges.T).sum(axis=1)  # along rows, as in Source
        near = NearPairs(self.kernel, self.radius, source, Y, n_threads) if self.radius > 0 else None

        def at(targets: Array) -> tuple[Array, Array]:
            T = Y if targets is source.Y else np.ascontiguousarray(targets, dtype=self.dtype)
            potential, half = np.empty((len(T), m)), np.empty((len(T), m, T.shape[1]))
            _core.gather(mesh, T, grid, potential, half, n_threads)
            potential += shift
            if near is not None:
                near.add(T, potential, half)
            return potential, 2 * half

        return at

    def potential(self, mesh: _core.Mesh, Y: Array, charges: Array, n_threads: int) -> Array:
        """Return, at the nodes of the mesh, the potential of charges (n, m) that lie at the points Y.

        The result is flat: m meshes one after the other, followed by the padding that the core needs.
        """
        m, nodes = charges.shape[1], int(np.prod(self.size))
        grid = np.empty(m * nodes + PADDING, self.dtype)
        grid[m * nodes :] = 0
        _core.spread(mesh, Y, charges, grid, n_threads)
        potential = grid[: m * nodes].reshape(m, nodes)
        _core.convolve(mesh, self.frequencies, potential, n_threads)
        return grid


class NearPairs:
    """Adds the near part of a kernel to the field of a source.

    Parameters
    ----------
    kernel, radius : Kernel, float
        The kernel, and the radius of its near part (see `split`).
    source : Source
    Y : ndarray of shape (n, d)
        The points of the source in the precision of the mesh.
    n_threads : int
    """

    def __init__(self, kernel: Kernel, radius: float, source: Source, Y: Array, n_threads: int):
        counts = np.floor((source.high - source.low) / radius).astype(np.int64) + 1
        self._cells = _core.Mesh(source.low, radius, counts), *near_table(kernel, radius)
        self._Y, self._charges, self._n_threads = Y, source.charges, n_threads
        self._sorted: Any = None

    def add(self, targets: Array, potential: Array, half: Array) -> None:
        """Add to Φ (t, m) and ½∇Φ (t, m, d) at the targets; if they are Y itself, a point does not act on itself.

        For other targets, Y is sorted into cells at the first call.
        """
        if targets is self._Y:
            _core.near(*self._cells, targets, self._Y, self._charges, potential, half, self._n_threads)
            return
        if self._sorted is None:
            kind = _core.NearField32 if self._Y.dtype == np.float32 else _core.NearField64
            self._sorted = kind(*self._cells, self._Y, self._charges, self._n_threads)
        _core.near_at(self._sorted, targets, potential, half, self._n_threads)


def group_frequencies(K: Array, size: tuple[int, ...], dtype: type[np.floating]) -> Array:
    """Return the transform of a kernel with its frequencies in the order that the core's fourier.hpp expects.

    An axis of K has the frequencies 0 … n, where n is its entry of `size`. The result has shape (groups, rows, lanes),
    and even frequencies come before odd frequencies along every axis of K. Every axis of K but the last is extended to
    2n frequencies, and these axes are flattened to the rows. The last axis of K is padded with zeros and cut into
    groups, each with as many frequencies as a SIMD vector has lanes.
    """
    K = np.concatenate([K[..., ::2], K[..., 1::2]], axis=-1, dtype=dtype, casting="same_kind")
    for axis, n in enumerate(size[:-1]):
        f = np.arange(2 * n)
        K = K.take(np.concatenate([np.minimum(f, 2 * n - f)[::2], np.minimum(f, 2 * n - f)[1::2]]), axis=axis)
    count = size[-1] + 1
    lines = VECTOR_BYTES // np.dtype(dtype).itemsize
    groups = -(-count // lines)
    out = np.zeros((groups, K.size // count, lines), dtype)
    rows = K.reshape(-1, count)
    for g in range(groups):
        part = rows[:, g * lines : (g + 1) * lines]
        out[g, :, : part.shape[1]] = part
    return out


@dataclass(frozen=True)
class Split:
    """The near part of a kernel k = smooth + near, and the slope of this part; both are zero beyond the radius."""

    near: Callable[[Array], Array]  # functions of d2
    near_slope: Callable[[Array], Array]


def split(kernel: Kernel, radius: float) -> Split:
    """Return the near part χ(d2/a²) (k − tangent) of a kernel k, for a radius a and the tangent of k(d2) at d2 = a².

    χ(x) = 1 − 35x⁴ + 84x⁵ − 70x⁶ + 20x⁷ decreases from χ(0) = 1 to χ(1) = 0, and its first three derivatives vanish at
    both ends. The smooth part, k minus the near part, therefore varies on the scale a, however sharp k is near 0.
    """
    a2 = radius**2
    at, slope = float(kernel.value(np.array([a2]))[0]), float(kernel.slope(np.array([a2]))[0])

    def window(d2: Array) -> Array:
        x = np.minimum(d2 / a2, 1.0)
        return 1 - x**4 * (35 - 84 * x + 70 * x**2 - 20 * x**3)

    def window_slope(d2: Array) -> Array:
        x = np.minimum(d2 / a2, 1.0)
        return -140 * x**3 * (1 - x) ** 3 / a2

    def excess(d2: Array) -> Array:
        return kernel.value(d2) - at - slope * (d2 - a2)

    def near(d2: Array) -> Array:
        return np.where(d2 < a2, window(d2) * excess(d2), 0.0)

    def near_slope(d2: Array) -> Array:
        return np.where(d2 < a2, window_slope(d2) * excess(d2) + window(d2) * (kernel.slope(d2) - slope), 0.0)

    return Split(near, near_slope)


@cached_by_kernel(16)
def near_table(kernel: Kernel, radius: float) -> Table:
    """Return the table of a kernel's near part (see `split`) and of its slope; both are 0 from the radius on."""
    part = split(kernel, radius)
    return tabulate(part.near, part.near_slope, 1e-6 * min(kernel.length, radius), radius, kernel.kink)


@cached_by_kernel(4096)
def plan(kernel: Kernel, error: float, n: int, span: tuple[float, ...]) -> Plan:
    """Return the cheapest plan for n points in a box with sides `span`.

    `error` is the maximum relative error of the force between two points.
    """
    h, radius = cheapest(kernel, error, n, np.array(span))
    size = mesh_size(h, span)
    double = needs_float64(kernel, n, span, size) or max(size) > 2**13  # float32 resolves 1/2000 of a cell up to here
    return Plan(h, size, radius, np.float64 if double else np.float32)


def mesh_size(h: float, span: tuple[float, ...]) -> tuple[int, ...]:
    """Return the number of nodes along each axis of a mesh of width h for a box with sides `span`."""
    return tuple(fft.next_fast_len(int(np.ceil(s / h)) + BEYOND, real=True) for s in span)


def needs_float64(kernel: Kernel, n: int, span: tuple[float, ...], size: tuple[int, ...]) -> bool:
    """Return whether to use float64 for a mesh of this size, with n points in a box with sides `span`.

    Float64 is needed if the box is smaller than the kernel's length, because forces are then small differences of large
    values. It is also used for few points on a small mesh, because it costs little there.
    """
    return bool((np.prod(size) <= DOUBLE[0] and n <= DOUBLE[1]) or max(span) < kernel.length)


def check_span(span: Array) -> None:
    """Raise FloatingPointError if the sides of the box around the points are not finite."""
    if not np.isfinite(span).all():
        raise FloatingPointError("the embedding contains NaN or infinite coordinates; lower learning_rate")


def rungs_of(span: Array, length: float, per_octave: int, room: float = 1.0) -> tuple[int, ...]:
    """Return the sides `span` (d,) of a box, times `room`, rounded up to fixed lengths called rungs.

    A rung is given by an integer q: its length is `length` · 2^(q/per_octave), where `length` is the kernel's length. A
    side shorter than 1/64 of the widest side is treated as that long, so that no mesh is degenerate.
    """
    shortest = max(float(span.max()) * THIN, TINY * length)
    return tuple(int(np.ceil(per_octave * np.log2(room * max(s, shortest) / length))) for s in span)


def span_of(rungs: tuple[int, ...], length: float, per_octave: int) -> tuple[float, ...]:
    """Return the sides of a box from the rungs that `rungs_of` returns."""
    return tuple(length * 2.0 ** (rung / per_octave) for rung in rungs)


def span_limits(rungs: tuple[int, ...], length: float, per_octave: int) -> tuple[Array, Array]:
    """Return the lower and the upper ends of the sides for which `rungs_of` returns these rungs.

    The ends are moved inwards by more than the rounding error of `rungs_of`.
    """
    lower, upper = (np.array(span_of(ends, length, per_octave)) for ends in (tuple(q - 1 for q in rungs), rungs))
    return lower * (1 + ROUNDING), upper * (1 - ROUNDING)


def cheapest(
    kernel: Kernel, error: float, n: int, span: Array, node: float = NODE, pair: float = PAIR, smallest: float = 0.0
) -> tuple[float, float]:
    """Return the width of the cheapest mesh and the radius of its near field, 0 if it needs no near field.

    `node` and `pair` are the costs of a node and of a near pair, and the cost assumes at least the radius `smallest`.
    """
    d, widest = len(span), float(span.max())
    h, plain = mesh_width(kernel, error, d), np.inf
    if h > 0:
        h = min(h, step_up(widest / 8, kernel.length))
        plain = node * _nodes(span, h)
    finest = np.log2(widest / (256 if d == 3 else 4096) / kernel.length)
    widths = kernel.length * 2 ** (np.ceil(2 * np.arange(finest, np.log2(widest / 8 / kernel.length), 0.5)) / 2)
    ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}[d]
    pairs = n * np.minimum(n, CLUMP * n * ball * np.maximum(RADIUS * widths, smallest) ** d / float(span.prod()))
    costs = np.array([node * _nodes(span, width) for width in widths]) + pair * pairs
    best = int(costs.argmin())
    if plain <= costs[best]:
        return h, 0.0
    return float(widths[best]), near_radius(kernel, error, d, float(widths[best]))


@cached_by_kernel(1024)
def mesh_width(kernel: Kernel, error: float, d: int) -> float:
    """Return the largest mesh width whose `pair_error` is at most `error`, or 0 if no mesh resolves the kernel.

    Widths from 2 down to 1/32 of the kernel's length are tried, in steps of a factor 2^(1/8). The result is 0 if all
    widths are too large, or if the kernel has a kink.
    """
    if kernel.kink > 0:
        return 0.0
    widths = [kernel.length * 2 ** (step / STEPS) for step in range(STEPS, -5 * STEPS - 1, -1)]
    first = bisect_left(widths, True, key=lambda h: pair_error(kernel, h, min(d, 2), 0.0) <= error)
    return widths[first] if first < len(widths) else 0.0


def kink_radius(kernel: Kernel, error: float) -> float:
    """Return the radius whose smooth part retains a fraction `error` of a kink: 1 − χ ≈ 35 (kink/a)^8."""
    return float(kernel.kink * (35 / error) ** (1 / 8))


@cached_by_kernel(4096)
def near_radius(kernel: Kernel, error: float, d: int, h: float) -> float:
    """Return the smallest radius of the near field for which the `pair_error` of a mesh of width h is at most `error`.

    Radii from 2 h to 24 h are tried. If the kernel has a kink, smaller radii are raised to a minimum that leaves the
    kink well inside the near field. If no radius is large enough, the largest is returned.
    """
    kink, cells = kink_radius(kernel, error), (2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 24.0)
    radii = [max(cell * h, kink) for cell in cells]
    first = bisect_left(radii, True, key=lambda a: pair_error(kernel, h, min(d, 2), a) <= error)
    return radii[min(first, len(radii) - 1)]


@cached_by_kernel(4096)
def pair_error(kernel: Kernel, h: float, d: int, radius: float) -> float:
    """Return the relative root-mean-square error of pair forces on a mesh of width h, with a near field up to `radius`.

    The error is measured with four sources, one at a time at a random position in a cell, and with targets uniformly in
    a box. A radius of 0 means no near field: if the force is 0 at all targets, the error is then infinite, otherwise 0.
    """
    nodes = 40
    transform = Transform(kernel, Plan(h, (nodes,) * d, radius, np.float64))
    rng = np.random.RandomState(0)
    reach = (nodes - 2 * ORDER - 2) * h / 2
    wrong = right = 0.0
    for _ in range(4):
        source = rng.uniform(-0.5, 0.5, (1, d)) * h
        target = rng.uniform(-1, 1, (600, d)) * reach
        mesh = transform.place(np.zeros(d), np.zeros(d))
        grid = transform.potential(mesh, source, np.ones((1, 1)), 1)
        phi, half = np.empty((len(target), 1)), np.empty((len(target), 1, d))
        _core.gather(mesh, target, grid, phi, half, 1)
        diff = target - source
        d2 = (diff**2).sum(axis=1)
        slope = kernel.slope(d2)
        near = split(kernel, radius).near_slope(d2) if radius > 0 else np.zeros_like(d2)
        wrong += float(((half[:, 0] - (slope - near)[:, None] * diff) ** 2).sum())
        right += float(((slope[:, None] * diff) ** 2).sum())
    return float(np.sqrt(wrong / right)) if right > 0 else 0.0 if radius > 0 else np.inf


def _nodes(span: Array, h: float) -> float:
    """Return the approximate number of nodes of a mesh of width h."""
    return float(np.prod(span / h + BEYOND))


def step_up(h: float, unit: float) -> float:
    """Return the smallest unit · 2^(k/8), with an integer k, that is not below h."""
    return float(unit * 2 ** (np.ceil(STEPS * np.log2(h / unit)) / STEPS))
