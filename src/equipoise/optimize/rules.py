"""Optimiser rules: how a gradient becomes a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .. import _core
from .._tags import tagged
from .._types import Array
from ..arrays.namespace import is_tensor
from .state import State


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
            from .step_torch import momentum_step

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
