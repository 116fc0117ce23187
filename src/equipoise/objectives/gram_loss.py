"""The loss of PCA, classical MDS and Isomap, written as attraction and repulsion (Draganov & Dohn 2024)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .._types import Array, Matrix
from ..arrays.namespace import array_like, array_namespace, to_float64, to_numpy
from ..engines import Engine
from ..linalg.gram import Gram, Inner, leading_eigenvectors
from .base import Balance
from .closed_form import ClosedForm


class GramLoss(ClosedForm):
    """The loss E = ‖B − C Y Yᵀ C‖²_F, for a centred Gram matrix B = C G_X C of the data, C = I − 11ᵀ/n.

        ∇E = −4 (B − C Y Yᵀ C) C Y                                        Draganov & Dohn 2024, eq. (4)

    With L = B − C Y Yᵀ C this is ∇_i E = 4 Σ_j L_ij (y_i − y_j): pairs more similar in the data than in the map
    attract, the others repel. The force from B is called the attraction, that from Y Yᵀ the repulsion. Y Yᵀ is never
    formed: for a centred Y, its force Y (YᵀY) costs O(n d²). If the data are points in R^D, B is not formed either, and
    B Y costs O(n D d). B Y is computed on the device of B.

    `balance` returns the stiffness n c/4, from which the optimiser computes its step length. c is an upper bound on the
    second derivative of E at Y. It is still an upper bound after the next gradient step of length 1/c, if this step is
    without momentum (docs/math.md, "Step length").
    """

    def __init__(self, gram: Gram, error: float = 0.0):
        """Take B as `gram`; if B comes from an approximation G'_X of G_X, `error` is ‖G_X − G'_X‖_F."""
        self.gram = gram
        self.error = error

    @property
    def affinities(self) -> Matrix:
        """B as a NumPy array; None if it is not formed."""
        return to_numpy(self.gram.B) if isinstance(self.gram, Inner) else None

    @cached_property
    def norm(self) -> float:
        """‖B‖₂, or 1 if ‖B‖₂ = 0 because all points coincide."""
        return self.gram.norm() or 1.0

    @cached_property
    def norm2(self) -> float:
        """‖B‖²_F."""
        return self.gram.norm2()

    @property
    def mass(self) -> float:  # type: ignore[override]
        """The scale of gradients, 4 ‖B‖₂^(3/2): the norm of the repulsion in a map with one axis y, ‖y‖² = ‖B‖₂."""
        return 4 * self.norm**1.5

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        Y = subtract_mean(Y)
        BY, YY = self.gram.product(Y), Y.T @ Y
        largest = max(float(array_namespace(YY).linalg.eigvalsh(YY)[-1]), self.norm)
        curvature = 4 * (3 * largest + (0.0 if self.gram.definite else self.norm))
        total = self._loss(Y, BY, YY) if loss else np.nan
        return Balance(4 * exaggeration * BY, -4 * Y @ YY, total, Y.shape[0] * curvature / 4)

    def loss(self, U: Array) -> float:
        Y = subtract_mean(U)
        return self._loss(Y, self.gram.product(Y), Y.T @ Y)

    def _loss(self, Y: Array, BY: Array, YY: Array) -> float:
        xp = array_namespace(Y)
        return max(self.norm2 - 2 * float(xp.sum(Y * BY)) + float(xp.sum(YY * YY)), 0.0)  # ≥ 0 despite rounding

    def gradient_error(self, Y: Array) -> float:
        """Return 4 ‖G_X − G'_X‖_F ‖C Y‖₂, a bound on the error of the gradient at Y if G'_X approximates G_X."""
        return 4 * self.error * float(array_namespace(Y).linalg.matrix_norm(subtract_mean(Y), ord=2))

    def solve(self, d: int) -> tuple[Array, Array]:
        """Return the d largest eigenvalues of B, and the map (n, d): unit eigenvectors times √eigenvalue.

        Coordinates are 0 along eigenvectors of negative eigenvalues, which no map can represent.
        """
        values, V = self.gram.top(d)
        return values, V * array_like(V, np.sqrt(np.maximum(values, 0.0)))

    def minimum_loss(self, values: Array) -> float:
        """Return the minimum of the loss: ‖B‖²_F minus the sum of squares of the positive eigenvalues in `values`."""
        return max(self.norm2 - float(np.square(np.maximum(values, 0.0)).sum()), 0.0)

    def start(self, d: int, rng: np.random.RandomState) -> Array:
        """Return a map (n, d) of normal random numbers, as in Draganov & Dohn 2024, scaled to ‖Y‖₂² ≈ ‖B‖₂ / 4."""
        return rng.standard_normal((self.gram.n, d)) * np.sqrt(self.norm / (4 * self.gram.n))

    def aligned(self, U: Array) -> tuple[Array, Array]:
        """Return the squared lengths of the principal axes of U, and U rotated to these axes; its loss is unchanged."""
        values, V = leading_eigenvectors(U.T @ U, U.shape[1])
        return values, U @ V


def subtract_mean(Y: Array) -> Array:
    """Return C Y, the map minus its mean, in float64."""
    Y = to_float64(Y)
    return Y - array_namespace(Y).mean(Y, axis=0)
