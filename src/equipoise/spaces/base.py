"""Define the base class of metric spaces, which have a number of points and compute blocks of their distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..arrays.memory_limits import available_memory, require_memory


class MetricSpace:
    """n points, with indices 0 to n − 1, and the distance d(x, y) between any two of them (Rodolà, "Metric spaces").

    In a metric space, d(x, y) is 0 if x = y and positive otherwise (identity of indiscernibles), d(x, y) = d(y, x)
    (symmetry), and d(x, y) ≤ d(x, z) + d(z, y) (triangle inequality); `check_metric` checks these axioms.

    To define a space, derive from this class, set `n`, and implement `_block(i, j)`, which returns the distances
    (len(i), len(j)) from the points i to the points j.

    Attributes
    ----------
    n : int
        Number of points.
    """

    n: int

    def distances(self, i: Any = None, j: Any = None) -> Array:
        """Return the distances from the points i to the points j.

        Parameters
        ----------
        i, j : array of int, slice or None, default=None
            Indices of the points; all points by default.

        Returns
        -------
        array of float64, shape (len(i), len(j))
            A new array.
        """
        return np.ascontiguousarray(self._block(self._points(i, "i"), self._points(j, "j")))

    def matrix(self) -> Array:
        """Return all distances (n, n), float64."""
        return self.distances()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n})"

    def _block(self, i: Array, j: Array) -> Array:
        """Return the distances (len(i), len(j)) in a new array; i and j are int64 arrays of valid indices."""
        raise TypeError(f"{type(self).__name__} must define _block(i, j)")

    def _points(self, i: Any, name: str) -> Array:
        if i is None or isinstance(i, slice):
            advice = "use distances(i, j) with arrays of fewer indices"
            require_memory(
                8.0 * self.n, f"an array of the indices of all {self.n:,} points", available_memory(), advice
            )
            return np.arange(self.n)[i or slice(None)]
        return check_points(i, self.n, name)


def check_space(space: Any, name: str) -> MetricSpace:
    """Return a space; raise TypeError unless it has `distances` and a number of points `n`."""
    if not (callable(getattr(space, "distances", None)) and hasattr(space, "n")):
        raise TypeError(f"{name} must be a metric space, got {type(space).__name__}; use Euclidean(X) for a table X")
    return space


def check_points(points: Any, n: int, name: str) -> Array:
    """Return a list of indices of points as int64; raise ValueError unless they are integers from 0 to n − 1."""
    points = np.asarray(points)
    if points.shape == (0,):
        return points.astype(np.int64)
    if points.ndim != 1 or points.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be a list of integers from 0 to {n - 1}, got {points.dtype} of shape {points.shape}"
        )
    outside = np.flatnonzero((points < 0) | (points >= n))
    if outside.size:
        raise ValueError(
            f"{name} contains the index {points[outside[0]]}, but the indices of points run from 0 to {n - 1}"
        )
    return points.astype(np.int64)
