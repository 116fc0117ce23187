"""Measure maps in curved spaces by the distances of these spaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..arrays.blocks import FIXED_PAIRS
from ..geometry import Geometry
from ..inputs import Input

MAX_ALL = 10_000  # points whose distances are all stored, 800 MB; chosen


class CurvedMap(Input):
    """A map X (n, columns) with the distances of a geometry, such as wrapped ones on a torus.

    Parameters
    ----------
    X : ndarray of shape (n, columns)
        The map.
    geometry : Geometry
    """

    def __init__(self, X: Array, geometry: Geometry):
        self.X, self.geometry = X, geometry
        self.n, self.limit = X.shape

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        others = self.X if columns is None else self.X[columns]
        D = np.empty((len(rows), len(others)))
        step = max(1, FIXED_PAIRS // max(len(others), 1))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            D[part] = self.geometry.distance(self.X[rows[part], None], others[None])
        return D

    def pairs(self, i: Array, j: Array) -> Array:
        d = np.empty(len(i))
        for start in range(0, len(i), FIXED_PAIRS):
            part = slice(start, start + FIXED_PAIRS)
            d[part] = self.geometry.distance(self.X[i[part]], self.X[j[part]])
        return d

    def all_distances(self) -> Array:
        """Return the distances (n, n) of all pairs; raise ValueError if there are too many."""
        if self.n > MAX_ALL:
            raise ValueError(
                f"in {describe_geometry(self.geometry)} this measure needs all distances of {self.n:,} points, at most"
                f" {MAX_ALL:,}; use equipoise.evaluate(X, method, labels)"
            )
        return self.block(np.arange(self.n))


def sphere_geometry(Y: Any) -> Geometry | None:
    """Return the geometry of a fitted method if its map is on a sphere, else None."""
    from ..geometry import Sphere

    geometry = getattr(Y, "geometry_", None)
    return geometry if isinstance(geometry, Sphere) else None


def require_flat(method: Any, function: str) -> None:
    """Raise ValueError if an unfitted method has a geometry in which maps cannot be superimposed by rotations."""
    geometry = getattr(method, "geometry", "plane")
    if isinstance(geometry, str) and geometry in ("plane", "sphere"):
        return
    from ..geometry import resolve

    if resolve(geometry).pairs is not None:
        raise ValueError(
            f"{function} superimposes maps in flat space, but geometry={geometry!r}; use equipoise.evaluate(X, method)"
            " for each fitted method"
        )


def describe_geometry(geometry: Geometry) -> str:
    """Return a curved space in words, such as "a torus (period 50 × 50)"."""
    from ..geometry import Sphere

    period, radius = getattr(geometry, "period", None), getattr(geometry, "radius", None)
    if period is not None:
        return f"a torus (period {' × '.join(f'{L:.4g}' for L in period)})"
    if isinstance(geometry, Sphere):
        return f"a sphere (radius {geometry.radius:.4g})"
    if radius is not None:
        return f"the hyperbolic plane (radius of curvature {radius:.4g})"
    return f"the geometry {type(getattr(geometry, 'user', geometry)).__name__}"
