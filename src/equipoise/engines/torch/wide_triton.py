"""Sums over stored pairs and over random partners in more than three dimensions, in Triton.

edges.py and partners.py do so in PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ...arrays import namespace as arrays
from ...arrays.triton_kernels import Kernel
from ..tables import BITS
from .near_triton import read_packed

PARTS, FEW = 8, 2**19  # largest number of partial sums over the partners of a point, and points times parts; chosen


@triton.jit
def _value_and_slope(packed, d2, first, low, high, scale, FORM: tl.constexpr, BITS: tl.constexpr):
    """Return k and k' at d2: from a table (`FORM` 0), or for k'/k = −a/(c + d2) by k = k(0) (c/(c + d2))^a.

    In the second case a is `high`, c is `low` and k(0) is `scale`; `FORM` is 1 if a = 1, and otherwise 2.
    """
    if FORM == 0:
        return read_packed(packed, d2, first, low, high, scale, BITS)
    inverse = 1.0 / (low + d2)
    value = scale * low * inverse if FORM == 1 else scale * tl.exp2(high * tl.log2(low * inverse))
    return value, -high * inverse * value


@Kernel
@triton.jit(do_not_specialize=["d", "m", "first"])
def _stored(
    Y, indptr, columns, values, charges, packed, potential, gradient, d, m, first, low, high, scale, factor,
    WIDE: tl.constexpr, WIDTH: tl.constexpr, CHARGED: tl.constexpr, ADD: tl.constexpr, VALUE: tl.constexpr,
    BITS: tl.constexpr,
):  # fmt: skip
    """Sum a_ij c_j ψ(d2_ij) and `factor` times a_ij c_j ψ'(d2_ij)(y_i − y_j) over the stored entries a_ij of row i.

    The sums are added to the outputs if `ADD`, and otherwise replace them. The potential is omitted unless `VALUE`.
    """
    i = tl.program_id(0).to(tl.int64)
    q = tl.program_id(1)
    c = tl.arange(0, WIDE)
    inside = c < d
    y = tl.load(Y + i * d + c, mask=inside, other=0.0)
    p = tl.zeros((WIDTH,), tl.float32)
    g = tl.zeros((WIDTH, WIDE), tl.float32)
    for s in range(tl.load(indptr + i), tl.load(indptr + i + 1), WIDTH):
        t = s + tl.arange(0, WIDTH)
        valid = t < tl.load(indptr + i + 1)
        j = tl.load(columns + t, mask=valid, other=0).to(tl.int64)
        a = tl.load(values + t, mask=valid, other=0.0)
        if CHARGED:
            a = a * tl.load(charges + j * m + q, mask=valid, other=0.0)
        x = y[None, :] - tl.load(Y + j[:, None] * d + c[None, :], mask=valid[:, None] & inside[None, :], other=0.0)
        value, slope = read_packed(packed, tl.sum(x * x, 1), first, low, high, scale, BITS)
        if VALUE:
            p += tl.where(valid, a * value, 0.0)
        g += (a * slope)[:, None] * x
    at = i * m + q
    if VALUE:
        before = tl.load(potential + at) if ADD else 0.0
        tl.store(potential + at, before + tl.sum(p, 0))
    at = gradient + at * d + c
    before = tl.load(at, mask=inside, other=0.0) if ADD else tl.zeros((WIDE,), tl.float32)
    tl.store(at, before + factor * tl.sum(g, 0), mask=inside)


@Kernel
@triton.jit(do_not_specialize=["n", "d", "m", "count", "first"])
def _partners(
    columns, charges, offsets, weights, packed, out, n, d, m, count, first, low, high, scale,
    WIDE: tl.constexpr, POINTS: tl.constexpr, PARTS: tl.constexpr, CHARGED: tl.constexpr, FORM: tl.constexpr,
    BITS: tl.constexpr,
):  # fmt: skip
    """Sum the potential and its gradient at a block of points over one part of the offsets of their partners.

    The partners of consecutive points are consecutive, too, so that every column (d, n) of the embedding is read in
    order.
    """
    i = tl.program_id(0).to(tl.int64) * POINTS + tl.arange(0, POINTS)
    part = tl.program_id(1)
    q = tl.program_id(2)
    c = tl.arange(0, WIDE)
    valid = i < n
    inside = (c < d)[:, None] & valid[None, :]
    column = columns + c.to(tl.int64)[:, None] * n
    y = tl.load(column + i[None, :], mask=inside, other=0.0)
    p = tl.zeros((POINTS,), tl.float32)
    g = tl.zeros((WIDE, POINTS), tl.float32)
    for s in range(count * part // PARTS, count * (part + 1) // PARTS):
        j = i + tl.load(offsets + s)
        j = tl.where(j < n, j, j - n)
        a = tl.load(weights + s)
        x = y - tl.load(column + j[None, :], mask=inside, other=0.0)
        value, slope = _value_and_slope(packed, tl.sum(x * x, 0), first, low, high, scale, FORM, BITS)
        w = a * tl.load(charges + j * m + q, mask=valid, other=0.0) if CHARGED else a
        p += w * value
        g += (w * slope)[None, :] * x
    at = ((part * n + i) * m + q) * (1 + d)
    tl.store(out + at, p, mask=valid)
    tl.store(out + at[None, :] + 1 + c[:, None], 2 * g, mask=inside)


def _sizes(d: int) -> tuple[int, int]:
    """Return the width of a tile for d columns, and how many rows of it one warp reads at a time."""
    wide = triton.next_power_of_2(d)
    return wide, max(4, min(32, 512 // wide))


def edges(Y: torch.Tensor, A: Any, kernel: Any, potential: bool) -> tuple[Any, torch.Tensor]:
    """Return what `stored_edges` in edges.py returns, for 3 < d ≤ WIDEST."""
    (n, d), force = Y.shape, torch.empty_like(Y)
    psi = torch.empty(n if potential else 1, device=Y.device)
    wide, width = _sizes(d)
    _stored[(n, 1)](
        Y, A.indptr, A.indices, A.data, Y, kernel.segments.view(torch.int64), psi, force, d, 1,
        kernel.first, *kernel.ends, kernel.scale, 1.0, wide, width, False, False, potential, BITS, num_warps=1,
    )  # fmt: skip
    return arrays.total(psi) if potential else torch.nan, force


def add_stored(
    Y: torch.Tensor, charges: Any, A: Any, kernel: Any, potential: torch.Tensor, gradient: torch.Tensor
) -> None:
    """Add the field of the stored pairs A to Φ (n, m) and ∇Φ (n, m, d), for 3 < d ≤ WIDEST."""
    (n, d), m = Y.shape, potential.shape[1]
    wide, width = _sizes(d)
    _stored[(n, m)](
        Y, A.indptr, A.indices, A.data, Y if charges is None else charges, kernel.segments.view(torch.int64),
        potential, gradient, d, m, kernel.first, *kernel.ends, kernel.scale, 2.0,
        wide, width, charges is not None, True, True, BITS, num_warps=1,
    )  # fmt: skip


def partners(
    Y: torch.Tensor, charges: Any, offsets: torch.Tensor, weights: torch.Tensor, kernel: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return Φ (n, m) and ∇Φ (n, m, d) of the partners at the given offsets, for 3 < d ≤ WIDEST.

    `kernel.rational`, if it is given, is (a, c, k(0)) of a kernel with k'/k = −a/(c + d2).
    """
    (n, d), m = Y.shape, 1 if charges is None else charges.shape[1]
    wide, _ = _sizes(d)
    points = max(16, 512 // wide)
    parts = max(1, min(PARTS, triton.next_power_of_2(FEW // n)))  # few points need several parts to fill the GPU
    out = torch.empty((parts, n, m, 1 + d), device=Y.device)
    rational = kernel.rational
    numbers = (*kernel.ends, kernel.scale) if rational is None else (rational[1], rational[0], rational[2])
    form = 0 if rational is None else 1 if rational[0] == 1 else 2
    _partners[(triton.cdiv(n, points), parts, m)](
        Y.T.contiguous(), Y if charges is None else charges, offsets, weights, kernel.segments.view(torch.int64), out,
        n, d, m, len(offsets), kernel.first, *numbers, wide, points, parts, charges is not None, form, BITS,
        num_warps=1,
    )  # fmt: skip
    sums = out.sum(dim=0)
    return sums[..., 0].contiguous(), sums[..., 1:].contiguous()
