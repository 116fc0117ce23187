"""Affinities on a device: rows of a perplexity, UMAP's memberships (docs/math.md, section 3)."""

from __future__ import annotations

from math import log, log2

import torch

from ..arrays.device_csr import Rows
from ..arrays.tiles import in_tiles

HALVINGS = 60  # of the interval of a row's precision; chosen: float32 has 24 bits, and a start is seldom 2^30 away
FLAT = 64  # halvings of a membership's scale; chosen likewise


def conditional(d2: torch.Tensor, perplexity: float) -> torch.Tensor:
    """Return p_{j|i} ∝ exp(−β_i d²_ij) on the neighbours (n, k), each row with entropy log perplexity.

    A row with more neighbours equally near at the least distance than the perplexity asks for spreads evenly over them.
    """
    if d2.is_cuda:
        from . import perplexity_triton as fused

        return fused.conditional(d2, perplexity)
    p = torch.empty_like(d2)

    def rows(part: slice) -> None:
        excess = d2[part] - d2[part].min(dim=1, keepdim=True).values
        scale = excess.mean(dim=1, keepdim=True)
        low, high = torch.zeros_like(scale), torch.full_like(scale, torch.inf)
        beta = 1 / torch.where(scale > 0, scale, 1.0)
        for _ in range(HALVINGS):
            e = torch.exp(-beta * excess)
            Z = e.sum(dim=1, keepdim=True)
            entropy = Z.log() + beta * (e * excess).sum(dim=1, keepdim=True) / Z
            wide = entropy > log(perplexity)
            low, high = torch.where(wide, beta, low), torch.where(wide, high, beta)
            beta = torch.where(high.isinf(), 2 * beta, (low + high) / 2)
        e = torch.exp(-beta * excess)
        p[part] = e / e.sum(dim=1, keepdim=True)

    in_tiles(len(d2), 4 * d2.shape[1], rows)
    return p


def crowded(d2: torch.Tensor, perplexity: float) -> torch.Tensor:
    """Return which rows have more neighbours at their least distance than the perplexity."""
    return (d2 == d2.min(dim=1, keepdim=True).values).sum(dim=1) > perplexity


def memberships(d2: torch.Tensor, k: int, floor: float) -> torch.Tensor:
    """Return w_ij = exp(−max(0, d_ij − ρ_i)/σ_i) on the neighbours (n, k − 1), Σ_j w_ij = log₂ k; σ_i at least
    `floor` times the mean distance of the row."""
    d = d2.sqrt()
    rho = torch.where(d > 0, d, torch.inf).min(dim=1, keepdim=True).values
    excess = torch.where(rho.isinf(), 0.0, (d - rho).clamp(min=0))
    low, high = torch.zeros_like(rho), torch.full_like(rho, torch.inf)
    sigma = torch.ones_like(rho) * excess.mean(dim=1, keepdim=True).clamp(min=1e-30)
    for _ in range(FLAT):
        many = torch.exp(-excess / sigma).sum(dim=1, keepdim=True) > log2(k)
        low, high = torch.where(many, low, sigma), torch.where(many, sigma, high)
        sigma = torch.where(high.isinf(), 2 * sigma, (low + high) / 2)
    sigma = torch.maximum(sigma, floor * d.mean(dim=1, keepdim=True))
    return torch.where(excess > 0, torch.exp(-excess / sigma), 1.0)


def fuzzy_union(W: Rows) -> Rows:
    """Return μ = W + Wᵀ − W ∘ Wᵀ for weights between 0 and 1."""
    union = W.with_data(torch.log1p(-W.data.clamp(max=1))).symmetrized()
    return union.with_data(-torch.expm1(union.data))
