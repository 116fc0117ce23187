"""The primitives as single kernels of a GPU, in Triton: a row of edges, a point's spline and a step in one pass each.

The plain versions beside them (stored.py, mesh.py, step.py) say the same in PyTorch, and run elsewhere.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

WIDTH = 128  # entries of a row at a time
POINTS = 256  # points of a program


@triton.jit
def _edges(
    Y, indptr, columns, values, segments, force, psi, first, low, high, scale,
    D: tl.constexpr, WIDTH: tl.constexpr, VALUE: tl.constexpr,
):  # fmt: skip
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
        there = t < end
        j = tl.load(columns + t, mask=there, other=0)
        a = tl.load(values + t, mask=there, other=0.0)
        x0 = y0 - tl.load(Y + j * D, mask=there, other=0.0)
        d2 = x0 * x0
        if D > 1:
            x1 = y1 - tl.load(Y + j * D + 1, mask=there, other=0.0)
            d2 += x1 * x1
        if D > 2:
            x2 = y2 - tl.load(Y + j * D + 2, mask=there, other=0.0)
            d2 += x2 * x2
        x = tl.minimum(tl.maximum(d2 * scale, low), high)  # the table, as lookup.py reads it
        bits = x.to(tl.int32, bitcast=True)
        f = (((bits & 0x1FFFF) << 6) | 0x3F800000).to(tl.float32, bitcast=True) - 1.0
        segment = segments + 4 * ((bits >> 17) - first)
        s0, s1, s2 = tl.load(segment + 1), tl.load(segment + 2), tl.load(segment + 3)
        if VALUE:
            step = (x - (bits & -0x20000).to(tl.float32, bitcast=True)) / scale
            value = tl.load(segment) + step * (s0 + f * (s1 * 0.5 + f * (s2 * (1.0 / 3))))
            total += tl.where(there, a * value, 0.0)
        w = a * (s0 + f * (s1 + f * s2))
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


def edges(Y: torch.Tensor, A: Any, kernel: Any, potential: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """As stored.stored_edges, d = 1, 2, 3: one warp a row."""
    force = torch.empty_like(Y)
    psi = torch.empty(A.n if potential else 0, device=Y.device)
    low, high = kernel.ends
    _edges[(A.n,)](
        Y, A.indptr, A.columns, A.values, kernel.segments, force, psi, kernel.first, low, high, kernel.scale,
        Y.shape[1], WIDTH, potential, num_warps=1,
    )  # fmt: skip
    return psi.sum(dtype=torch.float64), force


@triton.jit
def _weight(f, a: tl.constexpr):
    """The quintic B-spline at the a-th of the 6 nodes around a point at offset f in its cell."""
    g = 1.0 - f
    f2 = f * f
    g2 = g * g
    if a == 0:
        return g2 * g2 * g * (1.0 / 120)
    elif a == 1:
        return (26.0 + f * (-50.0 + f * (20.0 + f * (20.0 + f * (-20.0 + 5.0 * f))))) * (1.0 / 120)
    elif a == 2:
        return (66.0 + f2 * (-60.0 + f2 * (30.0 - 10.0 * f))) * (1.0 / 120)
    elif a == 3:
        return (66.0 + g2 * (-60.0 + g2 * (30.0 - 10.0 * g))) * (1.0 / 120)
    elif a == 4:
        return (26.0 + g * (-50.0 + g * (20.0 + g * (20.0 + g * (-20.0 + 5.0 * g))))) * (1.0 / 120)
    else:
        return f2 * f2 * f * (1.0 / 120)


@triton.jit
def _slope(f, a: tl.constexpr):
    """Its slope."""
    g = 1.0 - f
    f2 = f * f
    g2 = g * g
    if a == 0:
        return -g2 * g2 * (1.0 / 24)
    elif a == 1:
        return (-50.0 + f * (40.0 + f * (60.0 + f * (-80.0 + 25.0 * f)))) * (1.0 / 120)
    elif a == 2:
        return f * (-120.0 + f2 * (120.0 - 50.0 * f)) * (1.0 / 120)
    elif a == 3:
        return -g * (-120.0 + g2 * (120.0 - 50.0 * g)) * (1.0 / 120)
    elif a == 4:
        return -(-50.0 + g * (40.0 + g * (60.0 + g * (-80.0 + 25.0 * g)))) * (1.0 / 120)
    else:
        return f2 * f2 * (1.0 / 24)


@triton.jit
def _spread(U, charges, grid, n, n1, n2, nodes, unit, m, D: tl.constexpr, POINTS: tl.constexpr):
    i = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    there = i < n
    q = tl.program_id(1)
    u0 = tl.load(U + i * D, mask=there, other=2.0)
    c0 = tl.floor(u0)
    base = c0.to(tl.int32) - 2
    f0 = u0 - c0
    f1 = f0
    f2 = f0
    if D > 1:
        u1 = tl.load(U + i * D + 1, mask=there, other=2.0)
        c1 = tl.floor(u1)
        base = base * n1 + c1.to(tl.int32) - 2
        f1 = u1 - c1
    if D > 2:
        u2 = tl.load(U + i * D + 2, mask=there, other=2.0)
        c2 = tl.floor(u2)
        base = base * n2 + c2.to(tl.int32) - 2
        f2 = u2 - c2
    amount = tl.load(charges + i * m + q, mask=there, other=0.0) * unit
    grid += q.to(tl.int64) * nodes
    for a in tl.static_range(6):
        w0 = amount * _weight(f0, a)
        if D == 1:
            tl.atomic_add(grid + base + a, w0.to(tl.int64), mask=there, sem="relaxed")
        else:
            for b in tl.static_range(6):
                w1 = w0 * _weight(f1, b)
                if D == 2:
                    tl.atomic_add(grid + base + a * n1 + b, w1.to(tl.int64), mask=there, sem="relaxed")
                else:
                    for c in tl.static_range(6):
                        place = base + (a * n1 + b) * n2 + c
                        tl.atomic_add(grid + place, (w1 * _weight(f2, c)).to(tl.int64), mask=there, sem="relaxed")


def spread(U: torch.Tensor, charges: torch.Tensor, size: tuple[int, ...], unit: float, grid: torch.Tensor) -> None:
    """Add charges (n, m) float32 at points U (n, d), in mesh widths, to the grid (m, nodes) in units of 1/unit."""
    n, m = charges.shape
    n1, n2 = (*size[1:], 1, 1)[:2]
    _spread[(triton.cdiv(n, POINTS), m)](
        U, charges, grid, n, n1, n2, grid.shape[1], unit, m, len(size), POINTS
    )  # fmt: skip


@triton.jit
def _gather(U, phi, potential, gradient, n, n1, n2, nodes, h, m, D: tl.constexpr, POINTS: tl.constexpr):
    i = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    there = i < n
    q = tl.program_id(1)
    u0 = tl.load(U + i * D, mask=there, other=2.0)
    c0 = tl.floor(u0)
    base = c0.to(tl.int32) - 2
    f0 = u0 - c0
    f1 = f0
    f2 = f0
    if D > 1:
        u1 = tl.load(U + i * D + 1, mask=there, other=2.0)
        c1 = tl.floor(u1)
        base = base * n1 + c1.to(tl.int32) - 2
        f1 = u1 - c1
    if D > 2:
        u2 = tl.load(U + i * D + 2, mask=there, other=2.0)
        c2 = tl.floor(u2)
        base = base * n2 + c2.to(tl.int32) - 2
        f2 = u2 - c2
    phi += q.to(tl.int64) * nodes
    p = tl.zeros((POINTS,), tl.float32)
    g0 = tl.zeros((POINTS,), tl.float32)
    g1 = tl.zeros((POINTS,), tl.float32)
    g2 = tl.zeros((POINTS,), tl.float32)
    for a in tl.static_range(6):
        s = tl.zeros((POINTS,), tl.float32)  # over the other axes: the value, and its slopes along them
        s1 = tl.zeros((POINTS,), tl.float32)
        s2 = tl.zeros((POINTS,), tl.float32)
        if D == 1:
            s = tl.load(phi + base + a, mask=there, other=0.0)
        elif D == 2:
            for b in tl.static_range(6):
                v = tl.load(phi + base + a * n1 + b, mask=there, other=0.0)
                s += v * _weight(f1, b)
                s1 += v * _slope(f1, b)
        else:
            for b in tl.static_range(6):
                r = tl.zeros((POINTS,), tl.float32)
                r2 = tl.zeros((POINTS,), tl.float32)
                for c in tl.static_range(6):
                    v = tl.load(phi + base + (a * n1 + b) * n2 + c, mask=there, other=0.0)
                    r += v * _weight(f2, c)
                    r2 += v * _slope(f2, c)
                s += r * _weight(f1, b)
                s1 += r * _slope(f1, b)
                s2 += r2 * _weight(f1, b)
        w = _weight(f0, a)
        p += s * w
        g0 += s * _slope(f0, a)
        g1 += s1 * w
        g2 += s2 * w
    tl.store(potential + i * m + q, p, mask=there)
    out = gradient + (i * m + q) * D
    tl.store(out, g0 / h, mask=there)
    if D > 1:
        tl.store(out + 1, g1 / h, mask=there)
    if D > 2:
        tl.store(out + 2, g2 / h, mask=there)


def gather(U: torch.Tensor, phi: torch.Tensor, size: tuple[int, ...], h: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the potential (n, m) at points U, in mesh widths, and its gradient (n, m, d), from phi (m, nodes)."""
    (n, d), m = U.shape, len(phi)
    potential = torch.empty((n, m), device=U.device)
    gradient = torch.empty((n, m, d), device=U.device)
    n1, n2 = (*size[1:], 1, 1)[:2]
    _gather[(triton.cdiv(n, POINTS), m)](U, phi, potential, gradient, n, n1, n2, phi.shape[1], h, m, d, POINTS)
    return potential, gradient


