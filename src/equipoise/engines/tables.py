"""Radial functions as tables, so that any kernel, a user's NumPy formula included, runs at compiled speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._types import Array


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
