"""Linear time: the field of any kernel by one FFT of one potential on a B-spline mesh (docs/math.md, section 10).

The user asks for a tolerance on the force; the engine measures how coarse a mesh each kernel bears. Where a kernel
is too sharp for an affordable mesh it is split: a smooth part on the mesh, and the rest, which is zero beyond a short
radius a, summed over near pairs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import fft, sparse

from .. import _core
from .._types import Array, Matrix
from ..divergences import antiderivative
from ..kernels import Kernel
from .base import Field
from .exact import Exact
from .tables import Table, tabulate

ORDER = 6  # quintic splines, as in grid.hpp
STEPS = 4  # mesh widths and extents come in 4 steps per octave: a growing map rarely needs a new kernel transform
CACHE = 4  # kernel transforms kept: a map's extents change by one rung at a time
# The part of the tolerance that a pair may use up, measured in one or two dimensions: in three it must be smaller.
# With these every map of tests/test_grid.py keeps its tolerance; 0.5 fails.
SHARE = {1: 0.4, 2: 0.4, 3: 0.25}
# The cost of a step, measured on maps of digits, 6,000 digits of MNIST and Fashion-MNIST: nanoseconds on one thread.
NODE = 7.0  # per node of the padded mesh: two FFTs
PAIR = 5.0  # per pair of the near field
CLUMP = 3.0  # near pairs, over those of a uniform map; 1.5 to 6 were seen
RADIUS = 5.0  # of the near field in mesh widths, before it is measured for the kernel
SPLINE = (66 / 120, 26 / 120, 1 / 120)  # the central quintic B-spline at 0, ±1, ±2


class Grid:
    """Edges over the stored pairs, field on a mesh; force error at most `tol`, relative. d = 1, 2, 3."""

    name = "grid"
    sparse = True
    dtype = np.float32
    local = True

    def __init__(self, n_threads: int, tol: float):
        self.n_threads = n_threads
        self.tol = tol
        self._exact = Exact(n_threads)
        self._tables: dict[tuple[Kernel, float], Table] = {}
        self._transforms: OrderedDict[tuple[object, ...], Transform] = OrderedDict()

    def include(self, P: Matrix) -> None:
        """Do nothing: every pair is in the sum."""

    def edges(self, Y: Array, A: Matrix, kernel: Kernel, b: float, *, potential: bool) -> tuple[float, Array]:
        if Y.dtype == np.float64 or not sparse.issparse(A):
            return self._exact.edges(Y, A, kernel, b, potential=potential)
        native, b = self._native(kernel, b)
        return self._exact.native_edges(native, Y, A, b, potential=potential)

    def field(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Field:
        n, d = Y.shape
        source = Source(Y, charges)
        transform = self._transform(kernel, n, source.high - source.low)
        potential, gradient = source.solve(transform, self.n_threads)(source.Y)
        potential -= transform.at_zero * source.charges  # the mesh holds the point itself
        return Field(potential.reshape(source.shape), gradient.reshape(*source.shape, d))

    def freeze(self, Y: Array, kernel: Kernel, charges: Array | None = None) -> Callable[[Array], Field]:
        source = Source(Y, charges)
        margin = 0.05 * (source.high - source.low) + kernel.length  # new points may fall a little outside
        source.low, source.high = source.low - margin, source.high + margin
        at = source.solve(self._transform(kernel, len(Y), source.high - source.low), self.n_threads)

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

    def _native(self, kernel: Kernel, b: float) -> tuple[_core.Kernel, float]:
        """Return the compiled kernel and exponent for edges: itself where k'/k is rational, else a table for b = −1."""
        native = kernel.native()
        if native is not None and b == -1 and native.rational:
            return native, b
        table = self._tables.get((kernel, b))
        if table is None:
            table = self._tables[kernel, b] = tabulate(
                lambda d2: antiderivative(kernel.log_value(d2), b + 1),
                lambda d2: np.exp((b + 1) * kernel.log_value(d2)) * kernel.log_slope(d2),
                1e-6 * kernel.length,
                1e6 * kernel.length,
                kernel.kink,
            )
        return _core.Kernel.tabulated(*table), -1.0

    def _transform(self, kernel: Kernel, n: int, span: Array) -> Transform:
        """Return the kernel transform for a map of this extent, from the cache if one fits."""
        least = max(float(span.max()) / 64, 1e-12 * kernel.length)
        rungs = tuple(int(np.ceil(STEPS * np.log2(max(s, least) / kernel.length))) for s in span)
        key = (kernel, n, rungs)
        if key not in self._transforms:
            self._transforms[key] = make_transform(kernel, self.tol, n, rungs)
            if len(self._transforms) > CACHE:
                self._transforms.popitem(last=False)
        self._transforms.move_to_end(key)
        return self._transforms[key]


