"""A loss of the user's own, a function of the map in PyTorch: its gradient by autograd, its curvature by looking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..._types import Array, Matrix
from ...arrays.namespace import is_tensor
from ...engines import Engine, Placement
from ...kernels import Kernel
from ..base import Balance, Objective
from ..closed_form import Linear

PROBES = 10  # gradients that the first look at the curvature takes; chosen
NUDGE = 1e-6  # length of a step over which two gradients are compared, for a map of length 1 or less; chosen


class OwnLoss:
    """E(Y) as it is given, on a device, in float64. It is not split: all of −∇E stands as attraction."""

    kernel: Kernel = Linear()  # for its length, 1: steps are in the units of Y
    mass = 1.0

    def __init__(self, loss: Callable[[torch.Tensor], torch.Tensor], device: str):
        self.loss, self.device = loss, device

    @property
    def affinities(self) -> Matrix:
        raise TypeError("a loss of one's own has no affinities")

    def at(self, Y: Array) -> tuple[float, Array]:
        """Return the loss and its gradient (n, d) at Y."""
        there = torch.tensor(Y, dtype=torch.float64, device=self.device, requires_grad=True)
        try:
            with torch.enable_grad():
                value = self.loss(there)
        except (TypeError, IndexError) as error:
            raise TypeError(f"the loss does not take a tensor of PyTorch of shape {tuple(Y.shape)}: {error}") from error
        if not is_tensor(value) or value.numel() != 1:
            got = f"a tensor of shape {tuple(value.shape)}" if is_tensor(value) else type(value).__name__
            raise TypeError(f"the loss must return one number, as a tensor of PyTorch computed from Y; got {got}")
        if not value.requires_grad:
            raise ValueError(
                "the loss does not depend on Y by way of PyTorch: detach(), item() and NumPy cut the gradient off"
            )
        (gradient,) = torch.autograd.grad(value.reshape(()), there, allow_unused=True)
        if gradient is None:
            raise ValueError("the loss does not depend on Y: what it returned was computed from other tensors alone")
        return float(value.detach()), gradient.cpu().numpy()

    def check(self, Y0: Array) -> None:
        """Raise unless the loss and its gradient are finite at an initial map."""
        value, gradient = self.at(Y0)
        if not np.isfinite(value):
            raise ValueError(f"the loss is {value} at Y0; give another Y0, or a loss that is finite there")
        if (bad := np.argwhere(~np.isfinite(gradient))).size:
            i, j = bad[0]
            raise ValueError(
                f"the gradient of the loss is {gradient[i, j]} at Y0, in row {i}, column {j}, though the loss is"
                f" {value:g}; sqrt() has no slope at 0"
            )

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        value, gradient = self.at(Y)
        return Balance(-gradient, 0 * gradient, value, np.nan)

    def to(self, placement: Placement) -> Objective:
        """Return the loss itself: it runs on its own device, whatever the engine."""
        return self

    def permuted(self, order: Array) -> Objective:
        raise TypeError("a loss of one's own may know the points by their number: their order stays")

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> Callable[[Array, Matrix], Array]:
        raise TypeError("a loss of one's own says nothing of new points")

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        raise TypeError("a loss of one's own is not split into attraction and repulsion")


class WatchedLoss(OwnLoss):
    """The same along one descent, with the largest curvature L seen so far: its stiffness makes the step 1/L.

    At the beginning L is the largest eigenvalue of the Hessian in size, by power iteration on differences of gradients;
    then the largest ‖∇E(Y_t) − ∇E(Y_{t−1})‖ / ‖Y_t − Y_{t−1}‖ on the way, should that be larger.
    """

    def __init__(self, loss: Callable[[torch.Tensor], torch.Tensor], device: str):
        super().__init__(loss, device)
        self.curvature = 0.0
        self._last: tuple[Array, Array] | None = None

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        value, gradient = self.at(Y)
        if self._last is None:
            self.curvature = self._first_look(Y, gradient)
        else:
            moved = np.linalg.norm(Y - self._last[0])
            if moved > 0:
                self.curvature = max(self.curvature, float(np.linalg.norm(gradient - self._last[1]) / moved))
        self._last = Y.copy(), gradient
        # Rule.auto_rate is n / (4 · stiffness), for Momentum four times that, which it divides by 4 again.
        return Balance(-gradient, 0 * gradient, value, len(Y) * self.curvature / 4)

    def _first_look(self, Y: Array, gradient: Array) -> float:
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
                f'learning_rate="auto" is 1 / curvature, and the loss has a curvature of {curvature:g} at the initial'
                " map; give a number, or another Y0"
            )
        return curvature


def watched(objective: Any) -> WatchedLoss:
    """Return a loss as seen by a descent that begins."""
    return WatchedLoss(objective.loss, objective.device)
