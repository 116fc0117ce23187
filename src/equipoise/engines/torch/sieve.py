"""Nearest neighbours on a GPU without the matrix of distances: a bound for each row, then only what lies below it.

A few points drawn at random tell how far the k-th neighbour of a row may be; one pass over all pairs by the matrix
units keeps the candidates below that bound, and these are measured again by differences. A row with too few of them, or
more than there is room for, is done over in full.
"""

from __future__ import annotations

from math import ceil, sqrt

import torch
import triton
import triton.language as tl

FIRST, SECOND = 1024, 16384  # points drawn for the first bound, and for a closer one
NINTH = 9  # of the first, which about 9 · 16 of the second lie below
ROOM = 512  # candidates of a row, 2 · ROOM beyond `MANY` points
MANY = 300_000
BLOCK = 65536  # rows of the first bound at once


@triton.jit
def _below(
    Q, P, norms, bound, count, found, n, m, D: tl.constexpr, ROOM: tl.constexpr, B: tl.constexpr, SELF: tl.constexpr
):
    """For B rows of Q: the points of P with norm − 2 q·p below the bound of the row, in any order."""
    r = tl.program_id(0) * B + tl.arange(0, B)
    row = r < n
    c = tl.arange(0, D)
    q = tl.load(Q + r[:, None] * D + c[None, :], mask=row[:, None], other=0.0)
    b = tl.load(bound + r, mask=row, other=-float("inf"))
    for start in range(0, m, B):
        j = start + tl.arange(0, B)
        there = j < m
        p = tl.load(P + j[None, :] * D + c[:, None], mask=there[None, :], other=0.0)
        d = tl.load(norms + j, mask=there, other=float("inf"))[None, :] - 2 * tl.dot(q, p, input_precision="tf32")
        near = d < b[:, None]
        if SELF:
            near = near & (r[:, None] != j[None, :])
        place = tl.atomic_add(
            count + r[:, None] + tl.zeros((B, B), tl.int32), tl.full((B, B), 1, tl.int32), mask=near, sem="relaxed"
        )
        here = found + r[:, None].to(tl.int64) * ROOM + place
        tl.store(here, j[None, :] + tl.zeros((B, B), tl.int32), mask=near & (place < ROOM))


@triton.jit
def _keys(X, P, found, count, key, D: tl.constexpr, ROOM: tl.constexpr, B: tl.constexpr):
    """The candidates of a row as numbers that sort by squared distance, then by place."""
    i = tl.program_id(0)
    c = tl.arange(0, D)
    x = tl.load(X + i * D + c)
    k = tl.minimum(tl.load(count + i), ROOM)
    for s in range(0, ROOM, B):
        t = s + tl.arange(0, B)
        there = t < k
        j = tl.load(found + i.to(tl.int64) * ROOM + t, mask=there, other=0)
        diff = x[None, :] - tl.load(P + j[:, None] * D + c[None, :], mask=there[:, None], other=0.0)
        bits = tl.sum(diff * diff, 1).to(tl.int32, bitcast=True).to(tl.int64)
        tl.store(key + i.to(tl.int64) * ROOM + t, tl.where(there, (bits << 32) | j.to(tl.int64), 0x7FFFFFFFFFFFFFFF))


def _candidates(
    X: torch.Tensor, P: torch.Tensor, norms: torch.Tensor, bound: torch.Tensor, room: int, own: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return how many points of P lie below the bound of each row, and their keys (n, room)."""
    n, D = X.shape
    count = torch.zeros(n, dtype=torch.int32, device=X.device)
    found = torch.empty((n, room), dtype=torch.int32, device=X.device)
    _below[(triton.cdiv(n, 128),)](
        X, P, norms, bound, count, found, n, len(P), D, room, 128, own, num_warps=8, num_stages=3
    )
    key = torch.empty((n, room), dtype=torch.int64, device=X.device)
    _keys[(n,)](X, P, found, count, key, D, room, 64)
    return count, key


def nearest(X: torch.Tensor, k: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """As neighbors.nearest, for X on a GPU."""
    n, D = X.shape
    X = torch.nn.functional.pad(X - X.mean(dim=0), (0, max(16, triton.next_power_of_2(D)) - D)).contiguous()
    norms = X.square().sum(dim=1)
    drawn = torch.randperm(n, generator=torch.Generator(device=X.device).manual_seed(seed), device=X.device)
    bound = torch.empty(n, device=X.device)
    few = drawn[:FIRST]
    for start in range(0, n, BLOCK):
        rough = torch.addmm(norms[few], X[start : start + BLOCK], X[few].T, alpha=-2)
        bound[start : start + BLOCK] = rough.topk(NINTH, largest=False).values[:, -1]
    room = ROOM if n <= MANY else 2 * ROOM
    more = drawn[:SECOND]
    count, key = _candidates(X, X[more].contiguous(), norms[more].contiguous(), bound, ROOM, False)
    expected = k * SECOND / n
    rank = min(ROOM - 1, ceil(expected + 3 * sqrt(expected)) + 3)
    bound = _distances(key.topk(rank, largest=False).values[:, -1]) - norms
    bound[(count < rank) | (count > ROOM)] = -torch.inf  # done over below
    count, key = _candidates(X, X, norms, bound, room, True)
    best = key.topk(k, largest=False, sorted=True).values
    over = ((count < k) | (count > room)).nonzero()[:, 0]
    for start in range(0, len(over), 256):
        rows = over[start : start + 256]
        rough = torch.addmm(norms, X[rows], X.T, alpha=-2)
        rough[torch.arange(len(rows), device=X.device), rows] = torch.inf
        near = rough.topk(min(n - 1, k + 16), largest=False).indices
        exact = (X[rows, None] - X[near]).square().sum(dim=2)
        keys = (exact.view(torch.int32).long() << 32) | near
        best[rows] = keys.topk(k, largest=False, sorted=True).values
    return (best & 0xFFFFFFFF).int(), _distances(best)


def _distances(keys: torch.Tensor) -> torch.Tensor:
    return (keys >> 32).int().view(torch.float32)
