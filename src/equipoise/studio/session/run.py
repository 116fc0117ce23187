"""One live run: a few iterations at a time, with parameters that change on the way, and a way back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..._types import Array
from ...arrays.morton import locality
from ...engines import Engine, make_engine
from ...evaluate import Measured, trustworthiness
from ...methods.estimator import threads
from ...objectives import Balance, Objective
from ...optimize.descent import NO_GAIN, advance, collapsed, contracted
from ...optimize.rules import Momentum
from ...optimize.schedule import Phase, Schedule
from ...optimize.state import State
from ...problems.forces import LOCALITY, Problem
from .history import Frame, History
from .parameters import METHODS, PARAMETERS, Method, Value, check_value, defaults
from .recipe import REST, Event, Recipe

NEIGHBORS = 15  # of the trust overlay, as in `evaluate`
# Beyond so many points the loss, which takes longer than the forces there, is taken every so many iterations; measured
# (70,000 points, one thread: forces in 19 ms, with the loss in 49 ms; 5,000: 5.7 and 6.2 ms).
MANY, RARELY = 20_000, 10


def loss_every(n: int) -> int:
    """Return the iterations between losses of a run on n points."""
    return 1 if n <= MANY else RARELY


class Run:
    """A method on a table X (n, D) that is stepped by hand: the loop of `Problem.optimize`, held open.

    Without changes its maps are those of an estimator that reports every `loss_every(n)` iterations, byte for byte, but
    it does not stop by itself. A change of the kernel or of the exaggeration acts from the next iteration on, one of
    the neighbourhoods when they have been found anew; either takes the momentum away, for the forces are others. The
    recipe repeats the run.
    """

    def __init__(self, X: Array, recipe: Recipe | None = None, n_jobs: int | None = None):
        given = Recipe() if recipe is None else recipe
        self.X, self.n_jobs, self.rule = X, n_jobs, Momentum()
        self.recipe = replace(given, events=())
        self._begin(given.events)

    def _begin(self, ahead: tuple[Event, ...]) -> None:
        """Build the problem of the first values and stand at its start; `ahead` are changes still to come."""
        self.values = self._values(self.recipe)
        self.ahead = ahead
        self.problem: Problem = self.estimator().problem(self.X)
        self._engine, self._lens = self.problem.engine, self._new_engine()
        # Working coordinates are the map itself: none of these methods has a metric tensor on it.
        self._geometry = self.problem.geometry
        self._start = self._geometry.retract(self._geometry.work(self.problem.Y0))
        self._state = State.start(self._start)
        self._late_from: int | None = None  # the iteration at which early exaggeration ended
        self._sort_objective(self.problem.objective)
        self._take_forces(loss=True)
        self._first = self._loss
        self.history = History(self.frame)
        self.curve = [(0, self._first)]

    def _new_engine(self) -> Engine:
        """Return an engine without a past: what a mesh has seen decides when it checks itself, and so its digits."""
        method = self.estimator()
        return make_engine(self.problem.engine.name, threads(self.n_jobs), method.tol)

    def _values(self, recipe: Recipe) -> dict[str, Value]:
        return {**defaults(recipe.method, len(self.X)), **recipe.values()}

    def estimator(self) -> Method:
        """Return the method with the present values, not fitted."""
        make: Any = METHODS[self.recipe.method].make
        method: Method = make(**self.values, random_state=self.recipe.seed, n_jobs=self.n_jobs)
        return method

    @property
    def iteration(self) -> int:
        return self._state.iteration

    @property
    def late(self) -> bool:
        """Whether early exaggeration is over."""
        return self._late_from is not None

    @property
    def frame(self) -> Frame:
        """The present map."""
        Y = self._state.in_order().view()
        Y.flags.writeable = False
        return Frame(self._state.iteration, self._loss, Y, self._measured)

    def step(self, count: int = 1) -> Frame:
        """Take `count` iterations and return the map; it is kept."""
        try:
            with np.errstate(all="ignore"):  # a diverging run is reported once
                for _ in range(count):
                    self._advance()
        except FloatingPointError as error:
            at = self._state.iteration
            self.rewind(self.history.frames[-1].iteration)
            raise FloatingPointError(f"iteration {at}: {error}; back at iteration {self.iteration}") from None
        frame = self.frame
        self.history.add(frame)
        if self._measured > self.curve[-1][0]:
            self.curve.append((self._measured, frame.loss))
        return frame

    def follow(self) -> None:
        """Make the changes of the recipe that are due at this iteration."""
        while self.ahead and self.ahead[0].iteration <= self._state.iteration:
            event, self.ahead = self.ahead[0], self.ahead[1:]
            self._apply(event.name, event.value)

    def _advance(self) -> None:
        self.follow()
        state, length = self._state, self._objective.kernel.length
        attraction, repulsion, _, stiffness = self._balance
        gradient = -self._geometry.tangent(state.U, attraction + repulsion)
        advance(state, gradient, stiffness, self._geometry, self._phase(), self.rule, length)
        if not np.isfinite(state.U).all():
            raise FloatingPointError("the map has left the range of numbers; lower the learning rate")
        if not self.late and (state.iteration >= Schedule.EARLY or collapsed(state.U, self._start)):
            self._let_go()
        self._take_forces(loss=state.iteration % loss_every(len(self.X)) == 0)

    def _let_go(self) -> None:
        """End early exaggeration, as `optimize.descend` does."""
        state = self._state
        exaggerated = float(self.values["early_exaggeration"]) > float(self.values["exaggeration"])
        if exaggerated and contracted(state.U, self._start) and self._forces(loss=True).loss > NO_GAIN * self._first:
            state.U, state.early_undone = self._start, True
        self._late_from = state.iteration
        if self._engine.gains_from_locality and len(state.U) >= LOCALITY:
            state.order = locality(state.U)
            state.U = state.U[state.order]
        state.rest()
        self._sort_objective(self._plain)

    def _phase(self) -> Phase:
        exaggeration = self.values["exaggeration" if self.late else "early_exaggeration"]
        rate = self.values["learning_rate"]
        return Phase(1, float(exaggeration), None if rate == "auto" else float(rate), self.late)

    def _sort_objective(self, objective: Objective) -> None:
        """Descend this objective from here on, in the order in which the points now are."""
        self._plain, order = objective, self._state.order
        self._objective = objective if order is None else objective.permuted(order)

    def _forces(self, loss: bool) -> Balance:
        exaggeration = self._phase().exaggeration
        return self._objective.balance(self._state.U, self._engine, loss=loss, exaggeration=exaggeration)

    def _take_forces(self, loss: bool) -> None:
        """Take the forces for the next step, and the loss if asked for: their last digits depend on whether it was."""
        self._balance = self._forces(loss)
        if loss:
            self._loss, self._measured = self._balance.loss, self._state.iteration

    def _turn(self, objective: Objective) -> None:
        """Go on from here at rest, under other forces, and as a replay will that knows nothing of what came before."""
        self._sort_objective(objective)
        self._engine, self._lens = self._new_engine(), self._new_engine()
        self._state.rest()
        self._take_forces(loss=True)

    def change(self, name: str, value: Any) -> None:
        """Give a parameter a new value from here on; changes of the recipe that were still to come are dropped."""
        value = check_value(self.recipe.method, name, value)
        self.ahead = ()
        if self.values[name] == value:
            return
        if self.iteration == 0:  # as if it had been the first value: the start may depend on it
            old, self.values = self.values, {**self.values, name: value}
            try:
                self.estimator()._check_parameters()
                self.reset()
            except Exception:
                self.values = old
                raise
        else:
            self._apply(name, value)

    def _apply(self, name: str, value: Value) -> None:
        if name == REST:
            self._turn(self._plain)
        else:
            old, self.values = self.values, {**self.values, name: value}
            try:
                self._adapt(name)
            except Exception:
                self.values = old
                raise
        self.recipe = self.recipe.with_event(Event(self._state.iteration, name, value))

    def _adapt(self, name: str) -> None:
        """Take over the present value of a parameter."""
        method = self.estimator()
        method._check_parameters()
        if PARAMETERS[name].rebuilds:
            self.problem = method.set_params(init=self._state.in_order()).problem(self.X)
        if name != "learning_rate":
            self._turn(method.objective_on(self.problem.affinities))

    def rewind(self, iteration: int) -> Frame:
        """Go back to the last map kept up to an iteration, and go on from there at rest; what came after is lost."""
        frame = self.history.at(iteration)
        if frame.iteration == 0:
            return self.reset()
        values, self.recipe, self.ahead = self.values, self.recipe.until(frame.iteration), ()
        self.values = self._values(self.recipe)
        state = self._state
        if self._late_from is not None and frame.iteration < self._late_from:
            self._late_from, state.order = None, None
        state.U = frame.Y if state.order is None else frame.Y[state.order]
        state.iteration = frame.iteration
        for name in self.values:
            if self.values[name] != values[name]:
                self._adapt(name)
        self._apply(REST, 0.0)
        self.history.cut(frame.iteration)
        self.curve = [point for point in self.curve if point[0] <= frame.iteration]
        return frame

    def reset(self) -> Frame:
        """Go back to the start, with the present values as the first ones."""
        self.recipe = replace(self.recipe, first=tuple(self.values.items()), events=())
        self._begin(())
        return self.frame

    def forces(self, frame: Frame, i: int) -> tuple[Array, Array]:
        """Return attraction and repulsion (d,) on point i of a frame, as they act: with the present exaggeration."""
        exaggeration = self._phase().exaggeration
        balance = self._plain.balance(frame.Y, self._lens, loss=False, exaggeration=exaggeration)
        attraction, repulsion = (self._geometry.pull_back(frame.Y, F)[i] for F in balance[:2])
        return attraction, repulsion

    def pulls(self, i: int, most: int) -> tuple[Array, Array]:
        """Return the points of largest affinity with point i, `most` at most, and the affinities."""
        P = self.problem.affinities
        row = np.asarray(P[[i]].todense() if hasattr(P, "todense") else P[[i]], dtype=np.float64).ravel()
        near = np.argsort(-row, kind="stable")[:most]
        near = near[row[near] > 0]
        return near, row[near]

    def trust(self, frame: Frame) -> Measured:
        """Return the trustworthiness of a frame, with its value at every point, or at a sample of very many."""
        return trustworthiness(self.X, frame.Y, min(NEIGHBORS, len(self.X) - 1), n_jobs=self.n_jobs)
