"""Spaces whose distances come from a formula (norms, the sphere, the discrete metric) or from a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from .._plural import plural
from .._tags import tagged
from .._types import Array
from ..arrays.memory_limits import available_memory, require_memory
from ..arrays.namespace import is_finite, is_integer, require
from ..data import check_distances, check_table
from .base import MetricSpace

MOST_POINTS = np.iinfo(np.int64).max  # the index of a point is an int64


@tagged("spaces.Euclidean")
class Euclidean(MetricSpace):
    """The rows of X (n, D) with d(x, y) = ‖x − y‖₂. New points are rows (m, D)."""

    def __init__(self, X: Any):
        self.X = check_table(X)
        self.n = len(self.X)

    def _block(self, i: Array, j: Array) -> Array:
        return cdist(self.X[i], self.X[j])

    def _new_block(self, X: Any, j: Array) -> Array:
        return cdist(check_new_rows(X, self.X), self.X[j])


@tagged("spaces.PNorm")
class PNorm(MetricSpace):
    """The rows of X (n, D) with d(x, y) = (Σ |x_k − y_k|^p)^(1/p), 1 ≤ p ≤ np.inf. New points are rows (m, D)."""

    def __init__(self, X: Any, p: float):
        if not ((is_finite(p) or (isinstance(p, float | np.floating) and p == np.inf)) and p >= 1):
            raise ValueError(f"p must be at least 1, got {p!r}; for smaller p the triangle inequality does not hold")
        self.X = check_table(X)
        self.p = float(p)
        self.n = len(self.X)

    def _block(self, i: Array, j: Array) -> Array:
        return self._between(self.X[i], j)

    def _new_block(self, X: Any, j: Array) -> Array:
        return self._between(check_new_rows(X, self.X), j)

    def _between(self, rows: Array, j: Array) -> Array:
        if np.isinf(self.p):
            return cdist(rows, self.X[j], "chebyshev")
        return cdist(rows, self.X[j], "minkowski", p=self.p)


@tagged("spaces.Discrete")
class Discrete(MetricSpace):
    """n points with d(x, y) = 1 for any two different points."""

    def __init__(self, n: int):
        if not (is_integer(n) and n >= 1):
            raise ValueError(f"n must be an integer >= 1, got {n!r}")
        if n > MOST_POINTS:
            raise ValueError(f"n must be below 2**63, because the indices of points are int64, got {n}")
        self.n = int(n)

    def _block(self, i: Array, j: Array) -> Array:
        return (i[:, None] != j).astype(np.float64)


@tagged("spaces.Precomputed")
class Precomputed(MetricSpace):
    """Points with precomputed distances D (n, n): symmetric, finite and nonnegative, with a zero diagonal."""

    def __init__(self, D: Any):
        if sparse.issparse(D):
            raise ValueError(
                "Precomputed requires all distances as a dense matrix; for a sparse matrix, which is a graph, use"
                " GraphGeodesic"
            )
        self.D = check_distances(D)
        self.n = len(self.D)

    def _block(self, i: Array, j: Array) -> Array:
        return self.D[np.ix_(i, j)]


@tagged("spaces.Sphere")
class Sphere(MetricSpace):
    """Points (n, D) on a sphere around the origin, with the length of the shortest great-circle arc between them.

    For the radius R, d(x, y) = R θ, with θ = 2 atan2(‖u − v‖, ‖u + v‖), u = x/R and v = y/R. θ equals arccos⟨u, v⟩, but
    loses no digits for nearby and opposite points (Kahan 2006). New points are rows (m, D) on the same sphere.

    Parameters
    ----------
    points : array-like, shape (n, D)
    radius : float, default=1.0
    """

    TOLERANCE = 1e-6  # relative deviation from the radius, the error of coordinates in float32

    def __init__(self, points: Any, radius: float = 1.0):
        require(radius, "radius", "> 0", lambda r: r > 0)
        radius = float(radius)
        self.radius = radius
        self.X = self._unit_rows(
            check_table(points), "points", "divide each row by its norm, or pass the radius of the sphere"
        )
        self.n = len(self.X)

    def _unit_rows(self, points: Array, name: str, advice: str) -> Array:
        """Return points / radius with norms of exactly 1; raise ValueError if a point is not on the sphere."""
        norm = np.linalg.norm(points, axis=1)
        off = np.flatnonzero(np.abs(norm - self.radius) > self.TOLERANCE * self.radius)
        if off.size:
            raise ValueError(
                f"row {off[0]} of {name} has norm {norm[off[0]]:g}, so it is not on the sphere of radius"
                f" {self.radius:g}; {advice}"
            )
        return points / norm[:, None]

    def _block(self, i: Array, j: Array) -> Array:
        return self._arcs(self.X[i], self.X[j])

    def _new_block(self, X: Any, j: Array) -> Array:
        U = self._unit_rows(check_new_rows(X, self.X), "X", "scale each row to this norm")
        return self._arcs(U, self.X[j])

    def _arcs(self, U: Array, V: Array) -> Array:
        return (2 * self.radius) * np.arctan2(cdist(U, V), cdist(U, -V))


def check_new_rows(X: Any, table: Array) -> Array:
    """Return new rows X (m, D), float64; raise ValueError unless they have as many columns as the table (n, D)."""
    X = check_table(X, min_rows=1)
    if X.shape[1] != table.shape[1]:
        raise ValueError(
            f"X has {plural(X.shape[1], 'column')}, but the points of the space have {table.shape[1]}; pass new points"
            f" as rows (m, {table.shape[1]})"
        )
    return X


def distance_matrix_of(space: Any, name: str) -> Array:
    """Return the distances (n, n), symmetric and in float64, of a space or matrix, which error messages call `name`."""
    if isinstance(space, MetricSpace):
        need = 40.0 * space.n**2
        require_memory(need, f"the distances of {name}", available_memory(), "use spaces.Restriction to fewer points")
        D = space.matrix()
        return np.asarray((D + D.T) / 2)  # the heat method is not exactly symmetric
    try:
        return np.asarray(Precomputed(space).D, dtype=np.float64)
    except ValueError as error:
        raise ValueError(
            f"{name}: {error}. Pass a square matrix of distances, or equipoise.spaces.Euclidean({name}) for a table"
        ) from None


def as_space(X: Any) -> MetricSpace:
    """Return a space unchanged, and a table (n, D) as the Euclidean space of its rows."""
    return X if isinstance(X, MetricSpace) else Euclidean(X)
