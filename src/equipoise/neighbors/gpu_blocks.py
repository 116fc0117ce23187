"""Divides points into blocks of nearby points, and searches nearby blocks: the PyTorch counterpart of cells.py.

The points are sorted by k-means cell, within a cell along its longest axis, and each cell is cut into blocks of about
equal size. The true neighbours of a sample determine how many of the blocks nearest to a block, by their centres, must
be searched to reach a recall.
"""

from __future__ import annotations

import torch

from ..arrays.blocks import FIXED_SEARCH_TILE
from ..arrays.tiles import in_tiles
from .recall import reach_for_recall

BLOCK = 128  # maximum number of points per block; there are at least half as many, unless all points are fewer
CELL = 512  # points per cell, on average
TRAINED = 32  # training points per cell for k-means
ITERATIONS = 8  # of k-means
TURNS = 3  # of the power iteration for the longest axis of a cell


class Blocks:
    """Points sorted into blocks of nearby points, from `BLOCK`/2 to `BLOCK` in each.

    Attributes
    ----------
    X : tensor, shape (n, D)
        The points, block by block; D is rounded up to a multiple of 8 by columns of zeros.
    order : tensor of int64, shape (n,)
        Index of each of these points in the caller's table.
    starts : tensor of int32, shape (b + 1,)
        Index of the first point of each block, and n.
    centers : tensor, shape (b, D)
        Mean of each block.
    """

    def __init__(self, X: torch.Tensor):
        centers, cell = cells(X)
        by_cell = torch.argsort(cell, stable=True)
        counts = torch.bincount(cell, minlength=len(centers))
        along = longest_axis(X[by_cell], counts)
        by_axis = torch.argsort(along)
        self.order = by_cell[by_axis[torch.argsort(cell[by_cell[by_axis]], stable=True)]]
        self.X = torch.nn.functional.pad(X[self.order], (0, -X.shape[1] % 8))
        self.starts = block_starts(counts)
        self.centers = segment_means(self.X, self.starts.diff().long())

    def __len__(self) -> int:
        return len(self.centers)

    def block_of(self, points: torch.Tensor) -> torch.Tensor:
        """Return the index of the block of each point, given its position in `X`."""
        return torch.searchsorted(self.starts, points.int(), right=True) - 1

    def positions(self, points: torch.Tensor) -> torch.Tensor:
        """Return the positions in `X` of points, given by their indices in the caller's table."""
        position = torch.empty_like(self.order)
        position[self.order] = torch.arange(len(self.order), device=position.device)
        return position[points]

    def lists(self, width: int, blocks: torch.Tensor | None = None) -> torch.Tensor:
        """Return the indices (b, width), int32, of the `width` blocks whose centres are nearest to that of each block.

        They are sorted by distance, so that each list begins with the block itself. If `blocks` (b,) is given, the
        result has rows only for the blocks with these indices.
        """
        which = self.centers if blocks is None else self.centers[blocks]
        norms = self.centers.square().sum(dim=1)
        result = torch.empty((len(which), width), dtype=torch.int32, device=self.X.device)

        def compare(part: slice) -> None:
            rough = torch.addmm(norms, which[part], self.centers.T, alpha=-2)
            result[part] = rough.topk(width, largest=False, sorted=True).indices.int()

        in_tiles(len(which), 2 * len(norms), compare, FIXED_SEARCH_TILE)
        return result

    def nearest(self, k: int, lists: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return, for each point, the k nearest other points in the blocks listed for its block, and their d².

        Both results are (n, k). Points are given by their positions in `X`.
        """
        if self.X.is_cuda:
            from . import block_lists_triton as compiled  # Triton is installed only with PyTorch for GPUs

            return compiled.nearest_in_lists(self, lists, k)
        n, starts = len(self.X), self.starts.tolist()
        indices = torch.empty((n, k), dtype=torch.int32)
        d2 = torch.empty((n, k), dtype=self.X.dtype)
        for b, near in enumerate(lists.tolist()):
            own = torch.arange(starts[b], starts[b + 1])
            others = torch.cat([torch.arange(starts[c], starts[c + 1]) for c in near])
            D2 = torch.cdist(self.X[own], self.X[others], compute_mode="donot_use_mm_for_euclid_dist").square()
            D2[own[:, None] == others] = torch.inf
            d2[own], at = D2.topk(k, largest=False, sorted=True)
            indices[own] = others[at].int()
        return indices, d2


def reach(blocks: Blocks, sample: torch.Tensor, true: torch.Tensor, recall: float) -> int:
    """Return how many of the nearest blocks must be searched to reach the given recall.

    `true` (m, k) contains the true neighbours of the points `sample` (m,), all by position. A point that is listed
    among its own neighbours is not counted.
    """
    count = len(blocks)
    rank = torch.empty(true.shape, dtype=torch.int64, device=true.device)
    for start in range(0, len(sample), 64):
        rows = slice(start, start + 64)
        lists = blocks.lists(count, blocks.block_of(sample[rows]))
        ranks = torch.empty_like(lists)
        ranks.scatter_(1, lists.long(), torch.arange(count, dtype=torch.int32, device=lists.device).expand_as(lists))
        rank[rows] = ranks.gather(1, blocks.block_of(true[rows])).long()
    return reach_for_recall(rank[true != sample[:, None]], recall)


def cells(X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Divide the points into k-means cells of at least `BLOCK`/2 points; return their centres, and the cell of each.

    The centres (c, D) are trained on a sample. Those of smaller cells are removed, and their points go to other cells.
    """
    count = max(1, len(X) // CELL)
    generator = torch.Generator(device=X.device).manual_seed(1)
    sample = X[torch.randperm(len(X), generator=generator, device=X.device)[: TRAINED * count]]
    centers = sample[:count].clone()
    for _ in range(ITERATIONS):
        cell = nearest_center(sample, centers)
        counts = torch.bincount(cell, minlength=count)
        means = segment_means(sample[torch.argsort(cell, stable=True)], counts)
        centers = torch.where(counts[:, None] > 0, means, centers)
    cell = nearest_center(X, centers)
    large = torch.bincount(cell, minlength=count) >= BLOCK // 2
    if bool(large.all()) or not bool(large.any()):
        return (centers, cell) if count == 1 or bool(large.all()) else (centers[:1], torch.zeros_like(cell))
    homeless = (~large)[cell].nonzero()[:, 0]
    cell = (torch.cumsum(large, 0) - 1)[cell]
    cell[homeless] = nearest_center(X[homeless], centers[large])
    return centers[large], cell


def nearest_center(X: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Return, for each row of X, the index of the nearest of the `centers` (c, D)."""
    if X.is_cuda:
        from . import centers_triton as compiled  # Triton is installed only with PyTorch for GPUs

        return compiled.nearest_center(X, centers)
    norms = centers.square().sum(dim=1)
    cell = torch.empty(len(X), dtype=torch.int64, device=X.device)

    def rows(part: slice) -> None:
        cell[part] = torch.addmm(norms, X[part], centers.T, alpha=-2).argmin(dim=1)

    in_tiles(len(X), len(centers), rows, FIXED_SEARCH_TILE)
    return cell


def segment_means(X: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return the means (c, D) of consecutive rows of X, `counts` (c,) of them at a time, added in a fixed order."""
    return torch.segment_reduce(X, "sum", lengths=counts, axis=0) / counts[:, None].clamp(min=1)


def longest_axis(X: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return the coordinate (n,) of each point along the longest axis of its cell; X is sorted by cell."""
    cell = torch.arange(len(counts), device=X.device).repeat_interleave(counts, output_size=len(X))
    Z = X - segment_means(X, counts)[cell]
    axis = torch.ones((len(counts), X.shape[1]), device=X.device)
    for _ in range(TURNS):
        along = (Z * axis[cell]).sum(dim=1, keepdim=True)
        axis = torch.nn.functional.normalize(segment_means(Z * along, counts))
    return (Z * axis[cell]).sum(dim=1)


def block_starts(counts: torch.Tensor) -> torch.Tensor:
    """Return the index of the first point of each block, and n, if cells of `counts` points are cut into blocks."""
    pieces = -(-counts // BLOCK)
    cell = torch.arange(len(counts), device=counts.device).repeat_interleave(pieces)
    rank = torch.arange(len(cell), device=counts.device) - (pieces.cumsum(0) - pieces)[cell]
    starts = (counts.cumsum(0) - counts)[cell] + counts[cell] * rank // pieces[cell]
    return torch.cat([starts, counts.sum(dim=0, keepdim=True)]).int()
