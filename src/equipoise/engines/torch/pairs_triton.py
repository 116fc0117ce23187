"""Sums edges over stored pairs and the field over all pairs, in Triton; edges.py and direct.py do so in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ...arrays import namespace as arrays
from ...arrays.triton_kernels import Kernel
from ..tables import BITS

WIDTH = 128  # entries of a row per pass


@triton.jit
def _read(segments, d2, first, low, high, scale, BITS: tl.constexpr):
    """Return the value and the slope at d2 from a table, as lookup.py does."""
    x = tl.minimum(tl.maximum(d2 * scale, low), high)
    bits = x.to(tl.int32, bitcast=True)
    inside = bits & ((1 << BITS) - 1)
    f = ((inside << (23 - BITS)) | 0x3F800000).to(tl.float32, bitcast=True) - 1.0  # 1.0 with these bits as mantissa
    segment = segments + 4 * ((bits >> BITS) - first)
    s0, s1, s2 = tl.load(segment + 1), tl.load(segment + 2), tl.load(segment + 3)
    step = (x - (bits - inside).to(tl.float32, bitcast=True)) / scale
    value = tl.load(segment) + step * (s0 + f * (s1 * 0.5 + f * (s2 * (1.0 / 3))))
    return value, s0 + f * (s1 + f * s2)


@Kernel
@triton.jit(do_not_specialize=["first"])
def _edges(
    Y, pairs, indptr, columns, values, segments, force, psi, first, low, high, scale,
    D: tl.constexpr, WIDTH: tl.constexpr, VALUE: tl.constexpr, RATIONAL: tl.constexpr, BITS: tl.constexpr,
):  # fmt: skip
    """Sum the force E_i on point i, and the terms of row i in Ψ, over the stored entries of row i."""
    i = tl.program_id(0)
    start, end = tl.load(indptr + i), tl.load(indptr + i + 1)
    y0 = tl.load(Y + i * D)
    y1 = tl.load(Y + i * D + 1) if D > 1 else 0.0
    y2 = tl.load(Y + i * D + 2) if D > 2 else 0.0
    f0 = tl.zeros((WIDTH,), tl.float32)
    f1 = tl.zeros((WIDTH,), tl.float32)
    f2 = tl.zeros((WIDTH,), tl.float32)
    total = tl.zeros((WIDTH,), tl.float32)
    for s in range(start, end, WIDTH):
        t = s + tl.arange(0, WIDTH)
        valid = t < end
        j = tl.load(columns + t, mask=valid, other=0)
        a = tl.load(values + t, mask=valid, other=0.0)
        if D == 2:  # both coordinates at once
            pair = tl.load(pairs + j, mask=valid, other=0)
            x0 = y0 - (pair & 0xFFFFFFFF).to(tl.int32).to(tl.float32, bitcast=True)
            x1 = y1 - (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)
            d2 = x0 * x0 + x1 * x1
        else:
            x0 = y0 - tl.load(Y + j * D, mask=valid, other=0.0)
            d2 = x0 * x0
            if D > 1:
                x1 = y1 - tl.load(Y + j * D + 1, mask=valid, other=0.0)
                x2 = y2 - tl.load(Y + j * D + 2, mask=valid, other=0.0)
                d2 += x1 * x1 + x2 * x2
        if RATIONAL:  # k'/k = −scale / (low + d2)
            w = -a * scale / (low + d2)
        else:
            value, slope = _read(segments, d2, first, low, high, scale, BITS)
            if VALUE:
                total += tl.where(valid, a * value, 0.0)
            w = a * slope
        f0 += w * x0
        if D > 1:
            f1 += w * x1
        if D > 2:
            f2 += w * x2
    tl.store(force + i * D, tl.sum(f0, 0))
    if D > 1:
        tl.store(force + i * D + 1, tl.sum(f1, 0))
    if D > 2:
        tl.store(force + i * D + 2, tl.sum(f2, 0))
    if VALUE:
        tl.store(psi + i, tl.sum(total, 0))


def edges(Y: torch.Tensor, A: Any, kernel: Any, potential: bool) -> tuple[Any, torch.Tensor]:
    """Return what `stored_edges` in edges.py returns, for d = 1, 2, 3."""
    psi, force = row_edges(Y, A, kernel, potential)
    return arrays.total(psi) if potential else torch.nan, force


def row_edges(Y: torch.Tensor, A: Any, kernel: Any, potential: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what `row_edges` in edges.py returns, for d = 1, 2, 3; one warp sums each row."""
    force = torch.empty((A.shape[0], Y.shape[1]), device=Y.device)
    psi = torch.empty(A.shape[0] if potential else 0, device=Y.device)
    rational = None if potential else kernel.rational
    numbers = (*kernel.ends, kernel.scale) if rational is None else (rational[1], 0.0, rational[0])
    pairs = Y.view(torch.int64) if Y.shape[1] == 2 else Y
    _edges[(A.shape[0],)](
        Y, pairs, A.indptr, A.indices, A.data, kernel.segments, force, psi, kernel.first, *numbers,
        Y.shape[1], WIDTH, potential, rational is not None, BITS, num_warps=1,
    )  # fmt: skip
    return psi, force


