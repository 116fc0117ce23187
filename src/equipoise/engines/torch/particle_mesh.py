"""Computes the field of a kernel on a mesh, in PyTorch, on a device (docs/math.md, section 10).

Charges are spread to the mesh by B-splines and convolved with the kernel by FFTs; the potential is then interpolated.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
import torch

from ..._types import Array
from ...arrays.namespace import is_tensor
from ...arrays.tiles import in_tiles
from ...kernels import Kernel
from ..cpu import Solution
from ..mesh.plan import FIXED_POINT_BITS, ORDER, SPLINE, Plan, split
from .device_arrays import DeviceSource, like_input
from .near_field import NearField

LARGEST_SUM = 2.0**62  # maximum sum of integer charges on a node: int64 with a bit to spare
FINEST = 2.0**FIXED_POINT_BITS  # maximum number of integer units in a charge of 1
COPIES = 64, 2**18  # maximum number of copies of a mesh, which reduce collisions, and of nodes in all copies; chosen


class ParticleMesh:
    """Computes the field of a kernel on a mesh, from the Fourier transform of the kernel.

    This is `Transform` of plan.py, where the transform is explained, in PyTorch.

    Parameters
    ----------
    kernel : Kernel
    of : Plan
    device : torch.device
    fixed_point : bool
        Whether to spread charges as integers. Their sum does not depend on the order, so that every run gives identical
        results, bit for bit.
    """

    def __init__(self, kernel: Kernel, of: Plan, device: torch.device, fixed_point: bool):
        self.h, self.size, self.device, self.fixed_point = of.h, of.size, device, fixed_point
        self.dtype = torch.float64 if of.dtype is np.float64 else torch.float32
        self.copies = max(1, min(COPIES[0], COPIES[1] // prod(of.size)))
        d2 = torch.zeros(1, dtype=torch.float64, device=device)
        for axis, n in enumerate(of.size):
            along = (of.h * torch.arange(n + 1, dtype=torch.float64, device=device)) ** 2
            d2 = d2 + along.reshape([-1 if a == axis else 1 for a in range(len(of.size))])
        k = value_at(kernel, d2)
        self.shift = k.flatten()[-1]  # a shift changes no force: plan.py
        self.near = NearField(kernel, of, device) if of.radius > 0 else None
        if self.near is not None:
            inside = d2 < of.radius**2
            k[inside] -= torch.from_numpy(split(kernel, of.radius).near(d2[inside].cpu().numpy())).to(device)
        self._at_zero = k.flatten()[0]
        even = (k - self.shift).to(self.dtype)
        for axis, n in enumerate(of.size):
            lags = torch.arange(2 * n, device=device)
            even = even.index_select(axis, torch.minimum(lags, 2 * n - lags))
        K = torch.fft.rfftn(even).real / prod(2 * n for n in of.size)  # including the factor of the inverse transform
        for axis, n in enumerate(of.size):
            omega = torch.pi * torch.arange(K.shape[axis], device=device, dtype=torch.float64) / n
            b = SPLINE[0] + 2 * SPLINE[1] * torch.cos(omega) + 2 * SPLINE[2] * torch.cos(2 * omega)
            K /= b.square().to(self.dtype).reshape([-1 if a == axis else 1 for a in range(len(of.size))])
        for _ in of.size[:-1]:
            K = K.movedim(-1, 0)  # the order of the axes in `_convolve`
        self.frequencies = K.contiguous()
        self._units: dict[int, torch.Tensor] = {}
        self._bases: dict[int, torch.Tensor] = {}

    def solve(self, source: DeviceSource, n_threads: int) -> Solution:
        """Return a function that gives Φ (t, m) and ∇Φ (t, m, d) at targets (t, d).

        Self terms are omitted if the targets are the source's own points.
        """
        charges, near = source.amounts, self.near
        phi = cache(lambda: self._convolve(self._spread(source, charges)))
        cells = None if near is None else cache(lambda: near.sort(source.whole()))

        def solution(targets: Any) -> tuple[Any, Any]:
            own = targets is source.Y
            T = torch.as_tensor(targets).to(self.device)
            base = self._base(source, own)
            near_part, (potential, gradient) = source.concurrently(
                lambda: near.sums(cells(), None if own else T.float(), source.box) if near and cells else None,
                lambda: self._gather(T, source.box, phi(), base),
            )
            if own and charges is not None:
                potential -= self._at_zero * charges
            if near_part is not None:
                near_part = tuple(source.own_rows(part) for part in near_part) if own else near_part
                potential, gradient = potential + near_part[0], gradient + near_part[1]
            return like_input(targets, potential), like_input(targets, gradient)

        return solution

    def _base(self, source: DeviceSource, own: bool) -> torch.Tensor:
        """Return the constant (m,) to add to Φ: `shift` times the total charge.

        The mesh omits this constant, because `shift` was subtracted from the kernel before the transform. If `own` is
        true and no charges are given, so that every charge is 1, the self term k(0) is subtracted from the constant.
        """
        n = source.count
        if source.amounts is not None:
            return self.shift * source.sums(source.amounts)
        if n not in self._bases:
            self._bases = {n: torch.stack([self.shift * n, self.shift * n - self._at_zero])}
        return self._bases[n].narrow(0, int(own), 1)

    def _spread(self, source: DeviceSource, charges: torch.Tensor | None) -> torch.Tensor:
        """Spread the charges (n, m), 1 by default, and return m meshes; the last axis is padded to twice its size."""
        Y, m = source.Y, 1 if charges is None else charges.shape[1]
        unit = self._unit(source)
        if self.device.type == "cuda":
            from . import fused

            return fused.spread(self, Y, source.box, charges, unit, source.add_up)
        grid = torch.zeros((m, prod(self.size)), dtype=torch.int64, device=self.device)
        u = self._cells(Y, source.box)

        def points(part: slice) -> None:
            nodes, w, _ = self._stencil(u[part])
            weight = outer(list(w)).double() * unit
            amounts = [weight] if charges is None else [weight * charge[part, None] for charge in charges.T]
            integers = [amount.round().long() for amount in amounts]
            for q, amount in enumerate(integers):  # nothing is allocated from here on: a retried tile was not added
                grid[q].index_add_(0, nodes.flatten(), amount.flatten())

        in_tiles(len(Y), (6 + 4 * m) * ORDER ** len(self.size), points)
        grid = grid if source.add_up is None else source.add_up(grid)
        padded = torch.zeros((m, *self.size[:-1], 2 * self.size[-1]), dtype=self.dtype, device=self.device)
        padded[..., : self.size[-1]] = (grid / unit).reshape(m, *self.size)
        return padded

    def _unit(self, source: DeviceSource) -> torch.Tensor:
        """Return the number of integer units in a charge of 1, a power of two, as a scalar on the device."""
        n, charges = source.count, source.amounts
        if charges is None:
            if n not in self._units:
                parts = min(FINEST, 2.0 ** np.floor(np.log2(LARGEST_SUM / n)))
                self._units = {n: torch.full((), parts, dtype=torch.float64, device=self.device)}
            return self._units[n]
        total = source.sums(charges.abs()).max().clamp(min=1e-300)
        return torch.exp2((LARGEST_SUM / total).log2().floor()).clamp(max=FINEST)

    def _convolve(self, grid: torch.Tensor) -> torch.Tensor:
        """Return the potential on the mesh, from the charges on the mesh `grid`.

        In both, only the last axis is padded to twice its size. Other axes are padded just before their own FFT, so
        that no FFT runs on a line of zeros.
        """
        *others, last = self.size
        S = torch.fft.rfft(grid)
        for n in reversed(others):  # every transform runs along the last axis, which is contiguous
            S = torch.fft.fft(transpose_padded(S, 2 * n))
        S *= self.frequencies
        for n in others:
            S = torch.fft.ifft(S, norm="forward")[..., :n].movedim(1, -1)
        return torch.fft.irfft(S, 2 * last, norm="forward")

    def _gather(
        self, Y: torch.Tensor, box: torch.Tensor, phi: torch.Tensor, base: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the potential (t, m) at points, plus a constant `base` (m,), and its gradient (t, m, d)."""
        (t, d), m = Y.shape, len(phi)
        if self.device.type == "cuda":
            from . import fused

            return fused.gather(self, Y.float().contiguous(), box, phi, base)
        phi = phi[..., : self.size[-1]].flatten(1)
        u = self._cells(Y, box)
        potential = torch.empty((t, m), dtype=self.dtype, device=self.device)
        gradient = torch.empty((t, m, d), dtype=self.dtype, device=self.device)

        def points(part: slice) -> None:
            nodes, w, dw = self._stencil(u[part])
            along = [outer([dw[c] if c == axis else w[c] for c in range(d)]) / self.h for axis in range(d)]
            weight = outer(list(w))
            for q in range(m):
                values = phi[q][nodes]
                potential[part, q] = (values * weight).sum(dim=1)
                for axis in range(d):
                    gradient[part, q, axis] = (values * along[axis]).sum(dim=1)

        in_tiles(t, (8 + 2 * d) * ORDER**d, points)
        return potential + base.to(self.dtype), gradient

    @property
    def half(self) -> list[float]:
        """Half the length of the mesh along each axis; the mesh is centred on the box."""
        return [(n - 1) / 2 * self.h for n in self.size]

    def _cells(self, Y: torch.Tensor, box: torch.Tensor) -> torch.Tensor:
        """Return the positions (n, d) of points, in cells from the first node; positions near the edge are clipped."""
        half = torch.tensor(self.half, device=self.device, dtype=torch.float64)
        origin = (box[0].double() + box[1].double()) / 2 - half
        u = ((Y.to(self.dtype) - origin.to(self.dtype)) / self.h).clamp(min=ORDER / 2 - 1)
        upper = torch.tensor([n - ORDER / 2 - 1 for n in self.size], device=self.device, dtype=self.dtype)
        return torch.minimum(u, upper)

    def _stencil(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the indices (n, ORDER^d) of the nodes around points, and the spline weights and slopes there.

        Weights and slopes are given along each axis, (d, n, ORDER).
        """
        cell = u.floor()
        powers = (u - cell).T[..., None] ** torch.arange(ORDER, device=self.device)
        weights, slopes = (torch.from_numpy(c).to(self.device, self.dtype) for c in spline())
        nodes = torch.zeros((len(u), 1), dtype=torch.int64, device=self.device)
        for axis, n in enumerate(self.size):
            along = cell[:, axis, None].long() + torch.arange(ORDER, device=self.device) - (ORDER // 2 - 1)
            nodes = (nodes[:, :, None] * n + along[:, None, :]).flatten(1)
        return nodes, powers @ weights, powers @ slopes


def value_at(kernel: Kernel, d2: torch.Tensor) -> torch.Tensor:
    """Return k(d2) by the kernel's formula, on the device, or on the host if the formula works only with NumPy."""
    if d2.is_cuda:
        try:
            value: Any = kernel.value(d2)  # type: ignore[arg-type]
        except TypeError:  # raised by NumPy's functions for a CUDA tensor
            value = None
        if is_tensor(value):
            return value
    return torch.from_numpy(np.asarray(kernel.value(d2.cpu().numpy()))).to(d2.device)


def transpose_padded(S: torch.Tensor, length: int) -> torch.Tensor:
    """Return S (m, …, n, c) with axis c moved to second place and axis n padded with zeros: (m, c, …, length)."""
    if S.is_cuda and S.dtype == torch.complex64:
        from . import fused

        return fused.transpose_padded(S, length)
    return torch.nn.functional.pad(S.movedim(-1, 1).contiguous(), (0, length - S.shape[-2]))


def outer(weights: list[torch.Tensor]) -> torch.Tensor:
    """Return the products (n, ORDER^d) of the weights (n, ORDER) along each axis."""
    result = weights[0]
    for w in weights[1:]:
        result = (result[:, :, None] * w[:, None, :]).flatten(1)
    return result


@cache
def spline() -> tuple[Array, Array]:
    """Return the coefficients of the B-spline and of its slope at the nodes around a point, each (power, node).

    They multiply the powers of f, the offset of the point in its cell, in [0, 1).
    """
    w = np.zeros((ORDER, ORDER))  # node, power; from the Cox-de Boor recursion, as in the core's mesh.hpp
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
