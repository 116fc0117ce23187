"""Computes stress over all pairs on a device (docs/math.md, section 14)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch

from ..._types import Array
from ...arrays.tiles import in_tiles
from .metric import Metric, Misfit

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
    """Stress over all pairs, with δ and weights (n, n) on a device; `weights` is None if all are 1.

    Maps are NumPy arrays. Tiles of rows are compared with all points, axis by axis, in float64: no (n, n, d) array is
    allocated.
    """

    def __init__(self, targets: Targets, weights: torch.Tensor | None = None, residual: str = "absolute"):
        self.targets, self.weights = targets, weights
        self._set_residual(residual)
        # The same bounds as in AllPairs.
        sums = None if weights is None else weights.sum(dim=1, dtype=torch.float64).cpu().numpy()[:, None]
        self._row_sums = sums
        if self.residual != "absolute":
            sums = self._relative_row_sums()
        self.stiffness = np.full((1, 1), float(targets.n)) if sums is None else 2 * sums

    def _relative_row_sums(self) -> Array:
        """Return Σ_j w_ij/δ_ij², (n, 1)."""
        sums = torch.empty(self.targets.n, dtype=torch.float64, device=self.targets.device)

        def rows(part: slice) -> None:
            inverse = self.targets.rows(part).square_().reciprocal_()
            inverse.diagonal(part.start).zero_()
            sums[part] = (inverse if self.weights is None else inverse.mul_(self.weights[part])).sum(dim=1)

        in_tiles(self.targets.n, 2 * self.targets.width, rows)
        return sums.cpu().numpy()[:, None]

    def total_weight(self) -> float:
        n = self.targets.n
        return n * (n - 1) / 2 if self._row_sums is None else float(self._row_sums.sum()) / 2

    def sums(self, Y: Array, misfit: Misfit) -> tuple[float, Array]:
        y = self._on_device(Y)
        G = torch.empty_like(y)
        stress = torch.empty_like(y[0])

        def rows(part: slice) -> None:
            r = self._distances(y, part)
            residual, divisor = self._residuals(r, part)
            stress[part], strength = self._terms(residual, divisor, part, misfit)
            for axis, sums in zip(y, G, strict=True):
                sums[part] = torch.mul(strength, axis[part, None] - axis, out=r).sum(dim=1)

        in_tiles(self.targets.n, 2 * (4 * self.targets.n + self.targets.width), rows)
        return float(stress.sum()) / 2, G.T.cpu().numpy().copy(order="C")

    def largest(self, Y: Array) -> float:
        y = self._on_device(Y)
        largest = torch.empty_like(y[0])

        def rows(part: slice) -> None:
            residual, _ = self._residuals(self._distances(y, part), part)
            largest[part] = (residual if self.weights is None else residual.mul_(self.weights[part])).abs_().amax(dim=1)

        in_tiles(self.targets.n, 2 * (4 * self.targets.n + self.targets.width), rows)
        return float(largest.max())

    def _on_device(self, Y: Array) -> torch.Tensor:
        """Return Y (n, d) on the device, transposed, in float64."""
        return torch.as_tensor(np.array(Y.T, dtype=np.float64, order="C"), device=self.targets.device)

    def _distances(self, y: torch.Tensor, part: slice) -> torch.Tensor:
        r = torch.zeros((part.stop - part.start, self.targets.n), dtype=torch.float64, device=y.device)
        for axis in y:
            r += (axis[part, None] - axis).square_()
        return r.clamp_(min=MIN_D2).sqrt_()

    def _residuals(self, r: torch.Tensor, part: slice) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the residuals e of the rows of a slice, and d/(de/dd), for distances r = d."""
        delta = self.targets.rows(part)
        if self.residual == "absolute":
            return r - delta, r
        delta.diagonal(part.start).fill_(1.0)
        residual = (r - delta) / delta if self.residual == "relative" else torch.log(r / delta)
        residual.diagonal(part.start).zero_()
        return residual, r * (delta if self.residual == "relative" else r)

    def _terms(
        self, e: torch.Tensor, divisor: torch.Tensor, part: slice, misfit: Misfit
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the row sums of a misfit, and the factors of y_i − y_j in its gradient over 2 (powers: over p)."""
        if misfit.stretched:
            e.clamp_(min=0)
        w = None if self.weights is None else self.weights[part]
        if misfit.doublings:
            scale = 1 / misfit.unit if w is None else w / misfit.unit
            e *= scale
            one_less = e ** (2**misfit.doublings - 1)
            return (one_less * e).sum(dim=1), one_less.mul_(scale).div_(divisor)
        strength = e / divisor  # 1 − δ/d if e = d − δ
        if w is None:
            return e.square_().sum(dim=1), strength
        return e.square_().mul_(w).sum(dim=1), strength.mul_(w)

    def laplacian(self, Y: Array) -> Array:
        Y = np.asarray(Y, dtype=np.float64)
        if self.residual != "absolute":
            return super().laplacian(Y)
        if self.weights is None:
            return len(Y) * Y - Y.sum(axis=0)
        on_device = torch.as_tensor(Y, device=self.weights.device)
        product = torch.empty_like(on_device)

        def rows(part: slice) -> None:
            product[part] = self.weights[part].double() @ on_device  # type: ignore[index]

        in_tiles(len(Y), 2 * len(Y), rows)
        return np.asarray(self._row_sums * Y - product.cpu().numpy())
