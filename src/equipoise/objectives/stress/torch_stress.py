"""Computes metric stress over all pairs on a device (docs/math.md, section 14)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch

from ..._types import Array
from ...arrays.tiles import in_tiles
from .metric import Metric, Slope

MIN_D2 = 1e-36  # lower bound of d², as in stress.hpp: coincident points have a residual but no force


class Targets(Protocol):
    """Gives the dissimilarities δ of all pairs of n points, some rows at a time."""

    n: int
    width: int  # entries allocated per row while δ is computed

    @property
    def device(self) -> torch.device: ...

    def rows(self, part: slice) -> torch.Tensor:
        """Return δ (m, n) from the m points of a slice to all points, in float64."""
        ...


class Stored:
    """Dissimilarities δ (n, n), stored in float32."""

    def __init__(self, delta: torch.Tensor):
        self.delta = delta
        self.n = self.width = len(delta)

    @property
    def device(self) -> torch.device:
        return self.delta.device

    def rows(self, part: slice) -> torch.Tensor:
        return self.delta[part].double()


class Recomputed:
    """Dissimilarities δ, the Euclidean distances between the rows of a centred X (n, D), which are not stored."""

    def __init__(self, X: torch.Tensor):
        self.X = X.double()
        self.n, self.width = len(X), 2 * len(X)
        self._norms = self.X.square().sum(dim=1)

    @property
    def device(self) -> torch.device:
        return self.X.device

    def rows(self, part: slice) -> torch.Tensor:
        d2 = torch.addmm(self._norms, self.X[part], self.X.T, alpha=-2)
        d2 += self._norms[part, None]
        d2.diagonal(part.start).zero_()
        return d2.clamp_(min=0).sqrt_()

    def stored(self) -> Stored:
        """Return the same δ, computed once and stored in float32."""
        delta = torch.empty((self.n, self.n), device=self.device)

        def rows(part: slice) -> None:
            delta[part] = self.rows(part)

        in_tiles(self.n, 2 * self.width, rows)
        return Stored(delta)


class DeviceStress(Metric):
    """Metric stress over all pairs, with δ and weights (n, n) on a device; `weights` is None if all are 1.

    Maps are NumPy arrays. Tiles of rows are compared with all points, axis by axis, in float64: no (n, n, d) array is
    allocated.
    """

    def __init__(self, targets: Targets, weights: torch.Tensor | None = None):
        self.targets, self.weights = targets, weights
        # The same bounds as in AllPairs.
        sums = None if weights is None else weights.sum(dim=1, dtype=torch.float64).cpu().numpy()[:, None]
        self._row_sums = sums
        self.stiffness = np.full((1, 1), float(targets.n)) if sums is None else 2 * sums

    def slope(self, Y: Array) -> Slope:
        y = torch.as_tensor(np.array(Y.T, dtype=np.float64, order="C"), device=self.targets.device)  # (d, n)
        G = torch.empty_like(y)
        stress = torch.empty_like(y[0])

        def rows(part: slice) -> None:
            r = torch.zeros((part.stop - part.start, self.targets.n), dtype=torch.float64, device=y.device)
            for axis in y:
                r += (axis[part, None] - axis).square_()
            r.clamp_(min=MIN_D2).sqrt_()
            residual = r - self.targets.rows(part)
            strength = residual / r  # 1 − δ/d
            if self.weights is None:
                stress[part] = residual.square_().sum(dim=1)
            else:
                stress[part] = residual.square_().mul_(self.weights[part]).sum(dim=1)
                strength *= self.weights[part]
            for axis, sums in zip(y, G, strict=True):
                sums[part] = torch.mul(strength, axis[part, None] - axis, out=r).sum(dim=1)

        in_tiles(self.targets.n, 2 * (4 * self.targets.n + self.targets.width), rows)
        return Slope(float(stress.sum()) / 2, G.T.cpu().numpy().copy(order="C"), self.stiffness)

    def laplacian(self, Y: Array) -> Array:
        Y = np.asarray(Y, dtype=np.float64)
        if self.weights is None:
            return len(Y) * Y - Y.sum(axis=0)
        on_device = torch.as_tensor(Y, device=self.weights.device)
        product = torch.empty_like(on_device)

        def rows(part: slice) -> None:
            product[part] = self.weights[part].double() @ on_device  # type: ignore[index]

        in_tiles(len(Y), 2 * len(Y), rows)
        return np.asarray(self._row_sums * Y - product.cpu().numpy())
