"""Neighbour search in PyTorch, without storing the distance matrix.

In small data, or for more than `MOST` neighbours, all pairs are compared (gpu_scan.py). In large data, only pairs in
nearby blocks are compared (gpu_blocks.py) if this is faster and reaches the required recall. Otherwise a GPU uses a
sieve (sieve_triton.py), which collects candidates by matrix products of low precision. If the recall of the sieve is
below `SURE`, all pairs are compared.
"""

from __future__ import annotations

import torch

from .gpu_blocks import Blocks, reach
from .gpu_scan import Found, nearest
from .recall import estimate_recall

SAMPLE = 512  # points whose true neighbours determine the number of blocks; as many others measure the recall
FEW_ROWS = 256  # points that measure the recall of a sieve
MARGIN = 0.002  # added to the required recall, for the error of the sample
MANY = 200_000  # points above which blocks may be faster than all pairs; chosen
FEW = 16_384  # minimum number of points for a sieve, which draws a sample of this size
MOST = 340  # largest number of neighbours that a sieve has room for
SURE = 0.9999  # minimum recall of a sieve; below it, rounding has affected the result, which is discarded
WORTH = 0.5  # largest fraction of the blocks for which a search in blocks is faster than all pairs; chosen


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
    blocks_pay, sieve_pays = n >= MANY and k <= MOST, X.is_cuda and n >= FEW and k <= MOST
    if not (blocks_pay or sieve_pays):
        return nearest(X, X, k, torch.arange(n, device=X.device))
    size = 2 * SAMPLE if blocks_pay else FEW_ROWS
    sample = torch.randperm(n, generator=torch.Generator().manual_seed(0))[:size].to(X.device)
    true = nearest(X[sample], X, k + 1)

    def measured(indices: torch.Tensor, d2: torch.Tensor) -> Found:
        """Return the neighbours found, with their recall estimated on the sample."""
        half = len(sample) // 2 if blocks_pay else 0  # the first half determined the number of blocks
        return Found(indices, d2, estimate_recall(d2[sample[half:]], true.d2[half:, -1]))

    if blocks_pay:
        blocks = Blocks(X)
        width = reach(blocks, sample[:SAMPLE], true.indices[:SAMPLE], min_recall + MARGIN)
        if width <= WORTH * len(blocks.centers):
            found = measured(*search_blocks(blocks, k, width))
            if found.recall >= min_recall:
                return found
    if sieve_pays:
        from . import sieve_triton as sieve  # Triton is installed only with PyTorch for GPUs

        for precision in sieve.PRECISIONS:
            found = measured(*sieve.nearest(X, k, precision))
            if found.recall >= SURE:
                return found
    return nearest(X, X, k, torch.arange(n, device=X.device))


def search_blocks(blocks: Blocks, k: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return, for each point, the k nearest other points in the `width` blocks nearest to its own block, and their d².

    Both results are (n, k).
    """
    if not blocks.X.is_cuda:
        return blocks.nearest(k, width)
    from . import sieve_triton as sieve

    return sieve.nearest_in_blocks(blocks.X, blocks.order, blocks.lists(width), k)
