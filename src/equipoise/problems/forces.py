"""Problems of attraction and repulsion: affinities and objective are built, nothing is optimised."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .._types import Array, Callback, Matrix
from ..arrays.csr import on_host
from ..arrays.namespace import to_numpy
from ..engines import HOST, Engine
from ..geometry import Geometry
from ..objectives import Balance, Objective
from ..optimize.descent import State
from ..optimize.gradient_steps import EngineForces, GradientSteps
from ..optimize.rules import Rule, Schedule
from ..saving.checkpoint import RunCheckpoints, fingerprint
from .base import Problem


class ForceProblem(Problem):
    """A problem of attraction along affinities and repulsion between all points.

    Parameters
    ----------
    objective, geometry, engine : Objective, Geometry, Engine
        The loss, the surface that maps lie on, and what evaluates the forces.
    Y0 : ndarray of shape (n, d)
        The initial map.
    schedule : Schedule
    rule : Rule
    knn_recall : float, default=1.0

    Attributes
    ----------
    affinities : ndarray or csr_matrix of shape (n, n)
        P.
    knn_recall : float
        Measured recall of the neighbour search behind P.
    early_undone : bool
        Whether early exaggeration only contracted the map, so that the late phase began at the initial map.
    output_device : torch.device or None
        Where `Y` is returned as a tensor; None for NumPy arrays.
    """

    def __init__(
        self,
        objective: Objective,
        geometry: Geometry,
        engine: Engine,
        Y0: Array,
        schedule: Schedule,
        rule: Rule,
        knn_recall: float = 1.0,
    ):
        self.objective, self.geometry, self.engine = objective, geometry, engine
        self.schedule, self.rule, self.knn_recall = schedule, rule, knn_recall
        self.output_device: Any = None
        self._Y0 = engine.placement.to_device(Y0, engine.dtype)
        self._runs = [self._start(self._Y0)]

    @property
    def affinities(self) -> Matrix:
        return on_host(self.objective.affinities)

    @property
    def Y0(self) -> Array:
        return to_numpy(self._Y0)

    @property
    def engine_name(self) -> str:
        """The engine as named in the parameters of a method."""
        return self.engine.name

    @property
    def early_undone(self) -> bool:
        return self._state.early_undone

    @property
    def _state(self) -> State:
        return self._runs[-1]

    @property
    def _default_n_iter(self) -> int:  # type: ignore[override]
        return self.schedule.n_iter

    def _starts(self) -> Sequence[Any]:
        return [self._Y0]

    def _start(self, Y: Any) -> State:
        U = self.geometry.work(self.engine.placement.to_device(Y, self.engine.dtype))
        return State.start(self.geometry.retract(U))

    def _map(self, state: State) -> Any:
        Y: Any = self.geometry.map(state.in_order())
        return to_numpy(Y) if self.output_device is None else Y.to(self.output_device)

    def _loss_at(self, Y: Array) -> float:
        return self._balance(Y, loss=True).loss

    def _gradient_at(self, Y: Array) -> Array:
        balance = self._balance(Y, loss=False)
        return -(balance.attraction + balance.repulsion)

    def _attraction_at(self, Y: Array) -> Array:
        return self._balance(Y, loss=False).attraction

    def _repulsion_at(self, Y: Array) -> Array:
        return self._balance(Y, loss=False).repulsion

    def _balance(self, Y: Array, *, loss: bool) -> Balance:
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite loss is a valid answer
            result = self._host_objective.balance(self.geometry.work(Y), self.engine, loss=loss)
        attraction, repulsion = (self.geometry.pull_back(Y, F).astype(Y.dtype) for F in result[:2])
        return result._replace(attraction=attraction, repulsion=repulsion)

    @cached_property
    def _host_objective(self) -> Objective:
        """The objective for maps that are NumPy arrays."""
        return self.objective.to(HOST)

    def _steps(self, state: State, n_iter: int) -> GradientSteps:
        forces = self._forces(state)
        return GradientSteps(forces, self.geometry, self.rule, self.schedule.phases(n_iter))

    def _forces(self, state: State) -> EngineForces:
        return EngineForces(self.objective, self.engine, state.order)

    def _run(self, state: State, n_iter: int, callbacks: Sequence[Callback], saver: RunCheckpoints | None) -> None:
        try:
            with np.errstate(all="ignore"):  # a diverging run is reported once, by its loss
                super()._run(state, n_iter, callbacks, saver)
        finally:
            self.engine.stepper.free_buffers()

    def _describe_run(self, starts: Sequence[Any], n_iter: int) -> dict[str, Any]:
        return {
            "affinities": fingerprint(self.affinities),
            "loss": fingerprint(self.objective),
            "initial map": fingerprint(to_numpy(self._start(starts[0]).origin), self.geometry),
            "n_iter": n_iter,
            "learning rate or exaggeration": fingerprint(self.schedule),
            "optimizer": fingerprint(self.rule),
            "engine": [self.engine.name, self.engine.settings],
        }

    def _saved_state(self) -> dict[str, Any]:
        return {"state": self._state.plain(), "engine": self.engine.state()}

    def _restore_state(self, saved: Any, starts: Sequence[Any]) -> list[State]:
        state = self._start(starts[0])
        state.restore(saved["state"])
        self.engine.restore(saved["engine"])
        return [state]
