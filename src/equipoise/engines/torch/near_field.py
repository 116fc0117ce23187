"""Adds the near part of a kernel to the field on a mesh: sums over pairs in neighbouring cells, on a device.

docs/math.md, section 10, has the split of a kernel into a smooth part, for the mesh, and a near part.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import NamedTuple

import torch

from ...arrays.tiles import in_tiles
from ...kernels import Kernel
from ..mesh.plan import Plan, near_table
from .device_arrays import DeviceSource
from .lookup import Lookup


class Cells(NamedTuple):
    """Points sorted by cell.

    Cells are numbered row by row. A border of empty cells surrounds them, so that every cell has neighbours on all
    sides, and the cells on either side of it in its row have the numbers before and after.
    """

    rank: torch.Tensor  # (n,) int64: the indices of the points, by cell; points of a cell stay in their order
    cell: torch.Tensor  # (n,): the cells of the sorted points
    start: torch.Tensor  # (cells + 1,) int32: the first sorted point of each cell
    Y: torch.Tensor  # (n, d): the sorted points
    amounts: torch.Tensor | None  # (n, m): their charges; None if every charge is 1


class NearField:
    """Sums the near part of a kernel, which is zero beyond a radius, over pairs of points.

    Cells are as wide as the radius, so that all sources within the radius of a target lie in its own cell or in one
    next to it. Each target sums its sources in a fixed order.

    Parameters
    ----------
    kernel : Kernel
    of : Plan
        The mesh and the radius. The cells cover the mesh.
    device : torch.device
    """

    def __init__(self, kernel: Kernel, of: Plan, device: torch.device):
        self.radius, self.device = of.radius, device
        self.lookup = Lookup(near_table(kernel, of.radius), device)
        self.sides = tuple(int(n * of.h / of.radius) + 3 for n in of.size)  # one cell of border on either side
        self.half = [(n - 1) / 2 * of.h for n in of.size]
        self.dtype = torch.int16 if prod(self.sides) < 2**15 else torch.int32  # sorting takes time per byte
        self._numbers = torch.arange(prod(self.sides) + 1, dtype=self.dtype, device=device)
        *others, _ = self.sides
        rows = product((-1, 0, 1), repeat=len(others))
        self.steps = [sum(s * prod(self.sides[c + 1 :]) for c, s in enumerate(row)) for row in rows]  # ascending

    def cells_of(self, Y: torch.Tensor, box: torch.Tensor) -> torch.Tensor:
        """Return the cells (n,) of points; a point outside the mesh belongs to the nearest cell."""
        if Y.is_cuda:
            from . import near_triton

            return near_triton.cells(self, Y.contiguous(), box)
        origin = box.double().mean(dim=0) - torch.tensor(self.half, dtype=torch.float64)
        u = ((Y - origin.float()) / self.radius).nan_to_num(nan=0.0).clamp(min=0)
        along = torch.minimum(u, torch.tensor([side - 3.0 for side in self.sides])).long() + 1
        cell = along[:, 0]
        for c, side in enumerate(self.sides[1:], 1):
            cell = cell * side + along[:, c]
        return cell.to(self.dtype)

    def sort(self, source: DeviceSource) -> Cells:
        """Sort the points of a source by cell."""
        cell, rank = self.cells_of(source.Y, source.box).sort(stable=True)
        start = torch.searchsorted(cell, self._numbers, out_int32=True)
        return Cells(rank, cell, start, source.Y[rank], None if source.amounts is None else source.amounts[rank])

    def sums(self, cells: Cells, T: torch.Tensor | None, box: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the near part of Φ (t, m) and ∇Φ (t, m, d) at targets T (t, d), each independent of the others.

        If T is None, the targets are the points themselves, in their order before sorting, and a point does not act on
        itself.
        """
        own = cells.cell if T is None else self.cells_of(T, box)
        if cells.Y.is_cuda:
            from . import near_triton

            return near_triton.sums(self, cells, T, own)
        if T is not None:
            return self._sums(cells, T, own.long(), torch.full((len(T),), -1))
        sums = self._sums(cells, cells.Y, own.long(), torch.arange(len(own)))
        phi, gradient = (torch.empty_like(part) for part in sums)
        phi[cells.rank], gradient[cells.rank] = sums
        return phi, gradient

    def _sums(
        self, cells: Cells, T: torch.Tensor, own: torch.Tensor, self_at: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return Φ and ∇Φ at targets T in the cells `own`; target i is the sorted source self_at[i], or none if −1."""
        (t, d), m = T.shape, 1 if cells.amounts is None else cells.amounts.shape[1]
        phi, gradient = torch.zeros((t, m)), torch.zeros((t, m, d))
        runs = [(cells.start[own + s - 1].long(), cells.start[own + s + 2].long()) for s in self.steps]
        most = max([1, *(int((last - first).max()) for first, last in runs if t)])

        def targets(part: slice) -> None:
            for first, last in runs:
                lengths = last[part] - first[part]
                ends = lengths.cumsum(0)
                i = torch.arange(len(lengths)).repeat_interleave(lengths)
                j = torch.arange(len(i)) + (first[part] + lengths - ends)[i]
                diff = T[part][i] - cells.Y[j]
                value, slope = self.lookup.both(diff.square().sum(dim=1))
                c = (j != self_at[part][i]).float()[:, None]
                c = c if cells.amounts is None else c * cells.amounts[j]
                pulls = (2 * c * slope[:, None])[:, :, None] * diff[:, None, :]
                offsets = torch.cat([ends.new_zeros(1), ends])
                for sums, terms in ((phi, c * value[:, None]), (gradient, pulls)):
                    sums[part] += torch.segment_reduce(terms, "sum", offsets=offsets, axis=0)

        in_tiles(t, most * (2 * d + 8), targets)
        return phi, gradient
