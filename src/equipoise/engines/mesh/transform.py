"""A kernel on a mesh: its transform at the mesh's frequencies, and the near part that a coarse mesh cannot carry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import fft

from ... import _core
from ..._types import Array
from ...kernels import Kernel
from ..cpu import charge_columns
from ..tables import Table, tabulate

SMALL = 2**12  # nodes of a mesh too small for two threads; chosen
SPLINE = (66 / 120, 26 / 120, 1 / 120)  # the central quintic B-spline at 0, ±1, ±2


class Source:
    """Points and their charges, and the box they lie in."""

    def __init__(self, Y: Array, charges: Array | None):
        self.Y = np.ascontiguousarray(Y)
        c, self.charges = charge_columns(charges, len(Y))
        self.shape, self.charged = c.shape, charges is not None
        axes = np.ascontiguousarray(Y.T)  # NumPy reduces along rows many times faster than along columns
        self.low, self.high = (f(axes, axis=1).astype(np.float64) for f in (np.min, np.max))

    def widen(self, margin: Array) -> None:
        """Leave room around the box."""
        self.low, self.high = self.low - margin, self.high + margin


class Transform:
    """A kernel at the frequencies of a mesh padded to twice its size, divided by the symbol of the spline, twice."""

    def __init__(self, kernel: Kernel, h: float, size: tuple[int, ...], radius: float, dtype: type[np.floating]):
        self.kernel, self.h, self.size, self.radius, self.dtype = kernel, h, size, radius, dtype
        d2 = sum(np.ix_(*((h * np.arange(n + 1)) ** 2 for n in size)), start=np.zeros(1))
        # A constant shift moves no force. Taken at the largest lag, it keeps the digits of a map much smaller than the
        # kernel, where k is nearly constant.
        k = kernel.value(d2)
        self.shift = float(k.flat[-1])
        if radius > 0:
            inside = d2 < radius**2
            k[inside] -= split(kernel, radius).near(d2[inside])
        self.at_zero = float(k.flat[0])
        K = fft.dctn(k - self.shift, type=1)  # of the even kernel at lags −n … n
        for axis, n in enumerate(size):
            omega = np.pi * np.arange(n + 1) / n
            b = SPLINE[0] + 2 * SPLINE[1] * np.cos(omega) + 2 * SPLINE[2] * np.cos(2 * omega)
            K /= (2 * n * b**2).reshape([-1 if a == axis else 1 for a in range(len(size))])
        self.frequencies = in_groups(K / 2, size, dtype)

    def place(self, low: Array, high: Array) -> _core.Mesh:
        """Return the mesh, centred on the points."""
        size = np.array(self.size)
        origin = (low + high) / 2 - (size - 1) / 2 * self.h
        return _core.Mesh(origin, self.h, size.astype(np.int64))

    def solve(self, source: Source, n_threads: int) -> Callable[[Array], tuple[Array, Array]]:
        """Return Φ and ∇Φ of a source, self terms included, as a function of targets (t, d)."""
        m = source.charges.shape[1]
        mesh = self.place(source.low, source.high)
        Y = source.Y.astype(self.dtype, copy=False)
        grid = self.potential(mesh, Y, source.charges, n_threads)
        shift = self.shift * np.ascontiguousarray(source.charges.T).sum(axis=1)  # along rows, as for the box
        cells = None
        if self.radius > 0:
            near = near_table(self.kernel, self.radius)
            counts = np.floor((source.high - source.low) / self.radius).astype(np.int64) + 1
            cells = _core.Mesh(source.low, self.radius, counts)

        def at(targets: Array) -> tuple[Array, Array]:
            T = Y if targets is source.Y else np.ascontiguousarray(targets, dtype=self.dtype)
            potential, half = np.empty((len(T), m)), np.empty((len(T), m, T.shape[1]))
            _core.gather(mesh, T, grid, potential, half, n_threads)
            potential += shift
            if cells is not None:
                _core.near(cells, *near, T, Y, source.charges, potential, half, n_threads)
            return potential, 2 * half

        return at

    def potential(self, mesh: _core.Mesh, Y: Array, charges: Array, n_threads: int) -> Array:
        """Return the potential (m, nodes) on the mesh of charges (n, m) at Y."""
        m, nodes = charges.shape[1], int(np.prod(self.size))
        room = np.empty(m * nodes + 8, self.dtype)  # a spline may read a few numbers more, with weight 0
        room[m * nodes :] = 0
        grid = room[: m * nodes].reshape(m, nodes)
        _core.spread(mesh, Y, charges, grid, n_threads)
        _core.convolve(mesh, self.frequencies, grid, n_threads if nodes > SMALL else 1)
        return grid


def in_groups(K: Array, size: tuple[int, ...], dtype: type[np.floating]) -> Array:
    """Return the frequencies 0 … n of each axis in the order of fourier.hpp, where a vector holds a group of them.

    Even ones come before odd ones. The last axis has each once, the others have all 2n, and go after the groups.
    """
    for axis, n in enumerate(size[:-1]):
        f = np.arange(2 * n)
        K = K.take(np.concatenate([np.minimum(f, 2 * n - f)[::2], np.minimum(f, 2 * n - f)[1::2]]), axis=axis)
    f = np.arange(size[-1] + 1)
    K = K.take(np.concatenate([f[::2], f[1::2]]), axis=-1)
    lines = 32 // np.dtype(dtype).itemsize
    groups = -(-len(f) // lines)
    out = np.zeros((groups, K.size // len(f), lines), dtype)
    rows = K.reshape(-1, len(f))
    for g in range(groups):
        part = rows[:, g * lines : (g + 1) * lines]
        out[g, :, : part.shape[1]] = part
    return out


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


@lru_cache(maxsize=16)
def near_table(kernel: Kernel, radius: float) -> Table:
    """Return the table of the near part, 0 at its end."""
    part = split(kernel, radius)
    return tabulate(part.near, part.near_slope, 1e-6 * min(kernel.length, radius), radius, kernel.kink)
