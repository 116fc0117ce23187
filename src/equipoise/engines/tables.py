"""Radial functions as tables, so that any kernel, a user's NumPy formula included, runs at compiled speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._types import Array

NODES = 256  # per octave of d2: linear interpolation is good to 2e-6 of a power law, 1e-3 of exp(−d2) at d2 = 20


class Table(NamedTuple):
    """A function of d2 and its companion at float32 nodes, NODES per octave; the compiled core interpolates linearly."""

    value: Array
    slope: Array
    first: int


def tabulate(value: Callable[[Array], Array], slope: Callable[[Array], Array], low: float, high: float) -> Table:
    """Return the tables of two functions of d2 for distances from `low` to `high`; beyond, the ends are held."""
    first, last = (int(np.float32(r**2).view(np.int32)) >> 15 for r in (max(low, 1e-18), min(high, 1e18)))
    d2 = (np.arange(first, last + 2, dtype=np.int32) << 15).view(np.float32).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return Table(value(d2).astype(np.float32), slope(d2).astype(np.float32), first)
