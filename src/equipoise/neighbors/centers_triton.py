"""A Triton kernel that finds the nearest centre of each point, without storing their distances."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..arrays.triton_kernels import META, Kernel

ROWS, CENTERS = 128, 64  # points of a program, and centres compared with them at once; chosen
PART = 64  # largest number of columns of a product at once; chosen
PRECISION = "tf32x3"  # of products on the tensor cores


@Kernel
@triton.jit(do_not_specialize=["n", "count", "columns", "parts"])
def _nearest(
    X, C, norms, cell, n, count, columns, parts,
    PART: tl.constexpr, SEVERAL: tl.constexpr, WHOLE: tl.constexpr, B: tl.constexpr, G: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Write to `cell` the index of the nearest of `count` centres C for each point; ties go to the lower index.

    C has `parts` · PART columns if `SEVERAL`, and otherwise PART. X has as many if `WHOLE`, and otherwise `columns`.
    """
    D = parts * PART if SEVERAL else PART
    used = D if WHOLE else columns
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    g = tl.arange(0, G)
    c = tl.arange(0, PART)
    q = tl.load(X + i[:, None] * used + c[None, :], mask=(i < n)[:, None] & (c < used)[None, :], other=0.0)
    smallest = tl.full((B, G), float("inf"), tl.float32)
    nearest = tl.zeros((B, G), tl.int32)
    for start in range(0, count, G):
        j = start + g
        p = tl.load(C + j[None, :] * D + c[:, None], mask=(j < count)[None, :], other=0.0)
        product = tl.dot(q, p, input_precision=PRECISION)
        for s in range(PART, D, PART):
            wanted = (i < n)[:, None] & (s + c < used)[None, :]
            q_s = tl.load(X + i[:, None] * used + s + c[None, :], mask=wanted, other=0.0)
            p_s = tl.load(C + j[None, :] * D + s + c[:, None], mask=(j < count)[None, :], other=0.0)
            product = tl.dot(q_s, p_s, product, input_precision=PRECISION)
        d = tl.load(norms + j, mask=j < count, other=float("inf"))[None, :] - 2 * product
        nearest = tl.where(d < smallest, j[None, :], nearest)
        smallest = tl.minimum(d, smallest)
    best = tl.min(smallest, 1)
    at = tl.min(tl.where(smallest == best[:, None], nearest, 0x7FFFFFFF), 1)
    tl.store(cell + i, at.to(tl.int64), mask=i < n)


def nearest_center(X: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Return the result of gpu_blocks.nearest_center for tensors on a GPU."""
    (n, used), count = X.shape, len(centers)
    part = min(PART, max(16, triton.next_power_of_2(used)))
    D = triton.cdiv(used, part) * part
    cell = torch.empty(n, dtype=torch.int64, device=X.device)
    _nearest[(triton.cdiv(n, ROWS),)](
        X.contiguous(), torch.nn.functional.pad(centers, (0, D - used)).contiguous(), centers.square().sum(dim=1), cell,
        n, count, used, D // part, part, part < D, used == D, ROWS, CENTERS, PRECISION, num_warps=8,
    )  # fmt: skip
    return cell


def launch_on_meta(D: int) -> None:
    """Launch the kernel among points with D columns, for `prepare`."""
    nearest_center(*(torch.empty((count, D), device=META) for count in (ROWS, CENTERS)))
