"""Optimiser rules, which turn gradients into steps; schedules of iterations, exaggeration and learning rate; and the
estimate of what further iterations would gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from .. import _core
from .._tags import tagged
from .._types import Array
from ..arrays.namespace import array_namespace, at_most, is_auto, is_finite, is_integer, is_tensor
from ..engines.base import LinearForce, StepPlan

if TYPE_CHECKING:
    from .descent import State


GAP = 0.01  # n_iter="auto" ends a descent when its remaining gain is below this fraction of the loss; chosen
MAX_ITER = 5000  # n_iter="auto" ends a descent after as many iterations at the latest; chosen
WINDOW = 0.25  # fraction of the iterations over which the present decrease of the loss is measured; chosen
ROUNDING = 1e-3  # a loss below this fraction of its total decrease counts as this fraction; chosen


def remaining_gain(curve: Sequence[tuple[int, float]], start: int = 0) -> float:
    """Return how much further iterations would lower the loss at most, as a fraction of the loss.

    The loss E is taken to approach its limit as 1/t after t iterations, like the bound for gradient descent on convex
    functions (Nesterov 2004, section 2.1.5). If t' iterations had the loss E', the limit is then below E by
    (E' − E) · t'/(t − t') (docs/math.md, eq. (R1)). t' is the last report in the first three quarters.
    For t-SNE, from 300 iterations on, it was 1 to 3 times the decrease that followed (benchmarks/convergence.py).

    Parameters
    ----------
    curve : sequence of (iteration, loss)
        The reports of a descent.
    start : int, default=0
        The iteration from which t is counted; earlier reports, such as those of early exaggeration, are ignored.

    Returns
    -------
    gain : float
        0 if the loss does not decrease; infinite if there are too few reports after `start` to tell, and NaN if there
        are none.
    """
    late = [(iteration - start, loss) for iteration, loss in curve if iteration > start]
    if not late:
        return np.nan
    t, loss = late[-1]
    before = [report for report in late if report[0] <= (1 - WINDOW) * t]
    if not before:
        return np.inf
    earlier, higher = before[-1]
    scale = max(abs(loss), ROUNDING * (late[0][1] - loss), np.finfo(float).tiny)
    return float(max(higher - loss, 0.0) * earlier / (t - earlier) / scale)


@dataclass(frozen=True)
class Phase:
    """A series of iterations with the same exaggeration (the factor on P in the attraction) and learning rate."""

    n_iter: int
    exaggeration: float
    rate: float | None  # None: automatic, computed by the rule from the stiffness at each step
    late: bool
    gap: float = 0.0  # the descent ends when its remaining gain is below this fraction of the loss; 0: not by this rule


@dataclass(frozen=True)
class Schedule:
    """The plan of a descent: number of iterations, exaggeration and learning rate (a number or "auto")."""

    n_iter: int
    learning_rate: float | str
    early_exaggeration: float
    exaggeration: float

    EARLY = 100  # iterations of early exaggeration, at most half of all; more gain nothing (benchmarks/schedule.py)

    def phases(self, n_iter: int) -> list[Phase]:
        """Return the early and the late phase of a descent of `n_iter` iterations."""
        early = min(self.EARLY, n_iter // 2)
        rate = None if isinstance(self.learning_rate, str) else self.learning_rate
        return [
            Phase(early, self.early_exaggeration, rate, late=False),
            Phase(n_iter - early, self.exaggeration, rate, late=True),
        ]


@dataclass(frozen=True)
class UntilConverged(Schedule):
    """A schedule that ends when the remaining gain is below the fraction `gap` of the loss, or after `n_iter`."""

    gap: float = GAP

    def phases(self, n_iter: int) -> list[Phase]:
        early, late = super().phases(n_iter)
        return [early, replace(late, gap=self.gap)]


@dataclass(frozen=True)
class Steady(Schedule):
    """A schedule with a single phase, without exaggeration; by default the rule computes the learning rate."""

    learning_rate: float | str = "auto"
    early_exaggeration: float = 1.0
    exaggeration: float = 1.0

    def phases(self, n_iter: int) -> list[Phase]:
        return [Phase(n_iter, 1.0, None if isinstance(self.learning_rate, str) else self.learning_rate, late=True)]


def check_n_iter(n_iter: Any, others: str = "") -> int:
    """Return n_iter as an int; raise if it is not a non-negative integer. `others` names other values it may have."""
    if not is_integer(n_iter):
        raise ValueError(f"n_iter must be an integer{others}, got {n_iter!r}")
    if n_iter < 0:
        raise ValueError(f"n_iter must not be negative, got {n_iter}")
    return int(n_iter)


def make_schedule(n_iter: Any, learning_rate: float | str, early: float, late: float) -> Schedule:
    """Return the schedule for n_iter iterations, an integer or "auto", and early and late exaggeration."""
    if is_auto(n_iter):
        return UntilConverged(MAX_ITER, learning_rate, early, late)
    return Schedule(check_n_iter(n_iter, ' or "auto"'), learning_rate, early, late)


class Rule(Protocol):
    """Turns a gradient into a step, and defines when to stop.

    The steps of a rule with the class attribute `replayable = True` can be recorded on a GPU and replayed. The `step`
    of such a rule must read no value back from the device, and depend on nothing that changes except `state`.
    """

    @property
    def every(self) -> int: ...
    @property
    def min_grad_norm(self) -> float: ...
    @property
    def min_loss_change(self) -> float: ...

    def step(self, state: State, gradient: Array, rate: float, late: bool, length: float) -> Array:
        """Return the displacement (n, d) for the gradient ∇E; this can update velocity, gains and age in `state`.

        `rate` is the learning rate, `late` says whether early exaggeration has ended, and `length` is the length scale
        of the kernel.
        """
        ...

    def auto_rate(self, n: int, stiffness: float, length: float) -> float:
        """Return the automatic learning rate for n points.

        `stiffness` is a scale of the curvature of the loss, and `length` is the length scale of the kernel.
        """
        ...


def check_rule(rule: Any, *names: str) -> None:
    """Raise unless the named parameters are numbers in the range of float64 or ±inf, and `every` is an integer >= 1."""
    if not is_integer(rule.every) or rule.every < 1:
        raise ValueError(f"every={rule.every!r} is invalid; use an integer >= 1")
    for name in (*names, "min_grad_norm", "min_loss_change"):
        value = getattr(rule, name)
        if not (is_finite(value) or (isinstance(value, float) and abs(value) == np.inf)):
            raise ValueError(f"{name}={value!r} is not a number in the range of float64")


class StepParameters(NamedTuple):
    """The parameters of one step; `rate` and `momentum` are numbers or tensors on the device."""

    rate: Any
    momentum: Any
    gain_up: float
    gain_down: float
    turned: float
    min_gain: float
    max_step: float


def momentum_step(gradient: Array, velocity: Array, gain: Array, parameters: StepParameters) -> tuple[Array, Array]:
    """Return velocity and gain (n, d) after one step against the gradient; NumPy arrays are updated in place."""
    if is_tensor(gradient):
        from .step_torch import tensor_step

        return tensor_step(gradient, velocity, gain, parameters)  # type: ignore[arg-type, return-value]
    _core.momentum_step(np.ascontiguousarray(gradient, dtype=np.float64), velocity, gain, *parameters)
    return velocity, gain


@tagged("optimize.Momentum")
@dataclass(frozen=True)
class Momentum:
    """Momentum with delta-bar-delta gains (Jacobs 1988), as in t-SNE: v ← μ v − (rate/4) · gain · ∇E.

    μ = t/(t + r) after t steps, up to a cap (growth as in Nesterov 1983; friction r as in Su, Boyd & Candès 2016). μ is
    small at first, while the forces are large, so that the end of early exaggeration does not tear the map, and close
    to 1 later.

    The rate is divided by 4 as in FIt-SNE and openTSNE, whose gradient omits the factor 4 of docs/math.md, eq. (1), so
    that learning rates carry over. The rate "auto" is n / stiffness times the square of the kernel's length. The
    stiffness is a scale of the curvature of the loss; for most losses it is exaggeration · Σ P. For t-SNE the rate is
    n / exaggeration (Belkina et al. 2019).

    Parameters
    ----------
    momentum : tuple of two floats, default=(0.8, 0.95)
        Two caps of μ: during early exaggeration, and after it.
    friction : float, default=10.0
        Friction r; with 0, μ equals the cap from the first step.
    gain_up : float, default=0.2
        Added to the gain of a coordinate if −∇E does not oppose the last step along this coordinate.
    gain_down : float, default=0.8
        Factor on the gain of a coordinate if −∇E reverses the last step along this coordinate (see `turned`).
    turned : float, default=0.5
        The gain is reduced only if −(rate/4) · gain · ∇E opposes the last step and is longer than this fraction of
        it. Smaller reversals, such as numerical errors of a mesh, leave the gain unchanged.
    min_gain : float, default=0.01
        Lower bound on the gain.
    max_step : float, default=5.0
        Longest step of a point, in kernel lengths.
    min_grad_norm : float, default=1e-7
        Stop when ‖∇E‖ times the kernel's length, divided by Σ P, is below this value.
    min_loss_change : float, default=1e-5
        Stop when the loss changes by less than this fraction in `every` iterations.
    every : int, default=50
        Number of iterations between evaluations of the loss, callbacks and stopping rules.
    """

    momentum: tuple[float, float] = (0.8, 0.95)  # benchmarks/schedule.py
    friction: float = 10.0
    gain_up: float = 0.2
    gain_down: float = 0.8
    turned: float = 0.5
    min_gain: float = 0.01
    max_step: float = 5.0  # openTSNE's max_step_norm
    min_grad_norm: float = 1e-7
    min_loss_change: float = 1e-5
    every: int = 50

    replayable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_rule(self, "friction", "gain_up", "gain_down", "turned", "min_gain", "max_step")
        early_late = self.momentum
        is_pair = isinstance(early_late, tuple) and len(early_late) == 2
        if not (is_pair and all(is_finite(m) and 0 <= m < 1 for m in early_late)):
            raise ValueError(
                "momentum must be a tuple of two numbers in [0, 1), one for early exaggeration and one for later"
                f" iterations, got {early_late!r}"
            )
        for name in ("friction", "gain_up", "turned"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)!r} is negative; use a number >= 0")
        for name in ("gain_down", "min_gain", "max_step"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)!r} is not positive; use a number > 0")

    def step(self, state: State, gradient: Array, rate: float, late: bool, length: float) -> Array:
        age, state.age = state.age, state.age + 1
        parameters = StepParameters(rate / 4, self._momentum(age, self.momentum[late]), *self._gains(length))
        state.velocity, state.gain = momentum_step(gradient, state.velocity, state.gain, parameters)
        return state.velocity

    def plan(self, state: State, count: int, force: LinearForce, rate: float, late: bool, length: float) -> StepPlan:
        """Return the plan of `count` steps from a state, which are those that `step` takes."""
        ages = range(state.age, state.age + count)
        momentum = np.array([self._momentum(age, self.momentum[late]) for age in ages], dtype=np.float64)
        return StepPlan(force, rate / 4, *self._gains(length), momentum)

    def _gains(self, length: float) -> tuple[float, float, float, float, float]:
        return self.gain_up, self.gain_down, self.turned, self.min_gain, self.max_step * length

    def _momentum(self, age: Any, cap: float) -> Any:
        """Return μ after `age` steps, a number or a tensor."""
        return cap if self.friction == 0 else at_most(age / (age + self.friction), cap)

    def auto_rate(self, n: int, stiffness: float, length: float) -> float:
        return n / stiffness * length**2


@dataclass(frozen=True)
class _GradientRule:
    """Base class of rules with the automatic rate n · length² / (4 · stiffness); defines when they report and stop."""

    min_grad_norm: float = 1e-7
    min_loss_change: float = 1e-5
    every: int = 50

    def __post_init__(self) -> None:
        check_rule(self)

    def auto_rate(self, n: int, stiffness: float, length: float) -> float:
        return n / stiffness / 4 * length**2


@tagged("optimize.GradientDescent")
@dataclass(frozen=True)
class GradientDescent(_GradientRule):
    """Plain gradient descent, Y ← Y − rate · ∇E, without momentum, gains or a limit on the step.

    The rate "auto" is n / (4 · stiffness) times the square of the kernel's length, with the stiffness described in
    `Momentum`; for t-SNE it is n / (4 · exaggeration). It is the largest rate at which the attraction is stable.

    Parameters
    ----------
    min_grad_norm : float, default=1e-7
        Stop when ‖∇E‖ times the kernel's length, divided by Σ P, is below this value.
    min_loss_change : float, default=1e-5
        Stop when the loss changes by less than this fraction in `every` iterations.
    every : int, default=50
        Number of iterations between evaluations of the loss, callbacks and stopping rules.
    """

    replayable: ClassVar[bool] = True

    def step(self, state: State, gradient: Array, rate: float, late: bool, length: float) -> Array:
        return array_namespace(gradient).astype(-rate * gradient, state.U.dtype, copy=False)


@tagged("optimize.Accelerated")
@dataclass(frozen=True)
class Accelerated(_GradientRule):
    """Nesterov's accelerated gradient (1983), for losses of known curvature.

    The gradient is evaluated at y, which is ahead of x: x⁺ = y − rate · ∇E(y), y⁺ = x⁺ + μ (x⁺ − x), with μ = t/(t + 3)
    after t steps (Su, Boyd & Candès 2016). When a step goes uphill, ⟨∇E, x⁺ − x⟩ > 0, the momentum and t are reset to 0
    (O'Donoghue & Candès 2015).

    Parameters
    ----------
    min_grad_norm : float, default=1e-7
        Stop when ‖∇E‖ times the kernel's length, divided by Σ P, is below this value.
    min_loss_change : float, default=0.0
        Stop when the loss changes by less than this fraction in `every` iterations. Off by default: the loss may be
        constant near a saddle, where only the gradient shows whether the descent has converged.
    every : int, default=10
        Number of iterations between evaluations of the loss, callbacks and stopping rules.
    """

    min_loss_change: float = 0.0
    every: int = 10

    def step(self, state: State, gradient: Array, rate: float, late: bool, length: float) -> Array:
        descent = -rate * gradient
        ahead = state.velocity + descent  # x⁺ − x; the velocity is y − x
        state.age = 0 if float(array_namespace(gradient).sum(gradient * ahead)) > 0 else state.age + 1
        state.velocity = ahead * (state.age / (state.age + 3))
        return descent + state.velocity
