"""Second-order motion: points with mass move under the forces of the loss and against friction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._tags import tagged
from .._types import Array
from ..arrays.namespace import array_namespace, is_auto, is_finite, is_positive
from .rules import check_rule

if TYPE_CHECKING:
    from .descent import State

DECAY = 0.03  # friction by default: decay of the logarithm of a speed in a step; measured on digits: see docs/math.md


@tagged("optimize.Dynamics")
@dataclass(frozen=True)
class Dynamics:
    """Newton's equation of motion with friction, M a = n F − γ v (Lin et al. 2024, eq. 15-17).

    Every point has the mass M/n, F = −∇E is the force on it, and the loss E is the potential energy. The kinetic energy
    is T = M/(2n) Σ ‖v_i‖². Without friction T + E is constant, apart from the error of the integration; with friction
    it decreases until the points rest at a minimum of the loss. Early exaggeration changes the forces but not E, and
    its end stops all points; use early_exaggeration=1 to conserve energy from the start.

    A step of length h is h/2 of the force, h/2 of motion, h of friction, h/2 of motion and h/2 of the force (BAOAB
    without its noise; Leimkuhler & Matthews 2013), of second order in h and symplectic without friction. On a curved
    map, the speed of a point does not change when its velocity is turned into the tangent plane at its new position.

    Fitted methods have `energy_curve_`, the energies at each evaluation of the loss.

    Parameters
    ----------
    mass : float, default=1.0
        Total mass M of the points. With γ multiplied by √M as well, M only changes the unit of time.
    friction : float or "auto", default="auto"
        Coefficient of friction γ; without a force, speeds decay as exp(−γ t/M). With 0, the points never rest, so
        that n_iter must be a number and `remaining_gain_` is NaN. "auto" is 0.03 M/h: in a step, speeds decay by 3 %.
    time_step : float or "auto", default="auto"
        Length h of a step in time, unless `learning_rate` of the method is a number, which is then h. "auto" is
        l √(M/(8 s)), with the length l of the kernel and the stiffness s described in `Momentum`; it is half of the
        longest step for which the attraction is stable.
    min_grad_norm : float, default=1e-7
        Stop when ‖∇E‖ times the kernel's length, divided by Σ P, is below this value.
    min_loss_change : float, default=0.0
        Stop when the loss changes by less than this fraction in `every` iterations. Off by default: the loss hardly
        changes while points pass through a minimum, or turn round.
    every : int, default=10
        Number of iterations between evaluations of the energies, callbacks and stopping rules.
    """

    mass: float = 1.0
    friction: float | str = "auto"
    time_step: float | str = "auto"
    min_grad_norm: float = 1e-7
    min_loss_change: float = 0.0
    every: int = 10

    def __post_init__(self) -> None:
        check_rule(self)
        if not is_positive(self.mass):
            raise ValueError(f"mass={self.mass!r} is invalid; use a positive number")
        if not (is_auto(self.friction) or (is_finite(self.friction) and float(self.friction) >= 0)):
            raise ValueError(f'friction={self.friction!r} is invalid; use a number >= 0 or "auto"')
        if not (is_auto(self.time_step) or is_positive(self.time_step)):
            raise ValueError(f'time_step={self.time_step!r} is invalid; use a positive number or "auto"')

    @property
    def conserves_energy(self) -> bool:
        """Whether there is no friction: the loss then rises and falls for ever, and nothing remains to be gained."""
        return not is_auto(self.friction) and float(self.friction) == 0

    def step(self, state: State, gradient: Array, rate: float, late: bool, length: float) -> Array:
        """Return the displacement in a step of length h = `rate`.

        `state.velocity` lacks the last h/2 of force, because the force at the new position is not known yet, and
        `state.gain` holds the speed of each point before the velocity was turned into the tangent plane.
        """
        kick = self._half_kick(gradient, rate)
        v = self._velocity(state, kick) + kick
        decay = math.exp(-DECAY if is_auto(self.friction) else -float(self.friction) * rate / self.mass)
        xp = array_namespace(v)
        state.velocity, state.age = xp.astype(decay * v, state.U.dtype, copy=False), state.age + 1
        state.gain = xp.zeros_like(state.velocity) + _speed(state.velocity)
        return xp.astype(rate / 2 * (1 + decay) * v, state.U.dtype, copy=False)

    def kinetic_energy(self, state: State, gradient: Array, rate: float) -> float:
        """Return T = M/(2n) Σ ‖v_i‖² at the current position, where the gradient is `gradient`."""
        v = self._velocity(state, self._half_kick(gradient, rate))
        return float((v**2).sum()) * self.mass / (2 * len(v))

    def _half_kick(self, gradient: Array, rate: float) -> Any:
        return (-rate / 2 * len(gradient) / self.mass) * gradient

    def _velocity(self, state: State, kick: Any) -> Any:
        """Return the velocity (n, d) at the current position; 0 before the first step."""
        if state.age == 0:
            return 0 * kick
        xp, speed = array_namespace(kick), _speed(state.velocity)
        moving = speed > 0
        turned = xp.where(moving, state.gain[:, :1], 0.0) / xp.where(moving, speed, 1.0) * state.velocity
        return xp.astype(turned, kick.dtype, copy=False) + kick

    def auto_rate(self, n: int, stiffness: float, length: float) -> float:
        return length * float(self.mass / (8 * stiffness)) ** 0.5 if is_auto(self.time_step) else float(self.time_step)


def _speed(velocity: Any) -> Any:
    """Return the lengths (n, 1) of the velocities (n, d)."""
    return array_namespace(velocity).sum(velocity**2, axis=1, keepdims=True) ** 0.5
