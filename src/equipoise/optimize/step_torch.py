"""Takes one optimiser step with PyTorch: momentum with gains, as in primitives/momentum.hpp of the C++ core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .rules import StepParameters


def tensor_step(
    gradient: torch.Tensor, velocity: torch.Tensor, gain: torch.Tensor, parameters: StepParameters
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return velocity and gain (n, d) after one step against the gradient."""
    if velocity.is_cuda:
        from . import step_triton as fused

        return fused.step(gradient, velocity, gain, *parameters)
    rate, momentum, gain_up, gain_down, turned, min_gain, max_step = parameters
    push = (rate * gradient).to(velocity.dtype)
    turn = push * velocity  # > 0: uphill along the last step
    back = (turn > 0) & (gain * turn > turned * velocity.square())
    gain = torch.where(turn <= 0, gain + gain_up, torch.where(back, gain * gain_down, gain)).clamp(min=min_gain)
    velocity = momentum * velocity - gain * push
    length = velocity.norm(dim=1, keepdim=True)
    return velocity * torch.where(length > max_step, max_step / length, 1.0), gain
