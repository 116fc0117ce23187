"""Evaluates a user-defined loss, which is a PyTorch function of the map.

The gradient comes from autograd, the curvature from finite differences of gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..._types import Array, Matrix
from ...engines import Engine, Placement
from ...kernels import Kernel
from ..base import Balance, FrozenForce, Objective
from ..closed_form import Linear

PROBES = 10  # gradients for the first estimate of the curvature; chosen
NUDGE = 1e-6  # step of the finite difference of gradients, for a map of norm 1 or less; chosen


class OwnLoss:
    """A user-defined loss E(Y) on a device, in float64.

    Its gradient is not split into attraction and repulsion: all of −∇E counts as attraction.
    """

    kernel: Kernel = Linear()  # for its length, 1: steps are in the units of Y
    mass = 1.0

    def __init__(self, loss: Callable[[torch.Tensor], torch.Tensor], device: str):
        self.loss, self.device = loss, device

    @property
    def affinities(self) -> Matrix:
        raise TypeError("a user-defined loss has no affinities; use loss(Y) and gradient(Y) of the problem")

    def at(self, Y: Array) -> tuple[float, Array]:
        """Return the loss and its gradient (n, d) at Y."""
        points = torch.tensor(Y, dtype=torch.float64, device=self.device, requires_grad=True)
        try:
            with torch.enable_grad():
                value = self.loss(points)
        except (TypeError, IndexError, OverflowError) as error:
            shape = tuple(Y.shape)
            raise TypeError(f"the loss must accept a PyTorch tensor of shape {shape}, but failed: {error}") from error
        tensor = isinstance(value, torch.Tensor)
        if not tensor or value.numel() != 1:
            got = f"a tensor of shape {tuple(value.shape)}" if tensor else type(value).__name__
            raise TypeError(f"the loss must return one number, as a PyTorch tensor computed from Y; got {got}")
        if value.is_complex():
            raise TypeError("the loss must return a real number, but it returned a complex one; use its real part")
        if not value.requires_grad:
            raise ValueError(
                "PyTorch cannot differentiate the loss with respect to Y; do not use detach(), item() or NumPy in it"
            )
        (gradient,) = torch.autograd.grad(value.reshape(()), points, allow_unused=True)
        if gradient is None:
            raise ValueError("the loss does not depend on Y; compute it from the tensor that is passed to it")
        return float(value.detach()), gradient.cpu().numpy()

    def check(self, Y0: Array) -> None:
        """Raise ValueError unless the loss and its gradient are finite at the initial map Y0."""
        value, gradient = self.at(Y0)
        if not np.isfinite(value):
            raise ValueError(f"the loss is {value} at Y0; use another Y0, or a loss that is finite there")
        if (bad := np.argwhere(~np.isfinite(gradient))).size:
            i, j = bad[0]
            raise ValueError(
                f"the gradient of the loss is {gradient[i, j]} at Y0, row {i}, column {j}, although the loss is"
                f" {value:g}; avoid infinite derivatives, such as that of sqrt() at 0"
            )

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        value, gradient = self.at(Y)
        return Balance(-gradient, 0 * gradient, value, np.nan)

    def to(self, placement: Placement) -> Objective:
        """Return the loss itself: it runs on its own device, whatever the engine."""
        return self

    def permuted(self, order: Array) -> Objective:
        raise TypeError(
            "the order of the points cannot change, because a user-defined loss may depend on their index; keep the"
            " order of the input"
        )

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        raise TypeError(
            "a user-defined loss defines no forces on new points; optimise the old and the new points together"
        )

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        raise TypeError("a user-defined loss is not split into attraction and repulsion; use gradient(Y)")


class WatchedLoss(OwnLoss):
    """A user-defined loss E that records its largest curvature L during one descent; the automatic rate is then 1/L.

    At the start, L is the largest |eigenvalue| of the Hessian, by power iteration on differences of gradients. After
    each step from Y_{t−1} to Y_t, L is raised to ‖∇E(Y_t) − ∇E(Y_{t−1})‖ / ‖Y_t − Y_{t−1}‖ if that quotient is larger.
    """

    def __init__(self, loss: Callable[[torch.Tensor], torch.Tensor], device: str):
        super().__init__(loss, device)
        self.curvature = 0.0
        self._last: tuple[Array, Array] | None = None

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        value, gradient = self.at(Y)
        if self._last is None:
            self.curvature = self._initial_curvature(Y, gradient)
        else:
            moved = np.linalg.norm(Y - self._last[0])
            if moved > 0:
                self.curvature = max(self.curvature, float(np.linalg.norm(gradient - self._last[1]) / moved))
        self._last = Y.copy(), gradient
        # Rule.auto_rate is n / (4 · stiffness); that of Momentum is four times as large, and its step divides by 4.
        return Balance(-gradient, 0 * gradient, value, len(Y) * self.curvature / 4)

    def _initial_curvature(self, Y: Array, gradient: Array) -> float:
        """Return an estimate of the largest |eigenvalue| of the Hessian at Y, by power iteration.

        Raise ValueError if it is 0 or not finite.
        """
        along = np.random.RandomState(0).standard_normal(Y.shape)
        step, curvature = NUDGE * (1 + np.linalg.norm(Y)), 0.0
        for _ in range(PROBES):
            along *= step / np.linalg.norm(along)
            along = self.at(Y + along)[1] - gradient
            size = float(np.linalg.norm(along))
            curvature = max(curvature, size / step)
            if not size > 0:
                break
        if not 0 < curvature < np.inf:
            raise ValueError(
                f'learning_rate="auto" is 1 / curvature, but the loss has curvature {curvature:g} at the initial map;'
                " set learning_rate to a number, or use another Y0"
            )
        return curvature


def watched(objective: Any) -> WatchedLoss:
    """Return a new copy of the loss, which records its curvature during one descent."""
    return WatchedLoss(objective.loss, objective.device)
