"""The hyperbolic plane: normal coordinates in the optimiser, the Poincaré disk in maps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import _core
from .._tags import tagged
from .._types import Array
from .flat import Geometry
from .sizes import check_size, room

DISK = 3.0  # radius of the disk, in units of R, that gets the area of a map in the plane; chosen


def polar(U: Array) -> tuple[Array, Array]:
    """Return the norms r (..., 1) and the unit vectors e (..., 2) of U; at 0, e = (1, 0)."""
    r = np.sqrt((U**2).sum(axis=-1, keepdims=True))
    safe = np.where(r > 0, r, 1.0)
    return r, np.where(r > 0, U / safe, np.array([1.0, 0.0]))


def across(e: Array) -> Array:
    """Return unit vectors e (..., 2) turned by a right angle."""
    return np.stack([-e[..., 1], e[..., 0]], axis=-1)


def _dot(A: Array, B: Array) -> Array:
    """Return the inner products (n, 1) of rows, in float64."""
    return (A.astype(np.float64) * B).sum(axis=1, keepdims=True)


def _ambient(X0: Array, X: Array, e: Array, V: Array) -> tuple[Array, Array]:
    """Return the components on the hyperboloid of tangent vectors V, given in the orthonormal frame at X = sinh(r) e."""
    along = _dot(V, e)
    return along * _dot(X, e), V + (X0 - 1) * along * e


def _boost(X0: Array, X: Array, C0: Array, C: Array) -> Array:
    """Return the components X of points or tangent vectors after the isometry that moves the point C to the origin."""
    return X + C * (_dot(X, C) / (1 + C0) - X0)


def quotient(f: Array, r: Array) -> Array:
    """Return f/r; 1 where r = 0, the limit of sinh(r)/r, asinh(r)/r and the like."""
    return np.where(r > 0, f / np.where(r > 0, r, 1.0), 1.0)


@tagged("geometry.HyperbolicPairs")
@dataclass(frozen=True)
class HyperbolicPairs:
    """Pairs in the hyperbolic plane of curvature −1/R², in normal coordinates u = R r e(t).

    sinh²(d/2) = sinh²((r_i − r_j)/2) + sinh r_i sinh r_j sin²((t_i − t_j)/2), which has no cancellation, and
    d2 = R² d² (docs/math.md, eq. H1).

    Parameters
    ----------
    radius : float
        The radius of curvature R.
    """

    radius: float

    def chord(self, Ui: Array, Uj: Array) -> tuple[Array, Array]:
        """Return s = sinh²(d/2) and its derivatives ∂s/∂u_i, for u in units of R."""
        (ri, ei), (rj, ej) = polar(Ui), polar(Uj)
        half = np.sinh((ri - rj) / 2)
        g = ((ei - ej) ** 2).sum(axis=-1, keepdims=True) / 4
        sine = ei[..., 1:] * ej[..., :1] - ei[..., :1] * ej[..., 1:]  # of t_i − t_j
        s = half**2 + np.sinh(ri) * np.sinh(rj) * g
        along = np.sinh(ri - rj) / 2 + np.cosh(ri) * np.sinh(rj) * g
        turn = quotient(np.sinh(ri), ri) * np.sinh(rj) * sine / 2
        return s[..., 0], along * ei + turn * across(ei)

    def squared(self, s: Array) -> Array:
        """Return the squared distance d2 for s = sinh²(d/2)."""
        return (2 * self.radius * np.arcsinh(np.sqrt(s))) ** 2

    def between(self, Ui: Array, Uj: Array) -> tuple[Array, Array]:
        R = self.radius
        s, gradient = self.chord(np.asarray(Ui) / R, np.asarray(Uj) / R)
        d = 2 * np.arcsinh(np.sqrt(s))
        # ½ ∂(R² d²)/∂u = R d (dd/ds) ∂s/∂(u/R), and dd/ds = 2/sinh d
        return R**2 * d**2, (2 * R / quotient(np.sinh(d), d))[..., None] * gradient

    def native(self) -> _core.Space:
        return _core.Space.hyperbolic_plane(self.radius)


@tagged("geometry.Hyperbolic")
@dataclass(frozen=True)
class Hyperbolic(Geometry):
    """The hyperbolic plane of curvature −1/R², with true geodesic distances.

    Maps are in the Poincaré disk, ‖y‖ < 1. The optimiser works in normal coordinates at the origin: u has the
    direction of y, and its norm is the distance from the origin, 2R artanh ‖y‖, so that no coordinate saturates. Steps
    follow geodesics. Euclidean lengths near the rim of the disk stand for exponentially longer distances, as trees need.

    Parameters
    ----------
    radius : float or "auto", default="auto"
        The radius of curvature R. A large radius gives the flat plane. "auto": a disk of radius 3R has the area that a
        map in the plane takes (docs/math.md, section 16).
    """

    radius: Any = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", check_size(self.radius, "radius"))

    def resolved(self, n: int, d: int, length: float) -> Hyperbolic:
        if d != 2:
            raise ValueError(f'geometry="hyperbolic" is a plane, but n_components={d}; use n_components=2')
        area = 2 * np.pi * (np.cosh(DISK) - 1)  # of a disk of radius DISK, at R = 1
        return Hyperbolic(room(n, length) / np.sqrt(area)) if self.radius == "auto" else self

    @cached_property
    def pairs(self) -> HyperbolicPairs:  # type: ignore[override]
        return HyperbolicPairs(self.radius)

    def work(self, Y: Array) -> Array:
        r, e = polar(Y)
        if not (r < 1).all():
            raise ValueError(
                f"row {int(np.argmax(r))} of the map has norm {float(r.max()):g}, outside the Poincaré disk; all norms"
                " must be below 1"
            )
        return (2 * self.radius * np.arctanh(r) * e).astype(Y.dtype)

    def map(self, U: Array) -> Array:
        r, e = polar(U)
        limit = 1 - float(np.finfo(U.dtype).eps)  # rounding may give the rim itself
        return (np.minimum(np.tanh(r / (2 * self.radius)), limit) * e).astype(U.dtype)

    def pull_back(self, Y: Array, F: Array) -> Array:
        y, e = polar(Y)
        along, turn = (F * e).sum(axis=1, keepdims=True), (F * across(e)).sum(axis=1, keepdims=True)
        # dr/d‖y‖ = 2R/(1 − ‖y‖²) along e; r/‖y‖ across it
        stretch = 2 * self.radius * quotient(np.arctanh(y), y)
        return 2 * self.radius / (1 - y**2) * along * e + stretch * turn * across(e)

    def start(self, Y: Array) -> Array:
        return self.map(Y)

    def tangent(self, U: Array, F: Array) -> Array:
        """Return the force in an orthonormal frame: a step of length ε across e changes u by ε r/sinh r only."""
        r, e = polar(U)
        r = r / self.radius
        turn = (F * across(e)).sum(axis=1, keepdims=True) * across(e)
        return F - turn + turn / quotient(np.sinh(r), r)

    def move(self, U: Array, step: Array, velocity: Array, *, centred: bool) -> tuple[Array, Array]:
        """Return the ends of the geodesics with the initial velocities `step`, and `velocity` transported along them.

        Both are given in the orthonormal frame of `tangent`. With `centred`, an isometry then moves the mean of U to the
        origin. On the hyperboloid −X0² + ‖X‖² = −1 all of this is linear in X: a geodesic of length D is
        X cosh D + T sinh D for its unit tangent T, and parallel transport adds to a vector its component along T, times
        T (cosh D − 1) + X sinh D.
        """
        X0, X, e = self._sheet(U)
        S0, S = _ambient(X0, X, e, step / self.radius)
        W0, W = _ambient(X0, X, e, velocity / self.radius)
        D2 = _dot(step, step) / self.radius**2
        D = np.sqrt(D2)
        grown, ratio = np.cosh(D), quotient(np.sinh(D), D)
        share = _dot(velocity, step) / self.radius**2 / np.where(D2 > 0, D2, 1.0)
        W0, W = (w + share * ((grown - 1) * s + D2 * ratio * x) for w, s, x in ((W0, S0, X0), (W, S, X)))
        X0, X = grown * X0 + ratio * S0, grown * X + ratio * S
        moved = self._normal(X)
        if centred:
            C0, C, _ = self._sheet(self._mean(moved)[None])
            X0, X, W = C0 * X0 - _dot(C, X), _boost(X0, X, C0, C), _boost(W0, W, C0, C)
            moved = self._normal(X)
        _, e = polar(moved)
        along = _dot(W, e)
        W = W + (along / X0 - along) * e
        return moved.astype(U.dtype), (self.radius * W).astype(velocity.dtype)

    def retract(self, U: Array) -> Array:
        return self.translated(U, self._mean(U))

    def _mean(self, U: Array) -> Array:
        """Return the first Newton step (2,), from the origin, towards the point with the least Σ d².

        The gradient of ½d² is −u, and its second derivative is 1 along u and (r/R) coth(r/R) across it.
        """
        r = polar(U)[0] / self.radius
        stiffness = (1 + quotient(r, np.tanh(r))) / 2
        return U.mean(axis=0, dtype=np.float64) / float(stiffness.mean(dtype=np.float64))

    def translated(self, U: Array, c: Array) -> Array:
        """Return U after the isometry that moves the point c (2,), in normal coordinates, to the origin."""
        (X0, X, _), (C0, C, _) = self._sheet(U), self._sheet(np.asarray(c)[None])
        return self._normal(_boost(X0, X, C0, C)).astype(U.dtype)

    def _sheet(self, U: Array) -> tuple[Array, Array, Array]:
        """Return points on the hyperboloid, X0 = cosh r (n, 1) and X = sinh(r) e (n, 2), and e (n, 2)."""
        r, e = polar(U.astype(np.float64) / self.radius)
        return np.cosh(r), np.sinh(r) * e, e

    def _normal(self, X: Array) -> Array:
        """Return the normal coordinates of points X on the hyperboloid."""
        length = np.sqrt((X**2).sum(axis=1, keepdims=True))
        return self.radius * quotient(np.arcsinh(length), length) * X

    def geodesic(self, y_i: Array, y_j: Array, points: int = 50) -> Array:
        """Return positions (points, 2) along the shortest path, an arc of a circle orthogonal to the rim of the disk."""
        ends = np.array([y_i, y_j], dtype=np.float64)
        _, X, _ = self._sheet(self.work(ends))
        d = float(self.distance(ends[0], ends[1])) / self.radius
        t = np.linspace(0.0, 1.0, points)[:, None]
        weights = (1 - t, t) if d < 1e-6 else (np.sinh((1 - t) * d) / np.sinh(d), np.sinh(t * d) / np.sinh(d))
        return self.map(self._normal(weights[0] * X[0] + weights[1] * X[1]))
