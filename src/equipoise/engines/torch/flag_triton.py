"""GPU kernels in Triton for the flag that stops replayed steps: one sets it, one accepts steps only while it is 0."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ...arrays.triton_kernels import Kernel

WIDTH = 1024  # entries per program


@Kernel
@triton.jit
def _flag_extent(box, flag, h0, h1, h2, min_widest, D: tl.constexpr):
    """Set the flag if side 0, 1 or 2 of the box exceeds h0, h1 or h2, or if all sides are shorter than `min_widest`."""
    s0 = tl.load(box + D) - tl.load(box)
    widest = s0
    wide = s0 > h0
    if D > 1:
        s1 = tl.load(box + D + 1) - tl.load(box + 1)
        widest = tl.maximum(widest, s1)
        wide = wide | (s1 > h1)
    if D > 2:
        s2 = tl.load(box + D + 2) - tl.load(box + 2)
        widest = tl.maximum(widest, s2)
        wide = wide | (s2 > h2)
    inside = (widest >= min_widest) & (wide == 0)  # false for NaN
    tl.store(flag, tl.where(inside, tl.load(flag), 1))


def flag_extent(box: torch.Tensor, flag: torch.Tensor, max_sides: tuple[float, ...], min_widest: float) -> None:
    """Set the flag, an int32 scalar, to 1 unless all sides of the box are within limits.

    Each side must be at most its entry of `max_sides`, and at least one side must be `min_widest` or longer.
    """
    _flag_extent[(1,)](box, flag, *(*max_sides, 0.0, 0.0)[:3], min_widest, box.shape[1])


@Kernel
@triton.jit(do_not_specialize=["count"])
def _accept(flag, taken, U, new_U, velocity, new_velocity, gain, new_gain, age, new_age, count, WIDTH: tl.constexpr):
    """If the flag is 0, copy the new arrays over the old ones; program 0 also copies the age and counts the step."""
    clear = tl.load(flag) == 0
    t = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    valid = (t < count) & clear
    tl.store(U + t, tl.load(new_U + t, mask=valid), mask=valid)
    tl.store(velocity + t, tl.load(new_velocity + t, mask=valid), mask=valid)
    tl.store(gain + t, tl.load(new_gain + t, mask=valid), mask=valid)
    if tl.program_id(0) == 0:
        tl.store(age, tl.where(clear, tl.load(new_age), tl.load(age)))
        tl.store(taken, tl.load(taken) + clear.to(tl.int32))


def accept_step(flag: torch.Tensor, taken: torch.Tensor, old: list[torch.Tensor], new: list[torch.Tensor]) -> None:
    """If the flag is 0, copy the new state over the old, and add 1 to `taken`.

    A state is the list of the embedding, the velocity and the gains, each (n, d), and the age, a scalar: the number of
    steps since the momentum was last reset.
    """
    both = [tensor for own, result in zip(old, new, strict=True) for tensor in (own, result.contiguous())]
    count = old[0].numel()
    _accept[(triton.cdiv(count, WIDTH),)](flag, taken, *both, count, WIDTH)
