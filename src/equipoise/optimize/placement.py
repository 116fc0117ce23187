"""Places new points in a finished map, each independently of the others (docs/math.md, section 11)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from .. import _core
from .._tags import tagged
from .._types import Array, Callback, Matrix
from ..arrays.blocks import FIXED_ENTRIES
from ..arrays.csr import entry_rows
from ..engines import HOST, Engine, restore_engine
from ..engines.base import PointSums
from ..engines.cpu import WHOLE_MAP
from ..geometry import Geometry
from ..objectives import Objective
from ..objectives.base import FrozenForce
from .descent import Descent, State, Steps
from .gradient_steps import Force, GradientSteps
from .majorize import StressState
from .rules import Momentum, Phase

STEPS = 25  # chosen, not tuned
RULE = Momentum(momentum=(0.5, 0.8), friction=0, max_step=1.0)  # at most one kernel length per step
STRESS_STEPS = 100  # chosen, not tuned
RELAXATION = 1.5  # factor on the majorising step; below 2 the stress still decreases, as the majoriser is a parabola

_freezing = Lock()  # one for all maps: several may share an engine


def _renew_lock() -> None:
    """Replace the lock in a forked process, where the thread that held it does not exist."""
    global _freezing
    _freezing = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@tagged("placement.Placement")
@dataclass(eq=False, repr=False)
class FrozenMap:
    """Places new points in a finished map: they move under its forces and exert no forces on one another.

    Parameters
    ----------
    objective, geometry, engine : Objective, Geometry, Engine
        As in the fit.
    Y : ndarray of shape (n, d)
        The fitted map.
    exaggeration : float
        Exaggeration of the late phase.
    _known : list of dict
        The state of the engine after the fit, from `engine_state`. It is restored before the forces are computed, so
        that positions do not depend on other uses of the engine.
    """

    objective: Objective
    geometry: Geometry
    engine: Engine
    Y: Array
    exaggeration: float
    _known: list[dict[str, Any]]

    def _force(self) -> FrozenForce:
        """Return the function that gives the force of the map on new points.

        The function is prepared at the first call and reused.
        """
        with _freezing:  # computed twice, in two threads, it would change the state of the engine twice
            if "_frozen" not in vars(self):
                restore_engine(self.engine, self._known)
                Y = self.geometry.work(self.Y)
                self._frozen = self.objective.to(HOST).freeze(Y, self.engine, self.exaggeration)
            return self._frozen

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_frozen"}

    def place(self, P: Matrix) -> Array:
        """Return the positions (m, d) of new points with affinities p_{j|i} to the points of the map, CSR (m, n)."""
        Y = self.geometry.work(self.Y)
        scale = self.objective.mass * max(1.0, self.exaggeration)
        return place(FrozenForces(self._force(), P, Y, self.objective.kernel.length), self.geometry, len(Y), scale)


def place(forces: FrozenForces, geometry: Geometry, n: int, stiffness: float) -> Array:
    """Return the positions (m, d) of new points that move under the forces of a finished map of n points.

    `stiffness` is a scale of the curvature of the loss, usually exaggeration · Σ P. The position of a point does not
    depend on the others.
    """
    # Start at the nearest neighbour, not at the mean of all neighbours, which may lie between clusters. Measured on
    # 3,000 held-out digits of MNIST: 3.5 % were placed next to another class instead of 5.4 %.
    P = forces.P
    state = State.start(forces.near[P.indices[first_largest(P)]])
    rate = RULE.auto_rate(n, stiffness, forces.length)
    early = STEPS // 2
    phases = [Phase(early, 1.0, rate, late=False), Phase(STEPS - early, 1.0, rate, late=True)]
    steps = PlacementSteps(forces, geometry, RULE, phases)
    return geometry.map(Descent(steps, state, STEPS).run().U)


@dataclass
class FrozenForces:
    """Computes the forces of a finished map on new points with affinities P, CSR (m, v), to v points of the map."""

    force: FrozenForce
    P: Matrix
    near: Array  # (v, d): the working coordinates of these points
    length: float
    mass: float = 1.0
    sums: PointSums = WHOLE_MAP

    def at(self, U: Array, exaggeration: float, loss: bool) -> Force:
        return Force(self.force(U, self.P, self.near), np.nan, np.nan)

    def linear_force(self, exaggeration: float) -> None:
        return None

    def sort(self, U: Array) -> Array | None:
        return None

    def replay(self, step: Callable[[State], None], phase: Phase, state: State, count: int, min_width: float) -> None:
        """Do nothing: these steps cannot be replayed on a GPU."""


class PlacementSteps(GradientSteps):
    """Takes gradient steps of points that do not interact.

    There are no reports, the map is not centred, and phases differ in momentum only.
    """

    centred = False

    def start_progress(self, n_iter: int, done: int) -> list[Callback]:
        return []

    def prepare(self, state: State) -> None:
        state.phase = self.phase_at(state.iteration)

    def is_report_due(self, state: State, n_iter: int) -> bool:
        return False

    def final_loss(self, state: State) -> float | None:
        return None

    def check_result(self, state: State) -> None:
        """Do nothing: `transform` names the rows that cannot be placed."""


def first_largest(P: Matrix) -> Array:
    """Return where the largest entry of each row of CSR P (m, n) is stored, (m,); of equal entries, the first."""
    width = np.diff(P.indptr)
    if width.min() == width.max():
        return P.indptr[:-1] + P.data.reshape(len(width), -1).argmax(axis=1)
    return np.lexsort((-P.data, entry_rows(P)))[P.indptr[:-1]]


def place_by_stress(distances: Callable[[slice], Array], m: int, T: Array, n_threads: int) -> Array:
    """Return the positions (m, d) of new points, found by minimising the stress of each point separately.

    A point starts at the nearest fitted point and takes steps y ← y − 1.5 G/k, where G is half the gradient of its
    stress and k the number of fitted points. A point at distance 0 from a fitted point gets the position of that point.

    Parameters
    ----------
    distances : callable
        Returns the distances (rows, k) from a slice of new points to the fitted points.
    m : int
        Number of new points.
    T : ndarray of shape (k, d)
        Positions of the fitted points.
    n_threads : int
    """
    T = np.ascontiguousarray(T, dtype=np.float32)
    k, d = T.shape
    Y = np.empty((m, d), np.float32)
    block = max(1, FIXED_ENTRIES // k)
    for start in range(0, m, block):
        rows = slice(start, min(start + block, m))
        delta = np.ascontiguousarray(distances(rows), dtype=np.float32)
        nearest = delta.argmin(axis=1)
        state = StressState(T[nearest].astype(np.float64))
        positions = Descent(StressPlacementSteps(delta, T, n_threads), state, STRESS_STEPS).run().Y
        twin = delta[np.arange(len(delta)), nearest] == 0
        positions[twin] = T[nearest[twin]]
        Y[rows] = positions
    return Y


class StressPlacementSteps(Steps[StressState]):
    """Takes majorising steps, lengthened by RELAXATION, of m new points to fit their dissimilarities to fixed points.

    `delta` (m, k) contains the dissimilarities, and T (k, d) the positions of the fixed points.
    """

    def __init__(self, delta: Array, T: Array, n_threads: int):
        self.delta, self.T, self.n_threads = delta, T, n_threads
        self._weights, self._unused = np.ones(len(T), np.float32), np.empty(T.shape)
        self._half_gradient = np.empty((len(delta), T.shape[1]))

    def start_progress(self, n_iter: int, done: int) -> list[Callback]:
        return []

    def is_report_due(self, state: StressState, n_iter: int) -> bool:
        return False

    def move(self, state: StressState) -> bool:
        Y, G = state.Y.astype(np.float32), self._half_gradient
        _core.stress_between(self.delta, self._weights, Y, self.T, G, self._unused, self.n_threads)
        state.Y -= RELAXATION / len(self.T) * G
        state.iteration += 1
        return True

    def current_map(self, state: StressState) -> Array:
        return state.Y.astype(np.float32)
