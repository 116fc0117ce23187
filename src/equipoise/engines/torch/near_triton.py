"""Sums the near part of a kernel over pairs of points in neighbouring cells, in Triton; near_field.py has PyTorch's."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ...arrays.triton_kernels import Kernel
from ..tables import BITS

TARGETS, SOURCES = 4, 32  # points per program and sources per pass, in one warp; the fastest measured on an H200


@triton.jit
def read_packed(packed, d2, first, low, high, scale, BITS: tl.constexpr):
    """Return the value and the slope at d2 from a table whose numbers are packed in pairs, as lookup.py does."""
    x = tl.minimum(tl.maximum(d2 * scale, low), high)
    bits = x.to(tl.int32, bitcast=True)
    inside = bits & ((1 << BITS) - 1)
    f = ((inside << (23 - BITS)) | 0x3F800000).to(tl.float32, bitcast=True) - 1.0  # 1.0 with these bits as mantissa
    at = packed + 2 * ((bits >> BITS) - first)
    one, two = tl.load(at), tl.load(at + 1)
    v0 = (one & 0xFFFFFFFF).to(tl.int32).to(tl.float32, bitcast=True)
    s0 = (one >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    s1 = (two & 0xFFFFFFFF).to(tl.int32).to(tl.float32, bitcast=True)
    s2 = (two >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    step = (x - (bits - inside).to(tl.float32, bitcast=True)) / scale
    return v0 + step * (s0 + f * (s1 * 0.5 + f * (s2 * (1.0 / 3)))), s0 + f * (s1 + f * s2)


@Kernel
@triton.jit(do_not_specialize=["t", "m", "n1", "n2", "first"])
def _near(
    T, Y, charges, cell, start, rank, packed, potential, gradient, t, m, n1, n2, first, low, high, scale,
    D: tl.constexpr, TARGETS: tl.constexpr, SOURCES: tl.constexpr, OWN: tl.constexpr, CHARGED: tl.constexpr,
    BITS: tl.constexpr,
):  # fmt: skip
    """Store the near field at a few targets. If `OWN`, these are consecutive sorted points; otherwise TARGETS is 1.

    All targets of a program sum the same runs of sources: in each row of cells, those from the cell before that of the
    first target to the cell after that of the last. Runs that overlap are cut. n1 and n2 are the numbers of cells
    along the second and third axis.
    """
    i = tl.program_id(0) * TARGETS + tl.arange(0, TARGETS)
    q = tl.program_id(1)
    valid = i < t
    own = i if OWN else i * 0 - 1
    x0 = tl.load(T + i * D, mask=valid, other=0.0)
    x1 = tl.load(T + i * D + 1, mask=valid, other=0.0) if D > 1 else x0
    x2 = tl.load(T + i * D + 2, mask=valid, other=0.0) if D > 2 else x0
    lowest = tl.load(cell + tl.program_id(0) * TARGETS).to(tl.int32)
    highest = tl.load(cell + tl.minimum(tl.program_id(0) * TARGETS + TARGETS, t) - 1).to(tl.int32)
    p = tl.zeros((TARGETS, SOURCES), tl.float32)
    g0 = tl.zeros((TARGETS, SOURCES), tl.float32)
    g1 = tl.zeros((TARGETS, SOURCES), tl.float32)
    g2 = tl.zeros((TARGETS, SOURCES), tl.float32)
    done = 0
    for r in range(1 if D == 1 else 3 if D == 2 else 9):
        step = 0
        if D == 2:
            step = (r - 1) * n1
        if D == 3:
            step = ((r // 3 - 1) * n1 + r % 3 - 1) * n2
        begin = tl.maximum(tl.load(start + lowest + step - 1), done)
        end = tl.load(start + highest + step + 2)
        done = tl.maximum(done, end)
        for s in range(begin, end, SOURCES):
            j = s + tl.arange(0, SOURCES)
            there = j < end
            y0 = x0[:, None] - tl.load(Y + j * D, mask=there, other=0.0)[None, :]
            d2 = y0 * y0
            y1, y2 = y0, y0
            if D > 1:
                y1 = x1[:, None] - tl.load(Y + j * D + 1, mask=there, other=0.0)[None, :]
                d2 += y1 * y1
            if D > 2:
                y2 = x2[:, None] - tl.load(Y + j * D + 2, mask=there, other=0.0)[None, :]
                d2 += y2 * y2
            value, slope = read_packed(packed, d2, first, low, high, scale, BITS)
            c = tl.load(charges + j * m + q, mask=there, other=0.0) if CHARGED else tl.where(there, 1.0, 0.0)
            c = tl.where(own[:, None] == j[None, :], 0.0, c[None, :])
            p += c * value
            c = c * slope
            g0 += c * y0
            if D > 1:
                g1 += c * y1
            if D > 2:
                g2 += c * y2
    at = tl.load(rank + i, mask=valid, other=0) if OWN else i.to(tl.int64)
    at = at * m + q
    tl.store(potential + at, tl.sum(p, 1), mask=valid)
    at = gradient + at * D
    tl.store(at, 2 * tl.sum(g0, 1), mask=valid)
    if D > 1:
        tl.store(at + 1, 2 * tl.sum(g1, 1), mask=valid)
    if D > 2:
        tl.store(at + 2, 2 * tl.sum(g2, 1), mask=valid)


@Kernel
@triton.jit(do_not_specialize=["n", "n1", "n2"])
def _cells(
    Y, box, cell, n, h0, h1, h2, radius, most0, most1, most2, n1, n2, D: tl.constexpr, POINTS: tl.constexpr
):  # fmt: skip
    """Store the cell of each point: its number along each axis, at least 1 and at most 1 + `most`, row by row."""
    i = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    valid = i < n
    at = _along(Y, box, i, valid, 0, h0, radius, most0, D)
    if D > 1:
        at = at * n1 + _along(Y, box, i, valid, 1, h1, radius, most1, D)
    if D > 2:
        at = at * n2 + _along(Y, box, i, valid, 2, h2, radius, most2, D)
    tl.store(cell + i, at.to(cell.dtype.element_ty), mask=valid)


@triton.jit
def _along(Y, box, i, valid, c: tl.constexpr, half, radius, most, D: tl.constexpr):
    """Return the numbers of the cells of points along axis c."""
    middle = (tl.load(box + c).to(tl.float64) + tl.load(box + D + c).to(tl.float64)) * 0.5
    u = (tl.load(Y + i * D + c, mask=valid, other=0.0) - (middle - half).to(tl.float32)) / radius
    return tl.minimum(tl.maximum(u, 0.0), most).to(tl.int32) + 1


def cells(near: Any, Y: torch.Tensor, box: torch.Tensor) -> torch.Tensor:
    """Return what `NearField.cells_of` returns."""
    (n, d), own = Y.shape, torch.empty(len(Y), dtype=near.dtype, device=Y.device)
    halves, most = (*near.half, 0.0, 0.0)[:3], (*(side - 3.0 for side in near.sides), 0.0, 0.0)[:3]
    if n > 0:
        _cells[(triton.cdiv(n, 256),)](
            Y, box, own, n, *halves, near.radius, *most, *(*near.sides, 1, 1)[1:3], d, 256
        )  # fmt: skip
    return own


def sums(near: Any, cells: Any, T: torch.Tensor | None, own: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what `NearField.sums` returns, for targets in the cells `own`."""
    targets, sources = (TARGETS, SOURCES) if T is None else (1, 128)
    at, amounts, look = cells.Y if T is None else T.contiguous(), cells.amounts, near.lookup
    (t, d), m = at.shape, 1 if amounts is None else amounts.shape[1]
    potential, gradient = torch.empty((t, m), device=at.device), torch.empty((t, m, d), device=at.device)
    if t > 0:
        _near[(triton.cdiv(t, targets), m)](
            at, cells.Y, cells.Y if amounts is None else amounts.float().contiguous(), own, cells.start, cells.rank,
            look.segments.view(torch.int64), potential, gradient, t, m, *(*near.sides, 1, 1)[1:3],
            look.first, *look.ends, look.scale, d, targets, sources, T is None, amounts is not None, BITS, num_warps=1,
        )  # fmt: skip
    return potential, gradient
