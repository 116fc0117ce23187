"""The hyperbolic plane: normal coordinates in the optimiser, the Poincaré disk in maps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import _core
from .._tags import tagged
from .._types import Array
from ..kernels import DerivedKernel, Kernel
from .flat import Geometry
from .sizes import check_largest, check_size, require_chosen, room

LONGEST = 0.5  # longest step, in units of R: forces change over this length; chosen
# Largest distance from the origin, in units of R, relative to that at which the Poincaré disk is rounded to its rim.
FARTHEST = 0.9
SAMPLE = 1000  # points from which the curvature of Σ d² is estimated; chosen
THREADS = 2  # a step of 70,000 points takes a few milliseconds
MOST = 1e10  # largest radius in kernel lengths: far below the squares of d/R that underflow in float32; chosen
DISK = 3.0  # radius of the disk, in units of R, that gets the area of a map in the plane; chosen


def polar(U: Array) -> tuple[Array, Array]:
    """Return the norms r (..., 1) and the unit vectors e (..., 2) of U; at 0, e = (1, 0)."""
    r = np.sqrt((U**2).sum(axis=-1, keepdims=True))
    safe = np.where(r > 0, r, 1.0)
    return r, np.where(r > 0, U / safe, np.array([1.0, 0.0]))


def across(e: Array) -> Array:
    """Return unit vectors e (..., 2) turned by a right angle."""
    return np.stack([-e[..., 1], e[..., 0]], axis=-1)


def quotient(f: Array, r: Array) -> Array:
    """Return f/r; 1 where r = 0, the limit of sinh(r)/r, asinh(r)/r and the like."""
    return np.where(r > 0, f / np.where(r > 0, r, 1.0), 1.0)


@dataclass(frozen=True)
class ChordKernel(DerivedKernel):
    """A kernel as a function of the squared chord x = (2R sinh(d/2R))² instead of d2: what compiled pairs give.

    Parameters
    ----------
    kernel : Kernel
    radius : float
        The radius of curvature R.
    """

    kernel: Kernel
    radius: float

    @property
    def kink(self) -> float:  # type: ignore[override]
        return 2 * self.radius * float(np.sinh(self.kernel.kink / (2 * self.radius)))

    def value(self, x: Array) -> Array:
        return self.kernel.value(self._squared(x))

    def slope(self, x: Array) -> Array:
        return self.kernel.slope(self._squared(x)) * self._rate(x)

    def log_value(self, x: Array) -> Array:
        return self.kernel.log_value(self._squared(x))

    def log_slope(self, x: Array) -> Array:
        return self.kernel.log_slope(self._squared(x)) * self._rate(x)

    def _squared(self, x: Array) -> Array:
        return HyperbolicPairs(self.radius).squared(x / (4 * self.radius**2))

    def _rate(self, x: Array) -> Array:
        """Return dd2/dx = (d/R)/sinh(d/R)."""
        d = np.sqrt(self._squared(x)) / self.radius
        return 1 / quotient(np.sinh(d), d)


@tagged("geometry.HyperbolicPairs")
@dataclass(frozen=True)
class HyperbolicPairs:
    """Pairs in the hyperbolic plane of curvature −1/R², in normal coordinates u = R r e(t).

    sinh²(d/2) = sinh²((r_i − r_j)/2) + sinh r_i sinh r_j sin²((t_i − t_j)/2), which has no cancellation, and
    d2 = R² d² (docs/math.md, eq. (H2)).

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

    def radial(self, kernel: Kernel) -> Kernel:
        return ChordKernel(kernel, self.radius)


