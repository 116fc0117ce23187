"""The one loop: gradient descent, plain or with momentum and gains, exaggeration, stopping rules and callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from . import _core
from ._tags import tagged
from ._types import Array
from .arrays import full_like, host, is_tensor, like, placed, put_back, spread
from .geometry import Geometry
from .objectives import Balance

# Part of its initial spread below which a map counts as collapsing. Low, because a random start loses its fast modes
# first and shrinks for a while before it opens.
COLLAPSE = 1e-4
# Part of its initial loss above which early exaggeration has gained nothing.
NO_GAIN = 0.999

Callback = Callable[[int, float, Array], Any]  # (iteration, loss, Y); returns True to stop


@dataclass
class State:
    """Where the optimisation stands; complete after every iteration, so an interrupted run loses nothing."""

    U: Array
    velocity: Array
    gain: Array
    origin: Array  # U at the beginning
    phase: int = -1  # the number of the last phase that was begun
    iteration: int = 0
    loss: float = np.nan
    settling: float = np.nan  # loss at the last report of the late phase
    age: int = 0  # steps since the forces last changed
    order: Array | None = None  # U[t] is point order[t]; None: as the points came
    curve: list[tuple[int, float]] = field(default_factory=list)
    stopped: str = "n_iter"  # what ended it: n_iter, min_grad_norm, min_loss_change or callback
    early_undone: bool = False  # early exaggeration only contracted the map, and the late phase began at the start
    due: Array | None = None  # of descents that sample edges: when each pulls next

    def in_order(self) -> Array:
        """Return U in the order in which the points came."""
        return put_back(self.U, self.order)

    def rest(self) -> None:
        """Forget what velocity and gains have learnt: the forces have changed, and it no longer holds."""
        self.velocity, self.gain, self.age = full_like(self.U, 0.0), full_like(self.U, 1.0), 0

    @classmethod
    def start(cls, U: Array) -> State:
        """Return the state at rest in U."""
        return cls(U, full_like(U, 0.0), full_like(U, 1.0), U)

    def plain(self) -> dict[str, Any]:
        """Return everything but the beginning, which whoever goes on from here has too."""
        curve = np.array(self.curve, dtype=np.float64).reshape(-1, 2)
        arrays: dict[str, Any] = {name: host(getattr(self, name)) for name in ("U", "velocity", "gain")}
        arrays["order"] = None if self.order is None else host(self.order)
        return {**{name: value for name, value in vars(self).items() if name != "origin"}, **arrays, "curve": curve}

    def restore(self, plain: dict[str, Any]) -> None:
        """Become the state that `plain` was taken from, after the same beginning."""
        for name in ("U", "velocity", "gain"):
            if plain[name].shape != self.origin.shape:
                raise ValueError(f"{name} has shape {plain[name].shape}, not {self.origin.shape}")
        arrays: dict[str, Any] = {name: like(self.origin, plain[name]) for name in ("U", "velocity", "gain")}
        arrays["order"] = plain["order"] if plain["order"] is None else placed(self.origin, plain["order"])
        curve = [(int(iteration), float(loss)) for iteration, loss in plain["curve"]]
        vars(self).update({**plain, **arrays, "curve": curve})


class Rule(Protocol):
    """How a gradient becomes a step, and when to stop."""

    @property
    def every(self) -> int: ...
    @property
    def min_grad_norm(self) -> float: ...
    @property
    def min_loss_change(self) -> float: ...

    def step(self, state: State, gradient: Array, rate: float, late: bool, length: float) -> Array:
        """Return the displacement for the gradient ∇E, and remember in `state` what the next step needs."""
        ...

    def auto_rate(self, n: int, stiffness: float, length: float) -> float:
        """Return the learning rate "auto" for n points, an objective of this stiffness and a kernel of this length."""
        ...


def _check_every(every: int) -> None:
    if every < 1:
        raise ValueError(f"every must be at least 1 iteration, got {every!r}")


@tagged("optimize.Momentum")
@dataclass(frozen=True)
class Momentum:
    """Momentum with delta-bar-delta gains (Jacobs 1988), as in t-SNE: v ← μ v − (rate/4) · gain · ∇E.

    μ = t/(t + r) after t steps, up to a cap (it grows as in Nesterov 1983; friction r as in Su, Boyd &
    Candès 2016): gentle while the forces are new and large, so that a map let go by early exaggeration is not torn,
    and long-winded later.
    The quarter follows FIt-SNE and openTSNE, whose gradient leaves out the 4 of docs/math.md eq. (1), so that learning
    rates carry over; "auto" is n / stiffness in units of the kernel's length, for t-SNE n / exaggeration (Belkina et
    al. 2019).
    """

    momentum: tuple[float, float] = (0.8, 0.95)  # cap of μ during early exaggeration and after; benchmarks/schedule.py
    friction: float = 10.0  # r; 0 takes the cap at once
    gain_up: float = 0.2  # added while the gradient keeps its direction
    gain_down: float = 0.8  # factor when it turns against the last step
    turned: float = 0.5  # part of that step a push back must reach to count as a turn: the error of a mesh does not
    min_gain: float = 0.01
    max_step: float = 5.0  # longest step of a point, in lengths of the kernel; openTSNE's max_step_norm
    min_grad_norm: float = 1e-7  # stop when ‖∇E‖, per unit of Σ P, falls below
    min_loss_change: float = 1e-5  # stop when the loss changes by less than this part of it in `every` iterations
    every: int = 50  # iterations between evaluations of the loss, callbacks and stopping rules

    def __post_init__(self) -> None:
        _check_every(self.every)
        early_late = self.momentum
        if not (isinstance(early_late, tuple) and len(early_late) == 2 and all(0 <= m < 1 for m in early_late)):
            raise ValueError(f"momentum must be two numbers from 0 to below 1, early and late, got {early_late!r}")
        for name in ("friction", "gain_up", "turned"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)!r}")
        for name in ("gain_down", "min_gain", "max_step"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)!r}")

    def step(self, state: State, gradient: Array, rate: float, late: bool, length: float) -> Array:
        age, state.age = state.age, state.age + 1
        rule: Any = (
            rate / 4,
            self._momentum(age, self.momentum[late]),
            self.gain_up,
            self.gain_down,
            self.turned,
            self.min_gain,
            self.max_step * length,
        )
        if is_tensor(gradient):
            from .device.step import momentum_step

            moved: Any = momentum_step(gradient, state.velocity, state.gain, *rule)  # type: ignore[arg-type]
            state.velocity, state.gain = moved
        else:
            _core.momentum_step(np.ascontiguousarray(gradient, dtype=np.float64), state.velocity, state.gain, *rule)
        return state.velocity

    def _momentum(self, age: Any, cap: float) -> Any:
        """Return μ after so many steps, a number or a tensor."""
        if self.friction == 0:
            return cap
        mu = age / (age + self.friction)
        return mu.clamp(max=cap) if is_tensor(mu) else min(cap, mu)

    def auto_rate(self, n: int, stiffness: float, length: float) -> float:
        return n / stiffness * length**2


@tagged("optimize.GradientDescent")
@dataclass(frozen=True)
class GradientDescent:
    """Plain gradient descent, Y ← Y − rate · ∇E, as in the lecture slides: no momentum, no gains, no cap.

    "auto" is n / (4 · stiffness), for t-SNE n / (4 · exaggeration): the step at which its attraction is just stable.
    """

    min_grad_norm: float = 1e-7
    min_loss_change: float = 1e-5
    every: int = 50

    def __post_init__(self) -> None:
        _check_every(self.every)

    def step(self, state: State, gradient: Array, rate: float, late: bool, length: float) -> Array:
        step: Any = -rate * gradient
        return step.to(state.U.dtype) if is_tensor(step) else step.astype(state.U.dtype)

    def auto_rate(self, n: int, stiffness: float, length: float) -> float:
        return n / stiffness / 4 * length**2


@tagged("optimize.Accelerated")
@dataclass(frozen=True)
class Accelerated:
    """Nesterov's gradient descent (1983), for losses with a known curvature: the gradient is taken ahead of the point.

    x⁺ = y − rate · ∇E(y), y⁺ = x⁺ + μ (x⁺ − x), μ = t/(t + 3) after t steps (Su, Boyd & Candès 2016). When a step goes
    uphill, ⟨∇E, x⁺ − x⟩ > 0, the momentum is dropped and t starts again (O'Donoghue & Candès 2015).
    """

    min_grad_norm: float = 1e-7
    min_loss_change: float = 0.0  # the loss may stand still near a saddle; the gradient alone says when it is over
    every: int = 10

    def __post_init__(self) -> None:
        _check_every(self.every)

    def step(self, state: State, gradient: Array, rate: float, late: bool, length: float) -> Array:
        descent = -rate * gradient
        ahead = state.velocity + descent  # x⁺ − x; the velocity is y − x
        state.age = 0 if float((gradient * ahead).sum()) > 0 else state.age + 1
        state.velocity = ahead * (state.age / (state.age + 3))
        return descent + state.velocity

    def auto_rate(self, n: int, stiffness: float, length: float) -> float:
        return n / stiffness / 4 * length**2


@dataclass(frozen=True)
class Phase:
    """A stretch of iterations at one exaggeration (the factor on P in the attraction) and learning rate."""

    n_iter: int
    exaggeration: float
    rate: float | None  # None: the rule's own, from the stiffness at each map
    late: bool


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
