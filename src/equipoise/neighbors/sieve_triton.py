"""Neighbour search on a GPU without storing all distances: find a bound for each row, then collect nearer points.

A random sample of points gives a bound on the distance to the k-th neighbour of each row. If there are many points, a
comparison with every fourth block of 128 points then gives a tighter bound. One pass over all pairs, as matrix products
on the tensor cores, collects the candidates below the bound, and their distances are recomputed from differences. A row
with too few candidates, or more than can be stored, is searched again in full.
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from ..arrays.blocks import FIXED_SEARCH_TILE
from ..arrays.tiles import in_tiles
from ..arrays.triton_kernels import META, Kernel
from .gpu_blocks import BLOCK
from .gpu_scan import nearest as scan

FIRST, SECOND = 1024, 16384  # sampled points for the first bound, and for a tighter one
GROUPS = 4  # groups of the first sample; the bound is the largest of their minima: about 8 sampled points lie below
ROOM = 512  # candidates stored per row
FEW = 8  # if fewer neighbours are expected in the second sample, every `STRIDE`-th block is used for the bound
STRIDE = 4
COLUMNS = 8  # columns whose differences are added at once
PRECISIONS = "tf32", "tf32x3"  # of products on the tensor cores: 11 bits, then about 22


@Kernel
@triton.jit(do_not_specialize=["start", "rows", "n", "width", "stride", "room", "own"])
def _below(
    Q, P, norms, bound, lists, count, found, start, rows, n, width, stride, room, own,
    D: tl.constexpr, PART: tl.constexpr, B: tl.constexpr, LISTED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Collect, for B rows q of Q, the points p of P with ‖p‖² − 2 q·p below the bound of q, in arbitrary order.

    If `own` is 1, row i of Q is point i of P, which is left out.
    """
    local = tl.program_id(0) * B + tl.arange(0, B)
    row = local < rows
    r = (start + local).to(tl.int64)
    c = tl.arange(0, PART)
    q = tl.load(Q + r[:, None] * D + c[None, :], mask=row[:, None], other=0.0)
    b = tl.load(bound + local, mask=row, other=-float("inf"))
    for t in range(0, width, stride):
        near = tl.load(lists + (start // B + tl.program_id(0)).to(tl.int64) * width + t) if LISTED else t
        j = (near * B + tl.arange(0, B)).to(tl.int64)
        valid = j < n
        p = tl.load(P + j[None, :] * D + c[:, None], mask=valid[None, :], other=0.0)
        product = tl.dot(q, p, input_precision=PRECISION)
        for s in range(PART, D, PART):
            q_s = tl.load(Q + r[:, None] * D + s + c[None, :], mask=row[:, None], other=0.0)
            p_s = tl.load(P + j[None, :] * D + s + c[:, None], mask=valid[None, :], other=0.0)
            product = tl.dot(q_s, p_s, product, input_precision=PRECISION)
        d = tl.load(norms + j, mask=valid, other=float("inf"))[None, :] - 2 * product
        hit = (d < b[:, None]) & ((r[:, None] != j[None, :]) | (own == 0))
        at = tl.atomic_add(
            count + local[:, None] + tl.zeros((B, B), tl.int32), tl.full((B, B), 1, tl.int32), mask=hit, sem="relaxed"
        )
        slot = found + local[:, None].to(tl.int64) * room + at
        tl.store(slot, j[None, :].to(tl.int32) + tl.zeros((B, B), tl.int32), mask=hit & (at < room))


@Kernel
@triton.jit(do_not_specialize=["start", "base", "k", "parts"])
def _select(
    X, P, found, count, names, indices, d2, start, base, k, parts,
    ROOM: tl.constexpr, PART: tl.constexpr, NAMED: tl.constexpr,
):  # fmt: skip
    """Write the k nearest candidates of a row to `indices`, and their squared distances to `d2`.

    Distances are computed from differences, over `parts` · PART columns. Ties go to the lower index.
    """
    D = parts * PART
    i = tl.program_id(0)
    x = X + (start + i).to(tl.int64) * D
    t = tl.arange(0, ROOM)
    valid = t < tl.minimum(tl.load(count + i), ROOM)
    j = tl.load(found + i.to(tl.int64) * ROOM + t, mask=valid, other=0).to(tl.int64)
    total = tl.zeros((ROOM,), tl.float32)
    for s in range(0, D, PART):
        c = s + tl.arange(0, PART)
        diff = tl.load(x + c)[None, :] - tl.load(P + j[:, None] * D + c[None, :], mask=valid[:, None], other=0.0)
        total += tl.sum(diff * diff, 1)
    bits = total.to(tl.int32, bitcast=True).to(tl.int64)
    key = tl.sort(tl.where(valid, (bits << 32) | j, 0x7F80000000000000))  # the bits of infinity
    selected = t < k
    out = (base + i).to(tl.int64)
    j = (key & 0xFFFFFFFF).to(tl.int32)
    if NAMED:
        out = tl.load(names + start + i)
        j = tl.load(names + j, mask=selected, other=0).to(tl.int32)
    tl.store(indices + out * k + t, j, mask=selected)
    tl.store(d2 + out * k + t, (key >> 32).to(tl.int32).to(tl.float32, bitcast=True), mask=selected)


def padded(D: int) -> int:
    """Return the number of columns that X with D columns is padded to, for products on the tensor cores."""
    return max(16, int(triton.next_power_of_2(D)))


class Cloud(NamedTuple):
    """Points and their squared norms."""

    X: torch.Tensor  # (n, D)
    norms: torch.Tensor  # (n,)


class Candidates(NamedTuple):
    """For each of m rows, the points that are candidates for its neighbours."""

    counts: torch.Tensor  # (m,) int32: number of such points, perhaps more than are stored
    found: torch.Tensor  # (m, room) int32, in any order


class Output(NamedTuple):
    """The arrays to which neighbours are written."""

    indices: torch.Tensor  # (n, k) int32
    d2: torch.Tensor  # (n, k) float32
    base: int  # the first row to write if `names` is None
    names: torch.Tensor | None = None  # (n,): the index of each point in the caller's order


class Sieve:
    """Collects candidates for the neighbours of each row of centred X (n, D), and selects the nearest of them.

    `all` contains the rows, padded to a width that the tensor cores accept. `few` and `more` are random samples of
    the rows.
    """

    def __init__(self, X: torch.Tensor, precision: str):
        n, D = X.shape
        self.precision = precision
        X = torch.nn.functional.pad(X, (0, padded(D) - D)).contiguous()
        self.all = Cloud(X, X.square().sum(dim=1))
        generator = None if X.is_meta else torch.Generator(device=X.device).manual_seed(0)
        drawn = torch.randperm(n, generator=generator, device=X.device)
        self.few, self.more = (
            Cloud(*(part[drawn[:size]].contiguous() for part in self.all)) for size in (FIRST, SECOND)
        )

    def candidates(
        self, rows: slice, P: Cloud, bound: torch.Tensor, room: int, lists: torch.Tensor | None, stride: int = 1
    ) -> Candidates:
        """Return, for each row x, the points p of P with ‖p‖² − 2 x·p below the bound of x.

        If P contains all points, x itself is left out. If `lists` is None, every `stride`-th block of P is searched;
        otherwise every `stride`-th of the blocks that `lists` gives for x.
        """
        m, (n, D) = rows.stop - rows.start, P.X.shape
        count = torch.zeros(m, dtype=torch.int32, device=P.X.device)
        found = torch.empty((m, room), dtype=torch.int32, device=P.X.device)
        width = -(-n // BLOCK) if lists is None else lists.shape[1]
        _below[(triton.cdiv(m, BLOCK),)](
            self.all.X, P.X, P.norms, bound, count if lists is None else lists, count, found, rows.start, m, n, width,
            stride, room, int(P is self.all), D, D if D <= 64 else 32, BLOCK, lists is not None, self.precision,
            num_warps=8, num_stages=3,
        )  # fmt: skip
        return Candidates(count, found)

    def select(self, rows: slice, P: Cloud, candidates: Candidates, output: Output) -> None:
        """Select the nearest candidates of each row, and write them to the output."""
        count, found = candidates
        indices, d2, base, names = output
        m, room = found.shape
        _select[(m,)](
            self.all.X, P.X, found, count, count if names is None else names, indices, d2, rows.start, base,
            indices.shape[1], P.X.shape[1] // COLUMNS, room, COLUMNS, names is not None, num_warps=4,
        )  # fmt: skip

    def bound(self, rows: slice, k: int, lists: torch.Tensor | None) -> torch.Tensor:
        """Return for each row x a bound on ‖p‖² − 2 x·p, probably a little above the value at its k-th neighbour."""
        rough = torch.addmm(self.few.norms, self.all.X[rows], self.few.X.T, alpha=-2)
        first = rough.reshape(len(rough), GROUPS, -1).amin(dim=2).amax(dim=1)
        below = self.candidates(rows, self.more, first, ROOM, None)
        expected = k * len(self.more.X) / len(self.all.X)
        second = self._tighter(rows, self.more, below, expected, first)
        if expected >= FEW:
            return second
        below = self.candidates(rows, self.all, second, 2 * ROOM, lists, STRIDE)
        return self._tighter(rows, self.all, below, k / STRIDE, second)

    def _tighter(
        self, rows: slice, P: Cloud, candidates: Candidates, expected: float, bound: torch.Tensor
    ) -> torch.Tensor:
        """Return, for each row, a bound tighter than `bound`, with somewhat more than `expected` candidates below it.

        A row with fewer candidates keeps its old bound. A row with more candidates than can be stored gets the bound
        −∞, so that it is searched again in full.
        """
        count, found = candidates
        room = found.shape[1]
        rank = min(room - 1, ceil(expected + 3 * sqrt(expected)) + 3)
        d2 = torch.empty((len(found), rank), device=found.device)
        self.select(rows, P, candidates, Output(torch.empty_like(d2, dtype=torch.int32), d2, 0))
        tighter = torch.where(count < rank, bound, d2[:, -1] - self.all.norms[rows])
        return tighter.masked_fill_(count > room, -torch.inf)


def nearest(X: torch.Tensor, k: int, precision: str = PRECISIONS[0]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the indices (n, k), int32, of the k other rows nearest to each row of centred X, and their d² (n, k)."""
    return _sieve(X, k, None, None, precision)


def nearest_in_blocks(
    X: torch.Tensor, order: torch.Tensor, lists: torch.Tensor, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the result of `gpu_blocks.Blocks.nearest(k, width)`, where `lists` has `width` columns.

    `order` lists the points block by block, and row b of `lists` gives the blocks to search for the points of block b.
    """
    return _sieve(X, k, order, lists, PRECISIONS[0])


def _sieve(
    X: torch.Tensor, k: int, order: torch.Tensor | None, lists: torch.Tensor | None, precision: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the indices (n, k), int32, of the k other points nearest to each point of X (n, D), and their d² (n, k).

    `order` and `lists` are those of `nearest_in_blocks`, or None to search all blocks.
    """
    n = len(X)
    sieve = Sieve(X if order is None else X[order[:n]], precision)
    room = ROOM if 3 * k <= ROOM else 2 * ROOM
    indices = torch.empty((n, k), dtype=torch.int32, device=X.device)
    d2 = torch.empty((n, k), device=X.device)
    incomplete = torch.zeros(n, dtype=torch.bool, device=X.device)

    def search(part: slice) -> None:
        rows = slice(part.start * BLOCK, min(part.stop * BLOCK, n))
        found = sieve.candidates(rows, sieve.all, sieve.bound(rows, k, lists), room, lists)
        sieve.select(rows, sieve.all, found, Output(indices, d2, rows.start, order))
        incomplete[rows] = (found.counts < k) | (found.counts > room)

    in_tiles(-(-n // BLOCK), 2 * BLOCK * room, search, FIXED_SEARCH_TILE)
    repeated = incomplete.nonzero()[:, 0]
    repeated = repeated if order is None else order[repeated]
    if len(repeated):
        exact = scan(X[repeated], X, k, repeated)
        indices[repeated], d2[repeated] = exact.indices, exact.d2
    return indices, d2


def launch_on_meta(D: int) -> None:
    """Launch the kernels of a search among points with D columns, for `prepare`."""
    sieve, rows = Sieve(torch.empty((SECOND, D), device=META), PRECISIONS[0]), slice(0, BLOCK)
    bound, lists = torch.empty(BLOCK, device=META), torch.empty((1, 1), dtype=torch.int32, device=META)
    output = Output(torch.empty((BLOCK, 1), dtype=torch.int32, device=META), torch.empty((BLOCK, 1), device=META), 0)
    for room in (ROOM, 2 * ROOM):
        found = sieve.candidates(rows, sieve.all, bound, room, None)
        sieve.select(rows, sieve.all, found, output)
    sieve.candidates(rows, sieve.all, bound, ROOM, lists)