class Source:
    """Points and their charges, and the box they lie in."""

    def __init__(self, Y: Array, charges: Array | None):
        n, d = Y.shape
        if d > 3:
            raise ValueError(f'engine="grid" works in 1, 2 or 3 dimensions, not {d}; use engine="sampled" or "exact"')
        self.Y = np.ascontiguousarray(Y)
        c = np.ones(n) if charges is None else np.asarray(charges, dtype=np.float64)
        self.shape = c.shape
        self.charges = np.ascontiguousarray(c.reshape(n, -1))
        axes = np.ascontiguousarray(Y.T)  # NumPy reduces along rows many times faster than along columns
        self.low, self.high = (f(axes, axis=1).astype(np.float64) for f in (np.min, np.max))

    def solve(self, transform: Transform, n_threads: int) -> Callable[[Array], tuple[Array, Array]]:
        """Return Φ and ∇Φ, self term included, as a function of targets (m, d)."""
        m = self.charges.shape[1]
        mesh = transform.place(self.low, self.high)
        Y = self.Y.astype(transform.dtype, copy=False)
        grid = transform.empty(m)
        _core.spread(mesh, Y, self.charges, grid.reshape(m, -1), n_threads)
        grid = transform.convolve(grid, n_threads).reshape(m, -1)
        shift = transform.shift * self.charges.sum(axis=0)
        cells = None
        if transform.radius > 0:
            near = near_table(transform.kernel, transform.radius)
            counts = np.floor((self.high - self.low) / transform.radius).astype(np.int64) + 1
            cells = _core.Mesh(self.low, transform.radius, counts)

        def at(targets: Array) -> tuple[Array, Array]:
            T = Y if targets is self.Y else np.ascontiguousarray(targets, dtype=transform.dtype)
            potential, half = np.empty((len(T), m)), np.empty((len(T), m, T.shape[1]))
            _core.gather(mesh, T, grid, potential, half, n_threads)
            potential += shift
            if cells is not None:
                _core.near(cells, *near, T, Y, self.charges, potential, half, n_threads)
            return potential, 2 * half

        return at


