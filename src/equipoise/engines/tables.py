"""Tabulates kernels as functions of d2, so that even a user-defined NumPy formula runs at compiled speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import _core
from .._types import Array
from ..divergences import antiderivative
from ..kernels import Kernel

BITS = _core.TABLE_BITS  # number of the 23 mantissa bits of float32 that vary inside a segment: 64 segments per octave
ENDS = 1e-6, 1e6  # first and last distance in a table, in units of the kernel's length; chosen


class Table(NamedTuple):
    """A table of a function of d2 and of its slope, in float32, with 64 segments per octave of d2 · scale.

    A segment stores v0, s0, s1, s2. At the fraction f of the segment, from 0 to 1, the slope is s0 + s1 f + s2 f². The
    function is the integral of the slope, starting at v0, so that a loss and its forces agree. With 16 bytes per
    segment, the part that an embedding reads fits in the first-level cache. The last segment is constant.

    Attributes
    ----------
    segments : ndarray (size, 4)
    first : int
        The leading bits of the smallest d2 · scale in float32.
    scale : float
        1/kink², so that a segment starts at the kink of the kernel; 1 if there is none.
    """

    segments: Array
    first: int
    scale: float


def tabulate(
    value: Callable[[Array], Array], slope: Callable[[Array], Array], low: float, high: float, kink: float
) -> Table:
    """Return the table of a function of d2 and its slope for distances from `low` to `high`.

    Outside this range, the function and its slope keep their values at the nearer end. In a segment, the slope is the
    parabola through its values at the start, in the middle and at the end. The function is exact at the start of the
    segment and, by Simpson's rule, nearly exact at its end. The function and its slope may jump at the distance `kink`:
    a segment starts there, and the segments on either side of it are evaluated just inside their own ends.
    """
    scale = 1 / kink**2 if kink > 0 else 1.0
    first, last = (int(np.float32(scale * min(max(r, 1e-15), 1e15) ** 2).view(np.int32)) >> BITS for r in (low, high))
    nodes = (np.arange(first, last + 2, dtype=np.int32) << BITS).view(np.float32).astype(np.float64) / scale
    start, end = nodes[:-1] * (1 + 1e-12), nodes[1:] * (1 - 1e-12)
    with np.errstate(all="ignore"):  # at distances that maps do not reach, a kernel may be 0 and its logarithm infinite
        a, m, e = (slope(d2) for d2 in (start, (start + end) / 2, end))
        segments = np.column_stack([value(start), a, 4 * m - 3 * a - e, 2 * (a - 2 * m + e)])
        constant = [value(end[-1:])[0], e[-1], 0.0, 0.0]
        return Table(np.vstack([segments, constant]).astype(np.float32), first, scale)


def kernel_table(kernel: Kernel) -> Table:
    """Return the table of k and k', for distances from 1e-6 to 1e6 times the kernel's length."""
    return tabulate(kernel.value, kernel.slope, ENDS[0] * kernel.length, ENDS[1] * kernel.length, kernel.kink)


def edge_table(kernel: Kernel, b: float) -> Table:
    """Return the table of ψ_b and its slope k^b k', for the same distances as `kernel_table`."""
    return tabulate(
        lambda d2: antiderivative(kernel.log_value(d2), b + 1),
        lambda d2: np.exp((b + 1) * kernel.log_value(d2)) * kernel.log_slope(d2),
        ENDS[0] * kernel.length,
        ENDS[1] * kernel.length,
        kernel.kink,
    )
