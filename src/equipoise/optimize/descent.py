"""The one loop: gradient descent, plain or with momentum and gains, exaggeration, stopping rules and callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._types import Array, Callback
from ..arrays.namespace import spread
from ..geometry import Geometry
from ..objectives import Balance
from .rules import Rule
from .schedule import Phase
from .state import State

# Part of its initial spread below which a map counts as collapsing. Low, because a random start loses its fast modes
# first and shrinks for a while before it opens.
COLLAPSE = 1e-4
# Part of its initial loss above which early exaggeration has gained nothing.
NO_GAIN = 0.999


Hasten = Callable[[Callable[[State], None], Phase, State, int, float], int]


def descend(
    balance: Callable[[Array, float, bool], Balance],
    geometry: Geometry,
    state: State,
    phases: Sequence[Phase],
    rule: Rule,
    length: float,
    mass: float,
    callbacks: Sequence[Callback],
    sort: Callable[[Array], Array | None] = lambda U: None,
    keep: Callable[[int], None] = lambda iteration: None,
    hasten: Hasten = lambda step, phase, state, count, least: 0,
    strides: Sequence[int] = (),
) -> None:
    """Move state.U downhill through the phases, updating `state` in place after every iteration.

    `sort` is asked once, when the map has found its shape, for an order of the points in which to go on. `keep` is
    called after every iteration that is a multiple of one of the `strides`; from the state that it finds then, a later
    run goes on as this one does. `hasten` may take steps at once that nobody looks at.
    """
    end, start = 0, state.origin
    for number, phase in enumerate(phases):
        end += phase.n_iter
        if number < state.phase:
            continue
        begins, state.phase = number > state.phase, number
        if begins and phase.late:
            state.rest()
            # Exaggeration beyond what the data bears (no clusters, few points) contracts the map towards a point. Then
            # the late phase begins where the early one did, with the iterations that are left.
            exaggerated = phases[0].exaggeration > phase.exaggeration
            if exaggerated and contracted(state.U, start):
                first = state.curve[0][1]
                if balance(state.U, 1.0, True).loss > NO_GAIN * first:
                    state.U, state.early_undone = start, True
            if (order := sort(state.U)) is not None:
                state.U, state.order = state.U[order], order

        def step(state: State, phase: Phase = phase) -> None:
            attraction, repulsion, _, stiffness = balance(state.U, phase.exaggeration, False)
            gradient = -geometry.tangent(state.U, attraction + repulsion)
            advance(state, gradient, stiffness, geometry, phase, rule, length)

        # A map whose widest side is longer has not collapsed: of n points at least two are at its ends.
        least = 0.0 if phase.late else COLLAPSE * spread(start) * (2 * len(start)) ** 0.5
        while state.iteration < end:
            if not phase.late and collapsed(state.U, start):
                break
            report = state.iteration % rule.every == 0
            attraction, repulsion, loss, stiffness = balance(state.U, phase.exaggeration, report)
            gradient = -geometry.tangent(state.U, attraction + repulsion)
            if report and _finished(state, loss, gradient, mass, length, rule, phase.late, callbacks):
                return
            advance(state, gradient, stiffness, geometry, phase, rule, length)
            ahead = min([end, *(_next(state.iteration, stride) for stride in (rule.every, *strides))]) - state.iteration
            if ahead > 0:
                hasten(step, phase, state, ahead, least)
            keep(state.iteration)
    record(state, float(balance(state.U, 1.0, True).loss), callbacks)


def _next(iteration: int, stride: int) -> int:
    """Return the first multiple of a stride at or after an iteration."""
    return -(-iteration // stride) * stride


def advance(
    state: State, gradient: Array, stiffness: float, geometry: Geometry, phase: Phase, rule: Rule, length: float
) -> None:
    """Take one step of a phase against the gradient at state.U."""
    rate = rule.auto_rate(len(gradient), stiffness, length) if phase.rate is None else phase.rate
    U = geometry.retract(state.U + rule.step(state, gradient, rate, phase.late, length))
    state.velocity = geometry.tangent(U, state.velocity)
    state.U, state.iteration = U, state.iteration + 1


def collapsed(U: Array, start: Array) -> bool:
    """Return whether a map has shrunk so far that early exaggeration must end."""
    return spread(U) < COLLAPSE * spread(start)


def contracted(U: Array, start: Array) -> bool:
    """Return whether a map has shrunk below half of its initial spread."""
    return spread(U) < spread(start) / 2


def record(state: State, loss: float, callbacks: Sequence[Callback]) -> bool:
    """Keep the loss and tell every callback; True when one of them wants to stop."""
    if not np.isfinite(loss):
        cause = "the learning rate is too large for this data" if state.iteration else "the initial map is out of range"
        raise FloatingPointError(f"the loss is {loss} at iteration {state.iteration}: {cause}")
    state.loss = loss
    state.curve.append((state.iteration, loss))
    return any([callback(state.iteration, loss, state.in_order()) for callback in callbacks])


def _finished(
    state: State,
    loss: float,
    gradient: Array,
    mass: float,
    length: float,
    rule: Rule,
    late: bool,
    callbacks: Sequence[Callback],
) -> bool:
    """Record the loss at this iteration and apply the stopping rules, which wait for the late phase."""
    loss = float(loss)
    settled = late and abs(state.settling - loss) < rule.min_loss_change * abs(loss)
    state.settling = loss if late else np.nan
    if record(state, loss, callbacks):
        state.stopped = "callback"
    elif late and float((gradient**2).sum()) ** 0.5 * length < rule.min_grad_norm * mass:
        state.stopped = "min_grad_norm"
    elif settled:
        state.stopped = "min_loss_change"
    else:
        return False
    return True
