"""The loss E = Σ_ij F(k_x, k_y) of any function of two kernels, as edges and one field (docs/math.md, section 17)."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.blocks import FIXED_SUM
from ..arrays.csr import (
    entry_rows,
    is_on_device,
    is_sparse,
    permuted,
    row_sums,
    stored_values,
    sum_positive,
    with_values,
)
from ..arrays.namespace import array_like, array_namespace, on_device_of, to_float64, to_numpy, total
from ..engines import Engine, Placement
from ..geometry.flat import squared_distances
from ..kernels import DerivedKernel, Kernel
from ..pair_losses import PairLoss
from .base import SPRINGS, Balance, FrozenForce

PROBES = (0.05, 0.25, 1.0, 4.0)  # squared distances, in units of length², at which the stiffness is measured; chosen


@tagged("objectives.pair_objective.ZeroAffinity")
@dataclass(frozen=True)
class ZeroAffinity(DerivedKernel):
    """u = F(0, k(d2)), the potential of two points whose affinity is 0."""

    loss: PairLoss
    kernel: Kernel

    def value(self, d2: Array) -> Array:
        k = self.kernel.value(d2)
        return self.loss.value(0 * k, k)

    def slope(self, d2: Array) -> Array:
        k = self.kernel.value(d2)
        return self.loss.slope(0 * k, k) * self.kernel.slope(d2)


@tagged("objectives.pair_objective.PairObjective")
class PairObjective:
    """The loss E = Σ_{i≠j} F(k_x, k_y) for affinities k_x and k_y = k(d2) (Draganov & Dohn 2024, eq. 3).

    With u = F(0, k) and its slope u', a sum over the pairs with k_x > 0 and one field give the loss and the gradient:

        ∇_i E = 4 Σ_j [∂F(k_x, k) − ∂F(0, k)] k' (y_i − y_j) + 2 ∇Φ_i,  Φ_i = Σ_j u          docs/math.md, eq. (D3)

    where ∂F is the derivative with respect to k. The force of the first sum is returned as the attraction, that of the
    field as the repulsion. Exaggeration multiplies the attraction.

    If m negatives per edge are given, the field has the weights (s_i + s_j) m/2n, s_i = Σ_j k_x, of a loss that is
    minimised by sampling edges and negatives (Damrich & Hamprecht 2021).

    Parameters
    ----------
    K : matrix of shape (n, n)
        The affinities k_x, symmetric with a zero diagonal, CSR or dense.
    kernel : Kernel
    loss : PairLoss
    negatives : float, optional
        m; by default all pairs have the weight 1.
    """

    def __init__(self, K: Matrix, kernel: Kernel, loss: PairLoss, negatives: float | None = None):
        self.affinities, self.kernel, self.loss, self.negatives = K, kernel, loss, negatives
        self.apart = ZeroAffinity(loss, kernel)
        degrees = row_sums(K)
        self.charges = array_namespace(degrees).stack([degrees * 0 + 1, degrees], axis=1)  # 1 and s_j
        # The largest slope of F with respect to d2, summed over the pairs: Σ P for the KL divergence of t-SNE.
        self.mass = sum_positive(K, self._largest_slopes) * kernel.length**2

    @property
    def degrees(self) -> Array:
        return self.charges[:, 1]

    def _largest_slopes(self, kx: Array) -> Array:
        """Return, for each k_x, the largest |slope| that `_pairs` returns at the distances PROBES."""
        xp, largest = array_namespace(kx), 0 * kx
        for probe in PROBES:
            slope = xp.abs(self._pairs(kx, 0 * kx + probe * self.kernel.length**2, False)[0])
            largest = xp.where(slope > largest, slope, largest)
        return largest

    def edge_slope(self, kx: Array, d2: Array) -> Array:
        """Return d/d(d2) of F(k_x, k) − F(0, k); it is positive if the pair attracts."""
        return self._pairs(kx, d2, False)[0]

    def _pairs(self, kx: Array, d2: Array, value: bool) -> tuple[Array, Any]:
        """Return d/d(d2) of F(k_x, k) − F(0, k) for each pair and, if `value`, the sum of this difference."""
        k = self.kernel.value(d2)
        slope = (self.loss.slope(kx, k) - self.loss.slope(0 * kx, k)) * self.kernel.slope(d2)
        return slope, total(self.loss.value(kx, k) - self.loss.value(0 * kx, k)) if value else 0.0

    def _edges(self, Y: Array, engine: Engine, value: bool) -> tuple[Any, Array]:
        """Return Σ [F(k_x, k) − F(0, k)] over the pairs with k_x > 0, and minus a quarter of its gradient."""
        A = self.affinities
        if is_sparse(A):
            d2 = _squared_distances(engine, Y, entry_rows(A), Y, A.indices)
            slopes, psi = self._pairs(to_float64(on_device_of(Y, stored_values(A))), d2, value)
        else:
            slopes, psi = self._dense_slopes(Y, engine, value)
        _, force = engine.edges(Y, with_values(A, _cast(slopes, A)), SPRINGS, -1.0, potential=False)
        return psi, force

    def _dense_slopes(self, Y: Array, engine: Engine, value: bool) -> tuple[Array, Any]:
        """Return the slopes (n, n) of all pairs, and the sum of the terms in `_pairs`, for dense affinities."""
        Y, n, psi, blocks = to_float64(Y), Y.shape[0], 0.0, []
        step = max(1, FIXED_SUM // n)
        for start in range(0, n, step):
            d2 = squared_distances(engine.pairs, Y[start : start + step, None, :], Y[None, :, :])
            slopes, part = self._pairs(to_float64(self.affinities[start : start + step, :]), d2, value)
            psi += part
            blocks.append(slopes)
        return array_namespace(Y).concat(blocks), psi

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        psi, edges = self._edges(Y, engine, loss)
        if self.negatives is None:
            phi, gradient = engine.field(Y, self.apart)
            repulsion, apart = -2 * gradient, total(phi)
        else:
            c = self.negatives / Y.shape[0]
            phi, gradient = engine.field(Y, self.apart, self.charges)
            repulsion = -c * (self.degrees[:, None] * gradient[:, 0, :] + gradient[:, 1, :])
            apart = c * total(phi[:, 1])
        value = psi + apart if loss else np.nan
        return Balance(4 * exaggeration * edges, repulsion, value, self.mass * exaggeration)

    def to(self, placement: Placement) -> PairObjective:
        return self._with_arrays(placement.to_device(self.affinities), placement.to_device(self.charges))

    def permuted(self, order: Array) -> PairObjective:
        return self._with_arrays(permuted(self.affinities, order), self.charges[order])

    def _with_arrays(self, affinities: Matrix, charges: Array) -> PairObjective:
        """Return a copy of the objective with other affinities and charges."""
        other = copy(self)
        other.affinities, other.charges = affinities, charges
        return other

    def with_loss(self, loss: PairLoss) -> PairObjective:
        """Return a copy with another function F, whose stiffness is taken to be the same."""
        other = copy(self)
        other.loss, other.apart = loss, ZeroAffinity(loss, self.kernel)
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        """Return the function that `Objective.freeze` describes.

        A new point has its own affinities and, with negatives, its own s_i; those of the map do not change.
        """
        ones = engine.freeze(Y, self.apart)
        weighted = None if self.negatives is None else engine.freeze(Y, self.apart, self.degrees)

        def force(targets: Array, K: Matrix, near: Array) -> Array:
            push = ones(targets).gradient
            if weighted is None:
                push = 2 * push
            else:
                own = array_like(push, row_sums(K))[:, None]
                push = (self.negatives or 0.0) / Y.shape[0] * (own * push + weighted(targets).gradient)
            d2 = _squared_distances(engine, targets, entry_rows(K), near, K.indices)
            slopes = self.edge_slope(to_float64(on_device_of(d2, stored_values(K))), d2)
            pull = engine.edges_to(targets, near, with_values(K, to_numpy(slopes)), SPRINGS, -1.0)
            return 4 * exaggeration * pull - push

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with k_x = p; with negatives, those of a pair with s = 1 in a map of Z points."""
        xp, d2 = array_namespace(r), r**2
        slope, _ = self._pairs(0 * d2 + p, d2, False)
        weight = 1.0 if self.negatives is None else self.negatives / Z
        return 4 * xp.abs(slope) * r, 4 * weight * xp.abs(self.apart.slope(d2)) * r


def _squared_distances(engine: Engine, Yi: Array, i: Array, Yj: Array, j: Array) -> Array:
    """Return d2 (m,) between the points Yi[i] and Yj[j]; the indices may be arrays of another library."""
    xp = array_namespace(Yi)
    i, j = (xp.astype(on_device_of(Yi, index), xp.int64) for index in (i, j))
    return squared_distances(engine.pairs, xp.take(to_float64(Yi), i, axis=0), xp.take(to_float64(Yj), j, axis=0))


def _cast(values: Any, A: Matrix) -> Any:
    """Return new values of the entries of A, or of a dense A: on its device in its precision, else on the host."""
    if is_on_device(A):
        return array_namespace(values).astype(values, A.data.dtype)
    return to_numpy(values) if sparse.issparse(A) else values
