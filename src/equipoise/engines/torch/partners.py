"""Estimates the field from stored pairs and random partners, on a device, for many points in many dimensions.

docs/math.md, eq. (6), is the estimate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...arrays.device_csr import Rows
from ...arrays.tiles import in_tiles
from ...kernels import Kernel
from ..mesh.mesh_engine import Solution
from ..sampled import PARTNERS, SOURCES, draw_offsets
from ..tables import Table
from .device_arrays import DeviceSource, like_input
from .direct import Direct
from .lookup import Lookup

WIDEST = 64  # largest dimension of the Triton kernels: above it a tile of coordinates does not fit in registers


class Partners:
    """Estimates Φ and ∇Φ from random partners of every point, and from stored pairs that are always included.

    As in engine="sampled", the partners of point i are the points i + o modulo n, for random offsets o that are the
    same for every point. The sum runs over all drawn offsets, each with its weight w. Every stored pair then adds its
    term with the weight 1 − w, so that its total weight is 1; w is 0 if its offset was not drawn. The field at new
    points is that of at most SOURCES points of the embedding, sampled at random.
    """

    def __init__(self, kernel: Kernel, table: Table, device: torch.device, seed: int, always: Rows):
        self.kernel, self.device, self.seed = kernel, device, seed
        rational = None if kernel.rational is None else (*kernel.rational, float(kernel.value(np.zeros(1))[0]))
        self._lookup, self._table = Lookup(table, device, rational), table
        self._always = always
        self._corrected: Rows | None = None
        self._samples: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def solve(self, source: DeviceSource, n_threads: int) -> Solution:
        """Return a function that gives Φ (t, m) and ∇Φ (t, m, d) at targets (t, d): the source's own or new points."""
        Y, n = source.Y, len(source.Y)
        offsets, weights = self._sample(n)
        fused = Y.is_cuda and Y.shape[1] <= WIDEST

        def solution(targets: Any) -> tuple[Any, Any]:
            if targets is not source.Y:
                return self._of_sample(source)(targets)
            if fused:
                potential, gradient = self._fused(Y, source.amounts, offsets, weights)
            else:
                potential, gradient = self._of_offsets(Y, source.charges.float(), offsets, weights)
                if len(offsets) < n - 1:
                    self._add_stored(Y, source.charges.float(), self._weighted(offsets, weights), potential, gradient)
            return like_input(targets, potential), like_input(targets, gradient)

        return solution

    def _sample(self, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the offsets (count,) of the partners of n points, and their weights in float32, on the device."""
        if n not in self._samples:
            offsets, weights = (torch.from_numpy(x).to(self.device) for x in draw_offsets(n, PARTNERS, self.seed))
            self._samples = {n: (offsets, weights.float())}
        return self._samples[n]

    def _fused(self, Y: torch.Tensor, charges: Any, offsets: torch.Tensor, weights: torch.Tensor) -> Any:
        """Return the potential (n, m) and the gradient (n, m, d), computed in Triton."""
        from . import wide_triton as wide

        charges = None if charges is None else charges.float().contiguous()
        potential, gradient = wide.partners(Y, charges, offsets, weights, self._lookup)
        if len(offsets) < len(Y) - 1:
            wide.add_stored(Y, charges, self._weighted(offsets, weights), self._lookup, potential, gradient)
        return potential, gradient

    def _of_sample(self, source: DeviceSource) -> Solution:
        """Return a function that gives the field of all points of the source or, if it has many, of a random sample.

        A sample has SOURCES points, and their charges are scaled up to represent all points.
        """
        n = len(source.Y)
        if n > SOURCES:
            chosen = np.sort(np.random.default_rng(self.seed).choice(n, SOURCES, replace=False))
            rows = torch.from_numpy(chosen).to(self.device)
            source = DeviceSource(source.Y[rows], source.charges[rows] * (n / SOURCES))
        return Direct(self.kernel, self._table, self.device).solve(source, 1)

    def _of_offsets(self, Y: torch.Tensor, charges: torch.Tensor, steps: torch.Tensor, w: torch.Tensor) -> Any:
        """Return the potential (n, m) and the gradient (n, m, d) of the partners at the given offsets."""
        (n, d), m = Y.shape, charges.shape[1]
        potential, gradient = Y.new_zeros((n, m)), Y.new_zeros((n, m, d))
        own = torch.arange(n, device=Y.device)

        def add(part: slice) -> None:
            partner = (own + steps[part, None]) % n
            diff = Y - Y[partner]
            value, slope = self._lookup.both(diff.square().sum(dim=2))
            c = charges[partner] * w[part, None, None]
            added = (value[..., None] * c).sum(dim=0), 2 * torch.einsum("onm,on,ond->nmd", c, slope, diff)
            potential.add_(added[0])  # nothing is allocated from here on: a tile that is retried was not added before
            gradient.add_(added[1])

        in_tiles(len(steps), n * (2 * d + 2 * m + 8), add)
        return potential, gradient

    def _weighted(self, offsets: torch.Tensor, weights: torch.Tensor) -> Rows:
        """Return the pairs that are always included, as a matrix with the entries 1 − w.

        w is the weight of the offset of a pair, or 0 if the offset was not drawn.
        """
        if self._corrected is None:
            A = self._always
            n = A.shape[0]
            by_offset = torch.zeros(n, device=self.device)
            by_offset[offsets] = weights
            row = torch.arange(n, device=self.device).repeat_interleave(A.counts(), output_size=A.nnz)
            self._corrected = A.with_data(1 - by_offset[(A.indices - row) % n])
        return self._corrected

    def _add_stored(
        self, Y: torch.Tensor, charges: torch.Tensor, A: Rows, potential: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        """Add the field of the stored pairs A to `potential` and `gradient`."""
        (n, d), m = Y.shape, charges.shape[1]

        def rows(part: slice) -> None:
            bounds = A.indptr[part.start : part.stop + 1]
            first, last = int(bounds[0]), int(bounds[-1])
            j = A.indices[first:last].long()
            own = torch.repeat_interleave(Y[part], bounds.diff(), dim=0, output_size=last - first)
            diff = own - Y[j]
            value, slope = self._lookup.both(diff.square().sum(dim=1))
            c = charges[j] * A.data[first:last, None]
            pulls = (c * slope[:, None])[:, :, None] * diff[:, None, :]
            sums = [
                torch.segment_reduce(x, "sum", offsets=bounds - first, axis=0) for x in (c * value[:, None], 2 * pulls)
            ]
            potential[part] += sums[0]
            gradient[part] += sums[1]

        in_tiles(n, (3 * d + m * (d + 2)) * -(-A.nnz // max(1, n)), rows)
