"""The unsolved problem: affinities and objective built, nothing optimised. For looking inside, and for experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .._types import Array, Callback, Matrix
from ..arrays.csr import on_host
from ..arrays.morton import locality
from ..arrays.namespace import host
from ..data.checks.table import check_finite
from ..engines import HOST, Engine
from ..geometry import Geometry
from ..objectives import Balance, Objective
from ..optimize.descent import descend
from ..optimize.rules import GradientDescent, Momentum, Rule
from ..optimize.schedule import Phase, Schedule
from ..optimize.state import State
from ..progress import start_optimizer_stage
from ..saving.checkpoint import Checkpoint, Keeping, digest

LOCALITY = 4096  # points that a first-level cache of 32 KiB holds in 2-D: fewer need no order


class Problem:
    """A loss over maps Y (n, d), with its forces and its optimiser.

    Attributes
    ----------
    affinities : P as built, (n, n) ndarray or scipy CSR
    knn_recall : measured recall of the neighbour search behind P
    Y : the map where the last `optimize` stopped, also after Ctrl-C; the initial map before
    loss_curve : (m, 2) array of iteration and loss
    n_iter : iterations done by the last `optimize`
    stopped : what ended it: "n_iter", "min_grad_norm", "min_loss_change" or "callback"
    early_undone : whether early exaggeration only contracted the map, so that the late phase began at the start
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
        self.knn_recall = knn_recall
        self.objective = objective
        self.geometry = geometry
        self.engine = engine
        self.schedule = schedule
        self.rule = rule
        self.given_on: Any = None  # the device where maps are given as tensors; None: as arrays
        self._Y0 = engine.placement.to_device(Y0, engine.dtype)
        self._state = self._start(self._Y0)

    @property
    def affinities(self) -> Matrix:
        return on_host(self.objective.affinities)

    @property
    def Y0(self) -> Array:
        return host(self._Y0)

    @property
    def Y(self) -> Array:
        Y: Any = self.geometry.map(self._state.in_order())
        return host(Y) if self.given_on is None else Y.to(self.given_on)

    @property
    def loss_curve(self) -> Array:
        return np.array(self._state.curve, dtype=np.float64).reshape(-1, 2)

    @property
    def n_iter(self) -> int:
        return self._state.iteration

    @property
    def stopped(self) -> str:
        return self._state.stopped

    @property
    def early_undone(self) -> bool:
        return self._state.early_undone

    def _start(self, Y: Array) -> State:
        """Return the state at rest in a map."""
        Y = self.engine.placement.to_device(Y, self.engine.dtype)
        return State.start(self.geometry.retract(self.geometry.work(Y)))

    def loss(self, Y: Array) -> float:
        """Return the stated loss at Y, without exaggeration."""
        return self._balance(Y, loss=True).loss

    def gradient(self, Y: Array) -> Array:
        """Return the gradient of the stated loss at Y, (n, d). Its precision is that of Y: float32 or float64."""
        balance = self._balance(Y, loss=False)
        return -(balance.attraction + balance.repulsion)

    def attraction(self, Y: Array) -> Array:
        """Return the attractive force on each point, (n, d)."""
        return self._balance(Y, loss=False).attraction

    def repulsion(self, Y: Array) -> Array:
        """Return the repulsive force on each point, (n, d). The two forces sum to minus the gradient."""
        return self._balance(Y, loss=False).repulsion

    def optimize(
        self, n_iter: int | None = None, Y0: Array | None = None, callbacks: Sequence[Callback | Checkpoint] = ()
    ) -> Array:
        """Run the optimiser from Y0 (the built initial map by default) and return the map.

        Both phases run, early exaggeration first; to go on from a finished map, build the problem with
        early_exaggeration equal to exaggeration.

        A callback receives (iteration, loss, Y) every `rule.every` iterations and stops the run by returning True.
        A `Checkpoint` keeps the state of the run on disk. After an exception, Ctrl-C included, `Y`, `loss_curve` and
        `n_iter` hold the last complete iteration.
        """
        start = self._Y0 if Y0 is None else self._check(Y0).astype(self.engine.dtype)
        self._state = self._start(start)
        n_iter = self.schedule.n_iter if n_iter is None else check_n_iter(n_iter)
        keeping = Keeping(callbacks, lambda: self._run(n_iter), self._plain)
        if (found := keeping.found()) is not None:
            self._state.restore(found["state"])
            self.engine.restore(found["engine"])
        keeping.callbacks += start_optimizer_stage(n_iter, self._state.iteration)
        try:
            with np.errstate(all="ignore"):  # a diverging run is reported once, by its loss
                self._descend(n_iter, keeping)
        finally:
            self.engine.stepper.free_buffers()
        return self.Y

    def _run(self, n_iter: int) -> dict[str, Any]:
        """Return what makes a run what it is, under names that a person knows."""
        return {
            "affinities": digest(self.affinities),
            "loss": digest(self.objective),
            "initial map": digest(host(self._state.origin), self.geometry),
            "n_iter": n_iter,
            "learning rate or exaggeration": digest(self.schedule),
            "optimizer": digest(self.rule),
            "engine": [self.engine.name, self.engine.settings],
        }

    def _plain(self) -> dict[str, Any]:
        return {"state": self._state.plain(), "engine": self.engine.state()}

    def _told(self, callbacks: Sequence[Callback]) -> list[Callback]:
        """Return the callbacks as functions of working coordinates U; they see the map, and cannot change it."""

        def tell(callback: Callback) -> Callback:
            def told(iteration: int, loss: float, U: Array) -> Any:
                Y = host(self.geometry.map(U)).view()
                Y.flags.writeable = False
                return callback(iteration, loss, Y)

            return told

        return [tell(callback) for callback in callbacks]

    def _descend(self, n_iter: int, keeping: Keeping) -> None:
        state = self._state
        held = self._objective_to_descend()
        there = held if state.order is None else held.permuted(state.order)

        def balance(U: Array, exaggeration: float, loss: bool) -> Balance:
            return there.balance(U, self.engine, loss=loss, exaggeration=exaggeration)

        def sort(U: Array) -> Array | None:
            nonlocal there
            if not self.engine.gains_from_locality or len(U) < LOCALITY or U.shape[1] > 3:
                return None
            order = locality(U)
            there = held.permuted(order)
            return order

        def hasten(step: Callable[[State], None], phase: Phase, state: State, count: int, least: float) -> int:
            if type(self.rule) not in (Momentum, GradientDescent):  # which look at nothing in between
                return 0
            return self.engine.stepper.replay_steps(step, (there, phase), state, count, least)

        descend(
            balance,
            self.geometry,
            state,
            self.schedule.phases(n_iter),
            self.rule,
            self.objective.kernel.length,
            self.objective.mass,
            self._told(keeping.callbacks),
            sort,
            keeping.keep,
            hasten,
            [checkpoint.every for checkpoint in keeping.checkpoints],
        )

    def _objective_to_descend(self) -> Objective:
        """Return the objective on the engine's device."""
        return self.objective.to(self.engine.placement)

    def _balance(self, Y: Array, *, loss: bool) -> Balance:
        Y = self._check(Y)
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite loss is an answer
            result = self._asked.balance(self.geometry.work(Y), self.engine, loss=loss)
        attraction, repulsion = (self.geometry.pull_back(Y, F).astype(Y.dtype) for F in result[:2])
        return result._replace(attraction=attraction, repulsion=repulsion)

    @cached_property
    def _asked(self) -> Objective:
        """The objective, for questions about maps that are given as arrays."""
        return self.objective.to(HOST)

    def _check(self, Y: Array) -> Array:
        Y = host(Y)
        if Y.dtype != np.float32:
            Y = Y.astype(np.float64)
        if Y.shape != self.Y0.shape:
            raise ValueError(f"Y has shape {Y.shape}, but this problem is about maps of shape {self.Y0.shape}")
        check_finite(Y, "Y")
        return Y


def check_n_iter(n_iter: Any) -> int:
    """Return a number of iterations."""
    if not isinstance(n_iter, int | np.integer):
        raise ValueError(f"n_iter must be a whole number, got {n_iter!r}")
    if n_iter < 0:
        raise ValueError(f"n_iter must not be negative, got {n_iter}")
    return int(n_iter)
