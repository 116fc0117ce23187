"""The field on a torus: a periodic mesh, without padding (docs/math.md, section 21)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from ... import _core
from ..._types import Array
from ...geometry import Torus
from ...kernels import Kernel
from ..cpu import cached_by_kernel
from .plan import ORDER, PADDING, SPLINE, Plan, Source, cheapest, near_table, needs_float64, plan, split

BEFORE, AFTER = ORDER // 2 - 1, ORDER // 2  # nodes of a spline before and after the cell of a point
FEWEST = 4 * ORDER  # nodes along an axis
NEAREST = 0.49  # largest radius of the near field, in periods: beyond a half, an image would be nearer


class TorusPlan(NamedTuple):
    """The parameters of a transform on a periodic mesh."""

    h: float  # the largest mesh width
    size: tuple[int, ...]  # nodes along each axis
    radius: float  # of the near field, 0 for none
    dtype: type[np.floating]
    period: tuple[float, ...]


@cached_by_kernel(4096)
def torus_plan(
    kernel: Kernel, error: float, n: int, period: tuple[float, ...], span: tuple[float, ...]
) -> Plan | TorusPlan:
    """Return the cheapest plan for n points in a box with sides `span` on a torus.

    `error` is the maximum relative error of the force between two points. Points in less than half of the torus have
    the distances of flat space, and a mesh in flat space covers only them.
    """
    if all(side < L / 2 for side, L in zip(span, period, strict=True)):
        return plan(kernel, error, n, span)
    h, radius = cheapest(kernel, error, n, np.array(period))
    size = tuple(fft.next_fast_len(max(int(np.ceil(L / h)), FEWEST), real=True) for L in period)
    double = needs_float64(kernel, n, span, size) or max(size) > 2**13
    radius = min(radius, NEAREST * min(period))
    return TorusPlan(h, size, radius, np.float64 if double else np.float32, period)


def symbol(size: int) -> Array:
    """Return the Fourier transform of the spline at the frequencies 0 … size − 1 of a periodic axis."""
    omega = 2 * np.pi * np.arange(size) / size
    return SPLINE[0] + 2 * SPLINE[1] * np.cos(omega) + 2 * SPLINE[2] * np.cos(2 * omega)


def fold(grid: Array, axis: int) -> Array:
    """Add what was spread to the margins of a grid along an axis to the opposite side, in place.

    Return a view of the grid without these margins.
    """
    grid = np.moveaxis(grid, axis, 0)
    inner = grid[BEFORE:-AFTER]
    inner[:AFTER] += grid[-AFTER:]
    inner[-BEFORE:] += grid[:BEFORE]
    return np.moveaxis(inner, 0, axis)


def unfold(grid: Array, axis: int, out: Array | None = None) -> Array:
    """Return a periodic grid with margins along an axis, copied from the opposite side."""
    along = np.moveaxis(grid, axis, 0)
    parts = [np.moveaxis(part, 0, axis) for part in (along[-BEFORE:], along, along[:AFTER])]
    return np.concatenate(parts, axis=axis, out=out)


class TorusTransform:
    """The Fourier transform of a kernel on a periodic mesh, divided by the squared symbol of the spline.

    The kernel is that of the distance to the nearest image. At half a period its slope jumps, and the mesh rounds it
    off there. If the plan has a near field, only the smooth part of the kernel is transformed (see `split`).
    """

    def __init__(self, kernel: Kernel, plan: TorusPlan):
        self.kernel, (_, self.size, self.radius, self.dtype, self.period) = kernel, plan
        period = self.period
        self.nodes_per_length = np.array(plan.size) / np.array(period)  # along each axis
        lags = [np.minimum(np.arange(N), N - np.arange(N)) * (L / N) for N, L in zip(plan.size, period, strict=True)]
        d2 = sum(np.ix_(*(lag**2 for lag in lags)), start=np.zeros(1))
        k = kernel.value(d2)
        self.at_zero = float(k.flat[0])
        self.shift = float(k.min())  # a constant changes no force, and keeps the digits of a small embedding
        if self.radius > 0:
            inside = d2 < self.radius**2
            k[inside] -= split(kernel, self.radius).near(d2[inside])
        K = fft.rfftn(k - self.shift).real  # the kernel is even along every axis
        for axis, N in enumerate(plan.size):
            b = symbol(N)[: K.shape[axis]]
            K = K / (b**2).reshape([-1 if a == axis else 1 for a in range(len(plan.size))])
        self.frequencies = K.astype(self.dtype)

    def solve(self, source: Source, n_threads: int) -> Callable[[Array], tuple[Array, Array]]:
        """Return a function of targets (t, d) that gives Φ (t, m) and ∇Φ (t, m, d) of a source.

        At the source's own points, Φ_i includes the self term c_i k(0) (`at_zero`).
        """
        m = source.charges.shape[1]
        origin, size = np.full(len(self.size), -float(BEFORE)), np.array(self.size, np.int64) + BEFORE + AFTER
        mesh = _core.Mesh(origin, 1.0, size)
        grid = self._potential(mesh, size, source, n_threads)
        shift = self.shift * source.charges.sum(axis=0)
        near = self._near_field(source, n_threads) if self.radius > 0 else None

        def at(targets: Array) -> tuple[Array, Array]:
            T = self._wrapped(targets)
            potential, half = np.empty((len(T), m)), np.empty((len(T), m, T.shape[1]))
            nodes = np.ascontiguousarray(T * self.nodes_per_length, dtype=self.dtype)
            _core.gather(mesh, nodes, grid, potential, half, n_threads)
            potential += shift
            half *= self.nodes_per_length
            if near is not None:
                _core.near_at(near, T.astype(self.dtype), potential, half, n_threads)
            return potential, 2 * half

        return at

    def _wrapped(self, Y: Array) -> Array:
        """Return positions in [0, L), in float64."""
        return Torus(self.period).wrap(np.asarray(Y, dtype=np.float64))

    def _potential(self, mesh: _core.Mesh, size: Array, source: Source, n_threads: int) -> Array:
        """Return the potential at the nodes of the mesh with margins: m meshes, followed by the core's padding."""
        m, nodes, axes = source.charges.shape[1], int(np.prod(size)), tuple(range(1, len(size) + 1))
        Y = np.ascontiguousarray(self._wrapped(source.Y) * self.nodes_per_length, dtype=self.dtype)
        grid = np.zeros(m * nodes + PADDING, self.dtype)
        _core.spread(mesh, Y, source.charges, grid, n_threads)
        inner = grid[: m * nodes].reshape(m, *size)
        for axis in axes:
            inner = fold(inner, axis)
        inner = fft.irfftn(
            fft.rfftn(inner, axes=axes, workers=n_threads) * self.frequencies, self.size, axes, workers=n_threads
        )
        for axis in axes:
            inner = unfold(inner, axis)
        grid[: m * nodes] = inner.ravel()
        return grid

    def _near_field(self, source: Source, n_threads: int) -> Any:
        """Return the near field of a source: its points, and their images within the radius of a side."""
        Y, charges = self._wrapped(source.Y), source.charges
        for axis, L in enumerate(self.period):
            low, high = Y[:, axis] < self.radius, Y[:, axis] > L - self.radius
            shift = np.eye(len(self.period))[axis] * L
            Y = np.concatenate([Y, Y[low] + shift, Y[high] - shift])
            charges = np.concatenate([charges, charges[low], charges[high]])
        counts = np.floor((np.array(self.period) + 2 * self.radius) / self.radius).astype(np.int64) + 1
        cells = _core.Mesh(np.full(len(self.period), -self.radius), self.radius, counts)
        kind = _core.NearField32 if self.dtype == np.float32 else _core.NearField64
        Y, charges = np.ascontiguousarray(Y, dtype=self.dtype), np.ascontiguousarray(charges)
        return kind(cells, *near_table(self.kernel, self.radius), Y, charges, n_threads)
