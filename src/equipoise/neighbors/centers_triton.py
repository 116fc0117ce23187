"""A Triton kernel that finds the nearest centre of each point, without storing their distances."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

ROWS, CENTERS = 128, 64  # points of a program, and centres compared with them at once; chosen


@triton.jit(do_not_specialize=["n", "count"])
def _nearest(
    X, C, norms, cell, n, count, stride,
    D: tl.constexpr, PART: tl.constexpr, B: tl.constexpr, G: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Write to `cell` the index of the nearest of `count` centres C for each point; ties go to the lower index."""
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    g = tl.arange(0, G)
    c = tl.arange(0, PART)
    q = tl.load(X + i[:, None] * stride + c[None, :], mask=(i < n)[:, None] & (c < D)[None, :], other=0.0)
    smallest = tl.full((B, G), float("inf"), tl.float32)
    nearest = tl.zeros((B, G), tl.int32)
    for start in range(0, count, G):
        j = start + g
        p = tl.load(C + j[None, :] * D + c[:, None], mask=(j < count)[None, :] & (c < D)[:, None], other=0.0)
        product = tl.dot(q, p, input_precision=PRECISION)
        for s in range(PART, D, PART):
            wanted = (s + c < D)[None, :]
            q_s = tl.load(X + i[:, None] * stride + s + c[None, :], mask=(i < n)[:, None] & wanted, other=0.0)
            wanted = (s + c < D)[:, None]
            p_s = tl.load(C + j[None, :] * D + s + c[:, None], mask=(j < count)[None, :] & wanted, other=0.0)
            product = tl.dot(q_s, p_s, product, input_precision=PRECISION)
        d = tl.load(norms + j, mask=j < count, other=float("inf"))[None, :] - 2 * product
        nearest = tl.where(d < smallest, j[None, :], nearest)
        smallest = tl.minimum(d, smallest)
    best = tl.min(smallest, 1)
    at = tl.min(tl.where(smallest == best[:, None], nearest, 0x7FFFFFFF), 1)
    tl.store(cell + i, at.to(tl.int64), mask=i < n)


def nearest_center(X: torch.Tensor, centers: torch.Tensor, precision: str = "tf32x3") -> torch.Tensor:
    """Return the result of gpu_blocks.nearest_center for tensors on a GPU."""
    (n, D), count = X.shape, len(centers)
    cell = torch.empty(n, dtype=torch.int64, device=X.device)
    part = min(64, max(16, triton.next_power_of_2(D)))
    _nearest[(triton.cdiv(n, ROWS),)](
        X, centers.contiguous(), centers.square().sum(dim=1), cell, n, count, X.stride(0),
        D, part, ROWS, CENTERS, precision, num_warps=8,
    )  # fmt: skip
    return cell
