"""Exact nearest neighbours in PyTorch: every query is compared with every point, a tile of queries at a time."""

from __future__ import annotations

from typing import NamedTuple

import torch

from ..arrays.blocks import FIXED_SEARCH_TILE, FIXED_TILE
from ..arrays.tiles import in_tiles

SPARE = 16  # candidates beyond k found by products; differences then select the k nearest; chosen


class Found(NamedTuple):
    """The neighbours of each point that a search has found."""

    indices: torch.Tensor  # (n, k) int32, nearest first
    d2: torch.Tensor  # (n, k) float32
    recall: float  # estimated on a sample; 1.0 if every pair was compared


def nearest(
    Q: torch.Tensor, X: torch.Tensor, k: int, own: torch.Tensor | None = None, *, independent: bool = False
) -> Found:
    """Return the k rows of X nearest to each row of Q.

    Matrix products select candidates; the distances to the candidates, and so their order, are then computed from
    differences. If the rounding errors of the products leave the candidates of a query uncertain, for example in tight
    clusters that are far apart, the search for this query is repeated in float64.

    Parameters
    ----------
    Q : tensor, shape (m, D)
    X : tensor, shape (n, D)
    k : int
    own : tensor of int64, shape (m,), default=None
        Index in X of each query, if the queries are rows of X: a row is not its own neighbour.
    independent : bool, default=False
        If True, the distances to the candidates are computed in float64, so that the result for a query does not depend
        on the other queries. If False, the result may depend on the number of queries: that number changes the rounding
        of the products, which decides whether the search for a query is repeated in float64.
    """
    m, n = len(Q), len(X)
    indices = torch.empty((m, k), dtype=torch.int32, device=X.device)
    d2 = torch.empty((m, k), dtype=X.dtype, device=X.device)
    available = n if own is None else n - 1
    width = min(available, k + SPARE)

    def compare(rows: torch.Tensor, Q: torch.Tensor, X: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
        """Fill `indices` and `d2` for the queries `rows`, and return the queries whose neighbours are uncertain."""
        q = Q[rows]
        rough = torch.addmm(norms, q, X.T, alpha=-2)  # d² − ‖q‖²
        if own is not None:
            rough.scatter_(1, own[rows, None], torch.inf)
        smallest, near = rough.topk(width, largest=False)
        near = near.sort(dim=1).values  # ties go to the lower index
        differences = q[:, None].double() - X[near].double() if independent else q[:, None] - X[near]
        found, order = differences.square().sum(dim=2).sort(dim=1, stable=True)
        indices[rows], d2[rows] = near.gather(1, order)[:, :k].int(), found[:, :k].to(d2.dtype)
        if width == available:
            return rows[:0]
        # The likely rounding error of a product is √D eps (‖q‖ + ‖x‖)²; no other point is nearer than `others`.
        norm, error = q.square().sum(dim=1), X.shape[1] ** 0.5 * torch.finfo(X.dtype).eps
        others = smallest.amax(dim=1) + norm - error * (norm.sqrt() + norms.max().sqrt()).square()
        return rows[found[:, k - 1] > others]

    parts: list[torch.Tensor] = []
    tile = FIXED_SEARCH_TILE if X.is_cuda else FIXED_TILE
    queries, size = torch.arange(m, device=X.device), n + width * ((1 + independent) * X.shape[1] + 8)
    norms = X.square().sum(dim=1)
    in_tiles(m, size, lambda part: parts.append(compare(queries[part], Q, X, norms)), tile)
    uncertain = torch.cat(parts)
    if len(uncertain) and X.dtype != torch.float64:
        Qd, Xd = Q.double(), X.double()
        double_norms = Xd.square().sum(dim=1)
        in_tiles(
            len(uncertain), 2 * size, lambda part: parts.append(compare(uncertain[part], Qd, Xd, double_norms)), tile
        )
    return Found(indices, d2, 1.0)
