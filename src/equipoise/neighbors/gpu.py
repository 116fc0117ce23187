"""Nearest neighbours on a device: every pair is compared, or the pairs of near blocks; no matrix of them is kept."""

from __future__ import annotations

from typing import NamedTuple

import torch

from ..arrays.tiles import in_tiles
from .gpu_blocks import Blocks, reach

SPARE = 16  # found by products beyond the k asked for, and sorted out by differences
SAMPLE = 512  # rows whose true neighbours are found, to measure the recall
FEW_ROWS = 256  # the same where nothing else is read off them
MARGIN = 0.002  # of recall, beyond the least: what the sample may err
MANY = 200_000  # points from which blocks may pay; chosen
FEW = 16_384  # points from which a sieve has enough to draw from
MOST = 340  # neighbours that a sieve has room for
ROUNDING = 1e-5  # of sums of squares in float32, in another order
SURE = 0.9999  # recall below which a sieve has lost digits, and is not taken
WORTH = 0.5  # of all blocks, up to which it pays to leave out the rest; chosen


class Found(NamedTuple):
    """The neighbours of each point."""

    indices: torch.Tensor  # (n, k) int32, from the nearest on
    d2: torch.Tensor  # (n, k) float32
    recall: float  # measured on a sample where it was not sure; 1.0 where each row was compared with all


def search(X: torch.Tensor, k: int, min_recall: float) -> Found:
    """Return the k nearest other rows of X (n, D), float32, to each, with at least this recall."""
    n = len(X)
    X = X - X.mean(dim=0)
    blocks_pay, sieve_pays = n >= MANY and k <= MOST, X.is_cuda and n >= FEW and k <= MOST
    if not (blocks_pay or sieve_pays):
        return nearest(X, X, k, torch.arange(n, device=X.device))
    size = 2 * SAMPLE if blocks_pay else FEW_ROWS
    sample = torch.randperm(n, generator=torch.Generator().manual_seed(0))[:size].to(X.device)
    true = nearest(X[sample], X, k + 1)

    def measured(indices: torch.Tensor, d2: torch.Tensor) -> Found:
        half = len(sample) // 2 if blocks_pay else 0  # the first half chose the blocks
        return Found(indices, d2, recall(d2[sample[half:]], true.d2[half:]))

    if blocks_pay:
        blocks = Blocks(X)
        width = reach(blocks, sample[:SAMPLE], true.indices[:SAMPLE], min_recall + MARGIN)
        if width <= WORTH * len(blocks.centers):
            found = measured(*blocks.nearest(k, width))
            if found.recall >= min_recall:
                return found
    if sieve_pays:
        from . import sieve_triton as sieve  # Triton comes with PyTorch for GPUs alone

        for precision in sieve.PRECISIONS:
            found = measured(*sieve.nearest(X, k, precision))
            if found.recall >= SURE:
                return found
    return nearest(X, X, k, torch.arange(n, device=X.device))


def nearest(Q: torch.Tensor, X: torch.Tensor, k: int, own: torch.Tensor | None = None) -> Found:
    """Return the k nearest rows of X to each row of Q; `own` (m,) says which row of X each is, no neighbour of its own.

    Products tell who may be near; the distances, and with them the order, are sums of squared differences. Where what
    products lose leaves a doubt, as in tight clusters far apart, they are taken in float64.
    """
    m, n = len(Q), len(X)
    indices = torch.empty((m, k), dtype=torch.int32, device=X.device)
    d2 = torch.empty((m, k), dtype=X.dtype, device=X.device)
    most = n if own is None else n - 1
    width = min(most, k + SPARE)

    def compared(rows: torch.Tensor, Q: torch.Tensor, X: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
        """Write the neighbours of some rows, and return the rows that remain in doubt."""
        q = Q[rows]
        rough = torch.addmm(norms, q, X.T, alpha=-2)  # d² less the norm of the row
        if own is not None:
            rough.scatter_(1, own[rows, None], torch.inf)
        least, near = rough.topk(width, largest=False)
        near = near.sort(dim=1).values  # equally near ones by number
        found, order = (q[:, None] - X[near]).square().sum(dim=2).sort(dim=1, stable=True)
        indices[rows], d2[rows] = near.gather(1, order)[:, :k].int(), found[:, :k].to(d2.dtype)
        if width == most:
            return rows[:0]
        norm, lost = q.square().sum(dim=1), X.shape[1] ** 0.5 * torch.finfo(X.dtype).eps  # likely, of (‖q‖ + ‖x‖)²
        others = least.amax(dim=1) + norm - lost * (norm.sqrt() + norms.max().sqrt()).square()  # no other is nearer
        return rows[found[:, k - 1] > others]

    doubts: list[torch.Tensor] = []
    numbers, size = torch.arange(m, device=X.device), n + width * (X.shape[1] + 8)
    norms = X.square().sum(dim=1)
    in_tiles(m, size, lambda part: doubts.append(compared(numbers[part], Q, X, norms)))
    doubt = torch.cat(doubts)
    if len(doubt) and X.dtype != torch.float64:
        Qd, Xd = Q.double(), X.double()
        double_norms = Xd.square().sum(dim=1)
        in_tiles(len(doubt), 2 * size, lambda part: doubts.append(compared(doubt[part], Qd, Xd, double_norms)))
    return Found(indices, d2, 1.0)


def recall(d2: torch.Tensor, true: torch.Tensor) -> float:
    """Return the share of k neighbours found, d² (m, k), that are no farther than the k-th nearest truly is.

    Of the truly nearest there are d² (m, k + 1), the row itself among them. Of equally near ones any will do.
    """
    return float((d2 <= true[:, -1:] * (1 + ROUNDING)).double().mean())
