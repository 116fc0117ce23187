"""Computes the squared distances of all pairs of a map under a metric g(y), and the forces by autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from ...arrays.blocks import FIXED_AUTOGRAD_PAIRS
from ...data.checks.metric_tensors import check_tensors


class Pairs:
    """Iterates over all pairs of a map, in blocks of rows, and gives d2_ij = (y_i − y_j)ᵀ ½(g_i + g_j) (y_i − y_j).

    g(Y) gives a metric tensor g_i for every point, or one g for all (Lin et al. 2024, eq. 9). g is called once. So that
    no autograd graph spans all pairs, each block is differentiated with respect to Y and g as independent variables,
    and g is differentiated with respect to Y at the end, for all blocks together.
    """

    def __init__(self, Y: Any, g: Callable[[torch.Tensor], torch.Tensor], device: str):
        copied = torch.as_tensor(Y).detach().to(device, torch.float64, copy=True)
        self.Y = copied.requires_grad_()
        with torch.enable_grad():
            self.G = _tensors(g(self.Y), self.Y)
        self.leaves = [part.detach().requires_grad_() for part in (self.Y, self.G)]
        n = len(self.Y)
        # Measured on one core, 500 points with a metric at each: 100 iterations took 3.5 s in one block and 3.2 s in
        # blocks of 2^17 pairs. GPUs need large blocks; that size is chosen.
        self._step = max(1, FIXED_AUTOGRAD_PAIRS[self.Y.device.type] // n)

    @property
    def stretch(self) -> float:
        """The largest eigenvalue of g at any point; the metric multiplies the stiffness of the loss by this factor."""
        return float(np.linalg.eigvalsh(self.G.detach().cpu().numpy()).max())

    def __iter__(self) -> Iterator[tuple[slice, torch.Tensor, torch.Tensor]]:
        """Yield, for each block of b points i, its slice, d2 (b, n) to all points j, and a mask (b, n), True at j = i.

        d2 has an autograd graph, and is set to 1 where the mask is True.
        """
        n = len(self.Y)
        for start in range(0, n, self._step):
            rows = slice(start, min(start + self._step, n))
            index = torch.arange(n, device=self.Y.device)
            own = index[rows, None] == index
            with torch.enable_grad():
                d2 = self._squared(rows).masked_fill(own, 1.0)
            yield rows, d2, own

    def _squared(self, rows: slice) -> torch.Tensor:
        Y, G = self.leaves
        d = Y.shape[1]
        along = [Y[rows, c, None] - Y[:, c] for c in range(d)]  # one axis at a time: arrays (b, n) are contiguous
        d2 = torch.zeros_like(along[0])
        for a in range(d):
            for b in range(a + 1):  # g is symmetric
                g = G[a, b] if G.ndim == 2 else (G[rows, a, b, None] + G[:, a, b]) / 2
                d2 = d2 + (1 if a == b else 2) * g * along[a] * along[b]
        return d2

    def force_sum(self) -> ForceSum:
        """Return an accumulator of forces, initially 0."""
        return ForceSum(self)


class ForceSum:
    """Accumulates Σ_kl w_kl ∂d2_kl/∂y_i, (n, d), block by block.

    With the weights w = ∂E/∂d2 this is the gradient of E, by the chain rule (docs/math.md, eq. G1).
    """

    def __init__(self, pairs: Pairs):
        self.pairs = pairs
        self._sums = [torch.zeros_like(leaf) for leaf in pairs.leaves]

    def add(self, d2: torch.Tensor, weight: torch.Tensor) -> None:
        """Add the terms of a block with squared distances `d2` (b, n) and weights (b, n)."""
        for total, part in zip(
            self._sums, torch.autograd.grad(d2, self.pairs.leaves, weight, retain_graph=True), strict=True
        ):
            total += part

    def result(self) -> torch.Tensor:
        """Return the accumulated sum (n, d), including the part that comes from the derivative of the metric g."""
        direct, by_metric = self._sums
        if not self.pairs.G.requires_grad:
            return direct
        (through,) = torch.autograd.grad(self.pairs.G, self.pairs.Y, by_metric, retain_graph=True, allow_unused=True)
        return direct if through is None else direct + through


def on_tensor(formula: Callable[[Any], Any], x: torch.Tensor) -> torch.Tensor:
    """Return formula(x) for a tensor x; `formula` is a method of a kernel or of a divergence.

    On the CPU the formula is called with x as a NumPy array, because user-defined formulas may call NumPy's functions.
    Built-in formulas would accept the tensor, but PyTorch rounds exp and log differently in the last digit, so that
    maps would differ from those computed with NumPy.
    """
    x = x.detach()
    if x.device.type == "cpu":
        return torch.as_tensor(formula(x.numpy()), dtype=torch.float64)
    try:
        return torch.as_tensor(formula(x), dtype=torch.float64, device=x.device)
    except (TypeError, RuntimeError) as error:
        name = getattr(formula, "__qualname__", repr(formula))
        raise TypeError(
            f"{name} does not accept PyTorch tensors on the device {x.device.type!r} ({error}); write it with"
            " operators (+, *, **) and the functions of array_api_compat.array_namespace(d2) instead of NumPy's"
        ) from error


def _tensors(G: Any, Y: torch.Tensor) -> torch.Tensor:
    """Return the metric tensors G = g(Y) in float64 on the device of Y; raise an error if they are not valid."""
    if not isinstance(G, torch.Tensor):
        raise TypeError(f"g(Y) must return a PyTorch tensor computed from Y, got {type(G).__name__}")
    check_tensors(G.detach().cpu().numpy(), "g(Y)", *Y.shape)
    return G.to(Y.device, torch.float64)
