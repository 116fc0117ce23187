"""Losses of double-kernel LLE and PCA, with kernels on the data and on the map (Draganov & Dohn 2024, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..affinities.locally_linear import lle_matrix
from ..arrays.csr import (
    entries_where,
    entry_rows,
    is_on_device,
    permuted,
    row_sums,
    stored_values,
    sum_positive,
    with_values,
)
from ..arrays.namespace import array_like, array_namespace, total
from ..engines import Engine, Placement
from ..kernels import Kernel, Squared
from .base import Balance


def _at_zero(kernel: Kernel) -> float:
    """Return k(0)."""
    return float(kernel.value(np.zeros(1))[0])


@tagged("objectives.double.DoubleKernelLLE")
class DoubleKernelLLE:
    """The loss E = Tr(M K_Y) + (1/n) Σ_ij k(d2_ij) of double-kernel LLE, with (K_Y)_ij = k(d2_ij).

        ∇_i E = 4 Σ_j (M_ij + 1/n) k' (y_i − y_j)                                            docs/math.md, eq. (D1)

    M = (I − W)ᵀ(I − W), where row i of W holds the weights that reconstruct point i from its neighbours (Draganov &
    Dohn 2024, eq. (8) and proposition 4.1). The sums include i = j. E ≥ 0, because M and K_Y are positive semidefinite.

    Under the first term of E, pairs with M_ij < 0 attract: as a rule, one point reconstructs the other. Pairs with
    M_ij > 0 repel: as a rule, both points reconstruct a third. Under the second term, all pairs repel. The engine
    computes the first term as edges with the weights M and the exponent b = 0 (see `Engine.edges`), and the second as a
    field. Exaggeration multiplies M.
    """

    def __init__(self, W: Matrix, kernel: Kernel):
        self.weights = W if is_on_device(W) else sparse.csr_matrix(W)
        self.kernel = kernel
        self.mass = float(self.weights.shape[0])
        M = lle_matrix(self.weights)
        values, diagonal = stored_values(M), M.indices == entry_rows(M)
        xp = array_namespace(values)
        self._constant = (float(xp.sum(values[diagonal])) + 1) * _at_zero(kernel)
        # Near 0, where k is linear, the gradient is 4 M Y: a row of M is the stiffness of its point. The mean over
        # all points is used, not the maximum: the gains handle the few points that many others depend on.
        self._stiffness = float(xp.sum(xp.abs(values)))
        self.affinities = with_values(M, xp.astype(values, self.weights.data.dtype, copy=False))
        self._pull, self._push = (signed_entries(self.affinities, sign) for sign in (-1, 1))

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        pulled, pull = engine.edges(Y, self._pull, self.kernel, 0.0, potential=loss)
        pushed, push = engine.edges(Y, self._push, self.kernel, 0.0, potential=loss)
        n, (phi, gradient) = Y.shape[0], engine.field(Y, self.kernel)
        value = pulled + pushed + total(phi) / n + self._constant if loss else np.nan
        repulsion = -4 * exaggeration * push - 2 / n * gradient
        return Balance(-4 * exaggeration * pull, repulsion, value, self._stiffness * exaggeration)

    def to(self, placement: Placement) -> DoubleKernelLLE:
        return self._with_arrays(placement.to_device)

    def permuted(self, order: Array) -> DoubleKernelLLE:
        return self._with_arrays(lambda A: permuted(A, order))

    def _with_arrays(self, change: Callable[[Matrix], Matrix]) -> DoubleKernelLLE:
        """Return a copy with `change` applied to every matrix."""
        other = copy(self)
        other.weights, other.affinities = change(self.weights), change(self.affinities)
        other._pull, other._push = change(self._pull), change(self._push)
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> Callable[[Array, Matrix], Array]:
        """Return the function that `Objective.freeze` describes.

        New points are reconstructed from points of the map, but not the reverse, so that M_ij = −w_ij.
        """
        n, field = Y.shape[0], engine.freeze(Y, self.kernel)

        def force(targets: Array, W: Matrix) -> Array:
            pull = engine.edges_to(targets, Y, W, self.kernel, 0.0)
            return 4 * exaggeration * pull - 2 / n * field(targets).gradient

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with M_ij = −p in a map of Z points."""
        force = 4 * array_namespace(r).abs(self.kernel.slope(r**2)) * r
        return p * force, force / Z


def signed_entries(M: Matrix, sign: int) -> Matrix:
    """Return CSR M with only the off-diagonal entries of the given sign, 1 or −1."""
    values = stored_values(M)
    return entries_where(M, (array_namespace(values).sign(values) == sign) & (M.indices != entry_rows(M)))


