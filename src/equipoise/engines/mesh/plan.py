"""How coarse a mesh bears a kernel: the error of the force between pairs, and the cheapest mesh that keeps it small."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import fft

from ... import _core
from ..._types import Array
from ...kernels import Kernel
from .transform import Transform, split

ORDER = _core.MESH_ORDER  # of the B-splines: one more than their degree
# Nodes beyond the map. The periodic kernel has a kink at the largest lag, and dividing by the symbol of the spline
# spreads it with a factor of 0.43 per node (the pole of the quintic spline): 10 nodes on, 1e-3 of it are left.
BEYOND = ORDER + 10
STEPS = 8  # mesh widths come in 8 steps per octave
# The cost of a step, measured on maps of digits, 6,000 digits of MNIST and Fashion-MNIST: nanoseconds on one thread.
NODE = 16.0  # per node of the mesh: its convolution
PAIR = 5.0  # per pair of the near field
CLUMP = 3.0  # near pairs, over those of a uniform map; 1.5 to 6 were seen
RADIUS = 5.0  # of the near field in mesh widths, before it is measured for the kernel
DOUBLE = 2**12, 2**14  # nodes and points up to which float64 costs little; chosen


class Plan(NamedTuple):
    """What a transform is made of."""

    h: float  # mesh width
    size: tuple[int, ...]  # nodes
    radius: float  # of the near field, 0 for none
    dtype: type[np.floating]


@lru_cache(maxsize=4096)
def plan(kernel: Kernel, error: float, n: int, span: tuple[float, ...]) -> Plan:
    """Return the cheapest plan with this pair error, for n points in a box with the given sides."""
    h, radius = _cheapest(kernel, error, n, np.array(span))
    size = tuple(fft.next_fast_len(int(np.ceil(s / h)) + BEYOND, real=True) for s in span)
    # float32 places a point to 1/2000 of a cell on up to 8192 nodes. Inside the kernel's plateau, where forces are
    # small differences, and for few points on small meshes, it is float64.
    small = np.prod(size) <= DOUBLE[0] and n <= DOUBLE[1]
    double = max(span) < kernel.length or small or max(size) > 2**13
    return Plan(h, size, radius, np.float64 if double else np.float32)


def _cheapest(kernel: Kernel, error: float, n: int, span: Array) -> tuple[float, float]:
    """Return the mesh width and the radius of the near field, 0 for none."""
    d, widest = len(span), float(span.max())
    h, plain = mesh_width(kernel, error, d), np.inf
    if h > 0:
        h = min(h, _step_up(widest / 8, kernel.length))
        plain = NODE * _nodes(span, h)
    finest = np.log2(widest / (256 if d == 3 else 4096) / kernel.length)
    widths = kernel.length * 2 ** (np.ceil(2 * np.arange(finest, np.log2(widest / 8 / kernel.length), 0.5)) / 2)
    ball = {1: 2.0, 2: np.pi, 3: 4 / 3 * np.pi}[d]
    pairs = n * np.minimum(n, CLUMP * n * ball * (RADIUS * widths) ** d / float(span.prod()))
    costs = np.array([NODE * _nodes(span, width) for width in widths]) + PAIR * pairs
    best = int(costs.argmin())
    if plain <= costs[best]:
        return h, 0.0
    return float(widths[best]), near_radius(kernel, error, d, float(widths[best]))


@lru_cache(maxsize=1024)
def mesh_width(kernel: Kernel, error: float, d: int) -> float:
    """Return the widest mesh, in steps of 2^(1/8) from the kernel's length, that carries it with this pair error.

    0 if a thirtieth of the length does not: the kernel has a kink or a cusp and must be split.
    """
    if kernel.kink > 0:
        return 0.0
    widths = [kernel.length * 2 ** (step / STEPS) for step in range(STEPS, -5 * STEPS - 1, -1)]
    first = bisect_left(widths, True, key=lambda h: pair_error(kernel, h, min(d, 2), 0.0) <= error)
    return widths[first] if first < len(widths) else 0.0


@lru_cache(maxsize=4096)
def near_radius(kernel: Kernel, error: float, d: int, h: float) -> float:
    """Return a radius of the near field at which a mesh of width h carries the smooth part with this pair error.

    It is as small as that allows, and large enough to hold a kink well inside.
    """
    # What is left of a kink in the smooth part is 1 − χ ≈ 35 (kink/a)^8 of it.
    least = kernel.kink * (35 / error) ** (1 / 8)
    radii = [max(cells * h, least) for cells in (2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 24.0)]
    first = bisect_left(radii, True, key=lambda a: pair_error(kernel, h, min(d, 2), a) <= error)
    return radii[min(first, len(radii) - 1)]


@lru_cache(maxsize=4096)
def pair_error(kernel: Kernel, h: float, d: int, radius: float) -> float:
    """Return the relative error of the force between pairs on a mesh of width h.

    A few sources at random offsets, targets uniform in a ball: the error in quadrature is that of a random cloud.
    """
    nodes = 40
    transform = Transform(kernel, h, (nodes,) * d, radius, np.float64)
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
    """Return about how many nodes a mesh of this width has."""
    return float(np.prod(span / h + BEYOND))


def _step_up(h: float, unit: float) -> float:
    """Return the smallest unit · 2^(k/8) that is not below h."""
    return float(unit * 2 ** (np.ceil(STEPS * np.log2(h / unit)) / STEPS))
