"""Neighbour search in PyTorch, without storing the distance matrix.

In small data, or for more than `MOST` neighbours, all pairs are compared by gpu_scan.py. Otherwise the points are
divided into blocks of nearby points (gpu_blocks.py). In large data, each block is compared with so many of the nearest
blocks that the recall, measured on a sample, is high enough. Up to `MANY` points, and if the recall is not reached,
each block is compared with all blocks. The products in these comparisons have a low precision; if their rounding has
affected the result, they are repeated with a higher precision.
"""

from __future__ import annotations

import torch

from ..arrays.blocks import FIXED_SEARCH_TILE
from ..arrays.tiles import in_tiles
from .gpu_blocks import BLOCK, Blocks, reach
from .gpu_scan import Found, nearest
from .recall import estimate_recall

SAMPLE = 512  # points whose true neighbours decide how far to search; as many others measure the recall
FEW_ROWS = 256  # points that measure the recall if all blocks are compared
MARGIN = 0.002  # added to the required recall, for the error of the sample
MANY = 200_000  # points above which not all blocks are compared; chosen
FEW = 16_384  # minimum number of points for blocks on a GPU; chosen
MOST = 340  # largest number of neighbours for which blocks are searched
SURE = 0.9999  # minimum recall if all blocks are compared; below it, rounding has affected the result
PRECISIONS = "tf32", "tf32x3"  # of products on the tensor cores: 11 bits, then about 22


def search(X: torch.Tensor, k: int, min_recall: float) -> Found:
    """Return the k other rows of X nearest to each row, with their squared distances and the recall.

    Parameters
    ----------
    X : tensor of float32, shape (n, D)
    k : int
    min_recall : float
        Recall that the search must reach, estimated on a sample.
    """
    n = len(X)
    X = X - X.mean(dim=0)
    if k > MOST or n < (FEW if X.is_cuda else MANY):
        return nearest(X, X, k, torch.arange(n, device=X.device))
    blocks = Blocks(X)
    found = search_near(blocks, k, min_recall) if n >= MANY else None
    found = search_all(blocks, k) if found is None else found
    if found is None:
        return nearest(X, X, k, torch.arange(n, device=X.device))
    return Found(*in_table_order(blocks.order, found), found.recall)


def search_near(blocks: Blocks, k: int, min_recall: float) -> Found | None:
    """Return the neighbours found in so many of the nearest blocks that the recall is reached; None if it is not.

    Points are given by their positions. The first half of a sample determines the number of blocks, the second half
    measures the recall. If it is too low, half as many neighbours may be missed in a second attempt.
    """
    sample = sample_points(blocks, 2 * SAMPLE)
    true = nearest(blocks.X[sample], blocks.X, k + 1)
    target = min(1.0, min_recall + MARGIN)
    for _ in range(2):
        width = reach(blocks, sample[:SAMPLE], true.indices[:SAMPLE], target)
        width = min(max(width, -(-2 * (k + 1) // BLOCK)), len(blocks))
        found = blocks.nearest(k, width, PRECISIONS[0])
        recall = estimate_recall(found[1][sample[SAMPLE:]], true.d2[SAMPLE:, -1])
        if recall >= min_recall:
            return Found(*found, recall)
        target = (target + 1) / 2
    return None


def search_all(blocks: Blocks, k: int) -> Found | None:
    """Return the neighbours found in all blocks; None if the rounding of the products affects them at any precision."""
    sample = sample_points(blocks, FEW_ROWS)
    true = nearest(blocks.X[sample], blocks.X, k + 1)
    for precision in PRECISIONS:
        found = blocks.nearest(k, len(blocks), precision)
        recall = estimate_recall(found[1][sample], true.d2[:, -1])
        if recall >= SURE:
            return Found(*found, recall)
    return None


def sample_points(blocks: Blocks, size: int) -> torch.Tensor:
    """Return the positions of `size` random points; the same number of points always gives the same positions."""
    device = blocks.X.device
    generator = torch.Generator(device=device).manual_seed(0)
    return torch.randperm(len(blocks.X), generator=generator, device=device)[:size]


def in_table_order(order: torch.Tensor, found: Found) -> tuple[torch.Tensor, torch.Tensor]:
    """Return neighbours and their d² with the points numbered as in the table: point i is there point `order[i]`."""
    indices, d2 = torch.empty_like(found.indices), torch.empty_like(found.d2)
    names = order.int()

    def move(part: slice) -> None:
        indices[order[part]] = names[found.indices[part].long()]
        d2[order[part]] = found.d2[part]

    in_tiles(len(order), 4 * indices.shape[1], move, FIXED_SEARCH_TILE)
    return indices, d2
