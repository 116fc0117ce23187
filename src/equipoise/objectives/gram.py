"""PCA, classical MDS and Isomap as attraction and repulsion: E = ‖C(G_X − G_Y)C‖²_F (Draganov & Dohn 2024, section 3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._types import Array, Matrix
from ..engines import Engine
from ..gram import Gram, Inner
from ..kernels import Kernel
from .base import Balance


class Linear(Kernel):
    """k = −d2/2, which after centring is the inner product: C K C = C Y Yᵀ C. Not positive, so not for the SNE family."""

    def value(self, d2: Array) -> Array:
        return -d2 / 2

    def slope(self, d2: Array) -> Array:
        return np.full_like(d2, -0.5)


class GramLoss:
    """E = ‖B − C Y Yᵀ C‖²_F for a centred Gram matrix B = C G_X C of the data.

        ∇E = −4 (B − C Y Yᵀ C) C Y                                        Draganov & Dohn 2024, eq. (4)

    With L = B − C Y Yᵀ C this is ∇_i = 4 Σ_j L_ij (y_i − y_j): pairs more alike in the data than in the map attract,
    the others repel. The force from B is called the attraction, that from G_Y the repulsion. Neither matrix is formed:
    with coordinates B V costs O(n D d), and Y(YᵀY) costs O(n d²).

    The stiffness is a bound on the curvature at Y and at its next plain step: docs/math.md, "Step length".
    """

    kernel: Kernel = Linear()

    def __init__(self, gram: Gram, error: float = 0.0):
        """`error` is ‖G_X − G'_X‖_F where B comes from an approximation G'_X."""
        self.gram = gram
        self.error = error
        self.affinities: Matrix = gram.B if isinstance(gram, Inner) else None
        self._norm2 = gram.norm2()
        self.norm = gram.norm()
        self.mass = 4 * self.norm**1.5  # a gradient of this norm is a map without relation to the data

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        Y = np.asarray(Y, dtype=np.float64)
        Y = Y - Y.mean(axis=0)
        BY, YY = self.gram.times(Y), Y.T @ Y
        total = self._norm2 - 2 * float((Y * BY).sum()) + float(np.square(YY).sum()) if loss else np.nan
        largest = max(float(np.linalg.eigvalsh(YY)[-1]), self.norm)
        curvature = 4 * (3 * largest + (0.0 if self.gram.definite else self.norm))
        attraction, repulsion = 4 * exaggeration * BY, -4 * Y @ YY
        return Balance(attraction, repulsion, total, len(Y) * curvature / 4)

    def gradient_error(self, Y: Array) -> float:
        """Return a bound on ‖∇ − ∇'‖_F at Y, 4 ‖G_X − G'_X‖_F ‖C Y‖₂: how far an approximate G_X leads astray."""
        return 4 * self.error * float(np.linalg.norm(Y - Y.mean(axis=0), 2))

    def solve(self, d: int) -> tuple[Array, Array]:
        """Return the d largest eigenvalues of B, and the map of least loss: eigenvectors times their roots.

        Directions with a negative eigenvalue, which no map can have, get coordinates 0.
        """
        values, V = self.gram.top(d)
        return values, V * np.sqrt(np.maximum(values, 0.0))

    def permuted(self, order: Array) -> GramLoss:
        raise TypeError("a Gram matrix needs no order of the points")

    def freeze(self, Y: Array, engine: Engine) -> Callable[[Array, Matrix], Array]:
        raise TypeError("new points are placed in closed form")

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """With p the entry of C G_X C and Z standing for 1/⟨y_i, y_j⟩ of the map."""
        return 4 * p * r, 4 / Z * r
