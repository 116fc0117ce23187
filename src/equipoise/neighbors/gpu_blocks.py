"""Divides points into blocks of nearby points, and searches nearby blocks: the PyTorch counterpart of cells.py.

The points are sorted by k-means cell, and the cells by the first principal component of their centres; the sorted
points are cut into blocks of equal size. The distance from block A to block B is defined as the distance between the
centre of B and the nearest point of A. The true neighbours of a sample determine how many of the nearest blocks must be
searched to reach a recall.
"""

from __future__ import annotations

from typing import Any

import torch

from ..arrays.blocks import FIXED_SEARCH_TILE
from ..arrays.tiles import in_tiles
from .recall import reach_for_recall

BLOCK = 128  # points per block
CELL = 512  # points per cell, on average
TRAINED = 32  # training points per cell for k-means
ITERATIONS = 8  # of k-means


class Blocks:
    """Points sorted into blocks of nearby points, `BLOCK` in each.

    Attributes
    ----------
    X : tensor, shape (n, D)
    order : tensor of int64
        Indices of the points, block by block; the last block is padded with points of the previous one.
    block : tensor of int64, shape (n,)
        Index of the block of each point.
    centers : tensor, shape (b, D)
        Mean of each block.
    """

    def __init__(self, X: torch.Tensor):
        self.X = X
        n, D = X.shape
        cell = nearest_center(X, cells(X))
        self.order = torch.argsort(cell, stable=True)
        padded = torch.arange(-(-n // BLOCK) * BLOCK, device=X.device)
        self.order = self.order[torch.where(padded < n, padded, padded - BLOCK)] if n % BLOCK else self.order
        self.block = torch.empty(n, dtype=torch.int64, device=X.device)
        self.block[self.order[:n]] = torch.arange(n, device=X.device) // BLOCK
        self.centers = X[self.order].reshape(-1, BLOCK, D).mean(dim=1)

    def lists(self, width: int, blocks: torch.Tensor | None = None) -> torch.Tensor:
        """Return the indices (b, width), int32, of the `width` blocks nearest to each block, nearest first.

        If `blocks` (b,) is given, the result has rows only for the blocks with these indices.
        """
        which = torch.arange(len(self.centers), device=self.X.device) if blocks is None else blocks
        norms = self.centers.square().sum(dim=1)
        result = torch.empty((len(which), width), dtype=torch.int32, device=self.X.device)
        members = self.order.reshape(-1, BLOCK)

        def compare(part: slice) -> None:
            P = self.X[members[which[part]].flatten()]
            rough = torch.addmm(norms, P, self.centers.T, alpha=-2) + P.square().sum(dim=1, keepdim=True)
            nearness = rough.reshape(-1, BLOCK, len(norms)).amin(dim=1)
            result[part] = nearness.topk(width, largest=False, sorted=True).indices.int()

        in_tiles(len(which), 2 * BLOCK * len(norms), compare, FIXED_SEARCH_TILE)
        return result

    def nearest(self, k: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return, for each point, the k nearest other points in the `width` blocks nearest to its own block, and d².

        Both results are (n, k). The computation runs on the CPU.
        """
        lists = self.lists(width)
        n = len(self.X)
        members = self.order.reshape(-1, BLOCK)
        indices = torch.empty((n, k), dtype=torch.int32)
        d2 = torch.empty((n, k), dtype=self.X.dtype)
        for own, near in zip(members, lists, strict=True):
            others = torch.unique(members[near.long()])
            D2 = torch.cdist(self.X[own], self.X[others], compute_mode="donot_use_mm_for_euclid_dist").square()
            D2[own[:, None] == others] = torch.inf
            d2[own], at = D2.topk(k, largest=False, sorted=True)
            indices[own] = others[at].int()
        return indices, d2


def reach(blocks: Blocks, sample: torch.Tensor, true: torch.Tensor, recall: float) -> int:
    """Return how many of the nearest blocks must be searched to reach the given recall.

    `true` (m, k) contains the true neighbours of the points `sample` (m,). A point that is listed among its own
    neighbours is not counted.
    """
    count = len(blocks.centers)
    rank = torch.empty(true.shape, dtype=torch.int64, device=true.device)
    for start in range(0, len(sample), 64):
        rows = slice(start, start + 64)
        lists = blocks.lists(count, blocks.block[sample[rows]])
        ranks = torch.empty_like(lists)
        ranks.scatter_(1, lists.long(), torch.arange(count, dtype=torch.int32, device=lists.device).expand_as(lists))
        rank[rows] = ranks.gather(1, blocks.block[true[rows].long()]).long()
    return reach_for_recall(rank[true != sample[:, None]], recall)


def cells(X: torch.Tensor) -> torch.Tensor:
    """Return k-means centres (c, D) of a sample of the points, ordered by their first principal component."""
    n = len(X)
    count = max(1, n // CELL)
    chosen = torch.randperm(n, generator=torch.Generator().manual_seed(1))[: TRAINED * count].to(X.device)
    sample = X[chosen]
    centers = sample[:count].clone()
    for _ in range(ITERATIONS):
        cell = nearest_center(sample, centers)
        order = torch.argsort(cell, stable=True)
        counts = torch.bincount(cell, minlength=count)
        sums = torch.segment_reduce(sample[order], "sum", lengths=counts, axis=0)  # in a fixed order
        centers = torch.where(counts[:, None] > 0, sums / counts[:, None].clamp(min=1), centers)
    axis: Any = torch.linalg.eigh((centers - centers.mean(dim=0)).T @ (centers - centers.mean(dim=0)))[1][:, -1]
    return centers[torch.argsort(centers @ axis)]


def nearest_center(X: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Return, for each row of X, the index of the nearest of the `centers` (c, D)."""
    norms = centers.square().sum(dim=1)
    cell = torch.empty(len(X), dtype=torch.int64, device=X.device)

    def rows(part: slice) -> None:
        cell[part] = torch.addmm(norms, X[part], centers.T, alpha=-2).argmin(dim=1)

    in_tiles(len(X), len(centers), rows, FIXED_SEARCH_TILE)
    return cell
