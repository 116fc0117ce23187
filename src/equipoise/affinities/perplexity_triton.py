"""Computes affinities of a given perplexity on a GPU: one Triton program per row finds β_i = 1/(2σ_i²) by bisection."""

from __future__ import annotations

from math import log

import torch
import triton
import triton.language as tl

from ..arrays.triton_kernels import Kernel


@Kernel
@triton.jit(do_not_specialize=["k"])
def _conditional(D2, P, k, goal, HALVINGS: tl.constexpr, WIDTH: tl.constexpr):
    """Write row i of the affinities P (n, k), computed from row i of the squared distances D2 (n, k).

    i is the index of the program. HALVINGS steps of bisection find the β_i that gives the row the entropy `goal`. WIDTH
    is a power of two, at least k.
    """
    i = tl.program_id(0).to(tl.int64)
    t = tl.arange(0, WIDTH)
    valid = t < k
    d2 = tl.load(D2 + i * k + t, mask=valid, other=float("inf"))
    excess = tl.where(valid, d2 - tl.min(d2, 0), 0.0)
    scale = tl.sum(excess, 0) / k
    low = 0.0
    high = float("inf")
    beta = 1.0 / tl.where(scale > 0, scale, 1.0)
    for _ in range(HALVINGS):
        e = tl.where(valid, tl.exp(-beta * excess), 0.0)
        Z = tl.sum(e, 0)
        entropy = tl.log(Z) + beta * tl.sum(e * excess, 0) / Z
        wide = entropy > goal
        low = tl.where(wide, beta, low)
        high = tl.where(wide, high, beta)
        beta = tl.where(high == float("inf"), 2 * beta, (low + high) / 2)
    e = tl.where(valid, tl.exp(-beta * excess), 0.0)
    tl.store(P + i * k + t, e / tl.sum(e, 0), mask=valid)


def padded(k: int) -> int:
    """Return the number of threads' entries for a row of k neighbours, a power of two."""
    return max(32, int(triton.next_power_of_2(k)))


def conditional(d2: torch.Tensor, perplexity: float, halvings: int) -> torch.Tensor:
    """Return the result of perplexity.conditional_rows for a tensor (n, k) on a GPU, with one program per row."""
    n, k = d2.shape
    P = torch.empty_like(d2)
    width = padded(k)
    _conditional[(n,)](d2, P, k, log(perplexity), halvings, width, num_warps=max(1, min(8, width // 256)))
    return P
