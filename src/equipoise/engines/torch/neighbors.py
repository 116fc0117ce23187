"""Nearest neighbours on a device, exactly: every pair is compared, and no matrix of distances is kept."""

from __future__ import annotations

import torch

from .tiles import in_tiles

SPARE = 16  # found by products beyond the k asked for, and sorted out by differences


def nearest(X: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k nearest other rows of X (n, D) to each, (n, k) int32 from the nearest on, and their d², float32.

    Products tell who may be near; the distances, and with them the order, are sums of squared differences.
    """
    n = len(X)
    X = (X - X.mean(dim=0)).float()
    norms = X.square().sum(dim=1)
    width = min(n - 1, k + SPARE)
    indices = torch.empty((n, k), dtype=torch.int32, device=X.device)
    d2 = torch.empty((n, k), device=X.device)

    def rows(part: slice) -> None:
        rough = torch.addmm(norms, X[part], X.T, alpha=-2)  # d² less the norm of the row
        rough.diagonal(part.start).fill_(torch.inf)
        near = rough.topk(width, largest=False).indices.sort(dim=1).values  # equally near ones by number
        exact = (X[part, None] - X[near]).square().sum(dim=2)
        found, order = exact.sort(dim=1, stable=True)
        indices[part], d2[part] = near.gather(1, order)[:, :k].int(), found[:, :k]

    in_tiles(n, n + width * (X.shape[1] + 8), rows)
    return indices, d2


def recall(X: torch.Tensor, indices: torch.Tensor, sample: torch.Tensor) -> float:
    """Return the share of the true neighbours of some rows, by float64, that were found."""
    k = indices.shape[1]
    Xd = X.double()
    D2 = torch.cdist(Xd[sample], Xd)
    D2[torch.arange(len(sample), device=X.device), sample] = torch.inf
    true = D2.topk(k, largest=False).indices
    return float((true[:, :, None] == indices[sample, None, :]).any(dim=2).double().mean())
