"""Define the base class of metric spaces, which have a number of points and compute blocks of their distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._types import Array
from ..arrays.memory_limits import available_memory, require_memory
from ..data import check_new_distances


class MetricSpace:
    """n points, with indices 0 to n − 1, and the distance d(x, y) between any two of them (Rodolà, "Metric spaces").

    In a metric space, d(x, y) is 0 if x = y and positive otherwise (identity of indiscernibles), d(x, y) = d(y, x)
    (symmetry), and d(x, y) ≤ d(x, z) + d(z, y) (triangle inequality); `check_metric` checks these axioms.

    To define a space, derive from this class, set `n`, and implement `_block(i, j)`, which returns the distances
    (len(i), len(j)) from the points i to the points j. If new points can be described otherwise than by their
    distances, for example by coordinates, also implement `_new_block(X, j)`: the distances from new points X.

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

    def distances_from(self, X: Any, j: Any = None) -> Array:
        """Return the distances from new points X, which are not points of this space, to the points j.

        Parameters
        ----------
        X : description of m new points
            Their distances (m, n) to all points of this space, unless the class says otherwise.
        j : array of int, slice or None, default=None
            Indices of points of this space; all points by default.

        Returns
        -------
        array of float64, shape (m, len(j))
            A new array.
        """
        return np.ascontiguousarray(self._new_block(X, self._points(j, "j")))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n})"

    def _block(self, i: Array, j: Array) -> Array:
        """Return the distances (len(i), len(j)) in a new array; i and j are int64 arrays of valid indices."""
        raise TypeError(f"{type(self).__name__} must define _block(i, j)")

    def _new_block(self, X: Any, j: Array) -> Array:
        """Return the distances (m, len(j)) from m new points X in a new array; j is an int64 array of valid indices."""
        return given_distances(X, self.n, j)

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


def distances_from(space: Any, X: Any, j: Array) -> Array:
    """Return the distances (m, len(j)) from new points X to the points j of a space.

    If the space has no method `distances_from`, X contains the distances (m, n) to all its points.
    """
    if callable(method := getattr(space, "distances_from", None)):
        return method(X, j)
    return given_distances(X, space.n, j)


def given_distances(X: Any, n: int, j: Array) -> Array:
    """Return columns j of X, the distances (m, n) from new points to the n points of a space, after a check."""
    if sparse.issparse(X):
        raise ValueError(
            f"X contains the distances to only some of the {n:,} points of the space; pass all of them as a dense array"
            f" (m, {n})"
        )
    return check_new_distances(X, n)[:, j]


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
