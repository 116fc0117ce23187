"""Radial functions as tables, so that any kernel, a user's NumPy formula included, runs at compiled speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import _core
from .._types import Array
from ..kernels import Kernel

BITS = _core.TABLE_BITS  # mantissa bits of float32, of 23, that vary inside a segment: 64 segments per octave


class Table(NamedTuple):
    """A function of d2 and its slope in segments, 64 per octave of d2 · scale, float32; the last holds the end.

    A segment stores v0, s0, s1, s2: over f from 0 to 1 the slope is s0 + s1 f + s2 f², and the function its integral
    from v0 on. So a loss and its forces agree, and 16 bytes a segment keep what a map reads in the first-level cache.
    """

    segments: Array  # (size, 4)
    first: int
    scale: float


def tabulate(
    value: Callable[[Array], Array], slope: Callable[[Array], Array], low: float, high: float, kink: float
) -> Table:
    """Return the table of a function of d2 and its slope for distances from `low` to `high`; beyond, the ends are held.

    The slope is met at both ends and in the middle of a segment, the function at its start: by Simpson's rule it
    arrives at the next. Both may jump at the distance `kink`: a segment starts there, each end is taken from inside.
    """
    scale = 1 / kink**2 if kink > 0 else 1.0
    first, last = (int(np.float32(scale * min(max(r, 1e-15), 1e15) ** 2).view(np.int32)) >> BITS for r in (low, high))
    nodes = (np.arange(first, last + 2, dtype=np.int32) << BITS).view(np.float32).astype(np.float64) / scale
    start, end = nodes[:-1] * (1 + 1e-12), nodes[1:] * (1 - 1e-12)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        a, m, e = (slope(d2) for d2 in (start, (start + end) / 2, end))
        segments = np.column_stack([value(start), a, 4 * m - 3 * a - e, 2 * (a - 2 * m + e)])
        held = [value(end[-1:])[0], e[-1], 0.0, 0.0]
        return Table(np.vstack([segments, held]).astype(np.float32), first, scale)


class Compiled:
    """Kernels as compiled code: a built-in one itself, a user's own as a table of k and k'."""

    def __init__(self) -> None:
        self._tables: dict[Kernel, Table] = {}  # by kernel

    def __call__(self, kernel: Kernel) -> _core.Kernel:
        native = kernel.native()
        if native is not None:
            return native
        if kernel not in self._tables:
            ends = 1e-6 * kernel.length, 1e6 * kernel.length
            self._tables[kernel] = tabulate(kernel.value, kernel.slope, *ends, kernel.kink)
        return _core.Kernel.tabulated(*self._tables[kernel])
