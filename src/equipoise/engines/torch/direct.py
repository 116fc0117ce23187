"""The field by direct sums over all pairs: what a GPU does for kernels that no mesh carries, and in many dimensions."""

from __future__ import annotations

from typing import Any

import torch

from ...arrays.tiles import in_tiles
from ...kernels import Kernel
from ..tables import Table
from .device_arrays import DeviceSource, Solved, as_given
from .lookup import Lookup


class Direct:
    """Φ and ∇Φ summed over all pairs in float32, from a table of the kernel; O(n²) time, O(n) memory."""

    def __init__(self, kernel: Kernel, table: Table, device: torch.device):
        self.kernel, self.device = kernel, device
        self._look = Lookup(table, device)

    def solve(self, source: DeviceSource, n_threads: int) -> Solved:
        """Return Φ and ∇Φ of a source as a function of targets (t, d); of its own points without the self terms."""
        n, d = source.Y.shape
        middle = source.box.double().mean(dim=0)
        Y = (source.Y - middle).float()
        charges = source.charges.float()

        def at(targets: Any) -> tuple[Any, Any]:
            T = Y if targets is source.Y else (torch.as_tensor(targets).to(self.device) - middle).float()
            if Y.is_cuda and d <= 3:
                from . import fused

                found = fused.direct(T, Y, source.amounts, self._look, T is Y)
                return as_given(targets, found[0]), as_given(targets, found[1])
            potential = torch.empty((len(T), charges.shape[1]), device=self.device)
            gradient = torch.empty((len(T), charges.shape[1], d), device=self.device)

            def rows(part: slice) -> None:
                diff = T[part, None, :] - Y
                value, slope = self._look.both(diff.square().sum(dim=2))
                if T is Y:
                    value.diagonal(part.start).zero_()  # float32 would lose the rest beside it
                potential[part] = value @ charges
                for q, charge in enumerate(charges.T):
                    gradient[part, q] = 2 * torch.einsum("ij,ijd->id", slope * charge, diff)

            in_tiles(len(T), (2 * d + 8) * n, rows)
            return as_given(targets, potential), as_given(targets, gradient)

        return at
