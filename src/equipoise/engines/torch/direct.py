"""The field by direct sums over all pairs: what a GPU does for kernels that no mesh carries, and in many dimensions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ..._types import Array
from ...kernels import Kernel
from ..tables import Table
from ..transform import Source
from .lookup import Lookup
from .tiles import in_tiles


class Direct:
    """Φ and ∇Φ summed over all pairs in float32, from a table of the kernel; O(n²) time, O(n) memory."""

    def __init__(self, kernel: Kernel, table: Table, device: torch.device):
        self.kernel, self.device = kernel, device
        self._look = Lookup(table, device)
        self.at_zero = 0.0  # a point is left out of its own field: float32 would lose the rest beside it

    def solve(self, source: Source, n_threads: int) -> Callable[[Array], tuple[Array, Array]]:
        """Return Φ and ∇Φ of a source as a function of targets (t, d); of its own points without the self terms."""
        n, d = source.Y.shape
        middle = (source.low + source.high) / 2
        Y = torch.from_numpy((source.Y - middle).astype(np.float32)).to(self.device)
        charges = torch.from_numpy(source.charges).to(self.device, torch.float32)

        def at(targets: Array) -> tuple[Array, Array]:
            T = Y if targets is source.Y else torch.from_numpy((targets - middle).astype(np.float32)).to(self.device)
            potential = torch.empty((len(T), charges.shape[1]), dtype=torch.float64, device=self.device)
            gradient = torch.empty((len(T), charges.shape[1], d), dtype=torch.float64, device=self.device)

            def rows(part: slice) -> None:
                diff = T[part, None, :] - Y
                value, slope = self._look.both(diff.square().sum(dim=2))
                if T is Y:
                    value.diagonal(part.start).zero_()
                potential[part] = (value @ charges).double()
                for q, charge in enumerate(charges.T):
                    gradient[part, q] = 2 * torch.einsum("ij,ijd->id", slope * charge, diff).double()

            in_tiles(len(T), (2 * d + 8) * n, rows)
            return potential.cpu().numpy(), gradient.cpu().numpy()

        return at
