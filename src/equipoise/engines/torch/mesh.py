"""The particle mesh on a device: charges to a grid by B-splines, one FFT pair, and back (docs/math.md, section 10)."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import floor, log2, prod
from typing import Any

import numpy as np
import torch

from ..._types import Array
from ...kernels import Kernel
from ..plan import ORDER, Plan
from ..transform import SPLINE, Source
from .source import DeviceSource, Solved, as_given
from .tiles import in_tiles

ROOM = 2**62  # the largest sum of charges that int64 holds on a node, with a bit to spare


class Mesh:
    """A kernel at the frequencies of a mesh padded to twice its size, over the symbol of the spline, squared.

    Charges are spread as whole numbers, whose sum does not depend on its order: the same bytes every time.
    """

    def __init__(self, kernel: Kernel, of: Plan, device: torch.device):
        self.h, self.size, self.device = of.h, of.size, device
        self.dtype = torch.float64 if of.dtype is np.float64 else torch.float32
        self._fused = device.type == "cuda" and self.dtype == torch.float32
        d2 = sum(np.ix_(*((of.h * np.arange(n + 1)) ** 2 for n in of.size)), start=np.zeros(1))
        k = kernel.value(d2)
        self.shift, self.at_zero = float(k.flat[-1]), float(k.flat[0])  # a shift moves no force: transform.py
        even = torch.from_numpy(k - self.shift).to(device)
        for axis, n in enumerate(of.size):
            lags = torch.arange(2 * n, device=device)
            even = even.index_select(axis, torch.minimum(lags, 2 * n - lags))
        K = torch.fft.rfftn(even).real
        for axis, n in enumerate(of.size):
            omega = torch.pi * torch.arange(K.shape[axis], device=device, dtype=torch.float64) / n
            b = SPLINE[0] + 2 * SPLINE[1] * torch.cos(omega) + 2 * SPLINE[2] * torch.cos(2 * omega)
            K /= b.square().reshape([-1 if a == axis else 1 for a in range(len(of.size))])
        self.frequencies = K.to(self.dtype)

    def solve(self, source: Source | DeviceSource, n_threads: int) -> Solved:
        """Return Φ and ∇Φ of a source, self terms included, as a function of targets (t, d)."""
        origin = (source.low + source.high) / 2 - (np.array(self.size) - 1) / 2 * self.h
        Y = self._cells(source.Y, origin)
        charges = torch.as_tensor(source.charges).to(self.device)
        phi = self._convolve(self._spread(Y, charges))
        shift = self.shift * charges.sum(dim=0)

        def at(targets: Any) -> tuple[Any, Any]:
            T = Y if targets is source.Y else self._cells(targets, origin)
            potential, gradient = self._gather(T, phi)
            return as_given(targets, potential + shift), as_given(targets, gradient)

        return at

    def _cells(self, Y: Any, origin: Array) -> torch.Tensor:
        """Return points in units of the mesh, (n, d), kept where a spline is inside it."""
        u = torch.as_tensor(Y).to(self.device, self.dtype)
        u = (u - torch.from_numpy(origin).to(self.device, self.dtype)) / self.h
        most = torch.tensor([n - ORDER / 2 - 1 for n in self.size], device=self.device, dtype=self.dtype)
        return torch.minimum(u.clamp(min=ORDER / 2 - 1), most)

    def _stencil(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the nodes (n, 6^d) of points, and the weights and slopes of splines along each axis, (d, n, 6)."""
        cell = u.floor()
        powers = (u - cell).T[..., None] ** torch.arange(ORDER, device=self.device)
        weights, slopes = (torch.from_numpy(c).to(self.device, self.dtype) for c in spline())
        nodes = torch.zeros((len(u), 1), dtype=torch.int64, device=self.device)
        for axis, n in enumerate(self.size):
            along = cell[:, axis, None].long() + torch.arange(ORDER, device=self.device) - (ORDER // 2 - 1)
            nodes = (nodes[:, :, None] * n + along[:, None, :]).flatten(1)
        return nodes, powers @ weights, powers @ slopes

    def _spread(self, Y: torch.Tensor, charges: torch.Tensor) -> torch.Tensor:
        """Return the charges (n, m) on the mesh, (m, *size)."""
        m, total = charges.shape[1], float(charges.abs().sum(dim=0).max())
        unit = 2.0 ** min(40, floor(log2(ROOM / total))) if total > 0 else 1.0
        grid = torch.zeros((m, prod(self.size)), dtype=torch.int64, device=self.device)
        if self._fused:
            from . import fused

            fused.spread(Y, charges.float().contiguous(), self.size, unit, grid)
            return (grid.float() / unit).reshape(m, *self.size)

        def points(part: slice) -> None:
            nodes, w, _ = self._stencil(Y[part])
            weight = outer(list(w)).double() * unit
            whole = [(weight * charge[part, None]).round().long() for charge in charges.T]
            for q, amounts in enumerate(whole):  # all memory has been had: a tile that is tried again was not added
                grid[q].index_add_(0, nodes.flatten(), amounts.flatten())

        in_tiles(len(Y), (6 + 4 * m) * ORDER ** len(self.size), points)
        return (grid.double() / unit).to(self.dtype).reshape(m, *self.size)

    def _convolve(self, grid: torch.Tensor) -> torch.Tensor:
        """Return the potential (m, nodes) of charges on the mesh."""
        padded, axes = [2 * n for n in self.size], list(range(1, grid.dim()))
        phi = torch.fft.irfftn(torch.fft.rfftn(grid, padded, axes) * self.frequencies, padded, axes)
        return phi[(slice(None), *(slice(n) for n in self.size))].flatten(1)

    def _gather(self, Y: torch.Tensor, phi: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the potential (t, m) at points, and its gradient (t, m, d)."""
        (t, d), m = Y.shape, len(phi)
        if self._fused:
            from . import fused

            return fused.gather(Y, phi.contiguous(), self.size, self.h)
        potential = torch.empty((t, m), dtype=self.dtype, device=self.device)
        gradient = torch.empty((t, m, d), dtype=self.dtype, device=self.device)

        def points(part: slice) -> None:
            nodes, w, dw = self._stencil(Y[part])
            along = [outer([dw[c] if c == axis else w[c] for c in range(d)]) / self.h for axis in range(d)]
            weight = outer(list(w))
            for q in range(m):
                values = phi[q][nodes]
                potential[part, q] = (values * weight).sum(dim=1)
                for axis in range(d):
                    gradient[part, q, axis] = (values * along[axis]).sum(dim=1)

        in_tiles(t, (8 + 2 * d) * ORDER**d, points)
        return potential, gradient


def outer(weights: list[torch.Tensor]) -> torch.Tensor:
    """Return the products of weights (n, 6) along every axis, (n, 6^d)."""
    result = weights[0]
    for w in weights[1:]:
        result = (result[:, :, None] * w[:, None, :]).flatten(1)
    return result


@cache
def spline() -> tuple[Array, Array]:
    """Return coefficients (power, node) of the quintic B-spline and of its slope around a point at f in [0, 1)."""
    w = np.zeros((ORDER, ORDER))  # node, power; from the Cox-de Boor recursion, as in grid.hpp
    w[0, :2], w[1, 1] = (1, -1), 1
    for order in range(3, ORDER + 1):
        new = np.zeros_like(w)
        for j, k in product(range(order), range(ORDER)):
            left, right = w[j - 1, k] if j > 0 else 0.0, w[j, k] if j < order - 1 else 0.0
            new[j, k] += ((order - 1 - j) * left + (j + 1) * right) / (order - 1)
            if k + 1 < ORDER:
                new[j, k + 1] += (left - right) / (order - 1)
        w = new
    slope = np.zeros_like(w)
    slope[:, :-1] = w[:, 1:] * np.arange(1, ORDER)
    return np.ascontiguousarray(w.T), np.ascontiguousarray(slope.T)
