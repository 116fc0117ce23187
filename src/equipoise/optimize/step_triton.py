"""A step of the optimiser in Triton, computed in the registers of a GPU; step_torch.py has the same in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ..arrays.namespace import is_tensor

POINTS = 256  # of a program


@triton.jit(do_not_specialize=["n"])
def _step(
    gradient, velocity, gain, new_velocity, new_gain, rate, momentum, up, down, turned, least, most, n,
    D: tl.constexpr, POINTS: tl.constexpr, LOAD_RATE: tl.constexpr, LOAD_MOMENTUM: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    there = i < n
    eta = tl.load(rate).to(tl.float32) if LOAD_RATE else rate
    mu = tl.load(momentum).to(tl.float32) if LOAD_MOMENTUM else momentum
    length = tl.zeros((POINTS,), tl.float32)
    for c in tl.static_range(D):
        at = i * D + c
        push = eta * tl.load(gradient + at, mask=there, other=0.0).to(tl.float32)
        v = tl.load(velocity + at, mask=there, other=0.0)
        g = tl.load(gain + at, mask=there, other=1.0)
        turn = push * v
        g = tl.where(turn <= 0, g + up, tl.where(g * turn > turned * v * v, g * down, g))
        g = tl.maximum(g, least)
        v = mu * v - g * push
        length += v * v
        tl.store(new_gain + at, g, mask=there)
        tl.store(new_velocity + at, v, mask=there)
    length = tl.sqrt(length)
    factor = tl.where(length > most, most / length, 1.0)
    for c in tl.static_range(D):
        at = i * D + c
        tl.store(new_velocity + at, factor * tl.load(new_velocity + at, mask=there, other=0.0), mask=there)


def step(
    gradient: torch.Tensor, velocity: torch.Tensor, gain: torch.Tensor, rate: Any, momentum: Any, *rule: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return velocity and gain, as `step_torch.momentum_step`; rate and momentum may be tensors on the device."""
    (n, d), new_velocity, new_gain = velocity.shape, torch.empty_like(velocity), torch.empty_like(gain)
    _step[(triton.cdiv(n, POINTS),)](
        gradient.contiguous(), velocity, gain, new_velocity, new_gain, rate, momentum, *rule, n,
        d, POINTS, is_tensor(rate), is_tensor(momentum),
    )  # fmt: skip
    return new_velocity, new_gain
