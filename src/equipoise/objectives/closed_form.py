"""What losses with a closed form share: the linear kernel, and no need for engines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._types import Array, Matrix
from ..engines import Engine, Placement
from ..kernels import Kernel
from .base import Balance


class Linear(Kernel):
    """k = −d2/2, which centring makes the inner product: C K C = C Y Yᵀ C. Not positive: not for the SNE family."""

    def value(self, d2: Array) -> Array:
        return -d2 / 2

    def slope(self, d2: Array) -> Array:
        return np.full_like(d2, -0.5)


class ClosedForm:
    """A loss of maps U (n, d) whose minimum is a matter of eigenvectors; matrix products are its engine."""

    kernel: Kernel = Linear()
    affinities: Matrix
    mass: float

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        raise TypeError(f"{type(self).__name__} must define balance()")

    def solve(self, d: int) -> tuple[Array, Array]:
        """Return the d eigenvalues that matter, and the map of least loss (n, d)."""
        raise TypeError(f"{type(self).__name__} must define solve()")

    def loss(self, U: Array) -> float:
        """Return the loss of U."""
        raise TypeError(f"{type(self).__name__} must define loss()")

    def least(self, values: Array) -> float:
        """Return the loss of that map, from the eigenvalues."""
        raise TypeError(f"{type(self).__name__} must define least()")

    def start(self, d: int, rng: np.random.RandomState) -> Array:
        """Return a random map (n, d) from which every step goes downhill."""
        raise TypeError(f"{type(self).__name__} must define start()")

    def aligned(self, U: Array) -> tuple[Array, Array]:
        """Return what `solve` does for the span of U: values of the axes, and U turned to them."""
        raise TypeError(f"{type(self).__name__} must define aligned()")

    def to(self, placement: Placement) -> ClosedForm:
        """Return the loss itself: it computes where its matrices are."""
        return self

    def permuted(self, order: Array) -> ClosedForm:
        raise TypeError("matrix products need no order of the points")

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> Callable[[Array, Matrix], Array]:
        raise TypeError("new points are placed in closed form")

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        raise TypeError("these forces depend on where two points are, not on their distance alone")