@Kernel
@triton.jit(do_not_specialize=["n", "t", "m", "first", "own", "part_size"])
def _direct(
    T, Y, charges, segments, out, n, t, m, first, low, high, scale, own, part_size,
    D: tl.constexpr, WIDTH: tl.constexpr, CHARGED: tl.constexpr, BITS: tl.constexpr,
):  # fmt: skip
    """Sum the potential and half its gradient at target i over one part of the sources, without source i if `own`."""
    i = tl.program_id(0)
    part = tl.program_id(1)
    q = tl.program_id(2)
    p = tl.zeros((WIDTH,), tl.float32)
    g0 = tl.zeros((WIDTH,), tl.float32)
    g1 = tl.zeros((WIDTH,), tl.float32)
    g2 = tl.zeros((WIDTH,), tl.float32)
    for s in range(part * part_size, (part + 1) * part_size, WIDTH):
        j = s + tl.arange(0, WIDTH)
        valid = (j < n) & ((j != i) | (own == 0))
        x0 = tl.load(T + i * D) - tl.load(Y + j * D, mask=valid, other=0.0)
        d2 = x0 * x0
        x1 = x0
        x2 = x0
        if D > 1:
            x1 = tl.load(T + i * D + 1) - tl.load(Y + j * D + 1, mask=valid, other=0.0)
            d2 += x1 * x1
        if D > 2:
            x2 = tl.load(T + i * D + 2) - tl.load(Y + j * D + 2, mask=valid, other=0.0)
            d2 += x2 * x2
        value, slope = _read(segments, d2, first, low, high, scale, BITS)
        c = tl.where(valid, 1.0, 0.0)
        if CHARGED:
            c = tl.load(charges + j * m + q, mask=valid, other=0.0)
        p += c * value
        g0 += c * slope * x0
        g1 += c * slope * x1
        g2 += c * slope * x2
    at = out + ((part * t + i).to(tl.int64) * m + q) * (1 + D)
    tl.store(at, tl.sum(p, 0))
    tl.store(at + 1, tl.sum(g0, 0))
    if D > 1:
        tl.store(at + 2, tl.sum(g1, 0))
    if D > 2:
        tl.store(at + 3, tl.sum(g2, 0))


def direct(T: torch.Tensor, Y: torch.Tensor, charges: Any, kernel: Any, own: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return Φ (t, m) and ∇Φ (t, m, d) at targets T by direct sums, for d = 1, 2, 3, without self terms if `own`."""
    (t, d), n, m = T.shape, len(Y), 1 if charges is None else charges.shape[1]
    part = 4096 if t < 4096 else 65536
    parts = triton.cdiv(n, part)
    out = torch.empty((parts, t, m, 1 + d), device=Y.device)
    _direct[(t, parts, m)](
        T, Y, out if charges is None else charges.float().contiguous(), kernel.segments, out, n, t, m,
        kernel.first, *kernel.ends, kernel.scale, int(own), part, d, 256, charges is not None, BITS,
    )  # fmt: skip
    total = out.sum(dim=0)
    return total[..., 0], 2 * total[..., 1:]
