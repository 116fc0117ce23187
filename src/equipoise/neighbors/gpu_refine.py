"""Improves a neighbour graph: each point is compared with the neighbours of its neighbours (Dong et al. 2011)."""

from __future__ import annotations

import torch

from ..arrays.tiles import in_tiles

EACH = 64  # neighbours read from the list of each neighbour; chosen
SLOTS = 2048  # points compared with each point, itself and its own neighbours included; chosen


def refined(X: torch.Tensor, indices: torch.Tensor, d2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k nearest of the neighbours of each point and of their neighbours, and their d², (n, k) each.

    A row of the graph is followed by the first `EACH` entries of the rows of its nearest neighbours, up to `SLOTS`
    points in all. The old graph is read and a new one written, so that the result does not depend on the order.

    Parameters
    ----------
    X : tensor of float32, shape (n, D)
        On a GPU, D must be a multiple of 8.
    indices : tensor of int32, shape (n, k)
        The neighbours of each point, nearest first.
    d2 : tensor of float32, shape (n, k)
    """
    k = indices.shape[1]
    rows = (SLOTS - (1 << (k - 1).bit_length())) // EACH
    if X.is_cuda:
        from . import refine_triton as compiled  # Triton is installed only with PyTorch for GPUs

        return compiled.refined(X, indices, d2, EACH, SLOTS)
    new, new_d2 = torch.empty_like(indices), torch.empty_like(d2)

    def compare(part: slice) -> None:
        own = indices[part]
        others = indices[own[:, :rows].long(), :EACH].flatten(1)
        near = torch.cat([own, others], dim=1).sort(dim=1).values.long()
        found = (X[part, None] - X[near]).square().sum(dim=2)
        itself = torch.arange(part.start, part.stop, device=X.device)
        found[:, 1:][near[:, 1:] == near[:, :-1]] = torch.inf
        found[near == itself[:, None]] = torch.inf
        found, at = found.sort(dim=1, stable=True)
        new[part], new_d2[part] = near.gather(1, at)[:, :k].int(), found[:, :k]

    in_tiles(len(X), SLOTS * (X.shape[1] + 8), compare)
    return new, new_d2
