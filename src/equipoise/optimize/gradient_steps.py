"""Takes gradient steps, with forces from an objective and an engine, phases of exaggeration, and stopping rules."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from copy import copy
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._plural import plural
from .._types import Array
from ..arrays.csr import on_threads
from ..arrays.namespace import morton_order, to_numpy
from ..engines import Engine
from ..engines.base import HasLinearForce, LinearForce, PointSums, StepPlan
from ..geometry import Geometry
from ..objectives import Objective
from .descent import State, Steps
from .dynamics import Dynamics
from .rules import Momentum, Phase, Rule, remaining_gain

# Fraction of the initial spread below which a map counts as collapsed; chosen. Low, because a map from a random start
# first loses its fast modes and shrinks for a while before it expands.
COLLAPSE = 1e-4
# Fraction of the initial loss above which early exaggeration has gained nothing; chosen.
NO_GAIN = 0.999
LOCALITY = 4096  # points in 2-D that fit in a first-level cache of 32 KiB: fewer need no sorting


class Force(NamedTuple):
    """The force on each point, the loss, and the stiffness, from which a rule computes its automatic learning rate."""

    total: Array  # (n, d): attraction + repulsion
    loss: float  # NaN unless requested
    stiffness: float  # a scale of the curvature of the loss, for most losses exaggeration · Σ P


class Forces(Protocol):
    """Computes the forces for gradient steps; implemented by `EngineForces` and by `FrozenForces` (placement.py)."""

    length: float  # length scale of the kernel
    mass: float  # Σ P, the scale of the gradient
    sums: PointSums

    def at(self, U: Array, exaggeration: float, loss: bool) -> Force:
        """Return the force on each point at U (n, d), the loss (can be NaN if `loss` is False) and the stiffness."""
        ...

    def linear_force(self, exaggeration: float) -> LinearForce | None:
        """Return the force in numbers, if it has the form that an engine can compute by itself."""
        ...

    def sort(self, U: Array) -> Array | None:
        """Sort the points for speed and return their new order; None if the order does not change."""
        ...

    def replay(self, step: Callable[[State], None], phase: Phase, state: State, count: int, min_width: float) -> None:
        """Let the engine take up to `count` steps in one call; take none if it cannot.

        Stop when the map becomes narrower than `min_width`.
        """
        ...


class EngineForces:
    """Computes the forces of an objective with an engine; `order`, if given, is the order of the points in U."""

    def __init__(self, objective: Objective, engine: Engine, order: Array | None = None):
        self.engine, self.sums = engine, engine.placement.sums
        self.length, self.mass = objective.kernel.length, objective.mass
        self._input_order = objective.to(engine.placement)
        self.objective = self._input_order if order is None else self._input_order.permuted(order)

    def at(self, U: Array, exaggeration: float, loss: bool) -> Force:
        balance = self.objective.balance(U, self.engine, loss=loss, exaggeration=exaggeration)
        return Force(balance.attraction + balance.repulsion, balance.loss, balance.stiffness)

    def linear_force(self, exaggeration: float) -> LinearForce | None:
        return self.objective.linear_force(exaggeration) if isinstance(self.objective, HasLinearForce) else None

    def sort(self, U: Array) -> Array | None:
        """Sort the points in Morton order, so that neighbours in the map are close in memory, and return the order.

        Return None, without sorting, if this does not make the engine faster, or if the map has fewer than LOCALITY
        points or more than 3 dimensions.
        """
        if not self.engine.traits.gains_from_locality or len(U) < LOCALITY or U.shape[1] > 3:
            return None
        order = morton_order(U)
        with on_threads(getattr(self.engine, "n_threads", 1)):
            self.objective = self._input_order.permuted(order)
        return order

    def replay(self, step: Callable[[State], None], phase: Phase, state: State, count: int, min_width: float) -> None:
        self.engine.stepper.replay_steps(step, (self.objective, phase), state, count, min_width)


class GradientSteps(Steps[State]):
    """Takes the steps of an optimiser rule against the gradient, in phases that differ in exaggeration.

    Parameters
    ----------
    forces : Forces
    geometry : Geometry
        Geometry of the space that contains the map.
    rule : Rule
        How a gradient becomes a step, and when to stop.
    phases : sequence of Phase
    """

    centred = True  # the map may be centred after each step

    def __init__(self, forces: Forces, geometry: Geometry, rule: Rule, phases: Sequence[Phase]):
        self.forces, self.geometry, self.rule, self.phases = forces, geometry, rule, phases
        self.ends = list(accumulate(phase.n_iter for phase in phases))
        self._dynamics = rule if isinstance(rule, Dynamics) else None
        self._evaluated: tuple[Array, float, float] | None = None  # gradient, loss, stiffness at the current state
        self._has_loss = False  # whether they were evaluated with the loss
        self._min_width: tuple[int, float] = -1, 0.0  # phase and its minimum width, for replayed steps

    def with_phases(self, phases: Sequence[Phase]) -> GradientSteps:
        """Return the same steps with other learning rates or phase lengths; the evaluated forces are reused."""
        other = copy(self)
        other.phases, other.ends = phases, list(accumulate(phase.n_iter for phase in phases))
        return other

    @property
    def late_from(self) -> int:  # type: ignore[override]
        if self._dynamics is not None and self._dynamics.conserves_energy:
            return sys.maxsize  # nothing can be extrapolated: the loss rises and falls
        return self.ends[-2] if len(self.ends) > 1 else 0

    def phase(self, state: State) -> Phase:
        return self.phases[max(state.phase, 0)]

    def phase_at(self, iteration: int) -> int:
        """Return the index of the phase planned for an iteration; after the end of the schedule, the last index."""
        return min(bisect_right(self.ends, iteration), len(self.phases) - 1)

    def prepare(self, state: State) -> None:
        if self._evaluated is not None:  # this iteration is already prepared
            return
        if state.phase < 0:
            self._enter(state, 0)
        while state.phase + 1 < len(self.phases) and self._is_over(state):
            self._enter(state, state.phase + 1)

    def _is_over(self, state: State) -> bool:
        if self.phase_at(state.iteration) > state.phase:
            return True
        return not self.phase(state).late and self._is_narrower(state, COLLAPSE)

    def _is_narrower(self, state: State, fraction: float) -> bool:
        """Return whether the spread of the map is below this fraction of its initial spread."""
        return self.forces.sums.spread(state.U) < fraction * self.forces.sums.spread(state.origin)

    def _enter(self, state: State, number: int) -> None:
        state.phase = number
        if self.phases[number].late:
            self._end_exaggeration(state)

    def _end_exaggeration(self, state: State) -> None:
        """Reset the momentum, undo an early phase that only contracted the map, and sort the points.

        If the forces do not change, `Dynamics` keeps its velocities. Too much exaggeration for the
        data (no clusters, few points) contracts the map towards a point. The late phase then starts from the initial
        map, with the remaining iterations.
        """
        before, after = self.phases[0].exaggeration, self.phase(state).exaggeration
        if before != after or self._dynamics is None:
            state.reset_momentum()
        exaggerated = before > after
        if exaggerated and self._is_narrower(state, 0.5):
            first = state.curve[0][1]
            if self.forces.at(state.U, 1.0, True).loss > NO_GAIN * first:
                state.U, state.early_undone = state.origin, True
        if (order := self.forces.sort(state.U)) is not None:
            state.U, state.velocity, state.gain = state.U[order], state.velocity[order], state.gain[order]
            state.order = order

    def is_report_due(self, state: State, n_iter: int) -> bool:
        return state.iteration < n_iter and state.iteration % self.rule.every == 0

    def evaluate(self, state: State, loss: bool) -> float:
        if self._evaluated is None or (loss and not self._has_loss):
            self._evaluated, self._has_loss = self._gradient(state, self.phase(state), loss), loss
        return float(self._evaluated[1]) if loss else np.nan

    def _gradient(self, state: State, phase: Phase, loss: bool) -> tuple[Array, float, float]:
        force = self.forces.at(state.U, phase.exaggeration, loss)
        return -self.geometry.tangent(state.U, force.total), force.loss, force.stiffness

    def on_report(self, state: State) -> None:
        """Record the energies, if the rule is `Dynamics`."""
        if (kinetic := self.kinetic_energy(state)) is not None:
            state.energy.append((state.iteration, kinetic, state.loss))

    def kinetic_energy(self, state: State) -> float | None:
        """Return the kinetic energy of the points; None unless the rule is `Dynamics`."""
        if self._dynamics is None:
            return None
        self.evaluate(state, loss=False)
        assert self._evaluated is not None
        gradient, _, stiffness = self._evaluated
        rate = self._rate(stiffness, self.phase(state), self.forces.sums.count(gradient))
        return self._dynamics.kinetic_energy(state, gradient, rate)

    def _rate(self, stiffness: float, phase: Phase, n: int) -> float:
        return self.rule.auto_rate(n, stiffness, self.forces.length) if phase.rate is None else phase.rate

    def check_loss(self, state: State, loss: float) -> None:
        if not np.isfinite(loss):
            late = "the learning rate is too large for this data; set a lower learning_rate"
            cause = late if state.iteration else "the initial map is out of range; divide it by a constant"
            raise FloatingPointError(f"the loss is {loss} at iteration {state.iteration}: {cause}")

    def check_result(self, state: State) -> None:
        if not self.forces.sums.all_finite(state.U):
            raise FloatingPointError(
                f"the map contains NaN or inf after {plural(state.iteration, 'iteration')}: the forces are out of"
                " range; use a smaller learning_rate, or less extreme exaggeration and parameters of the kernel"
            )

    def stop_reason(self, state: State) -> str | None:
        """Return the name of the stopping rule that applies, or None; in the early phase no rule applies."""
        if not self.phase(state).late:
            state.settling = np.nan
            return None
        assert self._evaluated is not None
        gradient, rule = self._evaluated[0], self.rule
        settled = abs(state.settling - state.loss) < rule.min_loss_change * abs(state.loss)
        state.settling = state.loss
        if self.forces.sums.squared_norm(gradient) ** 0.5 * self.forces.length < rule.min_grad_norm * self.forces.mass:
            return "min_grad_norm"
        if self._is_converged(state):
            return "remaining_gain"
        return "min_loss_change" if settled else None

    def _is_converged(self, state: State) -> bool:
        """Return whether the remaining gain was below the gap of the phase at the last two reports."""
        gap, start = self.phase(state).gap, self.late_from
        return all(remaining_gain(curve, start) < gap for curve in (state.curve, state.curve[:-1])) if gap else False

    def move(self, state: State) -> bool:
        self.evaluate(state, loss=False)
        assert self._evaluated is not None
        gradient, _, stiffness = self._evaluated
        self._advance(state, gradient, stiffness, self.phase(state))
        self._evaluated = None
        return True

    def _advance(self, state: State, gradient: Array, stiffness: float, phase: Phase) -> None:
        """Take one step of a phase against the gradient at state.U."""
        rate = self._rate(stiffness, phase, self.forces.sums.count(gradient))
        step = self.rule.step(state, gradient, rate, phase.late, self.forces.length)
        state.U, state.velocity = self.geometry.move(state.U, step, state.velocity, centred=self.centred)
        state.iteration += 1

    def skip_ahead(self, state: State, last: int) -> None:
        every = self.rule.every
        report = -(-state.iteration // every) * every
        count = min(last, self.ends[state.phase], report) - state.iteration
        if count <= 0 or not getattr(self.rule, "replayable", False):  # other rules inspect each step
            return
        phase = self.phase(state)
        self.forces.replay(_PhaseStep(self, phase), phase, state, count, self._width_before_collapse(state))

    def take_step(self, state: State, phase: Phase) -> None:
        """Take one step of a phase, without reports or stopping rules."""
        gradient, _, stiffness = self._gradient(state, phase, loss=False)
        self._advance(state, gradient, stiffness, phase)

    def plan(self, state: State, phase: Phase, count: int) -> StepPlan | None:
        """Return `count` steps of a phase in numbers; None unless they are steps of `Momentum` in flat space."""
        rule, force = self.rule, self.forces.linear_force(phase.exaggeration)
        if not isinstance(rule, Momentum) or type(rule).step is not Momentum.step:  # a subclass may step otherwise
            return None
        if force is None or not self.geometry.centred_flat or not self.centred:
            return None
        rate = self._rate(force.stiffness, phase, self.forces.sums.count(state.U))
        return rule.plan(state, count, force, rate, phase.late, self.forces.length)

    def _width_before_collapse(self, state: State) -> float:
        """Return a width above which the map cannot have collapsed (0 in the late phase).

        In a map of width w, the two outermost points alone make the standard deviation at least w/√(2n).
        """
        if self._min_width[0] != state.phase:
            sums, late = self.forces.sums, self.phase(state).late
            width = 0.0 if late else COLLAPSE * sums.spread(state.origin) * (2 * sums.count(state.origin)) ** 0.5
            self._min_width = state.phase, width
        return self._min_width[1]

    def final_loss(self, state: State) -> float | None:
        return float(self.forces.at(state.U, 1.0, True).loss)

    def current_map(self, state: State) -> Array:
        Y = to_numpy(self.geometry.map(state.in_order())).view()
        Y.flags.writeable = False
        return Y

    def forget(self) -> None:
        self._evaluated = None


class _PhaseStep:
    """One step of a phase; a `PlannedStep` for engines."""

    def __init__(self, steps: GradientSteps, phase: Phase):
        self._steps, self._phase = steps, phase

    def __call__(self, state: Any) -> None:
        self._steps.take_step(state, self._phase)

    def plan(self, state: Any, count: int) -> StepPlan | None:
        return self._steps.plan(state, self._phase, count)
