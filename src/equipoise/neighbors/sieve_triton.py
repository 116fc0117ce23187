"""Nearest neighbours on a GPU without the matrix of distances: a bound for each row, then only what lies below it.

A few points drawn at random tell how far the k-th neighbour of a row may be, and among many points then every fourth
block of them; one pass over the pairs by the matrix units keeps the candidates below that bound, and these are measured
again by differences. A row with too few of them, or more than there is room for, is done over in full.
"""

from __future__ import annotations

from math import ceil, sqrt

import torch
import triton
import triton.language as tl

from ..arrays.tiles import in_tiles
from .gpu import nearest as exactly
from .gpu_blocks import BLOCK

FIRST, SECOND = 1024, 16384  # points drawn for the first bound, and for a closer one
GROUPS = 4  # of the first: the largest of their least distances is the bound, which about 8 of them lie below
ROOM = 512  # candidates of a row
FEW = 8  # neighbours among the points drawn, below which every `STRIDE`-th block tells more
STRIDE = 4
PRECISIONS = "tf32", "tf32x3"  # of products by the matrix units: 11 bits, then about 22


@triton.jit
def _below(
    Q, P, norms, bound, lists, count, found, start, rows, n, width, stride,
    D: tl.constexpr, PART: tl.constexpr, ROOM: tl.constexpr, B: tl.constexpr, SELF: tl.constexpr,
    LISTED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """For B rows of Q: the points of P with norm − 2 q·p below the bound of the row, in any order."""
    place = tl.program_id(0) * B + tl.arange(0, B)
    row = place < rows
    r = (start + place).to(tl.int64)
    c = tl.arange(0, PART)
    q = tl.load(Q + r[:, None] * D + c[None, :], mask=row[:, None], other=0.0)
    b = tl.load(bound + place, mask=row, other=-float("inf"))
    for t in range(0, width, stride):
        near = tl.load(lists + (start // B + tl.program_id(0)).to(tl.int64) * width + t) if LISTED else t
        j = (near * B + tl.arange(0, B)).to(tl.int64)
        there = j < n
        p = tl.load(P + j[None, :] * D + c[:, None], mask=there[None, :], other=0.0)
        product = tl.dot(q, p, input_precision=PRECISION)
        for s in range(PART, D, PART):
            q_s = tl.load(Q + r[:, None] * D + s + c[None, :], mask=row[:, None], other=0.0)
            p_s = tl.load(P + j[None, :] * D + s + c[:, None], mask=there[None, :], other=0.0)
            product = tl.dot(q_s, p_s, product, input_precision=PRECISION)
        d = tl.load(norms + j, mask=there, other=float("inf"))[None, :] - 2 * product
        hit = d < b[:, None]
        if SELF:
            hit = hit & (r[:, None] != j[None, :])
        at = tl.atomic_add(
            count + place[:, None] + tl.zeros((B, B), tl.int32), tl.full((B, B), 1, tl.int32), mask=hit, sem="relaxed"
        )
        here = found + place[:, None].to(tl.int64) * ROOM + at
        tl.store(here, j[None, :].to(tl.int32) + tl.zeros((B, B), tl.int32), mask=hit & (at < ROOM))


@triton.jit
def _select(
    X, P, found, count, names, indices, d2, start, base, k,
    D: tl.constexpr, ROOM: tl.constexpr, PART: tl.constexpr, NAMED: tl.constexpr,
):  # fmt: skip
    """Of the candidates of a row the k nearest by squared differences, equally near ones by place."""
    i = tl.program_id(0)
    x = X + (start + i).to(tl.int64) * D
    t = tl.arange(0, ROOM)
    there = t < tl.minimum(tl.load(count + i), ROOM)
    j = tl.load(found + i.to(tl.int64) * ROOM + t, mask=there, other=0).to(tl.int64)
    total = tl.zeros((ROOM,), tl.float32)
    for s in range(0, D, PART):
        c = s + tl.arange(0, PART)
        diff = tl.load(x + c)[None, :] - tl.load(P + j[:, None] * D + c[None, :], mask=there[:, None], other=0.0)
        total += tl.sum(diff * diff, 1)
    bits = total.to(tl.int32, bitcast=True).to(tl.int64)
    key = tl.sort(tl.where(there, (bits << 32) | j, 0x7F80000000000000))  # the bits of infinity
    kept = t < k
    out = (base + i).to(tl.int64)
    j = (key & 0xFFFFFFFF).to(tl.int32)
    if NAMED:
        out = tl.load(names + start + i)
        j = tl.load(names + j, mask=kept, other=0).to(tl.int32)
    tl.store(indices + out * k + t, j, mask=kept)
    tl.store(d2 + out * k + t, (key >> 32).to(tl.int32).to(tl.float32, bitcast=True), mask=kept)


class Sieve:
    """Rows X (n, D) of a width that the matrix units take, centred, and their norms."""

    def __init__(self, X: torch.Tensor, precision: str):
        n, D = X.shape
        self.precision = precision
        self.X = torch.nn.functional.pad(X, (0, max(16, triton.next_power_of_2(D)) - D)).contiguous()
        self.norms = self.X.square().sum(dim=1)
        drawn = torch.randperm(n, generator=torch.Generator(device=X.device).manual_seed(0), device=X.device)
        self.few, self.more = (self.X[drawn[:size]].contiguous() for size in (FIRST, SECOND))
        self.few_norms, self.more_norms = (self.norms[drawn[:size]].contiguous() for size in (FIRST, SECOND))

    def candidates(
        self, rows: slice, P: torch.Tensor, norms: torch.Tensor, bound: torch.Tensor, room: int,
        lists: torch.Tensor | None, own: bool, stride: int = 1,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """Return how many points of P lie below the bound of each row, and which, in any order.

        P is searched block by block, in all blocks, in those listed, or in every `stride`-th of them.
        """
        m, D, n = rows.stop - rows.start, P.shape[1], len(P)
        count = torch.zeros(m, dtype=torch.int32, device=P.device)
        found = torch.empty((m, room), dtype=torch.int32, device=P.device)
        width = -(-n // BLOCK) if lists is None else lists.shape[1]
        _below[(triton.cdiv(m, BLOCK),)](
            self.X, P, norms, bound, count if lists is None else lists, count, found, rows.start, m, n, width, stride,
            D, min(D, 64), room, BLOCK, own, lists is not None, self.precision,
            num_warps=8, num_stages=3,
        )  # fmt: skip
        return count, found

    def select(
        self, rows: slice, P: torch.Tensor, count: torch.Tensor, found: torch.Tensor, names: torch.Tensor | None,
        indices: torch.Tensor, d2: torch.Tensor, base: int,
    ) -> None:  # fmt: skip
        """Write the nearest of the candidates to the rows of indices and d2, (n, k), from `base` on."""
        m, room = found.shape
        _select[(m,)](
            self.X, P, found, count, count if names is None else names, indices, d2, rows.start, base,
            indices.shape[1], P.shape[1], room, 8, names is not None, num_warps=4,
        )  # fmt: skip

    def bound(self, rows: slice, k: int, lists: torch.Tensor | None) -> torch.Tensor:
        """Return a bound on norm − 2 x·p that a little more than k of the n points are likely to lie below."""
        rough = torch.addmm(self.few_norms, self.X[rows], self.few.T, alpha=-2)
        first = rough.reshape(len(rough), GROUPS, -1).amin(dim=2).amax(dim=1)
        count, found = self.candidates(rows, self.more, self.more_norms, first, ROOM, None, False)
        expected = k * len(self.more) / len(self.X)
        second = self._closer(rows, self.more, count, found, expected, first)
        if expected >= FEW:
            return second
        count, found = self.candidates(rows, self.X, self.norms, second, 2 * ROOM, lists, True, STRIDE)
        return self._closer(rows, self.X, count, found, k / STRIDE, second)

    def _closer(
        self, rows: slice, P: torch.Tensor, count: torch.Tensor, found: torch.Tensor, expected: float,
        bound: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        """Return the bound below which somewhat more than the expected number of candidates lie."""
        room = found.shape[1]
        rank = min(room - 1, ceil(expected + 3 * sqrt(expected)) + 3)
        d2 = torch.empty((len(found), rank), device=found.device)
        self.select(rows, P, count, found, None, torch.empty_like(d2, dtype=torch.int32), d2, 0)
        closer = torch.where(count < rank, bound, d2[:, -1] - self.norms[rows])
        return closer.masked_fill_(count > room, -torch.inf)  # done over


def nearest(X: torch.Tensor, k: int, precision: str = PRECISIONS[0]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k nearest other rows of centred X to each (n, k), and their d²."""
    return _sifted(X, X, k, None, None, precision)


def nearest_in_blocks(
    X: torch.Tensor, order: torch.Tensor, lists: torch.Tensor, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """As Blocks.nearest: X[order] block by block, and the blocks to search for each."""
    return _sifted(X, X[order[: len(X)]], k, order, lists, PRECISIONS[0])


def _sifted(
    X: torch.Tensor,
    ordered: torch.Tensor,
    k: int,
    names: torch.Tensor | None,
    lists: torch.Tensor | None,
    precision: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k nearest of the points X, which come in some order with their names, and their d²."""
    n = len(X)
    sieve = Sieve(ordered, precision)
    room = ROOM if 3 * k <= ROOM else 2 * ROOM
    indices = torch.empty((n, k), dtype=torch.int32, device=X.device)
    d2 = torch.empty((n, k), device=X.device)
    again = torch.zeros(n, dtype=torch.bool, device=X.device)

    def some(part: slice) -> None:
        rows = slice(part.start * BLOCK, min(part.stop * BLOCK, n))
        count, found = sieve.candidates(rows, sieve.X, sieve.norms, sieve.bound(rows, k, lists), room, lists, True)
        sieve.select(rows, sieve.X, count, found, names, indices, d2, rows.start)
        again[rows] = (count < k) | (count > room)

    in_tiles(-(-n // BLOCK), 2 * BLOCK * room, some, 2**28)
    over = again.nonzero()[:, 0]
    over = over if names is None else names[over]
    if len(over):
        found = exactly(X[over], X, k, over)
        indices[over], d2[over] = found.indices, found.d2
    return indices, d2
