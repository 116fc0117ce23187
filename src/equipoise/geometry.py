"""Where the map lives: flat space, with a metric tensor if wanted, the unit sphere, or maps of one spread.

The optimiser works in coordinates U in which distances are Euclidean and steps are straight; a geometry takes Y there
and back, and keeps steps on the surface.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ._tags import tagged
from ._types import Array
from .arrays.namespace import centered, turned


class Geometry(Protocol):
    """A space for the map, seen through working coordinates U."""

    def work(self, Y: Array) -> Array:
        """Return U for a map Y."""
        ...

    def map(self, U: Array) -> Array:
        """Return Y for working coordinates U."""
        ...

    def pull_back(self, Y: Array, F: Array) -> Array:
        """Return the force on Y from the force F on U."""
        ...

    def tangent(self, U: Array, F: Array) -> Array:
        """Return the part of F along the surface at U."""
        ...

    def project(self, U: Array) -> Array:
        """Return U after a step, back on the surface, each point by itself."""
        ...

    def retract(self, U: Array) -> Array:
        """Return U after a step, back on the surface and centred where the loss does not see the centre."""
        ...


@tagged("geometry.Flat")
class Flat:
    """R^d with d2 = (y_i − y_j)ᵀ G (y_i − y_j) (Lin et al. 2024, eq. 9): G = AᵀA and U = A y. Identity by default."""

    def __init__(self, g: Array | None = None, dimension: int | None = None):
        self.A = None if g is None else factor(g, "g", dimension)

    def work(self, Y: Array) -> Array:
        return Y if self.A is None else turned(Y, self.A.T)

    def map(self, U: Array) -> Array:
        return U if self.A is None else turned(U, np.linalg.inv(self.A).T)

    def pull_back(self, Y: Array, F: Array) -> Array:
        return F if self.A is None else F @ self.A

    def tangent(self, U: Array, F: Array) -> Array:
        return F

    def project(self, U: Array) -> Array:
        return U

    def retract(self, U: Array) -> Array:
        return centered(U)  # the loss does not see where it is


class Placed(Flat):
    """R^d for losses that see where the map is, as those with a metric g(y) do: it is never centred."""

    def retract(self, U: Array) -> Array:
        return U


@tagged("geometry.Sphere")
class Sphere:
    """The unit sphere in R^d; any Y ≠ 0 stands for U = Y/‖Y‖.

    The Lagrange term of Lin et al. 2024, eq. (28) is the projection g − ⟨g, u⟩u, which is also the gradient of
    E(Y/‖Y‖) at ‖Y‖ = 1.
    """

    def work(self, Y: Array) -> Array:
        norm = (Y * Y).sum(axis=1, keepdims=True) ** 0.5
        if not norm.all():
            raise ValueError(f"row {int(norm.argmin())} of the map is 0 and has no direction on the sphere")
        return Y / norm

    def map(self, U: Array) -> Array:
        return U

    def pull_back(self, Y: Array, F: Array) -> Array:
        norm = np.linalg.norm(Y, axis=1, keepdims=True)
        return self.tangent(Y / norm, F) / norm

    def tangent(self, U: Array, F: Array) -> Array:
        return F - (F * U).sum(axis=1, keepdims=True) * U

    def project(self, U: Array) -> Array:
        return self.work(U)

    def retract(self, U: Array) -> Array:
        return U / (U * U).sum(axis=1, keepdims=True) ** 0.5  # a step does not end at 0, and a device is not asked


class Orthonormal:
    """Maps of the same spread along every axis: with weights r_i and U = r ∘ Y, UᵀU = (Σ r²) I and rᵀU = 0.

    For losses that see the span of U alone: steps go across the maps of one span (Edelman, Arias & Smith 1998,
    section 2.5), and end at the nearest map of the surface.
    """

    def __init__(self, root: Array):
        self.root = root[:, None]
        self._spread = float(root @ root)

    def work(self, Y: Array) -> Array:
        return self.root * Y

    def map(self, U: Array) -> Array:
        return U / self.root

    def pull_back(self, Y: Array, F: Array) -> Array:
        return self.root * F

    def tangent(self, U: Array, F: Array) -> Array:
        return F - U @ (U.T @ F) / self._spread

    def project(self, U: Array) -> Array:
        return self.retract(U)

    def retract(self, U: Array) -> Array:
        U = U - self.root * (self.root.T @ U) / self._spread
        left, _, right = np.linalg.svd(U, full_matrices=False)
        return left @ right * np.sqrt(self._spread)


def factor(tensor: Any, name: str, dimension: int | None = None) -> Array:
    """Return A with tensor = AᵀA for a symmetric positive definite metric tensor."""
    G = np.asarray(tensor, dtype=np.float64)
    if G.ndim != 2 or G.shape[0] != G.shape[1] or (dimension is not None and len(G) != dimension):
        size = "square" if dimension is None else f"of shape ({dimension}, {dimension})"
        raise ValueError(f"the metric tensor {name} must be {size}, got shape {G.shape}")
    if not np.isfinite(G).all():
        raise ValueError(f"the metric tensor {name} contains NaN or inf")
    if (uneven := np.argwhere(np.abs(G - G.T) > 1e-8 * np.abs(G).max())).size:
        i, j = uneven[0]
        raise ValueError(f"the metric tensor {name} must be symmetric: {name}[{i}, {j}] differs from {name}[{j}, {i}]")
    try:
        return np.linalg.cholesky(G).T
    except np.linalg.LinAlgError:
        raise ValueError(
            f"the metric tensor {name} must be positive definite; its smallest eigenvalue is"
            f" {np.linalg.eigvalsh(G)[0]:g}"
        ) from None
