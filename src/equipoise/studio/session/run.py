"""A live run: it advances a few iterations at a time, its parameters can be changed, and it can be rewound."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from ..._types import Array, Callback
from ...arrays.namespace import unpermute
from ...engines import Engine, make_engine
from ...methods.estimator import threads
from ...objectives import Objective
from ...optimize.descent import State
from ...optimize.gradient_steps import EngineForces, GradientSteps
from ...optimize.rules import Phase, Schedule
from ...problems.forces import ForceProblem
from .history import Frame, History
from .method_run import MethodRun
from .parameters import METHODS, OPTIMIZERS, PARAMETERS, Value, check_value
from .recipe import RESET_MOMENTUM, Event, Recipe

# Above this number of points, the loss shown is evaluated only every 10 iterations, because its evaluation takes longer
# than an iteration.
LARGE_N, LARGE_N_EVERY = 5_000, 10


def loss_every(n: int) -> int:
    """Return the minimum number of iterations between two losses that the studio shows, for n points."""
    return 1 if n <= LARGE_N else LARGE_N_EVERY


class LiveSteps(GradientSteps):
    """Gradient steps that do not stop: any loss is accepted, but a map that is not finite raises an error.

    `settled` is the iteration at which the stopping rules of the optimiser first applied; None if they did not yet.
    """

    settled: int | None = None

    def start_progress(self, n_iter: int, done: int) -> list[Callback]:
        """Return no callbacks: the titles of the maps show the iteration."""
        return []

    def check_loss(self, state: State, loss: float) -> None:
        """Accept any loss, even NaN or inf."""

    def stop_reason(self, state: State) -> str | None:
        if super().stop_reason(state) is not None and self.settled is None:
            self.settled = state.iteration
        return None

    def move(self, state: State) -> bool:
        moved = super().move(state)
        self._check_map(state)
        return moved

    def skip_ahead(self, state: State, last: int) -> None:
        before = state.iteration
        super().skip_ahead(state, last)
        if state.iteration > before:
            self._check_map(state)

    def _check_map(self, state: State) -> None:
        if not np.isfinite(state.U).all():
            raise FloatingPointError("the map contains NaN or inf; lower the learning rate")


class Run(MethodRun):
    """A run of a method on a table X (n, D), advanced by calls of `step`.

    As long as no parameter is changed, the map at iteration n, from 200 on, equals that of the estimator with n_iter=n,
    byte for byte. Unlike the estimator, a run does not stop by itself. The losses shown come from a separate engine,
    because the last digits of the forces depend on when the loss is evaluated with them.

    A change of the kernel or of the exaggeration takes effect at the next iteration, and a change of the perplexity
    or of the number of neighbours after a new neighbour search. Each of these changes resets the momentum, because the
    forces differ. The attribute `recipe` records the changes; a new run with this recipe gives the same maps.

    Parameters
    ----------
    X : ndarray of shape (n, D), or Arrow table of columns of every kind
    recipe : Recipe, optional
        Method, values, seed and changes; t-SNE by default.
    n_jobs : int, optional
        Number of threads; by default all cores, or OMP_NUM_THREADS if that is fewer.
    """

    iterates = True

    def __init__(self, X: Array, recipe: Recipe | None = None, n_jobs: int | None = None):
        initial = Recipe() if recipe is None else recipe
        choice = METHODS[initial.method]
        if not choice.iterates:
            raise ValueError(f"{choice.title} has no iterations; use equipoise.{choice.make.__name__} instead of Run")
        super().__init__(X, replace(initial, events=()), n_jobs)
        self.rule = OPTIMIZERS[initial.optimizer].rule()
        self._begin(initial.events)

    def _begin(self, upcoming: tuple[Event, ...]) -> None:
        """Build the problem for the initial values and start at its initial map.

        `upcoming` lists the changes that are applied when the run reaches their iterations.
        """
        self.values = self._values(self.recipe)
        self.upcoming = upcoming
        self.problem: ForceProblem = self.estimator().problem(self.X)
        self._inspector = (
            self._new_engine()
        )  # a separate engine for the displayed forces and losses, so that showing them does not affect the run
        # Working coordinates are the map itself: none of these methods has a metric tensor on the map.
        self._geometry, self._objective = self.problem.geometry, self.problem.objective
        self._descent = self.problem.descent(sys.maxsize)
        self._descent.replace_steps(self._steps(self._state, self.problem.engine))
        self.late_from: int | None = None  # the iteration at which early exaggeration ended
        self.settled: int | None = None  # the iteration at which an estimator would have stopped
        self.energy: list[tuple[int, float, float]] = []  # iteration, kinetic and potential energy; empty without mass
        self._prepare()
        self._measure()
        self.history = History(self.frame)
        self.curve = [(0, self._loss)]

    def _steps(self, state: State, engine: Engine) -> LiveSteps:
        forces = EngineForces(self._objective, engine, state.order)
        return LiveSteps(forces, self._geometry, self.rule, self._phases())

    def _phases(self) -> list[Phase]:
        """Return the phases with early and with late exaggeration, for the current values; the late one has no end."""
        rate, early, late = (self.values[name] for name in ("learning_rate", "early_exaggeration", "exaggeration"))
        schedule = Schedule(sys.maxsize, rate, float(early), float(late))
        return schedule.phases(schedule.n_iter)

    def _new_engine(self) -> Engine:
        """Return a new engine, to be used after each change of the forces, so that a replay gives the same bytes.

        A mesh engine (forces by FFT on a mesh) checks its error from time to time. The time of the next check depends
        on earlier evaluations, and the last digits of the forces depend on the checks.
        """
        method, name = self.estimator(), self.problem.engine.traits.name
        return make_engine(name, threads(self.n_jobs), method.tol, pairs=self.problem.geometry.pairs)

    @property
    def _state(self) -> State:
        return self._descent.state

    @property
    def _live_steps(self) -> LiveSteps:
        steps = self._descent.steps
        assert isinstance(steps, LiveSteps)
        return steps

    @property
    def iteration(self) -> int:
        return self._state.iteration

    @property
    def late(self) -> bool:
        """Whether early exaggeration is over."""
        return self.late_from is not None

    @property
    def early_undone(self) -> bool:
        """Whether early exaggeration only contracted the map, so that the next phase started from the initial map."""
        return self._state.early_undone

    @property
    def frame(self) -> Frame:
        """The current map as a frame."""
        Y = self._state.in_order().view()
        Y.flags.writeable = False
        return Frame(self._state.iteration, self._loss, Y, self._measured)

    def step(self, count: int = 1) -> Frame:
        """Take `count` iterations, pass the resulting frame to the history, and return the frame.

        If the map becomes NaN or inf, rewind to the last stored frame and raise FloatingPointError.
        """
        try:
            with np.errstate(all="ignore"):  # a diverging run raises one error instead
                goal = self.iteration + count
                while self.iteration < goal:
                    self.apply_due_changes()
                    self._descent.run(min(goal, self.upcoming[0].iteration) if self.upcoming else goal)
                    self._prepare()
                if self.iteration - self._measured >= loss_every(len(self.X)):
                    self._measure()
        except FloatingPointError as error:
            at = self._state.iteration
            self.rewind(self.history.frames[-1].iteration)
            raise FloatingPointError(f"iteration {at}: {error} (returned to iteration {self.iteration})") from None
        frame = self.frame
        self.history.add(frame)
        if self._measured > self.curve[-1][0]:
            self.curve.append((self._measured, frame.loss))
        return frame

    def apply_due_changes(self) -> None:
        """Apply the changes of the recipe that are due at this iteration."""
        while self.upcoming and self.upcoming[0].iteration <= self._state.iteration:
            event, self.upcoming = self.upcoming[0], self.upcoming[1:]
            self._apply(event.name, event.value)

    def _prepare(self) -> None:
        """Evaluate the forces for the next step, after a change of phase if one is due."""
        self._descent.evaluate()
        if self._state.phase > 0 and self.late_from is None:
            self.late_from = self._state.iteration
        if self.settled is None:
            self.settled = self._live_steps.settled

    def _measure(self) -> None:
        """Evaluate the loss, and the kinetic energy of points with mass, with the separate engine."""
        state = self._state
        velocity, gain = (unpermute(values, state.order) for values in (state.velocity, state.gain))
        state = replace(state, U=state.in_order(), velocity=velocity, gain=gain, order=None)
        steps = GradientSteps(EngineForces(self._objective, self._inspector), self._geometry, self.rule, self._phases())
        with np.errstate(all="ignore"):  # an infinite loss is shown
            self._loss, self._measured = steps.evaluate(state, loss=True), state.iteration
            kinetic = steps.kinetic_energy(state)
        if kinetic is not None:
            self.energy = [row for row in self.energy if row[0] < state.iteration]
            self.energy.append((state.iteration, kinetic, self._loss))

    def _replace_forces(self, objective: Objective) -> None:
        """Continue with the forces of another objective; as in a replay, reset the momentum and use new engines."""
        self._objective = objective
        self._inspector = self._new_engine()
        self._descent.replace_steps(self._steps(self._state, self._new_engine()))
        self._state.reset_momentum()
        self._prepare()
        self._measure()

    def change(self, name: str, value: Any) -> None:
        """Set a parameter from the current iteration on; later changes in the recipe are dropped."""
        value = check_value(self.recipe.method, name, value)
        self.upcoming = ()
        if self.values[name] == value:
            return
        if self.iteration == 0:  # restart with it as the initial value: the initial map may depend on it
            old, self.values = self.values, {**self.values, name: value}
            try:
                self.estimator().check_parameters()
                self.reset()
            except Exception:
                self.values = old
                raise
        else:
            self._apply(name, value)

    def _apply(self, name: str, value: Value) -> None:
        if name == RESET_MOMENTUM:
            self._replace_forces(self._objective)
        else:
            old, self.values = self.values, {**self.values, name: value}
            try:
                self._adapt(name)
            except Exception:
                self.values = old
                raise
        self.recipe = self.recipe.with_event(Event(self._state.iteration, name, value))

    def _adapt(self, name: str) -> None:
        """Apply the current value of a parameter to the problem and the steps."""
        method = self.estimator()
        method.check_parameters()
        if PARAMETERS[name].rebuilds:
            self.problem = method.set_params(init=self._state.in_order()).problem(self.X)
        if name != "learning_rate":
            self._replace_forces(method.objective_on(self.problem.affinities))
        else:
            self._descent.replace_steps(self._live_steps.with_phases(self._phases()))

    def rewind(self, iteration: int) -> Frame:
        """Go back to the last stored frame at or before an iteration, and return that frame.

        The momentum is reset. Later frames are dropped, and so are the changes made at or after the frame. If the frame
        is the initial map, however, the parameters keep their current values, as in `reset`.
        """
        frame = self.history.at(iteration)
        if frame.iteration == 0:
            return self.reset()
        values, self.recipe, self.upcoming = self.values, self.recipe.until(frame.iteration), ()
        self.values = self._values(self.recipe)
        state = self._state
        phase = state.phase
        if self.late_from is not None and frame.iteration < self.late_from:
            self.late_from, phase = None, 0
        state.rewind(frame.Y, frame.iteration, phase)
        self._descent.set_state(state)
        for name in self.values:
            if self.values[name] != values[name]:
                self._adapt(name)
        self._apply(RESET_MOMENTUM, 0.0)
        self.history.cut(frame.iteration)
        self.curve = [point for point in self.curve if point[0] <= frame.iteration]
        self.energy = [row for row in self.energy if row[0] <= frame.iteration]
        return frame

    def reset(self) -> Frame:
        """Go back to the initial map, with the current values of the parameters as initial values."""
        self.recipe = replace(self.recipe, first=tuple(self.values.items()), events=())
        self._begin(())
        return self.frame

    def forces(self, frame: Frame, i: int) -> tuple[Array, Array]:
        """Return attraction and repulsion (d,) on point i of a frame, with the current exaggeration."""
        exaggeration = float(self.values["exaggeration" if self.late else "early_exaggeration"])
        balance = self._objective.balance(frame.Y, self._inspector, loss=False, exaggeration=exaggeration)
        attraction, repulsion = (self._geometry.pull_back(frame.Y, F)[i] for F in balance[:2])
        return attraction, repulsion

    def pulls(self, i: int, count: int) -> tuple[Array, Array]:
        """Return up to `count` points with the largest positive affinities to point i, and these affinities."""
        P = self.problem.affinities
        row = np.asarray(P[[i]].todense() if hasattr(P, "todense") else P[[i]], dtype=np.float64).ravel()
        near = np.argsort(-row, kind="stable")[:count]
        near = near[row[near] > 0]
        return near, row[near]
