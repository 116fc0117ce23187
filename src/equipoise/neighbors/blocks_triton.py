"""Triton kernels of the block search: compare the points of each block with those of the blocks near it.

Points are numbered block by block: block b holds the points `starts[b]` to `starts[b + 1]` − 1, at most B of them. A
list is kept for each point: the nearest points found so far, and a bound, beyond which no point is needed. The blocks
near a block are compared with it in groups, nearest first, as matrix products on the tensor cores. Where a product
finds a point below the bound, the list is merged with the points found. At the end, the distances to the points of a
list are computed again from differences, and the nearest k are kept.
"""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl

from ..arrays.blocks import FIXED_SEARCH_TILE
from ..arrays.triton_kernels import META, Kernel

if TYPE_CHECKING:
    from .gpu_blocks import Blocks

GROUP = 32  # blocks compared at once with a block
SPARE = 8  # entries of a list beyond k, for the rounding error of the products; chosen
TILES = 4  # blocks compared by one program; chosen
PART = 64  # largest number of columns of a product at once; chosen
INFINITY = tl.constexpr(0x7F800000)  # the bits of the float32; those of positive numbers have the order of the numbers


@Kernel
@triton.jit(do_not_specialize=["first", "base", "offset", "width", "stride", "parts"])
def _compare(
    X, starts, centers, lists, bound, D2, flags, first, base, offset, width, stride, parts,
    PART: tl.constexpr, SEVERAL: tl.constexpr, B: tl.constexpr, GROUP: tl.constexpr, TILES: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Compare a block with TILES blocks of its list: store squared distances in D2 (stride, GROUP · B).

    There are `parts` · PART columns if `SEVERAL`, and otherwise PART.

    Points are taken relative to the centre of the block, so that the rounding error of the products is small compared
    with the distances to near points. Infinity stands for a point itself, and where a block has fewer than B points.
    The flags (GROUP, stride) say which rows of a tile have distances below their bounds; only these rows are stored.
    """
    D = parts * PART if SEVERAL else PART
    local = tl.program_id(0)
    block = first + local
    b = tl.arange(0, B)
    c = tl.arange(0, PART)
    i = tl.load(starts + block) + b
    rows = i < tl.load(starts + block + 1)
    row = (local * B + b).to(tl.int64)
    x = X + i.to(tl.int64)[:, None] * D
    center = centers + block.to(tl.int64) * D
    limit = tl.load(bound + (i - base), mask=rows, other=0)
    m = tl.load(center + c)[None, :]
    q = tl.load(x + c[None, :], mask=rows[:, None], other=0.0) - m
    own = tl.sum(q * q, 1)
    for s in range(PART, D, PART):
        q_s = tl.load(x + s + c[None, :], mask=rows[:, None], other=0.0) - tl.load(center + s + c)[None, :]
        own += tl.sum(q_s * q_s, 1)
    for t in range(tl.program_id(1) * TILES, tl.program_id(1) * TILES + TILES):
        listed = offset + t < width
        near = tl.load(lists + local.to(tl.int64) * width + offset + t, mask=listed, other=0)
        j = tl.load(starts + near) + b
        columns = (j < tl.load(starts + near + 1)) & listed
        y = X + j.to(tl.int64)[:, None] * D
        p = tl.load(y + c[None, :], mask=columns[:, None], other=0.0) - m
        product = tl.dot(q, tl.trans(p), input_precision=PRECISION)
        other = tl.sum(p * p, 1)
        for s in range(PART, D, PART):
            m_s = tl.load(center + s + c)[None, :]
            q_s = tl.load(x + s + c[None, :], mask=rows[:, None], other=0.0) - m_s
            p_s = tl.load(y + s + c[None, :], mask=columns[:, None], other=0.0) - m_s
            product = tl.dot(q_s, tl.trans(p_s), product, input_precision=PRECISION)
            other += tl.sum(p_s * p_s, 1)
        d2 = tl.maximum(own[:, None] + other[None, :] - 2 * product, 0.0)
        d2 = tl.where(columns[None, :] & (i[:, None] != j[None, :]), d2, float("inf"))
        hit = tl.max((d2.to(tl.int32, bitcast=True) < limit[:, None]).to(tl.int32), 1)
        tl.store(flags + t * stride + row, hit.to(tl.int8))
        at = D2 + row[:, None] * (GROUP * B) + t * B + b[None, :]
        tl.store(at, d2, mask=(hit > 0)[:, None] & (b < B)[None, :])


@Kernel
@triton.jit(do_not_specialize=["first", "base", "offset", "width", "stride", "want"])
def _merge(
    D2, flags, starts, lists, found, rough, count, bound, first, base, offset, width, stride, want,
    B: tl.constexpr, GROUP: tl.constexpr, ROOM: tl.constexpr,
):  # fmt: skip
    """Merge the points of a row of D2 that are below the bound into the list of the row.

    If the list would have more than ROOM entries, bisection finds a new bound that at least `want` of them do not
    exceed, and at most ROOM unless several are at the bound. `rough` has the bits of the distances in `found`.
    """
    row = tl.program_id(0)
    local = row // B
    block = first + local
    start = tl.load(starts + block)
    if start + row % B < tl.load(starts + block + 1):
        flag = flags + row
        if tl.max(tl.load(flag + tl.arange(0, GROUP) * stride), 0) > 0:
            i = (start + row % B - base).to(tl.int64)
            s = tl.arange(0, GROUP * B)
            flagged = tl.load(flag + (s // B) * stride) > 0
            before = tl.load(bound + i)
            d2 = tl.load(D2 + row.to(tl.int64) * (GROUP * B) + s, mask=flagged, other=float("inf"))
            bits = d2.to(tl.int32, bitcast=True)
            bits = tl.where(bits < before, bits, INFINITY)
            new = tl.sum((bits < INFINITY).to(tl.int32), 0)
            used = tl.load(count + i)
            t = tl.arange(0, ROOM)
            old = tl.load(rough + i * ROOM + t, mask=t < used, other=INFINITY)
            old_j = tl.load(found + i * ROOM + t, mask=t < used, other=0)
            low = tl.minimum(tl.min(bits, 0), tl.min(old, 0))
            high = tl.maximum(
                tl.max(tl.where(bits < INFINITY, bits, 0), 0), tl.max(tl.where(old < INFINITY, old, 0), 0)
            )
            below = used + new
            while (low < high) & (below > ROOM):
                middle = low + (high - low) // 2
                counted = tl.sum((bits <= middle).to(tl.int32), 0) + tl.sum((old <= middle).to(tl.int32), 0)
                if counted >= want:
                    high = middle
                    below = counted
                else:
                    low = middle + 1
            # First the entries below the bound, then those at the bound, of which some may not fit.
            old_less, less = (old < high).to(tl.int32), (bits < high).to(tl.int32)
            old_order = tl.cumsum(old_less + ((old == high).to(tl.int32) << 16), 0)
            order = tl.cumsum(less + ((bits == high).to(tl.int32) << 16), 0)
            n_old, n_less = tl.sum(old_less, 0), tl.sum(less, 0)
            n_at = tl.sum((old == high).to(tl.int32), 0)
            old_slot = tl.where(old < high, old_order & 0xFFFF, n_old + n_less + (old_order >> 16)) - 1
            slot = tl.where(bits < high, n_old + (order & 0xFFFF), n_old + n_less + n_at + (order >> 16)) - 1
            kept = (bits <= high) & (slot < ROOM)
            near = tl.load(lists + local.to(tl.int64) * width + offset + s // B, mask=kept, other=0)
            j = tl.load(starts + near, mask=kept, other=0) + s % B
            tl.debug_barrier()  # all of the old list has been read
            tl.store(rough + i * ROOM + old_slot, old, mask=(old <= high) & (old_slot < ROOM))
            tl.store(found + i * ROOM + old_slot, old_j, mask=(old <= high) & (old_slot < ROOM))
            tl.store(rough + i * ROOM + slot, bits, mask=kept)
            tl.store(found + i * ROOM + slot, j, mask=kept)
            tl.store(count + i, tl.minimum(below, ROOM))
            tl.store(bound + i, tl.where(below >= want, high, before))


@Kernel
@triton.jit(do_not_specialize=["base", "k", "parts"])
def _select(
    X, found, count, indices, d2, base, k, parts,
    PART: tl.constexpr, SEVERAL: tl.constexpr, ROOM: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Write the k nearest points of the list of a row to `indices`, and their squared distances to `d2`.

    Distances are computed from differences, STEP columns at a time. Ties go to the lower index.
    """
    D = parts * PART if SEVERAL else PART
    i = tl.program_id(0).to(tl.int64)
    x = X + (base + i) * D
    t = tl.arange(0, ROOM)
    valid = t < tl.load(count + i)
    j = tl.load(found + i * ROOM + t, mask=valid, other=0).to(tl.int64)
    total = tl.zeros((ROOM,), tl.float32)
    for s in range(0, D, STEP):
        c = s + tl.arange(0, STEP)
        diff = tl.load(x + c)[None, :] - tl.load(X + j[:, None] * D + c[None, :], mask=valid[:, None], other=0.0)
        total += tl.sum(diff * diff, 1)
    bits = total.to(tl.int32, bitcast=True).to(tl.int64)
    key = tl.sort(tl.where(valid, (bits << 32) | j, 0x7F80000000000000))  # the bits of infinity
    selected = t < k
    out = (base + i) * k + t
    tl.store(indices + out, (key & 0xFFFFFFFF).to(tl.int32), mask=selected)
    tl.store(d2 + out, (key >> 32).to(tl.int32).to(tl.float32, bitcast=True), mask=selected)


def room_for(k: int) -> int:
    """Return the number of entries of a list for k neighbours, a power of two."""
    want = k + SPARE
    return max(32, int(triton.next_power_of_2(want + want // 4)))


def nearest(blocks: Blocks, k: int, width: int, precision: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the result of gpu_blocks.Blocks.nearest for points on a GPU, with products of the given precision."""
    X, starts, B = blocks.X, blocks.starts, blocks.size
    indices = torch.empty((len(X), k), dtype=torch.int32, device=X.device)
    d2 = torch.empty((len(X), k), device=X.device)
    count = -(-len(blocks) * B * B * GROUP // FIXED_SEARCH_TILE)
    edges = [len(blocks) * part // count for part in range(count + 1)]
    most = max(last - first for first, last in pairwise(edges))
    scratch = torch.empty((most * B, GROUP * B), device=X.device)
    points = starts[torch.tensor(edges, device=X.device)].tolist()
    for part in range(count):
        lists = blocks.lists(width, slice(edges[part], edges[part + 1]))
        _search(blocks, edges[part], points[part : part + 2], lists, scratch, (indices, d2), precision)
    return indices, d2


def _search(
    blocks: Any,
    first: int,
    points: list[int],
    lists: torch.Tensor,
    scratch: torch.Tensor,
    out: tuple[torch.Tensor, torch.Tensor],
    precision: str,
) -> None:
    """Write the neighbours, and their squared distances, of the points of some blocks.

    The blocks begin with number `first`, their points are points[0] to points[1] − 1, and `lists` (count, width) lists
    the blocks with which they are compared.
    """
    X, starts, B = blocks.X, blocks.starts, blocks.size
    (base, end), (count, width), stride, k = points, lists.shape, len(scratch), out[0].shape[1]
    m, D, room = end - base, X.shape[1], room_for(k)
    part = min(PART, D)
    columns = D // part, part, part < D
    stages = 2 if part < D and precision == "tf32x3" else 3  # three would not fit in shared memory
    flags = torch.empty((GROUP, stride), dtype=torch.int8, device=X.device)
    found, rough = (torch.empty((m, room), dtype=torch.int32, device=X.device) for _ in range(2))
    used = torch.zeros(m, dtype=torch.int32, device=X.device)
    bound = torch.full((m,), 0x7F800000, dtype=torch.int32, device=X.device)
    for offset in range(0, width, GROUP):
        _compare[(count, GROUP // TILES)](
            X, starts, blocks.centers, lists, bound, scratch, flags, first, base, offset, width, stride,
            *columns, B, GROUP, TILES, precision, num_warps=8, num_stages=stages,
        )  # fmt: skip
        _merge[(count * B,)](
            scratch, flags, starts, lists, found, rough, used, bound, first, base, offset, width, stride, k + SPARE,
            B, GROUP, room, num_warps=4,
        )  # fmt: skip
    _select[(m,)](X, found, used, *out, base, k, *columns, room, 8, num_warps=4)


def launch_on_meta(D: int, k: int, size: int, precision: str) -> None:
    """Launch the kernels of a search for k neighbours among points with D columns, padded, for `prepare`."""

    def empty(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=META)

    X = empty(size, D, dtype=torch.float32)
    blocks = SimpleNamespace(X=X, starts=empty(2), centers=X, size=size)
    scratch, d2 = (empty(size, columns, dtype=torch.float32) for columns in (GROUP * size, k))
    _search(blocks, 0, [0, size], empty(1, 1), scratch, (empty(size, k), d2), precision)