@tagged("geometry.Hyperbolic")
@dataclass(frozen=True)
class Hyperbolic(Geometry):
    """The hyperbolic plane of curvature −1/R², with true geodesic distances.

    Maps are in the Poincaré disk, ‖y‖ < 1. A short line near the rim of the disk stands for an exponentially longer
    distance, which leaves room for trees. The optimiser works in normal coordinates at the origin: u has the direction
    of y, and its norm is the distance from the origin, 2R artanh ‖y‖, so that no coordinate saturates. Steps follow
    geodesics.

    Parameters
    ----------
    radius : float or "auto", default="auto"
        The radius of curvature R. A large radius gives the flat plane. "auto": a disk of radius 3R has the area that a
        map in the plane takes (docs/math.md, section 21).
    """

    radius: Any = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", check_size(self.radius, "radius"))

    def require_sizes(self) -> None:
        require_chosen(self.radius, "radius")

    def resolved(self, n: int, d: int, length: float) -> Hyperbolic:
        if d != 2:
            raise ValueError(f'geometry="hyperbolic" is a plane, but n_components={d}; use n_components=2')
        area = 2 * np.pi * (np.cosh(DISK) - 1)  # of a disk of radius DISK, at R = 1
        return Hyperbolic(room(n, length) / np.sqrt(area)) if self.radius == "auto" else self

    def check(self, d: int, length: float) -> None:
        check_largest(self.radius, "radius", length, MOST)

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

    def tangent(self, U: Array, F: Array) -> Array:
        """Return the force in an orthonormal frame: a step of length ε across e changes u by ε r/sinh r only."""
        tangent = np.empty(F.shape)
        force = np.ascontiguousarray(F, dtype=np.float64)
        _core.hyperbolic_tangent(self.radius, np.ascontiguousarray(U), force, tangent, THREADS)
        return tangent

    def move(self, U: Array, step: Array, velocity: Array, *, centred: bool) -> tuple[Array, Array]:
        """Return the ends of the geodesics with the initial velocities `step`, and `velocity` transported along them.

        Both are given in the orthonormal frame of `tangent`, and shortened where a step is longer than LONGEST · R.
        With `centred`, an isometry then moves the mean of U to the origin. On the hyperboloid −X0² + ‖X‖² = −1 all of
        this is linear in X: a geodesic of length D is X cosh D + T sinh D for its unit tangent T, parallel transport
        adds to a vector its component along T times T (cosh D − 1) + X sinh D, and the isometry that moves C to the
        origin is a Lorentz boost.
        """
        U, velocity = np.array(U, order="C"), np.array(velocity, dtype=U.dtype, order="C")
        step = np.array(step, dtype=U.dtype, order="C")
        if (step**2).max(initial=0.0) > (LONGEST * self.radius) ** 2 / 2:  # no test of each step where none is long
            shrink = LONGEST * self.radius / np.maximum(polar(step)[0], LONGEST * self.radius)
            step, velocity = (np.ascontiguousarray(V * shrink, dtype=U.dtype) for V in (step, velocity))
        _core.hyperbolic_move(self.radius, step, U, velocity, THREADS)
        if centred:
            mean = self._mean(U)
            _core.hyperbolic_translate(self.radius, float(mean[0]), float(mean[1]), U, velocity, THREADS)
        self._check_extent(U)
        return U, velocity

    def _check_extent(self, U: Array) -> None:
        """Raise FloatingPointError if a point is so far from the origin that its precision does not resolve it."""
        limit = -FARTHEST * float(np.log(np.finfo(U.dtype).eps)) * self.radius
        if (U**2).max(initial=0.0) > limit**2 / 2 and (largest := float(polar(U)[0].max())) > limit:
            raise FloatingPointError(
                f"the map extends to {largest / self.radius:.0f} times the radius of curvature {self.radius:.3g}, more"
                f' than {U.dtype} resolves; use radius="auto", or a much larger radius'
            )

    def retract(self, U: Array) -> Array:
        return self.translated(U, self._mean(U))

    def translated(self, U: Array, c: Array) -> Array:
        """Return U after the isometry that moves the point c (2,), in normal coordinates, to the origin."""
        U = np.array(U, order="C")
        _core.hyperbolic_translate(self.radius, float(c[0]), float(c[1]), U, np.zeros_like(U), THREADS)
        return U

    def _mean(self, U: Array) -> Array:
        """Return the first Newton step (2,), from the origin, towards the point with the smallest Σ d².

        The gradient of ½d² is −u, and its second derivative is 1 along u and (r/R) coth(r/R) across it.
        """
        r = polar(U[:: 1 + len(U) // SAMPLE])[0] / self.radius
        stiffness = (1 + quotient(r, np.tanh(r))) / 2
        mean = np.ascontiguousarray(U.T).mean(axis=1, dtype=np.float64)  # NumPy is faster along rows
        return mean / float(stiffness.mean(dtype=np.float64))

    def geodesic(self, y_i: Array, y_j: Array, points: int = 50) -> Array:
        """Return positions (points, 2) along the shortest path, an arc of a circle at right angles to the rim."""
        self.require_sizes()
        ends = np.array([y_i, y_j], dtype=np.float64)
        r, e = polar(self.work(ends) / self.radius)
        d = float(self.distance(ends[0], ends[1])) / self.radius
        t = np.linspace(0.0, 1.0, points)[:, None]
        weights = (1 - t, t) if d < 1e-6 else (np.sinh((1 - t) * d) / np.sinh(d), np.sinh(t * d) / np.sinh(d))
        X = weights[0] * (np.sinh(r) * e)[0] + weights[1] * (np.sinh(r) * e)[1]  # on the hyperboloid
        length, direction = polar(X)
        return self.map(self.radius * np.arcsinh(length) * direction)
