"""Check the axioms of a metric on every pair and every triple of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._plural import plural
from .._types import Array
from ..arrays.namespace import require
from ..neighbors.search import check_n_threads
from .base import MetricSpace


@dataclass(frozen=True)
class Violation:
    """An axiom that does not hold, and the points with the largest violation.

    Attributes
    ----------
    axiom : {"non-negativity", "identity of indiscernibles", "symmetry", "triangle inequality"}
    points : tuple of int
        A pair (x, y), or a triple (x, y, z) with d(x, z) + d(z, y) < d(x, y).
    amount : float
        By what distance the axiom is violated; 0 for two different points at distance 0.
    text : str
        Description with the distances involved.
    """

    axiom: str
    points: tuple[int, ...]
    amount: float
    text: str


@dataclass(frozen=True)
class MetricReport:
    """Result of `check_metric`: the largest violation of each violated axiom; bool(report) is True if there are none.

    Attributes
    ----------
    n : int
        Number of points.
    violations : tuple of Violation
    """

    n: int
    violations: tuple[Violation, ...]

    def __bool__(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        if not self.violations:
            return f"a metric on {plural(self.n, 'point')}"
        points = plural(self.n, "point")
        return f"not a metric on {points}: " + "; ".join(violation.text for violation in self.violations)

    def require(self) -> None:
        """Raise ValueError if there are violations; the message names the axioms and the points."""
        if self.violations:
            raise ValueError(f"{self}; correct these distances")


def check_metric(space: Any, tol: float = 1e-8, *, n_threads: int = 1) -> MetricReport:
    """Check the axioms of a metric, and return a report of the violations.

    The check takes O(n³) time; for a large space, check a `Restriction` to fewer points.

    Parameters
    ----------
    space : MetricSpace or array-like, shape (n, n)
        A space, or a matrix of distances.
    tol : float, default=1e-8
        Violations up to this fraction of the largest distance are ignored. Two different points violate the identity
        of indiscernibles only if their distance is exactly 0.
    n_threads : int, default=1

    Returns
    -------
    MetricReport
    """
    require(tol, "tol", ">= 0", lambda x: x >= 0)
    check_n_threads(n_threads)
    D = space.matrix() if isinstance(space, MetricSpace) else np.ascontiguousarray(space, dtype=np.float64)
    if D.ndim != 2 or D.shape[0] != D.shape[1] or not D.size:
        raise ValueError(f"space must be a MetricSpace or a non-empty square matrix of distances, got shape {D.shape}")
    if not np.isfinite(D).all():
        i, j = np.argwhere(~np.isfinite(D))[0]
        raise ValueError(f"distances must be finite, but d({i}, {j}) = {D[i, j]}; correct this distance")
    slack = tol * float(np.abs(D).max())
    checks = [_non_negative(D, slack), _indiscernible(D, slack), _symmetric(D, slack), _triangle(D, slack, n_threads)]
    return MetricReport(len(D), tuple(violation for violation in checks if violation is not None))


def _non_negative(D: Array, slack: float) -> Violation | None:
    i, j = _argmax(-D)
    if D[i, j] >= -slack:
        return None
    return Violation("non-negativity", (i, j), -float(D[i, j]), f"non-negativity: d({i}, {j}) = {D[i, j]:.6g}")


def _indiscernible(D: Array, slack: float) -> Violation | None:
    axiom = "identity of indiscernibles"
    diagonal = np.abs(D.diagonal())
    i = int(diagonal.argmax())
    if diagonal[i] > slack:
        return Violation(axiom, (i, i), float(diagonal[i]), f"{axiom}: d({i}, {i}) = {D[i, i]:.6g}, not 0")
    same = D == 0
    np.fill_diagonal(same, False)
    if not same.any():
        return None
    i, j = _argmax(same)
    return Violation(axiom, (i, j), 0.0, f"{axiom}: d({i}, {j}) = 0 for two different points")


def _symmetric(D: Array, slack: float) -> Violation | None:
    i, j = _argmax(np.abs(D - D.T))
    gap = abs(float(D[i, j] - D[j, i]))
    if gap <= slack:
        return None
    return Violation("symmetry", (i, j), gap, f"symmetry: d({i}, {j}) = {D[i, j]:.6g} but d({j}, {i}) = {D[j, i]:.6g}")


def _triangle(D: Array, slack: float, n_threads: int) -> Violation | None:
    """Return the largest violation of the triangle inequality, or None if none is larger than `slack`.

    A violation is the excess of d(x, y) over the length of the shortest detour, min_z d(x, z) + d(z, y).
    """
    excess, where = np.empty(len(D)), np.empty(len(D), np.int64)
    _core.longest_excess(D, excess, where, n_threads)
    x = int(excess.argmax())
    if excess[x] <= slack:
        return None
    y = int(where[x])
    z = int((D[x] + D[:, y]).argmin())
    text = f"triangle inequality: d({x}, {y}) = {D[x, y]:.6g} > d({x}, {z}) + d({z}, {y}) = {D[x, z] + D[z, y]:.6g}"
    return Violation("triangle inequality", (x, y, z), float(excess[x]), text)


def _argmax(A: Array) -> tuple[int, int]:
    i, j = np.unravel_index(int(A.argmax()), A.shape)
    return int(i), int(j)
