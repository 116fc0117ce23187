"""Spreads charges to a mesh and interpolates potentials at points, in Triton; particle_mesh.py does so in PyTorch."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
import triton
import triton.language as tl

from ...arrays.triton_kernels import Kernel
from ..mesh.plan import ORDER

POINTS = 256  # points per program
# Constants inside kernels. `_weight` and `_slope` are the splines of order 6 in closed form.
NODES = tl.constexpr(ORDER)  # nodes of a spline along an axis
BEFORE = tl.constexpr(ORDER // 2 - 1)  # nodes of a spline before the cell of its point
LOWEST = tl.constexpr(ORDER / 2 - 1)  # smallest position of a point, in cells from the start of the mesh
AFTER = tl.constexpr(ORDER / 2 + 1)  # largest position, in cells before the end


@triton.jit
def _weight(f, a: tl.constexpr):
    """Return the quintic B-spline at the a-th of the 6 nodes around a point at offset f in its cell."""
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
    """Return the slope of the quintic B-spline at the same node as `_weight`."""
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
def _weight_of(f, a):
    """Return `_weight(f, a)` for a node index `a` that is not known at compile time."""
    w = tl.where(a == 0, _weight(f, 0), tl.where(a == 1, _weight(f, 1), _weight(f, 2)))
    return tl.where(a < 3, w, tl.where(a == 3, _weight(f, 3), tl.where(a == 4, _weight(f, 4), _weight(f, 5))))


@triton.jit
def _slope_of(f, a):
    """Return `_slope(f, a)` for a node index `a` that is not known at compile time."""
    w = tl.where(a == 0, _slope(f, 0), tl.where(a == 1, _slope(f, 1), _slope(f, 2)))
    return tl.where(a < 3, w, tl.where(a == 3, _slope(f, 3), tl.where(a == 4, _slope(f, 4), _slope(f, 5))))


@Kernel
@triton.jit(do_not_specialize=["n"])
def _box(Y, parts, n, D: tl.constexpr, POINTS: tl.constexpr):
    """Store the corners of the bounding box of each block of points."""
    i = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    valid = i < n
    for c in tl.static_range(D):
        y = tl.load(Y + i * D + c, mask=valid, other=0.0)
        at = parts + tl.program_id(0) * 2 * D + c
        tl.store(at, tl.min(tl.where(valid, y, float("inf")), 0))
        tl.store(at + D, tl.max(tl.where(valid, y, -float("inf")), 0))


@Kernel
@triton.jit(do_not_specialize=["count"])
def _merge_boxes(parts, box, count, D: tl.constexpr, WIDTH: tl.constexpr):
    """Store the common bounding box of `count` boxes."""
    t = tl.arange(0, WIDTH)
    for c in tl.static_range(D):
        low = tl.full((WIDTH,), float("inf"), tl.float32)
        high = tl.full((WIDTH,), -float("inf"), tl.float32)
        for s in range(0, count, WIDTH):
            valid = s + t < count
            at = parts + (s + t) * 2 * D + c
            low = tl.minimum(low, tl.load(at, mask=valid, other=float("inf")))
            high = tl.maximum(high, tl.load(at + D, mask=valid, other=-float("inf")))
        tl.store(box + c, tl.min(low, 0))
        tl.store(box + D + c, tl.max(high, 0))


def bounding_box(Y: torch.Tensor) -> torch.Tensor:
    """Return the corners (2, d) of the bounding box of points (n, d), d = 1, 2, 3."""
    n, d = Y.shape
    count = triton.cdiv(n, 1024)
    parts, result = Y.new_empty((count, 2, d)), Y.new_empty((2, d))
    _box[(count,)](Y, parts, n, d, 1024)
    _merge_boxes[(1,)](parts, result, count, d, 256)
    return result


@triton.jit
def _locate(Y, box, i, valid, c: tl.constexpr, half, h, n, D: tl.constexpr, DOUBLE: tl.constexpr):
    """Return, along axis c, the first node of the spline around each point, and the offset of the point in its cell."""
    middle = (tl.load(box + c).to(tl.float64) + tl.load(box + D + c).to(tl.float64)) * 0.5
    origin = middle - half
    y = tl.load(Y + i * D + c, mask=valid, other=0.0)
    u = (y.to(tl.float64) - origin) / h if DOUBLE else (y - origin.to(tl.float32)) / h
    u = tl.minimum(tl.maximum(u, LOWEST), n - AFTER)
    cell = tl.floor(u)
    return cell.to(tl.int32) - BEFORE, u - cell


@triton.jit
def _corner(
    Y, box, i, valid, a0, a1, a2, h, n0, n1, n2, row, line, D: tl.constexpr, DOUBLE: tl.constexpr
):  # fmt: skip
    """Return the index of the lowest node of the spline around each point, and the offsets of the point in its cell.

    `row` and, in 3-D, `line` are the lengths of the second and third axis of the mesh, including padding.
    """
    at, f0 = _locate(Y, box, i, valid, 0, a0, h, n0, D, DOUBLE)
    f1 = f0
    f2 = f0
    if D > 1:
        b1, f1 = _locate(Y, box, i, valid, 1, a1, h, n1, D, DOUBLE)
        at = at * row + b1
    if D > 2:
        b2, f2 = _locate(Y, box, i, valid, 2, a2, h, n2, D, DOUBLE)
        at = at * line + b2
    return at, f0, f1, f2


@Kernel
@triton.jit(do_not_specialize=["n", "n0", "n1", "n2", "nodes", "m", "copies"])
def _spread(
    Y, box, charges, unit, grid, n, n0, n1, n2, nodes, h, a0, a1, a2, m, copies,
    D: tl.constexpr, POINTS: tl.constexpr, CHARGED: tl.constexpr, FIXED: tl.constexpr, DOUBLE: tl.constexpr,
):  # fmt: skip
    """Add the charges of points to the nodes of their splines, on one of several copies of the mesh."""
    i = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    valid = i < n
    q = tl.program_id(1)
    base, f0, f1, f2 = _corner(Y, box, i, valid, a0, a1, a2, h, n0, n1, n2, n1, n2, D, DOUBLE)
    amount = tl.load(unit).to(f0.dtype) if FIXED else f0 * 0 + 1
    if CHARGED:
        amount = amount * tl.load(charges + i * m + q, mask=valid, other=0.0).to(f0.dtype)
    copy = (tl.program_id(0) % copies) * m + q
    grid += copy.to(tl.int64) * nodes
    for first in tl.static_range(1 if D == 3 else NODES):
        for more in range(NODES if D == 3 else 1):  # unrolling three axes would take a minute to compile
            a = first + more
            w0 = amount * (_weight_of(f0, more) if D == 3 else _weight(f0, first))
            if D == 1:
                tl.atomic_add(grid + base + a, _to_integer(w0, FIXED), mask=valid, sem="relaxed")
            else:
                for b in tl.static_range(NODES):
                    w1 = w0 * _weight(f1, b)
                    if D == 2:
                        tl.atomic_add(grid + base + a * n1 + b, _to_integer(w1, FIXED), mask=valid, sem="relaxed")
                    else:
                        for c in tl.static_range(NODES):
                            at = grid + base + (a * n1 + b) * n2 + c
                            tl.atomic_add(at, _to_integer(w1 * _weight(f2, c), FIXED), mask=valid, sem="relaxed")


@triton.jit
def _to_integer(w, FIXED: tl.constexpr):
    """Return a weight as int64 for a fixed-point mesh, and unchanged for any other mesh."""
    return w.to(tl.int64) if FIXED else w


@Kernel
@triton.jit(do_not_specialize=["size", "n", "copies"])
def _sum_copies(grid, unit, padded, size, n, copies, FIXED: tl.constexpr, WIDTH: tl.constexpr):
    """Sum the copies of a mesh, convert integers to charges, and store rows of n nodes, each followed by n zeros."""
    row = tl.program_id(0).to(tl.int64)
    t = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    inside = t < n
    count = tl.load(grid + row * n + t, mask=inside, other=0)
    for copy in range(1, copies):
        count += tl.load(grid + copy * size.to(tl.int64) + row * n + t, mask=inside, other=0)
    value = count.to(padded.dtype.element_ty)
    if FIXED:
        value *= (1.0 / tl.load(unit)).to(value.dtype)  # a power of two
    tl.store(padded + 2 * row * n + t, value, mask=t < 2 * n)


def spread(
    mesh: Any, Y: torch.Tensor, box: torch.Tensor, charges: Any, unit: torch.Tensor, add_up: Any = None
) -> torch.Tensor:
    """Return m meshes to which the charges (n, m), 1 by default, of points (n, d) are spread.

    The last axis of the meshes is padded to twice its size. `add_up`, if given, adds the integers (m, nodes) of the
    meshes over all processes.
    """
    n, m = len(Y), 1 if charges is None else charges.shape[1]
    nodes, copies, d = prod(mesh.size), mesh.copies, len(mesh.size)
    double = mesh.dtype == torch.float64
    grid = torch.zeros((copies, m, nodes), dtype=torch.int64 if mesh.fixed_point else mesh.dtype, device=Y.device)
    sides, half = (*mesh.size, 1, 1)[:3], (*mesh.half, 0.0, 0.0)[:3]
    _spread[(triton.cdiv(n, POINTS), m)](
        Y, box, grid if charges is None else charges.contiguous(), unit, grid, n, *sides, nodes, mesh.h, *half, m,
        copies, d, POINTS, charges is not None, mesh.fixed_point, double,
    )  # fmt: skip
    if add_up is not None:
        grid, copies = add_up(grid.sum(dim=0)), 1
    *others, last = mesh.size
    padded = torch.empty((m, *others, 2 * last), dtype=mesh.dtype, device=Y.device)
    across = (m * nodes // last, triton.cdiv(2 * last, 512))
    _sum_copies[across](grid, unit, padded, m * nodes, last, copies, mesh.fixed_point, 512)
    return padded


@Kernel
@triton.jit(do_not_specialize=["A", "B", "C", "length"])
def _transpose_padded(S, T, A, B, C, length, WIDTH: tl.constexpr):
    """Store T[q, c, a, b] = S[q, a, b, c], or 0 for b ≥ B; elements have 8 bytes.

    Each program copies a square tile: WIDTH values of b and WIDTH values of c.
    """
    b = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    c = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    q = (tl.program_id(2) // A).to(tl.int64)
    a = (tl.program_id(2) % A).to(tl.int64)
    source = S + (q * A + a) * B * C + b[:, None] * C + c[None, :]
    value = tl.load(source, mask=(b < B)[:, None] & (c < C)[None, :], other=0)
    target = T + q * C * A * length + (c[:, None].to(tl.int64) * A + a) * length + b[None, :]
    tl.store(target, tl.trans(value), mask=(c < C)[:, None] & (b < length)[None, :])


def transpose_padded(S: torch.Tensor, length: int) -> torch.Tensor:
    """Return what `transpose_padded` in particle_mesh.py returns, for complex64."""
    m, *others, B, C = S.shape
    A = prod(others)
    T = torch.empty((m, C, *others, length), dtype=S.dtype, device=S.device)
    grid = (triton.cdiv(length, 32), triton.cdiv(C, 32), m * A)
    _transpose_padded[grid](S.contiguous().view(torch.int64), T.view(torch.int64), A, B, C, length, 32)
    return T


@Kernel
@triton.jit(do_not_specialize=["base", "n", "n0", "n1", "n2", "size", "m"])
def _gather(
    Y, box, phi, base, potential, gradient, n, n0, n1, n2, size, h, a0, a1, a2, m,
    D: tl.constexpr, POINTS: tl.constexpr, DOUBLE: tl.constexpr,
):  # fmt: skip
    """Interpolate the potential on the mesh and its gradient at points."""
    i = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    valid = i < n
    q = tl.program_id(1)
    row = 2 * n1 if D == 2 else n1  # because the last axis is padded
    at, f0, f1, f2 = _corner(Y, box, i, valid, a0, a1, a2, h, n0, n1, n2, row, 2 * n2, D, DOUBLE)
    phi += q.to(tl.int64) * size
    p = f0 * 0
    g0 = f0 * 0
    g1 = f0 * 0
    g2 = f0 * 0
    for first in tl.static_range(1 if D == 3 else NODES):
        for more in range(NODES if D == 3 else 1):
            a = first + more
            s = f0 * 0  # sums over the other axes: the value and its slopes
            s1 = f0 * 0
            s2 = f0 * 0
            if D == 1:
                s = tl.load(phi + at + a, mask=valid, other=0.0)
            elif D == 2:
                for b in tl.static_range(NODES):
                    v = tl.load(phi + at + a * (2 * n1) + b, mask=valid, other=0.0)
                    s += v * _weight(f1, b)
                    s1 += v * _slope(f1, b)
            else:
                for b in tl.static_range(NODES):
                    r = f0 * 0
                    r2 = f0 * 0
                    for c in tl.static_range(NODES):
                        v = tl.load(phi + at + (a * n1 + b) * (2 * n2) + c, mask=valid, other=0.0)
                        r += v * _weight(f2, c)
                        r2 += v * _slope(f2, c)
                    s += r * _weight(f1, b)
                    s1 += r * _slope(f1, b)
                    s2 += r2 * _weight(f1, b)
            w = _weight_of(f0, more) if D == 3 else _weight(f0, first)
            p += s * w
            g0 += s * (_slope_of(f0, more) if D == 3 else _slope(f0, first))
            g1 += s1 * w
            g2 += s2 * w
    tl.store(potential + i * m + q, p + tl.load(base + q).to(p.dtype), mask=valid)
    out = gradient + (i * m + q) * D
    tl.store(out, g0 / h, mask=valid)
    if D > 1:
        tl.store(out + 1, g1 / h, mask=valid)
    if D > 2:
        tl.store(out + 2, g2 / h, mask=valid)


def gather(
    mesh: Any, Y: torch.Tensor, box: torch.Tensor, phi: torch.Tensor, base: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the potential (n, m) at points, plus a constant `base` (m,), and its gradient (n, m, d).

    `phi` is the potential on m meshes, whose last axis is padded to twice its size.
    """
    (n, d), m = Y.shape, len(phi)
    potential = torch.empty((n, m), dtype=mesh.dtype, device=Y.device)
    gradient = torch.empty((n, m, d), dtype=mesh.dtype, device=Y.device)
    sides, half = (*mesh.size, 1, 1)[:3], (*mesh.half, 0.0, 0.0)[:3]
    _gather[(triton.cdiv(n, POINTS), m)](
        Y, box, phi.contiguous(), base, potential, gradient, n, *sides, phi[0].numel(), mesh.h, *half, m,
        d, POINTS, mesh.dtype == torch.float64,
    )  # fmt: skip
    return potential, gradient
