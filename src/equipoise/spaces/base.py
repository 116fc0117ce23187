"""The protocol of a metric space: a number of points, and blocks of their distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._types import Array

BLOCK = 2**22  # distances per block of rows, 32 MB; chosen


class MetricSpace:
    """n points, numbered from 0, with a distance d(x, y) between any two of them (Rodolà, "Metric spaces").

    A metric has d(x, y) = 0 only for x = y (identity of indiscernibles), d(x, y) = d(y, x) (symmetry) and
    d(x, y) ≤ d(x, z) + d(z, y) (triangle inequality); `check_metric` tells whether a given one has.

    A space of one's own sets `n` and defines `_block(i, j)`, the distances from the points i to the points j.
    """

    n: int

    def distances(self, i: Any = None, j: Any = None) -> Array:
        """Return the distances (len(i), len(j)), float64, from points i to points j: indices, a slice, or None for all.

        The result is the caller's own.
        """
        return np.ascontiguousarray(self._block(self._points(i, "i"), self._points(j, "j")))

    def matrix(self) -> Array:
        """Return all distances (n, n), float64."""
        return self.distances()

    def row_blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield slices of rows and the distances (rows, n) in them, a bounded number at a time."""
        step = max(1, BLOCK // self.n)
        for start in range(0, self.n, step):
            rows = slice(start, min(start + step, self.n))
            yield rows, self.distances(rows)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n})"

    def _block(self, i: Array, j: Array) -> Array:
        """Return the distances (len(i), len(j)) in a new array; i and j are int64 within 0 … n − 1."""
        raise TypeError(f"{type(self).__name__} must define _block(i, j)")

    def _points(self, i: Any, name: str) -> Array:
        if i is None:
            return np.arange(self.n)
        if isinstance(i, slice):
            return np.arange(self.n)[i]
        return check_points(i, self.n, name)


def check_points(points: Any, n: int, name: str) -> Array:
    """Return numbers of points as int64 within 0 … n − 1, or say which one is none of them."""
    points = np.asarray(points)
    if points.shape == (0,):
        return points.astype(np.int64)
    if points.ndim != 1 or points.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must list numbers of points, 0 to {n - 1}; got {points.dtype} of shape {points.shape}"
        )
    outside = np.flatnonzero((points < 0) | (points >= n))
    if outside.size:
        raise ValueError(f"{name} lists the point {points[outside[0]]}, but there are {n} points, 0 to {n - 1}")
    return points.astype(np.int64)
