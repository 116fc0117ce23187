"""Triton kernels for sums over all points in float64.

Up to `PARTS` partial sums are computed, then added in a fixed order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .triton_kernels import Kernel

PARTS = 256  # maximum number of partial sums
WIDTH = 1024  # points added at a time


@Kernel
@triton.jit(do_not_specialize=["n", "size"])
def _parts(X, parts, n, size, D: tl.constexpr, WIDTH: tl.constexpr):
    """Store in `parts` (count, D) the column sums of each part of X (n, D); a part has `size` points."""
    start = tl.program_id(0).to(tl.int64) * size
    t = tl.arange(0, WIDTH)
    for c in tl.static_range(D):
        total = tl.zeros((WIDTH,), tl.float64)
        for s in range(0, size, WIDTH):
            i = start + s + t
            total += tl.load(X + i * D + c, mask=(s + t < size) & (i < n), other=0.0).to(tl.float64)
        tl.store(parts + tl.program_id(0) * D + c, tl.sum(total, 0))


@Kernel
@triton.jit(do_not_specialize=["count"])
def _sum_parts(parts, out, count, PARTS: tl.constexpr):
    """Store in `out` the sum of the `count` partial sums in `parts`."""
    t = tl.arange(0, PARTS)
    tl.store(out, tl.sum(tl.load(parts + t, mask=t < count, other=0.0), 0))


@Kernel
@triton.jit(do_not_specialize=["n", "count"])
def _subtract_mean(X, parts, out, n, count, D: tl.constexpr, PARTS: tl.constexpr, WIDTH: tl.constexpr):
    """Store in `out` X (n, D) minus its mean row, which is computed from the partial sums."""
    t = tl.arange(0, PARTS)
    i = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    for c in tl.static_range(D):
        mean = tl.sum(tl.load(parts + t * D + c, mask=t < count, other=0.0), 0) / n
        x = tl.load(X + i * D + c, mask=i < n, other=0.0)
        tl.store(out + i * D + c, x - mean.to(x.dtype), mask=i < n)


def _column_sums(X: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Split the rows of X (n, d) into up to `PARTS` parts; return each part's column sums, and the number of parts."""
    n, d = X.shape
    size = triton.cdiv(triton.cdiv(n, PARTS), WIDTH) * WIDTH
    count = triton.cdiv(n, size)
    parts = torch.empty((count, d), dtype=torch.float64, device=X.device)
    _parts[(count,)](X, parts, n, size, d, WIDTH)
    return parts, count


def total(x: torch.Tensor) -> torch.Tensor:
    """Return the sum of all entries of x as a float64 scalar tensor."""
    parts, count = _column_sums(x.reshape(-1, 1).contiguous())
    out = torch.empty((), dtype=torch.float64, device=x.device)
    _sum_parts[(1,)](parts, out, count, PARTS)
    return out


def centered(U: torch.Tensor) -> torch.Tensor:
    """Return U (n, d) minus its mean row."""
    U = U.contiguous()
    (n, d), out = U.shape, torch.empty_like(U)
    parts, count = _column_sums(U)
    _subtract_mean[(triton.cdiv(n, WIDTH),)](U, parts, out, n, count, d, PARTS, WIDTH)
    return out
