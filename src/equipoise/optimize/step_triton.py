"""Takes one optimiser step on a GPU in a single Triton kernel; step_torch.py has the same step in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ..arrays.namespace import is_tensor
from ..arrays.triton_kernels import Kernel

POINTS = 256  # points per Triton program; chosen


@Kernel
@triton.jit(do_not_specialize=["n"])
def _step(
    gradient, velocity, gain, new_velocity, new_gain, rate, momentum, gain_up, gain_down, turned, min_gain, max_step, n,
    D: tl.constexpr, POINTS: tl.constexpr, LOAD_RATE: tl.constexpr, LOAD_MOMENTUM: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    valid = i < n
    eta = tl.load(rate).to(tl.float32) if LOAD_RATE else rate
    mu = tl.load(momentum).to(tl.float32) if LOAD_MOMENTUM else momentum
    length = tl.zeros((POINTS,), tl.float32)
    for c in tl.static_range(D):
        at = i * D + c
        push = eta * tl.load(gradient + at, mask=valid, other=0.0).to(tl.float32)
        v = tl.load(velocity + at, mask=valid, other=0.0)
        g = tl.load(gain + at, mask=valid, other=1.0)
        turn = push * v
        g = tl.where(turn <= 0, g + gain_up, tl.where(g * turn > turned * v * v, g * gain_down, g))
        g = tl.maximum(g, min_gain)
        v = mu * v - g * push
        length += v * v
        tl.store(new_gain + at, g, mask=valid)
        tl.store(new_velocity + at, v, mask=valid)
    length = tl.sqrt(length)
    factor = tl.where(length > max_step, max_step / length, 1.0)
    for c in tl.static_range(D):
        at = i * D + c
        tl.store(new_velocity + at, factor * tl.load(new_velocity + at, mask=valid, other=0.0), mask=valid)


def step(
    gradient: torch.Tensor, velocity: torch.Tensor, gain: torch.Tensor, rate: Any, momentum: Any, *rule: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return velocity and gain as `step_torch.tensor_step` does.

    Products are not fused with sums, so that the kernel of planned steps (engines/torch) gives the same bytes.

    `rate` and `momentum` are numbers or tensors on the device. `rule` contains the other fields of `StepParameters`, in
    the same order.
    """
    (n, d), new_velocity, new_gain = velocity.shape, torch.empty_like(velocity), torch.empty_like(gain)
    _step[(triton.cdiv(n, POINTS),)](
        gradient.contiguous(), velocity, gain, new_velocity, new_gain, rate, momentum, *rule, n,
        d, POINTS, is_tensor(rate), is_tensor(momentum), enable_fp_fusion=False,
    )  # fmt: skip
    return new_velocity, new_gain