class Transform:
    """The Fourier transform of a kernel at the lags of a padded mesh, divided by the symbol of the spline, twice."""

    def __init__(
        self, kernel: Kernel, h: float, padded: tuple[int, ...], radius: float, dtype: type[np.floating]
    ):
        self.h, self.padded, self.radius, self.dtype = h, padded, radius, dtype
        self.size = tuple(N // 2 for N in padded)
        part = split(kernel, radius) if radius > 0 else None
        lags = [np.minimum(np.arange(N), N - np.arange(N)) * h for N in padded]
        d2 = sum(np.ix_(*(lag**2 for lag in lags)), start=np.zeros(1))
        # A constant shift moves no force. Taken at the largest lag, it keeps the digits of a map much smaller than the
        # kernel, where k is nearly constant.
        k = kernel.value(d2)
        if part is not None:
            inside = d2 < radius**2
            k[inside] -= part.near(d2[inside])
        self.shift = float(kernel.value(np.array([sum((s * h) ** 2 for s in self.size)]))[0])
        self.at_zero = float(k.flat[0])
        K = fft.rfftn(k - self.shift).real
        for axis, N in enumerate(padded):
            omega = 2 * np.pi * np.arange(K.shape[axis]) / N
            b = np.full_like(omega, SPLINE[0])
            for j, w in enumerate(SPLINE[1:], start=1):
                b += 2 * w * np.cos(j * omega)
            K /= (b**2).reshape([-1 if a == axis else 1 for a in range(len(padded))])
        self.K = K.astype(dtype)
        self.kernel = kernel

    def place(self, low: Array, high: Array) -> _core.Mesh:
        """Return the mesh, centred on the points."""
        size = np.array(self.size)
        origin = (low + high) / 2 - (size - 1) / 2 * self.h
        return _core.Mesh(origin, self.h, size.astype(np.int64))

    def empty(self, m: int) -> Array:
        """Return room for m potentials on the mesh, with the few numbers more that a padded spline may touch."""
        count = m * int(np.prod(self.size))
        return np.zeros(count + 8, self.dtype)[:count].reshape(m, *self.size)

    def convolve(self, grid: Array, workers: int) -> Array:
        """Return the potential (m, nodes…) of charges on the mesh; axes are padded one by one, skipping zeros."""
        d = len(self.padded)
        workers = workers if self.K.size > 2**15 else 1
        G = fft.rfft(grid, n=self.padded[-1], axis=d, workers=workers)
        for axis in range(d - 1, 0, -1):
            G = fft.fft(G, n=self.padded[axis - 1], axis=axis, workers=workers, overwrite_x=True)
        G *= self.K
        for axis in range(1, d):
            G = fft.ifft(G, axis=axis, workers=workers, overwrite_x=True)
            G = G[(slice(None),) * axis + (slice(self.size[axis - 1]),)]
        out = self.empty(len(grid))
        out[...] = fft.irfft(G, n=self.padded[-1], axis=d, workers=workers, overwrite_x=True)[..., : self.size[-1]]
        return out


def make_transform(kernel: Kernel, tol: float, n: int, rungs: tuple[int, ...]) -> Transform:
    """Return the cheapest transform that keeps the tolerance for n points in a box of sides length · 2^(rung/4)."""
    span = kernel.length * 2.0 ** (np.array(rungs) / STEPS)
    h, radius = plan(kernel, tol, n, span)
    padded = tuple(_even_fast(2 * (int(np.ceil(s / h)) + ORDER + 1)) for s in span)
    # float32 places a point to 1/2000 of a cell on up to 8192 nodes. Small meshes afford float64 for few points.
    small = np.prod(padded) <= 2**14 and n <= 2**14
    real = np.float64 if small or max(padded) > 2**14 else np.float32
    return Transform(kernel, h, padded, radius, real)


def plan(kernel: Kernel, tol: float, n: int, span: Array) -> tuple[float, float]:
    """Return the mesh width and the radius of the near field, 0 for none: the cheapest that keeps the tolerance."""
    d, widest = len(span), float(span.max())
    h, plain = mesh_width(kernel, tol, d), np.inf
    if h > 0:
        h = min(h, _step_up(widest / 8, kernel.length))
        plain = NODE * _padded_nodes(span, h)
    finest = np.log2(widest / (256 if d == 3 else 4096) / kernel.length)
    widths = kernel.length * 2 ** (np.ceil(2 * np.arange(finest, np.log2(widest / 8 / kernel.length), 0.5)) / 2)
    ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}[d]
    pairs = n * np.minimum(n, CLUMP * n * ball * (RADIUS * widths) ** d / float(span.prod()))
    costs = np.array([NODE * _padded_nodes(span, width) for width in widths]) + PAIR * pairs
    best = int(costs.argmin())
    if plain <= costs[best]:
        return h, 0.0
    return float(widths[best]), near_radius(kernel, tol, d, float(widths[best]))


@dataclass(frozen=True)
class Split:
    """The near part of k = smooth + near, zero beyond the radius."""

    near: Callable[[Array], Array]
    near_slope: Callable[[Array], Array]