@triton.jit
def _step(
    gradient, velocity, gain, rate, momentum, up, down, turned, least, most, n,
    D: tl.constexpr, POINTS: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    there = i < n
    length = tl.zeros((POINTS,), tl.float32)
    for c in tl.static_range(D):
        at = i * D + c
        push = rate * tl.load(gradient + at, mask=there, other=0.0).to(tl.float32)
        v = tl.load(velocity + at, mask=there, other=0.0)
        g = tl.load(gain + at, mask=there, other=1.0)
        turn = push * v
        g = tl.where(turn <= 0, g + up, tl.where(g * turn > turned * v * v, g * down, g))
        g = tl.maximum(g, least)
        v = momentum * v - g * push
        length += v * v
        tl.store(gain + at, g, mask=there)
        tl.store(velocity + at, v, mask=there)
    length = tl.sqrt(length)
    factor = tl.where(length > most, most / length, 1.0)
    for c in tl.static_range(D):
        at = i * D + c
        tl.store(velocity + at, factor * tl.load(velocity + at, mask=there, other=0.0), mask=there)


def step(gradient: torch.Tensor, velocity: torch.Tensor, gain: torch.Tensor, rate: Any, *rule: float) -> None:
    """As step.momentum_step; a rate that is still on the device stays there."""
    n, d = velocity.shape
    if isinstance(rate, torch.Tensor):
        gradient, rate = rate * gradient, 1.0
    _step[(triton.cdiv(n, POINTS),)](gradient.contiguous(), velocity, gain, rate, *rule, n, d, POINTS)
