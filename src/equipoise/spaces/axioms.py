"""The axioms of a metric, checked on every pair and triple."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array
from .base import MetricSpace

TILE = 2**15  # sums per tile of the triangle check: 256 kB, within a core's cache


@dataclass(frozen=True)
class Violation:
    """An axiom that fails, and the points at which it fails most."""

    axiom: str  # "non-negativity", "identity of indiscernibles", "symmetry" or "triangle inequality"
    points: tuple[int, ...]  # a pair (x, y), or a triple (x, y, z) whose path x → z → y is shorter than d(x, y)
    amount: float  # by how much
    text: str


@dataclass(frozen=True)
class MetricReport:
    """The violations found, the worst one of each axiom; true as a condition if there is none."""

    n: int
    violations: tuple[Violation, ...]

    def __bool__(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        if not self.violations:
            return f"a metric on {self.n} points"
        return f"not a metric on {self.n} points: " + "; ".join(violation.text for violation in self.violations)

    def require(self) -> None:
        """Raise ValueError, naming the axioms and the points, if this is no metric."""
        if self.violations:
            raise ValueError(str(self))


def check_metric(space: Any, tol: float = 1e-8) -> MetricReport:
    """Return whether a space, or a matrix of distances D (n, n), obeys the axioms, and where it does not.

    An axiom fails where it is off by more than `tol` of the largest distance; d(x, y) = 0 for x ≠ y counts only if it
    is exactly 0. It takes n³/2 sums: for a large space check a `Restriction` of it.
    """
    D = space.matrix() if isinstance(space, MetricSpace) else np.asarray(space, dtype=np.float64)
    if D.ndim != 2 or D.shape[0] != D.shape[1] or not D.size:
        raise ValueError(f"a matrix of distances must be square, got shape {D.shape}")
    if not np.isfinite(D).all():
        i, j = np.argwhere(~np.isfinite(D))[0]
        raise ValueError(f"a distance must be a finite number: d({i}, {j}) = {D[i, j]}")
    slack = tol * float(np.abs(D).max())
    checks = [_non_negative(D, slack), _indiscernible(D, slack), _symmetric(D, slack), _triangle(D, slack)]
    return MetricReport(len(D), tuple(violation for violation in checks if violation is not None))


def _non_negative(D: Array, slack: float) -> Violation | None:
    i, j = _where_largest(-D)
    if D[i, j] >= -slack:
        return None
    return Violation("non-negativity", (i, j), -float(D[i, j]), f"non-negativity: d({i}, {j}) = {D[i, j]:.6g}")


def _indiscernible(D: Array, slack: float) -> Violation | None:
    axiom = "identity of indiscernibles"
    own = np.abs(D.diagonal())
    i = int(own.argmax())
    if own[i] > slack:
        return Violation(axiom, (i, i), float(own[i]), f"{axiom}: d({i}, {i}) = {D[i, i]:.6g}, not 0")
    same = D == 0
    np.fill_diagonal(same, False)
    if not same.any():
        return None
    i, j = _where_largest(same)
    return Violation(axiom, (i, j), 0.0, f"{axiom}: d({i}, {j}) = 0 though {i} and {j} are two points")


def _symmetric(D: Array, slack: float) -> Violation | None:
    i, j = _where_largest(np.abs(D - D.T))
    gap = abs(float(D[i, j] - D[j, i]))
    if gap <= slack:
        return None
    return Violation("symmetry", (i, j), gap, f"symmetry: d({i}, {j}) = {D[i, j]:.6g} but d({j}, {i}) = {D[j, i]:.6g}")


def _triangle(D: Array, slack: float) -> Violation | None:
    """Compare d(x, y), x ≤ y, with the shortest detour min_z d(x, z) + d(z, y), a tile of rows x at a time."""
    n = len(D)
    worst, place = slack, (-1, -1)
    start = 0
    while start < n:
        stop = min(start + max(1, TILE // (n - start)), n)
        here = D[start:stop]
        detour, best = np.empty((stop - start, n - start)), np.full((stop - start, n - start), np.inf)
        for z in range(n):
            np.add(here[:, z, None], D[z, start:], out=detour)
            np.minimum(best, detour, out=best)
        excess = here[:, start:] - best
        x, y = _where_largest(excess)
        if excess[x, y] > worst:
            worst, place = float(excess[x, y]), (start + x, start + y)
        start = stop
    if place[0] < 0:
        return None
    x, y = place
    z = int((D[x] + D[:, y]).argmin())
    text = f"triangle inequality: d({x}, {y}) = {D[x, y]:.6g} > d({x}, {z}) + d({z}, {y}) = {D[x, z] + D[z, y]:.6g}"
    return Violation("triangle inequality", (x, y, z), worst, text)


def _where_largest(A: Array) -> tuple[int, int]:
    i, j = np.unravel_index(int(A.argmax()), A.shape)
    return int(i), int(j)
