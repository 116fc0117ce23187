"""Reads tables of functions of d2 (tables.py) on a device, in the same way as table.hpp of the C++ core."""

from __future__ import annotations

import torch

from ..tables import BITS, Table

ONE = 0x3F800000  # the bits of 1.0


class Lookup:
    """Evaluates a tabulated function of d2 and its slope on a device, in float32.

    Parameters
    ----------
    table : Table
    device : torch.device
    rational : (float, float) or (float, float, float), optional
        (a, c) if the slope is −a/(c + d2), or (a, c, k(0)) if the logarithm of the function has this slope; GPU code
        can then use the formula instead of the table.
    """

    def __init__(self, table: Table, device: torch.device, rational: tuple[float, ...] | None = None):
        self.rational = rational
        self.segments = torch.from_numpy(table.segments).to(device)
        self.first, self.scale = table.first, table.scale
        ends = torch.tensor([table.first, table.first + len(table.segments) - 1], dtype=torch.int32) << BITS
        self.ends: tuple[float, float] = tuple(ends.view(torch.float32).tolist())

    def slope(self, d2: torch.Tensor) -> torch.Tensor:
        """Return the slope at d2, float32 of any shape."""
        segment, f, _ = self._locate(d2)
        return segment[..., 1] + f * (segment[..., 2] + f * segment[..., 3])

    def both(self, d2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the value and the slope at d2."""
        segment, f, step = self._locate(d2)
        v0, s0, s1, s2 = segment.unbind(-1)
        return v0 + step * (s0 + f * (s1 / 2 + f * (s2 / 3))), s0 + f * (s1 + f * s2)

    def _locate(self, d2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the segment of each d2, the position f in it, from 0 to 1, and d2 minus the start of the segment."""
        x = (d2 * self.scale).nan_to_num(nan=0.0).clamp(*self.ends)  # a diverging run gives NaN, which has no segment
        bits = x.view(torch.int32)
        inside = bits & ((1 << BITS) - 1)
        f = ((inside << (23 - BITS)) | ONE).view(torch.float32) - 1.0  # these bits become the mantissa of 1 + f
        step = (x - (bits - inside).view(torch.float32)) / self.scale
        return self.segments[(bits >> BITS) - self.first], f, step