@tagged("objectives.double.DoubleKernelPCA")
class DoubleKernelPCA:
    """The loss E = ‖A‖²_F of double-kernel PCA, with A = C (K_X − K_Y) C and C = I − 11ᵀ/n.

        ∇_i E = −8 Σ_j A_ij k' (y_i − y_j)                                                   docs/math.md, eq. (D2)

    See Draganov & Dohn 2024, eq. (6) and (7). K_X and K_Y (n, n) are the kernel matrices of the data and of the map.
    K_X is symmetric, dense or CSR; its diagonal of ones is not stored. Entry i, j of A is K_X − K_Y − ρ_i − ρ_j + μ,
    where ρ_i are the row means of K_X − K_Y and μ is its mean. The engine computes three fields, of k² with charges 1
    and of k with charges 1 and ρ, and edges with the weights K_X and the exponent b = 0 (see `Engine.edges`).
    """

    def __init__(self, K: Matrix, kernel: Kernel):
        self.affinities = K
        self.kernel = kernel
        n = K.shape[0]
        self._squared = Squared(kernel)  # type: ignore[call-arg]  # its exponent is fixed
        self._sums = row_sums(K) + 1.0  # rows of K_X
        xp = array_namespace(self._sums)
        self.mass = float(xp.sum(self._sums))
        self._load = float(xp.max(self._sums)) * n
        square = sum_positive(K, lambda k: k * k) + n
        self._own = square - 2 / n * float(self._sums @ self._sums) + self.mass**2 / n**2  # ‖C K_X C‖²

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        n, k0 = Y.shape[0], _at_zero(self.kernel)
        psi, pull = engine.edges(Y, self.affinities, self.kernel, 0.0, potential=loss)
        squares, push = engine.field(Y, self._squared)
        phi, ones = engine.field(Y, self.kernel)
        sums, rho, mu = self._means(k0 + phi, n)
        centring = (rho - mu)[:, None] * ones + engine.field(Y, self.kernel, rho).gradient
        S = total(sums)
        overlap = psi + n * k0 - 2 / n * total(self._sums * sums) + self.mass * S / n**2  # ⟨C K_X C, K_Y⟩
        map_norm2 = n * k0**2 + total(squares) - 2 / n * total(sums * sums) + S**2 / n**2  # ‖C K_Y C‖²
        value = self._own - 2 * overlap + map_norm2 if loss else np.nan
        return Balance(8 * exaggeration * pull, -2 * push - 4 * centring, value, 2 * self._load * exaggeration)

    def _means(self, sums: Array, n: int) -> tuple[Array, Array, Any]:
        """Return the row sums of K_Y, and the row means ρ and the mean μ of K_X − K_Y."""
        rho = (self._sums - sums) / n
        return sums, rho, total(rho) / n

    def to(self, placement: Placement) -> DoubleKernelPCA:
        return self._with_arrays(placement.to_device(self.affinities), placement.to_device(self._sums))

    def permuted(self, order: Array) -> DoubleKernelPCA:
        return self._with_arrays(permuted(self.affinities, order), self._sums[order])

    def _with_arrays(self, affinities: Matrix, sums: Array) -> DoubleKernelPCA:
        """Return a copy of the objective with other affinities K_X and row sums of K_X."""
        other = copy(self)
        other.affinities, other._sums = affinities, sums
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> Callable[[Array, Matrix], Array]:
        """Return the function that `Objective.freeze` describes.

        A new point has its own row of K_X; the means of the map do not change.
        """
        n = Y.shape[0]
        _, rho, mu = self._means(_at_zero(self.kernel) + engine.field(Y, self.kernel).potential, n)
        squared, ones = engine.freeze(Y, self._squared), engine.freeze(Y, self.kernel)
        charged = engine.freeze(Y, self.kernel, rho)

        def force(targets: Array, K: Matrix) -> Array:
            phi, gradient = ones(targets)
            own = (array_like(phi, row_sums(K)) - phi) / n
            centring = (own - mu)[:, None] * gradient + charged(targets).gradient
            pull = engine.edges_to(targets, Y, K, self.kernel, 0.0)
            return 8 * exaggeration * pull - 2 * squared(targets).gradient - 4 * centring

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with K_X = p, far from all other points, with ρ = μ = 0; Z is not used."""
        xp, d2 = array_namespace(r), r**2
        force = 8 * xp.abs(self.kernel.slope(d2)) * r
        return p * force, self.kernel.value(d2) * force
