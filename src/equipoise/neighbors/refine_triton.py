"""A Triton kernel that improves a neighbour graph: the neighbours of its neighbours are compared with each point."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

PART = tl.constexpr(8)  # coordinates read at once: 32 bytes


@triton.jit
def _first_and_count(first, last, count, other_first, other_last, other_count):
    """Combine two runs of sorted keys, each with its first and last key and its number of distinct keys."""
    return first, other_last, count + other_count - (last == other_first).to(tl.int32)


@triton.jit(do_not_specialize=["k"])
def _refine(
    X, old, old_d2, new, new_d2, k,
    D: tl.constexpr, K: tl.constexpr, EACH: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Write the k nearest of the neighbours of point i, and of their first EACH neighbours, to row i of `new`.

    The first K slots, K a power of two, hold the row of i itself; then follow the rows of its nearest neighbours.
    """
    i = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, SLOTS)
    near = (s - K) // EACH
    valid = tl.where(s < K, s < k, near < k)
    m = tl.load(old + i * k + near, mask=valid & (s >= K), other=0).to(tl.int64)
    rank = tl.where(s < K, s, (s - K) % EACH)
    valid = valid & (rank < k)
    j = tl.load(old + tl.where(s < K, i, m) * k + rank, mask=valid, other=0).to(tl.int64)
    valid = valid & (j != i)
    total = tl.zeros((SLOTS,), tl.float32)
    for part in range(0, D, PART):
        c = part + tl.arange(0, PART)
        diff = tl.load(X + i * D + c)[None, :] - tl.load(X + j[:, None] * D + c[None, :], mask=valid[:, None], other=0.0)
        total += tl.sum(diff * diff, 1)
    bound = tl.load(old_d2 + i * k + k - 1)
    bits = total.to(tl.int32, bitcast=True).to(tl.int64)
    key = tl.sort(tl.where(valid & ((s < K) | (total <= bound)), (bits << 32) | j, 0x7F80000000000000))  # the bits of infinity
    one = tl.full((SLOTS,), 1, tl.int32)
    _, _, distinct = tl.associative_scan((key, key, one), 0, _first_and_count)
    at = distinct - 1
    wanted = at < k  # equal keys write the same values to one slot
    tl.store(new + i * k + at, (key & 0xFFFFFFFF).to(tl.int32), mask=wanted)
    tl.store(new_d2 + i * k + at, (key >> 32).to(tl.int32).to(tl.float32, bitcast=True), mask=wanted)


def refined(
    X: torch.Tensor, indices: torch.Tensor, d2: torch.Tensor, each: int, slots: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the result of gpu_refine.refined for tensors on a GPU; `slots` is a power of two."""
    n, k = indices.shape
    new, new_d2 = torch.empty_like(indices), torch.empty_like(d2)
    _refine[(n,)](
        X, indices, d2, new, new_d2, k, X.shape[1], triton.next_power_of_2(k), each, slots, num_warps=slots // 256,
    )  # fmt: skip
    return new, new_d2
