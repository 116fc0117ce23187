"""Exact neighbour search on a GPU without storing all distances: every pair is compared with a bound for its row.

The distance to the k-th of k points found before is a bound on the distance to the k-th neighbour. One pass over all
pairs, as matrix products on the tensor cores, collects the points below the bound; the bound is raised by the rounding
error of the products, so that no neighbour is missed. Distances to the points collected are recomputed from
differences. A row with more candidates than can be stored is searched again in full.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..arrays.blocks import FIXED_SEARCH_TILE
from ..arrays.tiles import in_tiles
from .gpu_scan import nearest as scan

ROWS = 128  # points of a tile
PARTS = 4  # programs that share the pairs of a tile of rows; chosen
# Precision of the products on the tensor cores, with a bound on the rounding error of 2 q·p, in units of ‖q‖ ‖p‖. In
# tf32 a number keeps 10 bits after the first and is truncated, which is an error of at most 2⁻¹⁰ in either factor;
# tf32x3 leaves out only products of two remainders, and both add in float32.
PRECISIONS = {"tf32": 2.0**-8, "tf32x3": 2.0**-17}
FEW = 0.01  # largest fraction of the rows that are searched again, before a higher precision is tried; chosen


@triton.jit(do_not_specialize=["start", "rows", "n", "per_part"])
def _below(
    X, norms, bound, count, found, start, rows, n, per_part,
    D: tl.constexpr, PART: tl.constexpr, ROOM: tl.constexpr, B: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Collect, for B rows q of X, the other rows p with ‖p‖² − 2 q·p below the bound of q, in arbitrary order."""
    local = tl.program_id(0) * B + tl.arange(0, B)
    row = local < rows
    r = (start + local).to(tl.int64)
    c = tl.arange(0, PART)
    q = tl.load(X + r[:, None] * D + c[None, :], mask=row[:, None], other=0.0)
    b = tl.load(bound + start + local, mask=row, other=-float("inf"))
    first = tl.program_id(1) * per_part
    for t in range(first, tl.minimum(first + per_part, n), B):
        j = (t + tl.arange(0, B)).to(tl.int64)
        valid = j < n
        p = tl.load(X + j[None, :] * D + c[:, None], mask=valid[None, :], other=0.0)
        product = tl.dot(q, p, input_precision=PRECISION)
        for s in range(PART, D, PART):
            q_s = tl.load(X + r[:, None] * D + s + c[None, :], mask=row[:, None], other=0.0)
            p_s = tl.load(X + j[None, :] * D + s + c[:, None], mask=valid[None, :], other=0.0)
            product = tl.dot(q_s, p_s, product, input_precision=PRECISION)
        d = tl.load(norms + j, mask=valid, other=float("inf"))[None, :] - 2 * product
        if tl.max(tl.max((d < b[:, None]).to(tl.int32), 1), 0) > 0:
            hit = (d < b[:, None]) & (r[:, None] != j[None, :])
            at = tl.atomic_add(
                count + local[:, None] + tl.zeros((B, B), tl.int32), tl.full((B, B), 1, tl.int32), mask=hit,
                sem="relaxed",
            )  # fmt: skip
            slot = found + local[:, None].to(tl.int64) * ROOM + at
            tl.store(slot, j[None, :].to(tl.int32) + tl.zeros((B, B), tl.int32), mask=hit & (at < ROOM))


@triton.jit(do_not_specialize=["base", "k"])
def _select(
    X, found, count, indices, d2, base, k, D: tl.constexpr, ROOM: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """Write the k nearest candidates of a row to `indices`, and their squared distances to `d2`.

    Distances are computed from differences. Ties go to the lower index.
    """
    i = tl.program_id(0).to(tl.int64)
    x = X + (base + i) * D
    t = tl.arange(0, ROOM)
    valid = t < tl.minimum(tl.load(count + i), ROOM)
    j = tl.load(found + i * ROOM + t, mask=valid, other=0).to(tl.int64)
    total = tl.zeros((ROOM,), tl.float32)
    for s in range(0, D, PART):
        c = s + tl.arange(0, PART)
        diff = tl.load(x + c)[None, :] - tl.load(X + j[:, None] * D + c[None, :], mask=valid[:, None], other=0.0)
        total += tl.sum(diff * diff, 1)
    bits = total.to(tl.int32, bitcast=True).to(tl.int64)
    key = tl.sort(tl.where(valid, (bits << 32) | j, 0x7F80000000000000))  # the bits of infinity
    selected = t < k
    out = (base + i) * k + t
    tl.store(indices + out, (key & 0xFFFFFFFF).to(tl.int32), mask=selected)
    tl.store(d2 + out, (key >> 32).to(tl.int32).to(tl.float32, bitcast=True), mask=selected)


def select(
    X: torch.Tensor, found: torch.Tensor, count: torch.Tensor, indices: torch.Tensor, d2: torch.Tensor, base: int
) -> None:
    """Write the k nearest of the candidates `found` (m, room) of each row, from row `base` on, to `indices` and `d2`.

    Row i has `count[i]` candidates, or `room` if that is less. X is (n, D), where D is a multiple of 8.
    """
    m, room = found.shape
    _select[(m,)](X, found, count, indices, d2, base, indices.shape[1], X.shape[1], room, 8, num_warps=4)


def nearest(X: torch.Tensor, k: int, kth: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the indices (n, k), int32, of the k other rows nearest to each row of centred X, and their d² (n, k).

    `kth` (n,) is a bound on the squared distance to the k-th neighbour.
    """
    n, D = X.shape
    X = torch.nn.functional.pad(X, (0, max(16, triton.next_power_of_2(D)) - D)).contiguous()
    norms = X.square().sum(dim=1)
    for precision, error in PRECISIONS.items():
        margin = norms.sqrt() * (norms.sqrt() + kth.sqrt()) * error
        indices, d2, full = _collect(X, norms, k, kth * (1 + 1e-5) - norms + margin, precision)
        if len(full) <= FEW * n:
            break
    if len(full):
        exact = scan(X[full], X, k, full)
        indices[full], d2[full] = exact.indices, exact.d2
    return indices, d2


def _collect(
    X: torch.Tensor, norms: torch.Tensor, k: int, bound: torch.Tensor, precision: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the k nearest of the rows of X below the bound of each row, their d², and the rows with too many."""
    n, D = X.shape
    room = triton.next_power_of_2(2 * k)
    indices = torch.empty((n, k), dtype=torch.int32, device=X.device)
    d2 = torch.empty((n, k), device=X.device)
    full = torch.zeros(n, dtype=torch.bool, device=X.device)
    per_part = triton.cdiv(triton.cdiv(n, PARTS), ROWS) * ROWS

    def search(part: slice) -> None:
        m = part.stop - part.start
        count = torch.zeros(m, dtype=torch.int32, device=X.device)
        found = torch.empty((m, room), dtype=torch.int32, device=X.device)
        _below[(triton.cdiv(m, ROWS), PARTS)](
            X, norms, bound, count, found, part.start, m, n, per_part,
            D, min(D, 64), room, ROWS, precision, num_warps=8, num_stages=3,
        )  # fmt: skip
        select(X, found, count, indices, d2, part.start)
        full[part] = (count > room) | (count < k)

    in_tiles(n, 2 * room, search, FIXED_SEARCH_TILE)
    return indices, d2, full.nonzero()[:, 0]
