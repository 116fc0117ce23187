"""Neighbour search in PyTorch, without storing the distance matrix.

In small data, or for more than `MOST` neighbours, all pairs are compared (gpu_scan.py). Otherwise each point is first
compared with the points of nearby blocks (gpu_blocks.py). In large data, the neighbours found are refined by those of
the neighbours (gpu_refine.py) until the recall, measured on a sample, is high enough. In smaller data, and if the
recall is never reached, a GPU compares all pairs, for which the neighbours found are a good start (sieve_triton.py).
"""

from __future__ import annotations

import torch

from ..arrays.tiles import in_tiles
from .gpu_blocks import BLOCK, Blocks, reach
from .gpu_refine import refined
from .gpu_scan import Found, nearest
from .recall import estimate_recall

SAMPLE = 512  # points whose true neighbours decide how far to search; as many others measure the recall
MARGIN = 0.002  # added to the required recall, for the error of the sample
MANY = 200_000  # points above which not all pairs are compared if the recall can be reached without; chosen
FEW = 16_384  # minimum number of points for blocks on a GPU; chosen
MOST = 340  # largest number of neighbours for which blocks are searched
FIRST = 16  # blocks searched before all pairs are compared; chosen
WIDEST = 256  # largest number of blocks to search for each block; chosen
ROUNDS = 4  # largest number of refinements; chosen
GAIN = 0.0005  # smallest gain in recall for which another refinement is worth its time; chosen


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
    if n >= MANY:
        indices, d2, recall = search_large(blocks, k, min_recall)
    else:
        (indices, d2), recall = blocks.nearest(k, blocks.lists(min(FIRST, len(blocks)))), 0.0
    if recall < min_recall:
        if not X.is_cuda:
            return nearest(X, X, k, torch.arange(n, device=X.device))
        from . import sieve_triton as sieve  # Triton is installed only with PyTorch for GPUs

        indices, d2 = sieve.nearest(blocks.X, k, d2[:, -1])
        recall = 1.0
    return Found(*in_table_order(blocks.order, indices, d2), recall)


def search_large(blocks: Blocks, k: int, min_recall: float) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Return the neighbours of each point and their d², both (n, k), with the recall; points are given by position."""
    n = len(blocks.X)
    device = blocks.X.device
    generator = torch.Generator(device=device).manual_seed(0)
    sample = torch.randperm(n, generator=generator, device=device)[: 2 * SAMPLE]
    true = nearest(blocks.X[sample], blocks.X, k + 1)
    width = reach(blocks, sample[:SAMPLE], true.indices[:SAMPLE], min_recall + MARGIN)
    width = min(max(width, -(-2 * (k + 1) // BLOCK)), WIDEST, len(blocks))
    indices, d2 = blocks.nearest(k, blocks.lists(width))
    before = 0.0
    for _ in range(ROUNDS):
        recall = estimate_recall(d2[sample[:SAMPLE]], true.d2[:SAMPLE, -1])
        if recall >= min_recall + MARGIN or recall < before + GAIN:
            break
        indices, d2 = refined(blocks.X, indices, d2)
        before = recall
    return indices, d2, estimate_recall(d2[sample[SAMPLE:]], true.d2[SAMPLE:, -1])


def in_table_order(order: torch.Tensor, indices: torch.Tensor, d2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a graph of the points `order` as a graph of all points, numbered as in the table.

    `d2` is written to a new array before `indices`, and freed.
    """
    names = order.int()
    new, new_d2 = torch.empty_like(indices), torch.empty_like(d2)

    def move(part: slice) -> None:
        new[order[part]], new_d2[order[part]] = names[indices[part].long()], d2[part]

    in_tiles(len(order), 3 * indices.shape[1], move)
    return new, new_d2
