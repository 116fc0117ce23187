"""Triton kernels of the block search: compare the points of each block with those of the blocks near it.

Points are numbered block by block. Block b holds the points `starts[b]` to `starts[b + 1]` − 1, at most `BLOCK` of them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..arrays.blocks import FIXED_SEARCH_TILE
from .gpu_blocks import BLOCK, Blocks
from .sieve_triton import select

GROUP = 32  # blocks of a list that are compared at once
SPARE = 8  # candidates beyond k, for the rounding error of the products; chosen
INFINITY = tl.constexpr(0x7F800000)  # the bits of the float32


@triton.jit(do_not_specialize=["first", "offset", "stride", "width"])
def _compare(
    X, starts, centers, lists, D2, first, offset, stride, width,
    D: tl.constexpr, PART: tl.constexpr, B: tl.constexpr, GROUP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Store in D2 (rows, GROUP · B) the squared distances of the points of a block to those of one block of its list.

    Both are taken relative to the centre of the block, so that the rounding error of the products is small compared
    with the distances to near points. Where there is no point, and for the point itself, infinity is stored.
    """
    local = tl.program_id(0)
    block = first + local
    t = offset + tl.program_id(1)
    near = tl.load(lists + block.to(tl.int64) * stride + t, mask=t < width, other=-1)
    b = tl.arange(0, B)
    i = tl.load(starts + block) + b
    rows = i < tl.load(starts + block + 1)
    j = tl.load(starts + near, mask=near >= 0, other=0) + b
    columns = (j < tl.load(starts + near + 1, mask=near >= 0, other=0)) & (near >= 0)
    product = tl.zeros((B, B), tl.float32)
    own = tl.zeros((B,), tl.float32)
    other = tl.zeros((B,), tl.float32)
    for s in range(0, D, PART):
        c = s + tl.arange(0, PART)
        center = tl.load(centers + block.to(tl.int64) * D + c, mask=c < D, other=0.0)
        wanted = rows[:, None] & (c < D)[None, :]
        q = tl.load(X + i.to(tl.int64)[:, None] * D + c[None, :], mask=wanted, other=0.0) - center[None, :]
        wanted = columns[:, None] & (c < D)[None, :]
        p = tl.load(X + j.to(tl.int64)[:, None] * D + c[None, :], mask=wanted, other=0.0) - center[None, :]
        product = tl.dot(q, tl.trans(p), product, input_precision=PRECISION)
        own += tl.sum(q * q, 1)
        other += tl.sum(p * p, 1)
    d2 = tl.maximum(own[:, None] + other[None, :] - 2 * product, 0.0)
    d2 = tl.where(columns[None, :] & (i[:, None] != j[None, :]), d2, float("inf"))
    row = (local * B + b).to(tl.int64)
    at = D2 + row[:, None] * (GROUP * B) + tl.program_id(1) * B + b[None, :]
    tl.store(at, d2, mask=rows[:, None] & (b < B)[None, :])


@triton.jit(do_not_specialize=["first", "base", "offset", "stride", "want"])
def _pick(
    D2, starts, lists, found, count, bound, first, base, offset, stride, want,
    B: tl.constexpr, SLOTS: tl.constexpr, ROOM: tl.constexpr,
):  # fmt: skip
    """Append to `found` the points of a row of D2 that are among the `want` nearest, and perhaps a few more.

    Bisection finds a bound below which there are at least `want` points. A point at or above the bound of an earlier
    group of blocks is not needed.
    """
    row = tl.program_id(0)
    block = first + row // B
    start = tl.load(starts + block)
    if start + row % B < tl.load(starts + block + 1):
        i = (start + row % B - base).to(tl.int64)
        s = tl.arange(0, SLOTS)
        bits = tl.load(D2 + row.to(tl.int64) * SLOTS + s).to(tl.int32, bitcast=True)
        before = tl.load(bound + i)
        used = tl.load(count + i)
        bits = tl.where(bits < before, bits, INFINITY)
        low = tl.min(bits, 0)
        high = tl.max(tl.where(bits < INFINITY, bits, 0), 0)
        below = tl.sum((bits <= high).to(tl.int32), 0)
        left = ROOM - used
        while (low < high) & (below > want) & ((below > want + want // 4) | (below > left)):
            middle = low + (high - low) // 2
            at_middle = tl.sum((bits <= middle).to(tl.int32), 0)
            if at_middle >= want:
                high = middle
                below = at_middle
            else:
                low = middle + 1
        if below >= want:
            tl.store(bound + i, high)
        hit = bits <= high
        nearer = (bits < high).to(tl.int32)  # before those at the bound, of which some may not fit
        order = tl.cumsum(nearer + ((hit.to(tl.int32) - nearer) << 16), 0)
        inner = tl.sum(nearer, 0)
        slot = used + tl.where(bits < high, order & 0xFFFF, inner + (order >> 16)) - 1
        near = tl.load(lists + block.to(tl.int64) * stride + offset + s // B, mask=hit, other=0)
        j = tl.load(starts + near, mask=hit, other=0) + s % B
        tl.store(found + i * ROOM + slot, j, mask=hit & (slot < ROOM))
        tl.store(count + i, tl.minimum(used + below, ROOM))


def nearest_in_lists(
    blocks: Blocks, lists: torch.Tensor, k: int, precision: str = "tf32"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return, for each point, the k nearest other points in the blocks listed for its block, and their d², (n, k).

    Points are numbered block by block. A point with fewer than k candidates has missing neighbours at distance
    infinity.
    """
    X, starts = blocks.X, blocks.starts
    n, D = X.shape
    width, want = lists.shape[1], k + SPARE
    room = triton.next_power_of_2(want + want // 4) * (1 if width <= GROUP else 4)
    indices = torch.empty((n, k), dtype=torch.int32, device=X.device)
    d2 = torch.empty((n, k), device=X.device)
    step = max(1, FIXED_SEARCH_TILE // (BLOCK * BLOCK * GROUP))
    scratch = torch.empty((min(step, len(lists)) * BLOCK, GROUP * BLOCK), device=X.device)
    bounds = blocks.starts.tolist()
    for first in range(0, len(lists), step):
        last = min(first + step, len(lists))
        base, m = bounds[first], bounds[last] - bounds[first]
        found = torch.empty((m, room), dtype=torch.int32, device=X.device)
        count = torch.zeros(m, dtype=torch.int32, device=X.device)
        bound = torch.full((m,), 0x7F800000, dtype=torch.int32, device=X.device)
        for offset in range(0, width, GROUP):
            _compare[(last - first, GROUP)](
                X, starts, blocks.centers, lists, scratch, first, offset, width, width,
                D, min(32, max(16, triton.next_power_of_2(D))), BLOCK, GROUP, precision, num_warps=8,
            )  # fmt: skip
            _pick[((last - first) * BLOCK,)](
                scratch, starts, lists, found, count, bound, first, base, offset, width, want,
                BLOCK, GROUP * BLOCK, room, num_warps=4,
            )  # fmt: skip
        select(X, found, count, indices, d2, base)
    return indices, d2
