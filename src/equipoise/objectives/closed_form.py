"""Defines the base class of losses whose minimum has a closed form; they need no engine."""

from __future__ import annotations

import numpy as np

from .._types import Array, Matrix
from ..arrays.namespace import array_namespace
from ..engines import Engine, Placement
from ..kernels import Kernel
from .base import Balance, FrozenForce


class Linear(Kernel):
    """k = −d2/2, which is the inner product after centring.

    For K_ij = k(d2_ij) and C = I − 11ᵀ/n, C K C = C Y Yᵀ C. k is not positive, so the SNE family cannot use it.
    """

    def value(self, d2: Array) -> Array:
        return -d2 / 2

    def slope(self, d2: Array) -> Array:
        return array_namespace(d2).full_like(d2, -0.5)


class ClosedForm:
    """A loss of maps U (n, d) that eigenvectors minimise; its forces are matrix products, and need no engine."""

    kernel: Kernel = Linear()
    affinities: Matrix
    mass: float

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        raise TypeError(f"{type(self).__name__} must define balance()")

    def solve(self, d: int) -> tuple[Array, Array]:
        """Return the d eigenvalues of the solution, and the map (n, d) that minimises the loss."""
        raise TypeError(f"{type(self).__name__} must define solve()")

    def loss(self, U: Array) -> float:
        """Return the loss of U."""
        raise TypeError(f"{type(self).__name__} must define loss()")

    def minimum_loss(self, values: Array) -> float:
        """Return the minimum of the loss, from the eigenvalues."""
        raise TypeError(f"{type(self).__name__} must define minimum_loss()")

    def start(self, d: int, rng: np.random.RandomState) -> Array:
        """Return a random map (n, d) from which every step of gradient descent decreases the loss."""
        raise TypeError(f"{type(self).__name__} must define start()")

    def aligned(self, U: Array) -> tuple[Array, Array]:
        """Return the eigenvalue of each axis, estimated from U, and U rotated to the axes of the solution."""
        raise TypeError(f"{type(self).__name__} must define aligned()")

    def to(self, placement: Placement) -> ClosedForm:
        """Return the loss itself: it computes on the device of its matrices."""
        return self

    def permuted(self, order: Array) -> ClosedForm:
        raise TypeError(f"{type(self).__name__} cannot reorder its points; use an engine that does not sort them")

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        raise TypeError(f"{type(self).__name__} defines no forces on new points; place them with transform()")

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        raise TypeError(
            f"the forces of {type(self).__name__} depend on the positions of two points, not on their distance alone;"
            " use attraction(Y) and repulsion(Y) of the problem"
        )
