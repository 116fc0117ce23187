"""Computes the field by direct sums over all pairs, for cases in which a mesh is impossible or costs more."""

from __future__ import annotations

from typing import Any

import torch

from ...arrays.tiles import in_tiles
from ...kernels import Kernel
from ..cpu import Solution
from ..tables import Table
from .device_arrays import DeviceSource, like_input
from .lookup import Lookup


class Direct:
    """Sums Φ and ∇Φ over all pairs in float32, with the kernel from a table, in O(n²) time and O(n) memory."""

    def __init__(self, kernel: Kernel, table: Table, device: torch.device):
        self.kernel, self.device = kernel, device
        self._lookup = Lookup(table, device)

    def solve(self, source: DeviceSource, n_threads: int) -> Solution:
        """Return a function that gives Φ (t, m) and ∇Φ (t, m, d) at targets (t, d).

        Self terms are omitted if the targets are the source's own points.
        """
        n, d = source.Y.shape
        middle = source.box.double().mean(dim=0)
        Y = (source.Y - middle).float()
        charges = source.charges.float()

        def solution(targets: Any) -> tuple[Any, Any]:
            T = Y if targets is source.Y else (torch.as_tensor(targets).to(self.device) - middle).float()
            if Y.is_cuda and d <= 3:
                from . import fused

                sums = fused.direct(T, Y, source.amounts, self._lookup, T is Y)
                return like_input(targets, sums[0]), like_input(targets, sums[1])
            potential = torch.empty((len(T), charges.shape[1]), device=self.device)
            gradient = torch.empty((len(T), charges.shape[1], d), device=self.device)

            def rows(part: slice) -> None:
                diff = T[part, None, :] - Y
                value, slope = self._lookup.both(diff.square().sum(dim=2))
                if T is Y:
                    value.diagonal(part.start).zero_()  # float32 would lose the other terms next to a large self term
                potential[part] = value @ charges
                for q, charge in enumerate(charges.T):
                    gradient[part, q] = 2 * torch.einsum("ij,ijd->id", slope * charge, diff)

            in_tiles(len(T), (2 * d + 8) * n, rows)
            return like_input(targets, potential), like_input(targets, gradient)

        return solution
