"""Sums of floats that are the same in any order, and so for any number of ranks."""

from __future__ import annotations

from threading import Lock

import numpy as np

from .._types import Array
from .group import Group
from .partition import MOST_BLOCKS

BITS = 62  # of a sum in int64, without the sign and one bit to spare


class ExactSum:
    """Adds float64 arrays in any order, and over ranks, with the same result.

    Each number becomes two integers, a multiple of a power of two and the rounded remainder, whose sums are exact.

    Parameters
    ----------
    shape : tuple of int
        Shape of the arrays, of which there are at most `MOST_BLOCKS`.
    bound : float
        No sum of magnitudes exceeds it.
    """

    def __init__(self, shape: tuple[int, ...], bound: float):
        self._exponents = BITS - int(np.frexp(bound)[1]), BITS - int(np.frexp(MOST_BLOCKS)[1])
        self._sums, self._lock = np.zeros((2, *shape), np.int64), Lock()

    def add(self, x: Array) -> None:
        """Add an array; any thread can call this method."""
        scaled = np.ldexp(x, self._exponents[0])
        whole = np.rint(scaled)
        scaled -= whole
        rest = np.rint(np.ldexp(scaled, self._exponents[1], out=scaled), out=scaled)
        with self._lock:
            self._sums[0] += whole.astype(np.int64)
            self._sums[1] += rest.astype(np.int64)

    def result(self, group: Group) -> Array:
        """Return the sum over all ranks, float64."""
        first, second = self._exponents
        whole, rest = np.ldexp(group.all_reduce(self._sums).astype(np.float64), -first)
        return whole + np.ldexp(rest, -second)
