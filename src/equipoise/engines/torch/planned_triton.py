"""Takes a planned step on a GPU: the force, momentum with gains and the new embedding in a single Triton kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ...arrays.triton_kernels import Kernel
from ..base import StepPlan

POINTS = 256  # points per Triton program; chosen


@Kernel
@triton.jit(do_not_specialize=["n"])
def _advance(
    U, edges, gradient, Z, velocity, gain, momentum, taken, new_U, new_velocity, new_gain,
    pull, push, rate, gain_up, gain_down, turned, min_gain, max_step, n,
    D: tl.constexpr, POINTS: tl.constexpr,
):  # fmt: skip
    """Take the step of `optimize/step_triton.py` against the negative force, and add it to U.

    The force is pull · edges + (push / Z) · gradient. Rounding is that of separate operations in PyTorch.
    """
    i = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    valid = i < n
    mu = tl.load(momentum + tl.load(taken))
    apart = (1.0 / tl.load(Z)) * push
    length = tl.zeros((POINTS,), tl.float32)
    for c in tl.static_range(D):
        at = i * D + c
        g = tl.load(gradient + at, mask=valid, other=0.0)
        force = (pull * tl.load(edges + at, mask=valid, other=0.0)).to(g.dtype) + apart.to(g.dtype) * g
        turn_by = rate * (-force).to(tl.float32)
        v = tl.load(velocity + at, mask=valid, other=0.0)
        a = tl.load(gain + at, mask=valid, other=1.0)
        turn = turn_by * v
        a = tl.where(turn <= 0, a + gain_up, tl.where(a * turn > turned * v * v, a * gain_down, a))
        a = tl.maximum(a, min_gain)
        v = mu * v - a * turn_by
        length += v * v
        tl.store(new_gain + at, a, mask=valid)
        tl.store(new_velocity + at, v, mask=valid)
    length = tl.sqrt(length)
    factor = tl.where(length > max_step, max_step / length, 1.0)
    for c in tl.static_range(D):
        at = i * D + c
        v = factor * tl.load(new_velocity + at, mask=valid, other=0.0)
        tl.store(new_velocity + at, v, mask=valid)
        tl.store(new_U + at, tl.load(U + at, mask=valid, other=0.0) + v, mask=valid)


def advance(
    state: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    force: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    plan: StepPlan,
    momentum: torch.Tensor,
    taken: torch.Tensor,
) -> list[torch.Tensor]:
    """Return embedding, velocity and gain after a step of a plan; the embedding is not centred.

    Parameters
    ----------
    state : (U, velocity, gain), each (n, d)
    force : (edges, gradient, Z)
        Edges (n, d), the gradient of the potential (n, d), and Z, a float64 scalar.
    plan : StepPlan
    momentum : tensor of float32
        The momentum of each step of the plan.
    taken : tensor of int32
        The number of this step, a scalar.
    """
    (U, velocity, gain), (edges, gradient, Z) = state, force
    new = [torch.empty_like(U), torch.empty_like(velocity), torch.empty_like(gain)]
    numbers = plan.force.pull, plan.force.push, *plan[1:7]
    _advance[(triton.cdiv(len(U), POINTS),)](
        U, edges, gradient.contiguous(), Z, velocity, gain, momentum, taken, *new, *numbers, len(U),
        U.shape[1], POINTS, enable_fp_fusion=False,
    )  # fmt: skip
    return new
