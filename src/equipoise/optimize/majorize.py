"""Minimises stress: by majorisation (SMACOF), optionally accelerated by L-BFGS, or by plain gradient descent."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from .._types import Array
from ..objectives.stress.metric import Slope, Stress
from .descent import Steps, check_array, check_curve, check_names, check_numbers

MEMORY = {"smacof": 0, "lbfgs": 10, "descent": 0}  # stored pairs of steps and gradient changes; 10 is chosen
SOLVERS = tuple(MEMORY)
ARMIJO = 1e-4  # fraction of the predicted decrease that a step must achieve; usual (Nocedal & Wright 2006, 3.1)
LOOK_BACK = 10  # iterations over which the decrease of the loss is compared with `tol`
HALVINGS = 40  # of a step without L-BFGS that raises a loss which no quadratic function bounds; chosen
DIVERGED = 10.0  # gradient descent stops when the loss exceeds the initial loss by this factor; chosen


@dataclass
class StressState:
    """State of a majorisation, complete after every iteration, so that an interrupted run can continue from it."""

    Y: Array  # (n, d) float64
    iteration: int = 0
    loss: float = np.inf
    curve: list[tuple[int, float]] = field(default_factory=list)
    stopped: str = "n_iter"  # reason: n_iter, min_loss_change or callback
    pairs: list[tuple[Array, Array, float]] = field(default_factory=list)  # L-BFGS: step s, gradient change y, sᵀy
    stage: int = 0  # index of the current loss, if several are minimised one after another (homotopy.py)

    def plain(self) -> dict[str, Any]:
        """Return the state as plain values and NumPy arrays."""
        return {**vars(self), "curve": np.array(self.curve, dtype=np.float64).reshape(-1, 2)}

    @classmethod
    def restored(cls, plain: dict[str, Any], shape: tuple[int, ...]) -> StressState:
        """Return the state for the values returned by `plain`; raise unless its maps have `shape`."""
        plain = {"stage": 0, **plain}  # files of version 0.1.0 have no stage
        check_names(plain, {field.name for field in fields(cls)})
        check_numbers(plain, integers=("iteration", "stage"), floats=("loss",))
        Y = _check_map(plain["Y"], "Y", shape)
        pairs = [(_check_map(s, "s", shape), _check_map(y, "y", shape), float(sy)) for s, y, sy in plain["pairs"]]
        return cls(**{**plain, "Y": Y, "pairs": pairs, "curve": check_curve(plain["curve"])})


def _check_map(value: Any, name: str, shape: tuple[int, ...]) -> Array:
    Y = check_array(value, name, shape)
    if Y.dtype != np.float64:
        raise ValueError(f"the saved array {name} has dtype {Y.dtype}; expected float64")
    return Y


class _History:
    """Stores the last steps s and the changes y of half the gradient, G, for the L-BFGS step −H G (Nocedal 1980).

    H approximates the inverse of the derivative of G. The recursion for H starts from γ/M. M is the stiffness, which
    divides G in a majorising step, and γ = s·y / (y·(y/M)) for the last pair (s, y), or 1 if there is none.
    """

    def __init__(self, memory: int, pairs: list[tuple[Array, Array, float]]):
        """Keep up to `memory` triples (s, y, s·y) in the list `pairs`, which is updated in place."""
        self.memory, self.pairs = memory, pairs

    def add(self, s: Array, y: Array) -> None:
        product = _dot(s, y)
        if self.memory and product > 1e-10 * np.sqrt(
            _dot(s, s) * _dot(y, y)
        ):  # positive curvature, or H would not be positive definite
            self.pairs.append((s, y, product))
            del self.pairs[: -self.memory]

    def direction(self, G: Array, stiffness: Array) -> Array:
        q, coefficients = G.copy(), []
        for s, y, product in reversed(self.pairs):
            a = _dot(s, q) / product
            q -= a * y
            coefficients.append(a)
        q /= stiffness
        if self.pairs:
            _, y, product = self.pairs[-1]
            q *= product / _dot(y, y / stiffness)
        for (s, y, product), a in zip(self.pairs, reversed(coefficients), strict=True):
            q += (a - _dot(y, q) / product) * s
        return -q


class MajorizationSteps(Steps[StressState]):
    """Takes steps that decrease a stress, until the last ten together decrease it by less than the fraction `tol`.

    The majorising step is −G/M, where G is half the gradient and M the stiffness from `Stress.slope`. It never
    increases the stress (de Leeuw 1977). For unit weights M = n, so that it is gradient descent with rate 1/(2n)
    (docs/math.md, eq. (7)). The first L-BFGS step equals the majorising step. A later L-BFGS step is taken if it
    decreases the stress enough (ARMIJO); otherwise the L-BFGS memory is cleared and the majorising step is taken. For a
    stress that is not majorised, that step is halved until it decreases the stress.

    Parameters
    ----------
    stress : Stress
    solver : {"lbfgs", "smacof"}
    tol : float
    """

    def __init__(self, stress: Stress, solver: str, tol: float):
        self.stress, self.solver, self.tol = stress, solver, tol
        self._slope: Slope | None = None  # at the current state

    def evaluate(self, state: StressState, loss: bool) -> float:
        return self._slope_at(state).loss

    def _slope_at(self, state: StressState) -> Slope:
        if self._slope is None:
            self._slope = self._slope_of(state.Y)
        return self._slope

    def _slope_of(self, Y: Array) -> Slope:
        return self.stress.slope(Y.astype(self.stress.dtype))

    def check_loss(self, state: StressState, loss: float) -> None:
        if not np.isfinite(loss):
            raise FloatingPointError(
                f"the stress is {loss} at iteration {state.iteration}: coordinates of the map are too large; divide the"
                " initial map, or the data, by a constant"
            )

    def stop_reason(self, state: StressState) -> str | None:
        if len(state.curve) <= LOOK_BACK:
            return None
        return "min_loss_change" if state.curve[-1 - LOOK_BACK][1] - state.loss < self.tol * state.loss else None

    def move(self, state: StressState) -> bool:
        current, history = self._slope_at(state), _History(MEMORY[self.solver], state.pairs)
        step = history.direction(current.half_gradient, current.stiffness)
        trial = self._slope_of(state.Y + step)
        enough = 2 * ARMIJO * _dot(current.half_gradient, step) if history.pairs else 0.0
        if history.pairs and not trial.loss < current.loss + enough:
            history.pairs.clear()
            step = -current.half_gradient / current.stiffness
            trial = self._slope_of(state.Y + step)
        for _ in range(0 if self.stress.majorized else HALVINGS):
            if trial.loss < current.loss:
                break
            step = step / 2
            trial = self._slope_of(state.Y + step)
        if not trial.loss < current.loss:  # within rounding of a minimum
            state.stopped = "min_loss_change"
            return False
        history.add(step, trial.half_gradient - current.half_gradient)
        state.Y, self._slope, state.iteration = state.Y + step, trial, state.iteration + 1
        return True

    def current_map(self, state: StressState) -> Array:
        Y = state.Y.astype(np.float32)
        Y.flags.writeable = False
        return Y

    def forget(self) -> None:
        self._slope = None


class GradientDescentSteps(MajorizationSteps):
    """Takes steps Y ← Y − rate ∇σ, until the loss changes by less than the fraction `tol` in ten iterations.

    `rate` is a number or "auto": 1/(2 max M), with the stiffness M. For unit weights "auto" is 1/(2n), the rate of
    SMACOF; metric stress never increases for rates below 1/n (docs/math.md, eq. (7)).
    """

    def __init__(self, stress: Stress, tol: float, rate: Any):
        super().__init__(stress, "descent", tol)
        self.rate = rate

    def check_loss(self, state: StressState, loss: float) -> None:
        first = state.curve[0][1] if state.curve else np.inf
        if not loss <= DIVERGED * max(first, np.finfo(np.float64).tiny):
            stable = 1 / float(np.max(self._slope_at(state).stiffness))
            raise FloatingPointError(
                f"the stress rose from {first:.4g} to {loss:.4g} in {state.iteration} iterations: learning_rate="
                f"{self.rate:g} is too large; use a rate below {stable:.3g}"
            )

    def stop_reason(self, state: StressState) -> str | None:
        if len(state.curve) <= LOOK_BACK:
            return None
        last = [loss for _, loss in state.curve[-1 - LOOK_BACK :]]
        return "min_loss_change" if max(last) - min(last) < self.tol * state.loss else None

    def move(self, state: StressState) -> bool:
        current = self._slope_at(state)
        rate = 1 / (2 * float(np.max(current.stiffness))) if isinstance(self.rate, str) else self.rate
        state.Y, self._slope = state.Y - 2 * rate * current.half_gradient, None
        state.iteration += 1
        return True


def _dot(a: Array, b: Array) -> float:
    return float((a * b).sum())  # not BLAS, whose order of summation depends on the number of threads
