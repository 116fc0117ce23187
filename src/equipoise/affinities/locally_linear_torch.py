"""Locally linear weights on a device."""

from __future__ import annotations

import torch

from ..arrays.tiles import in_tiles


def local_weights(X: torch.Tensor, neighbors: torch.Tensor, own: torch.Tensor, reg: float) -> torch.Tensor:
    """Return the weights (m, k) in float64, each row of sum 1, of the neighbours (m, k) in X (n, D) of rows `own`.

    They solve (G + reg · tr(G) I) w = 1 for the local Gram matrices G of lle.py; all are equal where G = 0.
    """
    m, k = neighbors.shape
    weights = torch.empty((m, k), dtype=torch.float64, device=X.device)

    def rows(part: slice) -> None:
        V = X[neighbors[part].long()].double() - own[part, None].double()
        G = V @ V.mT  # ⟨x_a − x_i, x_b − x_i⟩
        diagonal = G.diagonal(dim1=1, dim2=2)
        trace = diagonal.sum(dim=1)[:, None, None]
        G /= torch.where(trace > 0, trace, 1.0)
        diagonal += reg
        w = torch.linalg.solve(G, torch.ones_like(G[:, :, 0]))
        weights[part] = w / w.sum(dim=1, keepdim=True)

    in_tiles(m, 2 * k * (X.shape[1] + k), rows)  # in float64, twice the room
    return weights
