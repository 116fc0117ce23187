"""Affinities on a device: rows of a perplexity, and their symmetric mean (docs/math.md, section 3)."""

from __future__ import annotations

from math import log

import torch

HALVINGS = 60  # of the interval of a row's precision; chosen: float32 has 24 bits, and a start is seldom 2^30 away


def conditional(d2: torch.Tensor, perplexity: float) -> torch.Tensor:
    """Return p_{j|i} ∝ exp(−β_i d²_ij) on the neighbours (n, k), each row with entropy log perplexity.

    A row with more neighbours equally near at the least distance than the perplexity asks for spreads evenly over them.
    """
    d2 = d2 - d2.min(dim=1, keepdim=True).values
    scale = d2.mean(dim=1, keepdim=True)
    low, high = torch.zeros_like(scale), torch.full_like(scale, torch.inf)
    beta = 1 / torch.where(scale > 0, scale, 1.0)
    for _ in range(HALVINGS):
        p = torch.exp(-beta * d2)
        Z = p.sum(dim=1, keepdim=True)
        entropy = Z.log() + beta * (p * d2).sum(dim=1, keepdim=True) / Z
        wide = entropy > log(perplexity)
        low, high = torch.where(wide, beta, low), torch.where(wide, high, beta)
        beta = torch.where(high.isinf(), 2 * beta, (low + high) / 2)
    p = torch.exp(-beta * d2)
    return p / p.sum(dim=1, keepdim=True)


def symmetric(indices: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return A + Aᵀ as row pointers int64, columns int32 and values, from rows of neighbours (n, k); columns sorted."""
    n, k = indices.shape
    i = torch.arange(n, device=indices.device).repeat_interleave(k)
    j = indices.flatten().long()
    key, order = torch.cat([i * n + j, j * n + i]).sort(stable=True)
    value = torch.cat([values.flatten()] * 2)[order]
    first = torch.ones(len(key), dtype=torch.bool, device=key.device)
    first[1:] = key[1:] != key[:-1]
    value[:-1] += torch.where(first[1:], 0.0, value[1:])  # a pair comes once or twice
    key, value = key[first], value[first]
    row = key // n
    indptr = torch.zeros(n + 1, dtype=torch.int64, device=key.device)
    indptr[1:] = torch.bincount(row, minlength=n).cumsum(0)
    return indptr, (key - row * n).int(), value