def split(kernel: Kernel, radius: float) -> Split:
    """Split a kernel at a radius a: near = χ(d2/a²) (k − line), where the line touches k at a, and χ falls from 1 to 0.

    χ(x) = 1 − 35x⁴ + 84x⁵ − 70x⁶ + 20x⁷ has three derivatives that vanish at both ends, so the smooth part bends no
    faster than on the scale a, whatever k does near 0.
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


@lru_cache(maxsize=256)
def mesh_width(kernel: Kernel, tol: float, d: int) -> float:
    """Return the widest mesh, in steps of 2^(1/4) from the kernel's length, that carries the kernel's force to `tol`.

    0 if a thirtieth of the length does not: the kernel has a kink or a cusp and must be split.
    """
    if kernel.kink > 0:
        return 0.0
    widths = [kernel.length * 2 ** (step / STEPS) for step in range(STEPS, -5 * STEPS - 1, -1)]
    first = bisect_left(widths, True, key=lambda h: _pair_error(kernel, h, min(d, 2), 0.0) <= SHARE[d] * tol)
    return widths[first] if first < len(widths) else 0.0


@lru_cache(maxsize=4096)
def near_radius(kernel: Kernel, tol: float, d: int, h: float) -> float:
    """Return a radius of the near field at which a mesh of width h carries the smooth part to `tol`.

    It is as small as that allows, and large enough to hold a kink well inside.
    """
    # What is left of a kink in the smooth part is 1 − χ ≈ 35 (kink/a)^8 of it.
    least = kernel.kink * (3 * 35 / tol) ** (1 / 8)
    radii = [max(cells * h, least) for cells in (2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0)]
    first = bisect_left(radii, True, key=lambda a: _pair_error(kernel, h, min(d, 2), a) <= SHARE[d] * tol)
    return radii[first] if first < len(radii) else max(16.0 * h, least)


@lru_cache(maxsize=16)
def near_table(kernel: Kernel, radius: float) -> Table:
    """Return the table of the near part, 0 at its end."""
    part = split(kernel, radius)
    return tabulate(part.near, part.near_slope, 1e-6 * min(kernel.length, radius), radius, kernel.kink)


def _pair_error(kernel: Kernel, h: float, d: int, radius: float) -> float:
    """Measure the relative error of the force between pairs on a mesh of width h.

    A few sources at random offsets, targets uniform in a ball: the error in quadrature is that of a random cloud.
    """
    nodes = 40
    transform = Transform(kernel, h, (2 * nodes,) * d, radius, np.float64)
    rng = np.random.RandomState(0)
    reach = (nodes - 2 * ORDER - 2) * h / 2
    wrong = right = 0.0
    for _ in range(4):
        source = rng.uniform(-0.5, 0.5, (1, d)) * h
        target = rng.uniform(-1, 1, (600, d)) * reach
        mesh = transform.place(np.zeros(d), np.zeros(d))
        grid = transform.empty(1)
        _core.spread(mesh, source, np.ones((1, 1)), grid.reshape(1, -1), 1)
        grid = transform.convolve(grid, 1)
        phi, half = np.empty((len(target), 1)), np.empty((len(target), 1, d))
        _core.gather(mesh, target, grid.reshape(1, -1), phi, half, 1)
        diff = target - source
        d2 = (diff**2).sum(axis=1)
        slope = kernel.slope(d2)
        near = split(kernel, radius).near_slope(d2) if radius > 0 else np.zeros_like(d2)
        wrong += float(((half[:, 0] - (slope - near)[:, None] * diff) ** 2).sum())
        right += float(((slope[:, None] * diff) ** 2).sum())
    return float(np.sqrt(wrong / right)) if right > 0 else 0.0 if radius > 0 else np.inf


def _padded_nodes(span: Array, h: float) -> float:
    """Return about how many nodes a mesh of this width has, twice as long along every axis as the map."""
    return float(np.prod(2 * (span / h + ORDER + 1)))


def _step_up(h: float, unit: float) -> float:
    """Return the smallest unit · 2^(k/4) that is not below h."""
    return float(unit * 2 ** (np.ceil(STEPS * np.log2(h / unit)) / STEPS))


def _even_fast(N: int) -> int:
    """Return an even fast FFT length not below N."""
    while True:
        N = fft.next_fast_len(N, real=True)
        if N % 2 == 0:
            return N
        N += 1
