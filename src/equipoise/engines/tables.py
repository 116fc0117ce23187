"""Radial functions as tables, so that any kernel, a user's NumPy formula included, runs at compiled speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import _core
from .._types import Array
from ..kernels import Kernel


class Table(NamedTuple):
    """Two functions of d2 in segments, 512 per octave of d2 · scale: both ends of one, then of the other, float32."""

    segments: Array  # (size, 4)
    first: int
    scale: float


def tabulate(
    value: Callable[[Array], Array], slope: Callable[[Array], Array], low: float, high: float, kink: float
) -> Table:
    """Return the tables of two functions of d2 for distances from `low` to `high`; beyond, the ends are held.

    The functions may jump at the distance `kink`: a segment starts there, and each end is taken from inside.
    """
    scale = 1 / kink**2 if kink > 0 else 1.0
    first, last = (int(np.float32(scale * min(max(r, 1e-15), 1e15) ** 2).view(np.int32)) >> 14 for r in (low, high))
    nodes = (np.arange(first, last + 2, dtype=np.int32) << 14).view(np.float32).astype(np.float64) / scale
    ends = np.column_stack([nodes[:-1] * (1 + 1e-12), nodes[1:] * (1 - 1e-12)])
    with np.errstate(over="ignore", under="ignore"):
        return Table(np.hstack([value(ends), slope(ends)]).astype(np.float32), first, scale)


class Compiled:
    """Kernels as compiled code: a built-in one itself, a user's own as a table of k and k'."""

    def __init__(self) -> None:
        self._tables: dict[Kernel, Table] = {}  # they must outlive the compiled kernels

    def __call__(self, kernel: Kernel) -> _core.Kernel:
        native = kernel.native()
        if native is not None:
            return native
        if kernel not in self._tables:
            ends = 1e-6 * kernel.length, 1e6 * kernel.length
            self._tables[kernel] = tabulate(kernel.value, kernel.slope, *ends, kernel.kink)
        return _core.Kernel.tabulated(*self._tables[kernel])
