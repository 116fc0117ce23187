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
    """Points sorted into blocks of nearby points, from `size`/2 to `size` in each.

    Attributes
    ----------
    X : tensor, shape (n, D)
        The points, block by block; columns of zeros are added, so that D is `padded`.
    order : tensor of int64, shape (n,)
        Index of each of these points in the caller's table.
    starts : tensor of int32, shape (b + 1,)
        Index of the first point of each block, and n.
    centers : tensor, shape (b, D)
        Mean of each block.
    """

    size = BLOCK

    def __init__(self, X: torch.Tensor):
        count, cell = cells(X)
        order, ends = sorted_by_cell(cell, count)
        along = longest_axis(X[order], ends)
        by_axis = torch.argsort(along, stable=True)
        order = order[by_axis]
        self.order = order[torch.argsort(cell[order], stable=True)]
        self.X = torch.nn.functional.pad(X[self.order], (0, padded(X.shape[1]) - X.shape[1]))
        self.starts = block_starts(ends)
        self.centers = segment_means(self.X, self.starts.long())

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

    def lists(self, width: int, blocks: slice | torch.Tensor) -> torch.Tensor:
        """Return the indices (m, width), int32, of the blocks nearest to each of m blocks by their centres.

        They are sorted by distance, so that each list begins with the block itself.
        """
        which = self.centers[blocks]
        norms = self.centers.square().sum(dim=1)
        result = torch.empty((len(which), width), dtype=torch.int32, device=self.X.device)

        def compare(part: slice) -> None:
            rough = torch.addmm(norms, which[part], self.centers.T, alpha=-2)
            result[part] = rough.topk(width, largest=False, sorted=True).indices.int()

        in_tiles(len(which), 2 * len(norms), compare, FIXED_SEARCH_TILE)
        return result

    def nearest(self, k: int, width: int, precision: str = "tf32") -> tuple[torch.Tensor, torch.Tensor]:
        """Return, for each point, the k nearest other points in the `width` blocks nearest to its own, and their d².

        Both results are (n, k), and points are given by their positions in `X`. `width` blocks must have more than k
        points. On a GPU, candidates are found by products of the given precision.
        """
        if self.X.is_cuda:
            from . import blocks_triton  # Triton is installed only with PyTorch for GPUs

            return blocks_triton.nearest(self, k, width, precision)
        n, starts = len(self.X), self.starts.tolist()
        indices = torch.empty((n, k), dtype=torch.int32)
        d2 = torch.empty((n, k), dtype=self.X.dtype)
        for b, near in enumerate(self.lists(width, slice(None)).tolist()):
            own = torch.arange(starts[b], starts[b + 1])
            others = torch.cat([torch.arange(starts[c], starts[c + 1]) for c in sorted(near)])
            D2 = torch.cdist(self.X[own], self.X[others], compute_mode="donot_use_mm_for_euclid_dist").square()
            D2[own[:, None] == others] = torch.inf
            d2[own], at = D2.topk(k, largest=False, sorted=True)
            indices[own] = others[at].int()
        return indices, d2


def padded(D: int) -> int:
    """Return the number of columns to which points are padded: 16, 32 or a multiple of 64, for few kernels."""
    return next((width for width in (16, 32) if width >= D), -(-D // 64) * 64)


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


def cells(X: torch.Tensor) -> tuple[int, torch.Tensor]:
    """Divide the points into k-means cells of at least `BLOCK`/2 points; return their number, and the cell of each.

    The centres are trained on a sample. Those of smaller cells are removed, and their points go to other cells.
    """
    count = max(1, len(X) // CELL)
    generator = torch.Generator(device=X.device).manual_seed(1)
    sample = X[torch.randperm(len(X), generator=generator, device=X.device)[: TRAINED * count]]
    centers = sample[:count].clone()
    for _ in range(ITERATIONS):
        order, ends = sorted_by_cell(nearest_center(sample, centers), count)
        centers = torch.where(ends.diff()[:, None] > 0, segment_means(sample[order], ends), centers)
    cell = nearest_center(X, centers)
    large = torch.bincount(cell, minlength=count) >= BLOCK // 2
    kept = int(large.sum())
    if kept == 0:
        return 1, torch.zeros_like(cell)
    if kept < count:
        removed = (~large)[cell].nonzero()[:, 0]
        cell = (torch.cumsum(large, 0) - 1)[cell]
        cell[removed] = nearest_center(X[removed], centers[large])
    return kept, cell


def sorted_by_cell(cell: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the points sorted by cell, and the position (count + 1,) of the first point of each cell, and n."""
    cell, order = cell.sort(stable=True)
    return order, torch.searchsorted(cell, torch.arange(count + 1, device=cell.device))


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


def segment_means(X: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Return the means (c, D) of the rows `ends[i]` to `ends[i + 1]` − 1 of X, added in a fixed order; 0 if none."""
    sums = torch.segment_reduce(X, "sum", offsets=ends, axis=0, unsafe=True)  # the check would wait for the device
    return sums / ends.diff()[:, None].clamp(min=1)


def longest_axis(X: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Return the coordinate (n,) of each point along the longest axis of its cell; X is sorted by cell."""
    cell = torch.arange(len(ends) - 1, device=X.device).repeat_interleave(ends.diff(), output_size=len(X))
    Z = X - segment_means(X, ends)[cell]
    axis = torch.ones((len(ends) - 1, X.shape[1]), device=X.device)
    for _ in range(TURNS):
        along = (Z * axis[cell]).sum(dim=1, keepdim=True)
        axis = torch.nn.functional.normalize(segment_means(Z * along, ends))
    return (Z * axis[cell]).sum(dim=1)


def block_starts(ends: torch.Tensor) -> torch.Tensor:
    """Return the position of the first point of each block, and n, if each cell is cut into blocks of about one size.

    Cell i holds the points `ends[i]` to `ends[i + 1]` − 1.
    """
    counts = ends.diff()
    pieces = -(-counts // BLOCK)
    cell = torch.arange(len(counts), device=counts.device).repeat_interleave(pieces)
    rank = torch.arange(len(cell), device=counts.device) - (pieces.cumsum(0) - pieces)[cell]
    return torch.cat([ends[cell] + counts[cell] * rank // pieces[cell], ends[-1:]]).int()
