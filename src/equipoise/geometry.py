"""Geometries: the spaces that maps lie in.

These are Euclidean space, optionally with a metric tensor; the unit sphere; and maps of fixed spread. The optimiser
works in coordinates U in which distances are Euclidean. A geometry converts maps Y to U and back. After each step of
the optimiser, it returns U to the surface of valid coordinates, such as the sphere.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ._tags import tagged
from ._types import Array
from .arrays.namespace import array_like, array_namespace, centered, times_matrix


class Geometry(Protocol):
    """Converts maps Y (n, d) to working coordinates U and back, and keeps U valid.

    Arrays can be NumPy, PyTorch or CuPy arrays.
    """

    def work(self, Y: Array) -> Array:
        """Return the working coordinates U of a map Y."""
        ...

    def map(self, U: Array) -> Array:
        """Return the map Y of working coordinates U."""
        ...

    def pull_back(self, Y: Array, F: Array) -> Array:
        """Return the force on the map Y that corresponds to the force F on U."""
        ...

    def tangent(self, U: Array, F: Array) -> Array:
        """Return the component of the force F that is tangent, at U, to the surface of valid working coordinates."""
        ...

    def project(self, U: Array) -> Array:
        """Return U projected onto the surface of valid working coordinates, such as the unit sphere."""
        ...

    def retract(self, U: Array) -> Array:
        """Return U after a step, projected as by `project`, and centred if translation does not change the loss."""
        ...


@tagged("geometry.Flat")
class Flat:
    """R^d with the squared distances d2 = (y_i − y_j)ᵀ G (y_i − y_j) (Lin et al. 2024, eq. 9).

    The working coordinates are u = A y, where G = AᵀA.

    Parameters
    ----------
    g : array-like of shape (d, d), default=None
        The metric tensor G; the identity if None.
    dimension : int, default=None
        The dimension d that `g` must have; any if None.
    """

    def __init__(self, g: Array | None = None, dimension: int | None = None):
        self.A = None if g is None else factor(g, "g", dimension)

    def work(self, Y: Array) -> Array:
        return Y if self.A is None else times_matrix(Y, self.A.T)

    def map(self, U: Array) -> Array:
        return U if self.A is None else times_matrix(U, np.linalg.inv(self.A).T)

    def pull_back(self, Y: Array, F: Array) -> Array:
        return F if self.A is None else F @ array_like(F, self.A)

    def tangent(self, U: Array, F: Array) -> Array:
        return F

    def project(self, U: Array) -> Array:
        return U

    def retract(self, U: Array) -> Array:
        return centered(U)  # the loss is invariant to translation


class Placed(Flat):
    """R^d as in `Flat`, but not centred after a step, because the loss depends on the position of the map.

    An example is a loss with a metric tensor g(y) that varies over the map.
    """

    def retract(self, U: Array) -> Array:
        return U


@tagged("geometry.Sphere")
class Sphere:
    """The unit sphere in R^d; any y ≠ 0 represents the point u = y/‖y‖.

    The Lagrange term of Lin et al. 2024, eq. (28) projects the gradient g of the loss E at u to g − ⟨g, u⟩u, which is
    also the gradient of E(y/‖y‖) at y = u.
    """

    def work(self, Y: Array) -> Array:
        xp, norm = array_namespace(Y), _norms(Y)
        if not xp.all(norm):
            raise ValueError(
                f"row {int(xp.argmin(norm))} of the map is all zeros and has no direction on the sphere; make it"
                " nonzero"
            )
        return Y / norm

    def map(self, U: Array) -> Array:
        return U

    def pull_back(self, Y: Array, F: Array) -> Array:
        norm = _norms(Y)
        return self.tangent(Y / norm, F) / norm

    def tangent(self, U: Array, F: Array) -> Array:
        return F - array_namespace(F).sum(F * U, axis=1, keepdims=True) * U

    def project(self, U: Array) -> Array:
        return self.work(U)

    def retract(self, U: Array) -> Array:
        return U / _norms(U)  # no step ends at 0, and a check would wait for the GPU


class Orthonormal:
    """Maps with the same spread along every axis: UᵀU = (Σ r_i²) I and rᵀU = 0 for U = diag(r) Y and weights r.

    It is used for losses that depend only on the span of the columns of U. A step moves from one span to another
    (Edelman, Arias & Smith 1998, section 2.5), and then U is replaced by the nearest U that satisfies both equations.

    Parameters
    ----------
    root : ndarray of shape (n,)
        The weights r.
    """

    def __init__(self, root: Array):
        self.root = root[:, None]
        self._spread = float(root @ root)

    def work(self, Y: Array) -> Array:
        return array_like(Y, self.root) * Y

    def map(self, U: Array) -> Array:
        return U / array_like(U, self.root)

    def pull_back(self, Y: Array, F: Array) -> Array:
        return array_like(F, self.root) * F

    def tangent(self, U: Array, F: Array) -> Array:
        return F - U @ (U.T @ F) / self._spread

    def project(self, U: Array) -> Array:
        return self.retract(U)

    def retract(self, U: Array) -> Array:
        root = array_like(U, self.root)
        U = U - root * (root.T @ U) / self._spread
        left, _, right = array_namespace(U).linalg.svd(U, full_matrices=False)
        return left @ right * float(np.sqrt(self._spread))


def _norms(Y: Any) -> Any:
    """Return the norms (n, 1) of the rows of Y."""
    return array_namespace(Y).sum(Y * Y, axis=1, keepdims=True) ** 0.5


def factor(tensor: Any, name: str, dimension: int | None = None) -> Array:
    """Return A with tensor = AᵀA; raise ValueError unless the tensor is symmetric and positive definite."""
    try:
        G = np.asarray(tensor, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the metric tensor {name} must be a matrix of numbers, got {tensor!r}") from error
    if G.ndim != 2 or G.shape[0] != G.shape[1] or (dimension is not None and len(G) != dimension):
        size = "square" if dimension is None else f"of shape ({dimension}, {dimension})"
        raise ValueError(f"the metric tensor {name} must be {size}, got shape {G.shape}")
    if not np.isfinite(G).all():
        i, j = np.argwhere(~np.isfinite(G))[0]
        raise ValueError(f"the metric tensor {name} must be finite, but {name}[{i}, {j}] is {G[i, j]:g}")
    if (asymmetric := np.argwhere(np.abs(G - G.T) > 1e-8 * np.abs(G).max())).size:
        i, j = asymmetric[0]
        raise ValueError(
            f"the metric tensor {name} must be symmetric, but {name}[{i}, {j}] = {G[i, j]} and {name}[{j}, {i}] ="
            f" {G[j, i]}"
        )
    try:
        return np.linalg.cholesky(G).T
    except np.linalg.LinAlgError:
        raise ValueError(
            f"the metric tensor {name} must be positive definite; its smallest eigenvalue is"
            f" {np.linalg.eigvalsh(G)[0]:g}"
        ) from None
