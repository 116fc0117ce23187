"""Engines that compute the field of a curved space on a mesh, and the choice of an engine for a curved space."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._tags import tagged
from ..._types import Array
from ...geometry import HyperbolicPairs, Pairs, TorusPairs
from ...kernels import Kernel
from ..base import Engine
from ..cpu import Solution
from ..curved_exact import CurvedEdges, CurvedExact, CurvedKernels, CurvedSums
from ..reference import Reference
from .mesh_engine import Grid
from .plan import Source, Transform
from .polar_mesh import PolarSource, PolarTransform, polar_plan
from .torus_mesh import TorusPlan, TorusTransform, torus_plan


def make_curved_engine(name: str, n_threads: int, tol: float, pairs: Pairs) -> Engine:
    """Return a new engine for a curved space: "reference", "exact" or "grid"."""
    if name == "reference":
        return Reference(pairs)
    if name == "exact":
        return CurvedExact(n_threads, pairs)
    engine: Any = TorusGrid if isinstance(pairs, TorusPairs) else PolarGrid
    made: Engine = engine(n_threads, tol, pairs)
    return made


class CurvedGrid(Grid):
    """Base class of the engines below: edges over stored pairs, and direct sums to measure errors."""

    def __init__(self, n_threads: int, tol: float, pairs: Any):
        super().__init__(n_threads, tol)
        self.pairs, self._space = pairs, pairs.native()
        self._edges, self._compiled = CurvedEdges(n_threads, pairs), CurvedKernels(pairs)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "pairs": self.pairs}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["n_threads"], state["tol"], state["pairs"])  # type: ignore[misc]
        self.restore(state["state"])

    def _direct(self, kernel: Kernel, source: Source) -> Solution:
        sums = CurvedSums(self._space, self._compiled(kernel), self.n_threads)

        def solution(targets: Array) -> tuple[Array, Array]:
            potential, half = sums.field(np.array(targets), source.Y, source.charges)
            return potential, 2 * half

        return solution


@tagged("engines.curved.TorusGrid")
class TorusGrid(CurvedGrid):
    """An engine for the flat torus, on a periodic mesh in 1, 2 or 3 dimensions.

    Parameters
    ----------
    n_threads : int
    tol : float
        The maximum relative error of the force.
    pairs : TorusPairs
        The periods.
    """

    pairs: TorusPairs

    def _choose_mesh(self, kernel: Kernel, error: float, n: int, span: tuple[float, ...]) -> Any:
        return torus_plan(kernel, error, n, self.pairs.period, span)

    def _make_transform(self, kernel: Kernel, of: Any) -> Any:
        return TorusTransform(kernel, of) if isinstance(of, TorusPlan) else Transform(kernel, of)


@tagged("engines.curved.PolarGrid")
class PolarGrid(CurvedGrid):
    """An engine for the hyperbolic plane, on a polar mesh.

    Parameters
    ----------
    n_threads : int
    tol : float
        The maximum relative error of the force.
    pairs : HyperbolicPairs
        The radius of curvature.
    """

    pairs: HyperbolicPairs
    RUNGS = 2  # of the circumference; a new transform takes longer than a few steps
    MOVED = 1

    def _source(self, Y: Array, charges: Array | None) -> Any:
        return PolarSource(Y, charges, self.pairs.radius)

    def _choose_mesh(self, kernel: Kernel, error: float, n: int, span: tuple[float, ...]) -> Any:
        return polar_plan(kernel, error, n, span[0], self.pairs.radius)

    def _make_transform(self, kernel: Kernel, of: Any) -> Any:
        return PolarTransform(kernel, of, self.pairs.radius, self.n_threads)
