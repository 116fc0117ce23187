"""The flat torus: a box whose opposite sides are glued together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import _core
from .._tags import tagged
from .._types import Array
from ..arrays.namespace import array_namespace
from ..kernels import Kernel
from .flat import Geometry
from .sizes import check_largest, check_size, require_chosen, room, warn_if_small


@tagged("geometry.TorusPairs")
@dataclass(frozen=True)
class TorusPairs:
    """Pairs on the torus: every component of u_i − u_j is wrapped to the nearest image.

    v = u_i − u_j after wrapping and d2 = ‖v‖² (docs/math.md, eq. (H1)).

    Parameters
    ----------
    period : tuple of float
        The period along each axis.
    """

    period: tuple[float, ...]

    def between(self, Ui: Array, Uj: Array) -> tuple[Array, Array]:
        L = np.array(self.period)
        v = Ui - Uj
        v = v - L * np.round(v / L)
        return (v**2).sum(axis=-1), v

    def native(self) -> _core.Space:
        return _core.Space.torus(np.array(self.period))

    def radial(self, kernel: Kernel) -> Kernel:
        return kernel


@tagged("geometry.Torus")
@dataclass(frozen=True)
class Torus(Geometry):
    """The flat torus: R^d with every coordinate modulo its period L, and coordinates in [0, L).

    The distance of two points is that to the nearest image: d2 = Σ_c min_k (y_ic − y_jc − k L_c)². The optimiser works
    in u = y − L/2, in [−L/2, L/2): a map around the middle of a large torus keeps its digits.

    Parameters
    ----------
    period : float, sequence of float or "auto", default="auto"
        The period of every axis, or one per axis. "auto": a torus with the area that a map in the plane takes.
    """

    period: Any = "auto"

    def __post_init__(self) -> None:
        several = isinstance(self.period, Sequence | np.ndarray) and not isinstance(self.period, str)
        period = tuple(check_size(L, "period") for L in self.period) if several else check_size(self.period, "period")
        if several and (not period or "auto" in period):
            raise ValueError(f'period must be a positive number, one per axis, or "auto", got {self.period!r}')
        object.__setattr__(self, "period", period)

    def require_sizes(self) -> None:
        require_chosen(self.period, "period")

    def resolved(self, n: int, d: int, length: float) -> Torus:
        if isinstance(self.period, tuple):
            if len(self.period) != d:
                raise ValueError(f"period={self.period} has {len(self.period)} entries, but n_components={d}")
            return self
        return Torus((room(n, length) if self.period == "auto" else self.period,) * d)

    def check(self, d: int, length: float) -> None:
        check_largest(max(self.period), "period", length)
        warn_if_small(max(self.period), float(np.linalg.norm(self.period)) / 2, "period", length)

    @cached_property
    def pairs(self) -> TorusPairs:  # type: ignore[override]
        return TorusPairs(self.period)

    def work(self, Y: Array) -> Array:
        return self.project(Y - self._period(Y) / 2)

    def map(self, U: Array) -> Array:
        return self.wrap(U + self._period(U) / 2)

    def project(self, U: Array) -> Array:
        L = self._period(U)
        return U - L * array_namespace(U).floor(U / L + 0.5)

    def wrap(self, Y: Array) -> Array:
        """Return positions Y with every coordinate in [0, L)."""
        xp, L = array_namespace(Y), self._period(Y)
        wrapped = Y - L * xp.floor(Y / L)
        return xp.where(wrapped < L, wrapped, 0.0 * wrapped)  # rounding may give L itself

    def _period(self, like: Array) -> Array:
        """Return the periods as an array of the library and precision of `like`."""
        return array_namespace(like).asarray(np.array(self.period), dtype=like.dtype)

    def geodesic(self, y_i: Array, y_j: Array, points: int = 50) -> Array:
        """Return positions (points, d) along the shortest path, in [0, L); the path jumps where it crosses a side."""
        self.require_sizes()
        start = np.asarray(y_i, dtype=np.float64)
        _, v = self.pairs.between(np.asarray(y_j, dtype=np.float64), start)
        return self.wrap(start + np.linspace(0.0, 1.0, points)[:, None] * v)
