"""The β- and γ-divergences between P and Q = k/Z: edges with powers of k, and the field of a power of k."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import permuted, stored_values, with_values
from ..arrays.namespace import array_namespace
from ..divergences import NEAR_LOG, deformed_log, log_overlap
from ..engines import Engine, Placement
from ..engines.base import PointSums
from ..engines.cpu import WHOLE_MAP
from ..kernels import Kernel, Power
from .base import Balance, FrozenForce, require_positive


def _sum_powers(P: Matrix, e: float, sums: PointSums) -> float:
    """Return Σ P ln_e(P) = (Σ P^(e+1) − 1)/e."""
    return sums.entry_total(P, lambda p: p * deformed_log(array_namespace(p).log(p), e))


@tagged("objectives.beta_gamma.BetaDivergence")
class BetaDivergence:
    """The loss E = Σ [P^β / (β e) + Q^β / β − P Q^e / e], e = β − 1.

    With A = Σ P Q^e from the edges, B = Σ Q^β from the field of k^β, a = (A − 1)/e and H = Σ P ln_e(P):

        E = (H + B − 1)/β − a                                                                docs/math.md, eq. (V2)
        ∇_i E = −4 Z^{−e} Σ_j P k^{e−1} k'(y_i − y_j) + (2/Z)(A − B) ∇Φ_i[k]
                + (2/β) Z^{−β} ∇Φ_i[k^β]                                                     docs/math.md, eq. (V3)

    The attraction is the sum over the edges. Exaggeration multiplies it.
    """

    def __init__(self, P: Matrix, kernel: Kernel, beta: float):
        self.affinities = P
        self.kernel = kernel
        self.beta, self.e = beta, beta - 1
        self.power = Power(kernel, beta)
        self._set_sums(WHOLE_MAP)

    def _set_sums(self, sums: PointSums) -> None:
        self._H = _sum_powers(self.affinities, self.e, sums)
        self.mass = 1 + self.e * self._H  # Σ P^β, the scale of the loss and of its gradient

    def over(self, sums: PointSums) -> BetaDivergence:
        """Return the objective of a map whose rows of P are shared by several processes."""
        other = copy(self)
        other._set_sums(sums)
        return other

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        (psi, edges), (phi, gradient) = engine.placement.concurrently(
            lambda: engine.edges(Y, self.affinities, self.kernel, self.e - 1, potential=True),
            lambda: engine.field(Y, self.kernel),
        )
        powers, own = engine.field(Y, self.power)
        sums = engine.placement.sums
        Z = require_positive(sums.total(phi), loss)
        a, A = self._overlap(psi, Z)
        B = Z**-self.beta * sums.total(powers)
        repulsion = (2 / Z * (B - A)) * gradient - (2 / self.beta * Z**-self.beta) * own
        value = (self._H + B - 1) / self.beta - a if loss else np.nan
        return Balance((4 * exaggeration * Z**-self.e) * edges, repulsion, value, exaggeration * A)

    def _overlap(self, psi: Any, Z: Any) -> tuple[Any, Any]:
        """Return a = (A − 1)/e and A = Σ P Q^e, from Ψ = Σ P ln_e(k), or Σ P k^e / e for |e| ≥ 1/16."""
        e = self.e
        if abs(e) >= NEAR_LOG:
            A = Z**-e * e * psi
            return (A - 1) / e, A
        a = Z**-e * psi - deformed_log(array_namespace(Z).log(Z), -e)
        return a, 1 + e * a

    def to(self, placement: Placement) -> BetaDivergence:
        return self._with_affinities(placement.to_device(self.affinities))

    def permuted(self, order: Array) -> BetaDivergence:
        return self._with_affinities(permuted(self.affinities, order))

    def _with_affinities(self, affinities: Matrix) -> BetaDivergence:
        other = copy(self)
        other.affinities = affinities
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        """Return the function that `Objective.freeze` describes.

        A new point is treated as one of the n points, so P_ij = p_{j|i}/n; Z, A and B are those of the fitted map.
        """
        e, beta, sums = self.e, self.beta, engine.placement.sums
        n = sums.count(Y)
        psi, _ = engine.edges(Y, self.affinities, self.kernel, e - 1, potential=True)
        Z = float(sums.total(engine.field(Y, self.kernel).potential))
        A = float(self._overlap(psi, Z)[1])
        B = Z**-beta * float(sums.total(engine.field(Y, self.power).potential))
        field, own = engine.freeze(Y, self.kernel), engine.freeze(Y, self.power)

        def force(targets: Array, P: Matrix, near: Array) -> Array:
            pull = engine.edges_to(targets, near, with_values(P, stored_values(P) / n), self.kernel, e - 1)
            push = (A - B) / Z * field(targets).gradient + Z**-beta / beta * own(targets).gradient
            return 4 * exaggeration * Z**-e * pull - 2 * push

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with affinity p, for A = B, which holds at Q = P."""
        xp, d2 = array_namespace(r), r**2
        q = self.kernel.value(d2) / Z
        unit = 4 * q**self.e * xp.abs(self.kernel.log_slope(d2)) * r
        return p * unit, q * unit


