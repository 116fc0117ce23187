"""What a geometry is; flat space, optionally with a metric tensor; and maps of fixed spread.

The optimiser works in coordinates U. A geometry converts maps Y to U and back, compares pairs of points, and keeps
steps on the surface of valid U, such as the sphere.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from .._tags import tagged
from .._types import Array
from ..arrays.namespace import array_like, array_namespace, centered, times_matrix
from ..kernels import Kernel


class Pairs(Protocol):
    """How two points with working coordinates u_i and u_j are compared in a space that is not Euclidean."""

    def between(self, Ui: Array, Uj: Array) -> tuple[Array, Array]:
        """Return d2 (...) and the direction v = ½ ∂d2/∂u_i (..., d) of points (..., d), in NumPy and float64."""
        ...

    def native(self) -> Any:
        """Return the compiled counterpart, a `_core.Space`; None to use `between`."""
        ...

    def radial(self, kernel: Kernel) -> Kernel:
        """Return a kernel as a function of what the compiled counterpart gives instead of d2, for its table."""
        ...


def compare(pairs: Pairs | None, Ui: Array, Uj: Array) -> tuple[Array, Array]:
    """Return d2 (...) and the direction v (..., d) of points (..., d); u_i − u_j without `pairs`."""
    if pairs is not None:
        return pairs.between(Ui, Uj)
    diff = Ui - Uj
    return (diff**2).sum(axis=-1), diff


def squared_distances(pairs: Pairs | None, Ui: Array, Uj: Array) -> Array:
    """Return d2 (...) of points (..., d), as `compare` does; without `pairs`, of arrays of any library."""
    if pairs is not None:
        return pairs.between(Ui, Uj)[0]
    return reduce(add, ((Ui[..., c] - Uj[..., c]) ** 2 for c in range(Ui.shape[-1])))  # NumPy sums short rows slowly


class Geometry:
    """A space of maps (n, columns), described by working coordinates U; arrays may be from NumPy, PyTorch or CuPy.

    Attributes
    ----------
    pairs : Pairs or None
        How working coordinates are compared; None for Euclidean distances.
    """

    pairs: Pairs | None = None
    centred_flat = False  # flat space in which maps are centred after a step, as engines can do by themselves

    def resolved(self, n: int, d: int, length: float) -> Geometry:
        """Return the geometry with every size that is "auto" chosen, for n points in d dimensions.

        `length` is the length of the kernel.
        """
        return self

    def sized(self, n: int, d: int, length: float) -> Geometry:
        """Return `resolved(n, d, length)`; raise ValueError if it cannot hold maps in d dimensions."""
        geometry = self.resolved(n, d, length)
        geometry.check(d, length)
        return geometry

    def check(self, d: int, length: float) -> None:
        """Raise ValueError if maps in d dimensions cannot be computed; warn if they cannot be good.

        `length` is the length of the kernel. It is called for a resolved geometry, before work starts.
        """

    def require_sizes(self) -> None:
        """Raise ValueError if a size is "auto"; `resolved` chooses it."""

    def columns(self, d: int) -> int:
        """Return the number of columns of a map in d dimensions."""
        return d

    def start(self, Y: Array) -> Array:
        """Return the initial map for coordinates Y (n, columns) around 0."""
        return self.map(Y)

    def work(self, Y: Array) -> Array:
        """Return the working coordinates U of a map Y."""
        return Y

    def map(self, U: Array) -> Array:
        """Return the map Y of working coordinates U."""
        return U

    def pull_back(self, Y: Array, F: Array) -> Array:
        """Return the force on the map Y that corresponds to the force F on U."""
        return F

    def tangent(self, U: Array, F: Array) -> Array:
        """Return the force F on U as a tangent vector at U, along which the loss falls fastest."""
        return F

    def move(self, U: Array, step: Array, velocity: Array, *, centred: bool) -> tuple[Array, Array]:
        """Return U after a step along tangent vectors, and the velocity as tangent vectors there.

        `centred` says whether U may be centred, because the loss is invariant to isometries.
        """
        U = self.retract(U + step) if centred else self.project(U + step)
        return U, self.tangent(U, velocity)

    def project(self, U: Array) -> Array:
        """Return U projected onto the surface of valid working coordinates, such as the unit sphere."""
        return U

    def retract(self, U: Array) -> Array:
        """Return the projection of U after a step, centred if the loss is invariant to translation."""
        return self.project(U)

    def distance(self, Yi: Array, Yj: Array) -> Array:
        """Return the distances (...) that enter the loss, between positions (..., columns) in maps."""
        self.require_sizes()
        maps = (np.asarray(Y, dtype=np.float64) for Y in (Yi, Yj))
        Ui, Uj = (self.work(Y.reshape(-1, Y.shape[-1])).reshape(Y.shape) for Y in maps)
        return np.sqrt(squared_distances(self.pairs, Ui, Uj))

    def geodesic(self, y_i: Array, y_j: Array, points: int = 50) -> Array:
        """Return positions (points, columns) along the shortest path between two positions in a map."""
        t = np.linspace(0.0, 1.0, points)[:, None]
        return (1 - t) * np.asarray(y_i, dtype=np.float64) + t * np.asarray(y_j, dtype=np.float64)


@tagged("geometry.Flat")
class Flat(Geometry):
    """R^d with the squared distances d2 = (y_i − y_j)ᵀ G (y_i − y_j) (Lin et al. 2024, eq. 9).

    The working coordinates are u = A y, where G = AᵀA.

    Parameters
    ----------
    g : array-like of shape (d, d), default=None
        The metric tensor G; the identity if None.
    dimension : int, default=None
        The dimension d that `g` must have; any if None.
    """

    centred_flat = True

    def __init__(self, g: Array | None = None, dimension: int | None = None):
        self.A = None if g is None else factor(g, "g", dimension)

    def __repr__(self) -> str:
        tensor = (
            "" if self.A is None else np.array2string(self.A.T @ self.A, precision=4, separator=", ", prefix=" " * 7)
        )
        return f"{type(self).__name__}({tensor and f'g={tensor}'})"

    def work(self, Y: Array) -> Array:
        return Y if self.A is None else times_matrix(Y, self.A.T)

    def map(self, U: Array) -> Array:
        return U if self.A is None else times_matrix(U, np.linalg.inv(self.A).T)

    def pull_back(self, Y: Array, F: Array) -> Array:
        return F if self.A is None else F @ array_like(F, self.A)

    def retract(self, U: Array) -> Array:
        return centered(U)  # the loss is invariant to translation


class Placed(Flat):
    """R^d as in `Flat`, but not centred after a step, because the loss depends on the position of the map.

    An example is a loss with a metric tensor g(y) that varies over the map.
    """

    centred_flat = False

    def retract(self, U: Array) -> Array:
        return U


class Orthonormal(Geometry):
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
        root = array_like(U, self.root)
        U = U - root * (root.T @ U) / self._spread
        left, _, right = array_namespace(U).linalg.svd(U, full_matrices=False)
        return left @ right * float(np.sqrt(self._spread))


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
