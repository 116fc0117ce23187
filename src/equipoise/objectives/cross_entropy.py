"""UMAP's losses: the published cross-entropy of memberships μ in the data and k in the map, and the sampled version."""

from __future__ import annotations

from copy import copy

import numpy as np

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import permuted, row_sums
from ..arrays.namespace import array_like, array_namespace
from ..engines import Engine, Placement
from ..engines.base import LinearForce, PointSums
from ..kernels import Kernel
from .base import Balance, FrozenForce


def _sum(x: Array) -> float:
    return float(array_namespace(x).sum(x))


@tagged("objectives.cross_entropy.CrossEntropy")
class CrossEntropy:
    """The loss E = −Σ_ij μ_ij log k − Σ_ij (1 − μ_ij) log(1 − k) over i ≠ j (McInnes et al. 2018).

    The kernel `apart` is u = −log(1 − k), softened so that it is finite at d2 = 0 (docs/math.md, section 16). The
    gradient needs two sums over edges with the weights μ, and one field:

        ∇_i E = −4 Σ_j μ_ij (k'/k + u')(y_i − y_j) + 2 ∇Φ_i,  Φ_i = Σ_j u                    docs/math.md, eq. (16)
    """

    def __init__(self, mu: Matrix, kernel: Kernel, apart: Kernel):
        self.affinities = mu
        self.kernel = kernel
        self.apart = apart
        self.mass = _sum(row_sums(mu))

    def over(self, sums: PointSums) -> CrossEntropy:
        """Return the objective of a map whose rows of μ are shared by several processes."""
        other = copy(self)
        other.mass = float(sums.total(row_sums(self.affinities)))
        return other

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        psi, edges = engine.edges(Y, self.affinities, self.kernel, -1.0, potential=loss)
        (apart_psi, apart_edges), (phi, gradient) = engine.placement.concurrently(
            lambda: engine.edges(Y, self.affinities, self.apart, 0.0, potential=loss),
            lambda: engine.field(Y, self.apart),
        )
        value = -psi + engine.placement.sums.total(phi) - apart_psi if loss else np.nan
        return Balance(4 * exaggeration * (edges + apart_edges), -2 * gradient, value, self.mass * exaggeration)

    def to(self, placement: Placement) -> CrossEntropy:
        return self._with_affinities(placement.to_device(self.affinities))

    def permuted(self, order: Array) -> CrossEntropy:
        return self._with_affinities(permuted(self.affinities, order))

    def _with_affinities(self, affinities: Matrix) -> CrossEntropy:
        other = copy(self)
        other.affinities = affinities
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        """Return the function that `Objective.freeze` describes.

        The map acts on a new point, but not the reverse: μ_ij is the affinity w_ij of the new point, not symmetrised.
        """
        field = engine.freeze(Y, self.apart)

        def force(targets: Array, W: Matrix, near: Array) -> Array:
            pull = engine.edges_to(targets, near, W, self.kernel, -1.0) + engine.edges_to(
                targets, near, W, self.apart, 0.0
            )
            return 4 * exaggeration * pull - 2 * field(targets).gradient

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with μ = p; Z is not used."""
        xp, d2 = array_namespace(r), r**2
        pull, push = xp.abs(self.kernel.log_slope(d2)) * r, xp.abs(self.apart.slope(d2)) * r
        return 4 * p * pull, 4 * (1 - p) * push


@tagged("objectives.cross_entropy.EffectiveCrossEntropy")
class EffectiveCrossEntropy:
    """The loss E = −Σ_ij μ_ij log k − Σ_ij (d_i + d_j) (m/2n) log(1 − k), d_i = Σ_j μ_ij, m negatives per edge.

    UMAP samples edges, and m random points (negatives) for each edge. E is the expected loss of this sampling if both
    points of a negative pair are moved (Damrich & Hamprecht 2021). The kernel `apart` is u = −log(1 − k), softened so
    that it is finite at d2 = 0. Φ[1] and Φ[d] are the potentials of u for charges 1 and d_j:

        ∇_i E = −4 Σ_j μ_ij (k'/k)(y_i − y_j) + (m/n)(d_i ∇Φ_i[1] + ∇Φ_i[d])                 docs/math.md, eq. (17)
    """

    def __init__(self, mu: Matrix, kernel: Kernel, apart: Kernel, negatives: float):
        self.affinities = mu
        self.kernel = kernel
        self.apart = apart
        self.negatives = negatives
        degrees = row_sums(mu)
        self.mass = _sum(degrees)
        self.charges = array_namespace(degrees).stack([degrees * 0 + 1, degrees], axis=1)  # 1 and d_j
        self.n = self.charges.shape[0]  # points of the map

    def over(self, sums: PointSums) -> EffectiveCrossEntropy:
        """Return the objective of a map whose rows of μ are shared by several processes."""
        other = copy(self)
        other.mass, other.n = float(sums.total(self.degrees)), sums.count(self.degrees)
        return other

    @property
    def degrees(self) -> Array:
        return self.charges[:, 1]

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        sums = engine.placement.sums
        c = self.negatives / sums.count(Y)
        (psi, edges), (phi, gradient) = engine.placement.concurrently(
            lambda: engine.edges(Y, self.affinities, self.kernel, -1.0, potential=loss),
            lambda: engine.field(Y, self.apart, self.charges),
        )
        repulsion = self.degrees[:, None] * gradient[:, 0, :]
        repulsion += gradient[:, 1, :]
        repulsion *= -c
        value = -psi + c * sums.total(phi[:, 1]) if loss else np.nan
        return Balance(4 * exaggeration * edges, repulsion, value, self.mass * exaggeration)

    def linear_force(self, exaggeration: float) -> LinearForce:
        """Return the force of eq. (17)."""
        pull, push = 4 * exaggeration, -self.negatives / self.n
        return LinearForce(self.affinities, self.kernel, self.apart, pull, push, self.mass * exaggeration, self.charges)

    def to(self, placement: Placement) -> EffectiveCrossEntropy:
        return self._with_arrays(placement.to_device(self.affinities), placement.to_device(self.charges))

    def permuted(self, order: Array) -> EffectiveCrossEntropy:
        return self._with_arrays(permuted(self.affinities, order), self.charges[order])

    def _with_arrays(self, affinities: Matrix, charges: Array) -> EffectiveCrossEntropy:
        """Return a copy of the objective with other affinities and charges."""
        other = copy(self)
        other.affinities, other.charges = affinities, charges
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        """Return the function that `Objective.freeze` describes.

        A new point has its own degree; the degrees of the map do not change.
        """
        c = self.negatives / engine.placement.sums.count(Y)
        ones, weighted = engine.freeze(Y, self.apart), engine.freeze(Y, self.apart, self.degrees)

        def force(targets: Array, W: Matrix, near: Array) -> Array:
            gradient = ones(targets).gradient
            push = array_like(gradient, row_sums(W))[:, None] * gradient + weighted(targets).gradient
            return 4 * exaggeration * engine.edges_to(targets, near, W, self.kernel, -1.0) - c * push

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with μ = p and degrees 1 in a map of Z points."""
        xp, d2 = array_namespace(r), r**2
        pull, push = xp.abs(self.kernel.log_slope(d2)) * r, xp.abs(self.apart.slope(d2)) * r
        return 4 * p * pull, 4 * self.negatives / Z * push