@tagged("objectives.beta_gamma.GammaDivergence")
class GammaDivergence:
    """The loss E = [log Σ P^(γ+1) / (γ+1) − log Σ P Q^γ] / γ + log Σ Q^(γ+1) / (γ+1).

    Z cancels, so that Q can be replaced by k. With M = Σ P k^γ from the edges and N = Σ k^(γ+1) from the field:

        ∇_i E = −(4/M) Σ_j P k^{γ−1} k'(y_i − y_j) + 2/((γ+1) N) ∇Φ_i[k^(γ+1)]               docs/math.md, eq. (V4)

    These are the forces of the KL divergence between the escort distributions P k^γ / M and k^(γ+1) / N. Exaggeration
    multiplies the attraction.
    """

    mass = 1.0

    def __init__(self, P: Matrix, kernel: Kernel, gamma: float):
        self.affinities = P
        self.kernel = kernel
        self.gamma = gamma
        self.power = Power(kernel, gamma + 1)
        self._H = _sum_powers(P, gamma, WHOLE_MAP)

    def over(self, sums: PointSums) -> GammaDivergence:
        """Return the objective of a map whose rows of P are shared by several processes."""
        other = copy(self)
        other._H = _sum_powers(self.affinities, self.gamma, sums)
        return other

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        g = self.gamma
        (psi, edges), (phi, gradient) = engine.placement.concurrently(
            lambda: engine.edges(Y, self.affinities, self.kernel, g - 1, potential=True),
            lambda: engine.field(Y, self.power),
        )
        N = require_positive(engine.placement.sums.total(phi), loss)
        log_M, M = self._overlap(psi)
        value = np.nan
        if loss:
            value = (log_overlap(self._H, g) + array_namespace(N).log(N)) / (g + 1) - log_M
        return Balance(4 * exaggeration / M * edges, -2 / ((g + 1) * N) * gradient, value, exaggeration)

    def _overlap(self, psi: Any) -> tuple[Any, Any]:
        """Return log(M)/γ and M = Σ P k^γ, from Ψ = Σ P ln_γ(k), or Σ P k^γ / γ for |γ| ≥ 1/16."""
        g, log = self.gamma, array_namespace(psi).log
        if abs(g) >= NEAR_LOG:
            return log(g * psi) / g, g * psi
        return log_overlap(psi, g), 1 + g * psi

    def to(self, placement: Placement) -> GammaDivergence:
        return self._with_affinities(placement.to_device(self.affinities))

    def permuted(self, order: Array) -> GammaDivergence:
        return self._with_affinities(permuted(self.affinities, order))

    def _with_affinities(self, affinities: Matrix) -> GammaDivergence:
        other = copy(self)
        other.affinities = affinities
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        """Return the function that `Objective.freeze` describes.

        A new point is treated as one of the n points, so P_ij = p_{j|i}/n; M and N are those of the fitted map.
        """
        g, sums = self.gamma, engine.placement.sums
        n = sums.count(Y)
        psi, _ = engine.edges(Y, self.affinities, self.kernel, g - 1, potential=True)
        M, N = float(self._overlap(psi)[1]), float(sums.total(engine.field(Y, self.power).potential))
        field = engine.freeze(Y, self.power)

        def force(targets: Array, P: Matrix, near: Array) -> Array:
            pull = engine.edges_to(targets, near, with_values(P, stored_values(P) / n), self.kernel, g - 1)
            return 4 * exaggeration / M * pull - 2 / ((g + 1) * N) * field(targets).gradient

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with affinity p at Q = P, where Σ P^(γ+1) is p^γ, as if all affinities were p."""
        xp, d2 = array_namespace(r), r**2
        q = self.kernel.value(d2) / Z
        unit = 4 * (q / p) ** self.gamma * xp.abs(self.kernel.log_slope(d2)) * r
        return p * unit, q * unit
