"""Nearest neighbours on a device: every pair is compared, or the pairs of near blocks; no matrix of them is kept."""

from __future__ import annotations

from typing import NamedTuple

import torch

from .blocks import Blocks, reach
from .tiles import in_tiles

SPARE = 16  # found by products beyond the k asked for, and sorted out by differences
SAMPLE = 512  # rows whose true neighbours are found, to measure the recall
MARGIN = 0.002  # of recall, beyond the least: what the sample may err
MANY = 200_000  # points from which blocks may pay; chosen
FEW = 16_384  # points from which a sieve has enough to draw from
WORTH = 0.5  # of all blocks, up to which it pays to leave out the rest; chosen


class Found(NamedTuple):
    """The neighbours of each point."""

    indices: torch.Tensor  # (n, k) int32, from the nearest on
    d2: torch.Tensor  # (n, k) float32
    recall: float  # measured on a sample; 1.0 where all pairs were compared


def search(X: torch.Tensor, k: int, min_recall: float) -> Found:
    """Return the k nearest other rows of X (n, D), float32, to each, with at least this recall."""
    n = len(X)
    X = X - X.mean(dim=0)
    if n < MANY:
        return Found(*every_pair(X, k), 1.0)
    sample = torch.randperm(n, generator=torch.Generator().manual_seed(0))[: 2 * SAMPLE].to(X.device)
    true = nearest(X[sample], X, k + 1).indices
    blocks = Blocks(X)
    width = reach(blocks, sample[:SAMPLE], true[:SAMPLE], min_recall + MARGIN)
    if width > WORTH * len(blocks.centers):
        return Found(*every_pair(X, k), 1.0)
    found = blocks.nearest(k, width)
    return Found(*found, recall(found[0], sample[SAMPLE:], true[SAMPLE:]))


def every_pair(X: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k nearest other rows of X to each (n, k), and their d², by comparing all pairs."""
    if X.is_cuda and len(X) >= FEW:
        from . import sieve  # Triton comes with PyTorch for GPUs alone

        return sieve.nearest(X, k)
    found = nearest(X, X, k, own=True)
    return found.indices, found.d2


def nearest(Q: torch.Tensor, X: torch.Tensor, k: int, *, own: bool = False) -> Found:
    """Return the k nearest rows of X to each row of Q; with `own`, Q is X and a row is no neighbour of its own.

    Products tell who may be near; the distances, and with them the order, are sums of squared differences.
    """
    m, n = len(Q), len(X)
    norms = X.square().sum(dim=1)
    width = min(n - own, k + SPARE)
    indices = torch.empty((m, k), dtype=torch.int32, device=X.device)
    d2 = torch.empty((m, k), dtype=X.dtype, device=X.device)

    def rows(part: slice) -> None:
        rough = torch.addmm(norms, Q[part], X.T, alpha=-2)  # d² less the norm of the row
        if own:
            rough.diagonal(part.start).fill_(torch.inf)
        near = rough.topk(width, largest=False).indices.sort(dim=1).values  # equally near ones by number
        exact = (Q[part, None] - X[near]).square().sum(dim=2)
        found, order = exact.sort(dim=1, stable=True)
        indices[part], d2[part] = near.gather(1, order)[:, :k].int(), found[:, :k]

    in_tiles(m, n + width * (X.shape[1] + 8), rows)
    return Found(indices, d2, 1.0)


def recall(indices: torch.Tensor, sample: torch.Tensor, true: torch.Tensor) -> float:
    """Return the share of the true neighbours of some rows (m, k + 1), the row itself among them, that were found."""
    others = true != sample[:, None]
    hit = (true[:, :, None] == indices[sample, None, :]).any(dim=2)
    return float((hit & others).sum() / others.sum())
