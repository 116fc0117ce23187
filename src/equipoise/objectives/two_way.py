"""The loss a KL(P ‖ Q) + b KL(Q ‖ P') of NeRV and of the symmetric KL divergence, with Q = k/Z and Z = Σ_{i≠j} k."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import permuted, stored_values, with_values
from ..arrays.namespace import array_namespace, at_least, to_float64
from ..engines import Engine, Placement
from ..engines.base import PointSums
from ..engines.cpu import WHOLE_MAP
from ..kernels import DerivedKernel, Kernel
from .base import Balance, FrozenForce, require_positive

TINY = 1e-30  # lower bound of k/k(0) in a logarithm, so that 0 log 0 = 0


@tagged("objectives.two_way.Entropy")
@dataclass(frozen=True)
class Entropy(DerivedKernel):
    """u = k log(k/k(0)) − k for a kernel k: its field gives the entropy of Q (docs/math.md, eq. V6).

    Its slope is k' log(k/k(0)) ≥ 0: u is a potential that attracts.
    """

    kernel: Kernel

    @property
    def at_zero(self) -> float:
        """k(0)."""
        return float(self.kernel.value(np.zeros(1))[0])

    def value(self, d2: Array) -> Array:
        k = self.kernel.value(d2)
        return k * (self._log_ratio(k) - 1)

    def slope(self, d2: Array) -> Array:
        return self.kernel.slope(d2) * self._log_ratio(self.kernel.value(d2))

    def _log_ratio(self, k: Array) -> Array:
        """Return log(k/k(0))."""
        return array_namespace(k).log(at_least(k / self.at_zero, TINY))


@tagged("objectives.two_way.TwoWayKL")
class TwoWayKL:
    """The loss E = a KL(P ‖ Q) + b KL(Q ‖ P'), P' = (1−ε) P + ε₀, ε₀ = ε/(n(n−1)).

    With L = log(P'/ε₀), which is 0 where P is, V = Σ L k from the edges, U = Σ u from the field of
    u = k log(k/k(0)) − k, and m = U/Z + 1 − V/Z, the mean of log(k/k(0)) − L over Q:

        KL(Q ‖ P') = m + log k(0) − log Z − log ε₀                                           docs/math.md, eq. (V5)
        ∇_i KL(Q ‖ P') = −(4/Z) Σ_j L k'(y_i − y_j) + (2/Z) ∇Φ_i[u] − (2m/Z) ∇Φ_i[k]         docs/math.md, eq. (V6)

    The first two terms attract, because L ≥ 0 and u' ≥ 0; the last one repels, because m ≤ 0. Exaggeration multiplies
    the terms with P and L.
    """

    def __init__(self, P: Matrix, kernel: Kernel, weights: tuple[float, float], epsilon: float):
        self.affinities = P
        self.kernel = kernel
        self.forward, self.backward = weights
        self.mass = float(sum(weights))
        self.entropy = Entropy(kernel)
        self.epsilon = epsilon
        self._set_sums(WHOLE_MAP)

    def _set_sums(self, sums: PointSums) -> None:
        P, n = self.affinities, sums.count(self.affinities)
        self.floor = self.epsilon / max(n * (n - 1), 1)  # a process may hold no points
        self.lift = self._lifted(P, 1.0)
        self._negative_entropy = sums.entry_total(P, lambda p: p * array_namespace(p).log(p))

    def over(self, sums: PointSums) -> TwoWayKL:
        """Return the objective of a map whose rows of P are shared by several processes."""
        other = copy(self)
        other._set_sums(sums)
        return other

    def _lifted(self, P: Matrix, unit: float) -> Matrix:
        """Return L = log(P'/ε₀) for affinities `unit` · P."""
        values, share = stored_values(P), (1 - self.epsilon) * unit / self.floor
        xp = array_namespace(values)
        return with_values(P, xp.astype(xp.log1p(share * to_float64(values)), values.dtype))

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        a, b, x, sums = self.forward, self.backward, exaggeration, engine.placement.sums
        psi, pull = engine.edges(Y, self.affinities, self.kernel, -1.0, potential=loss) if a > 0 else (0.0, 0.0)
        (V, lifted), (phi, gradient) = engine.placement.concurrently(
            lambda: engine.edges(Y, self.lift, self.kernel, 0.0, potential=True),
            lambda: engine.field(Y, self.kernel),
        )
        u, entropy = engine.field(Y, self.entropy)
        Z = require_positive(sums.total(phi), loss)
        mean = self._mean(V, sums.total(u), Z)
        attraction = 4 * x * (a * pull + b / Z * lifted) - 2 * b / Z * entropy
        value = self._value(psi, mean, Z) if loss else np.nan
        return Balance(attraction, (2 / Z * (b * mean - a)) * gradient, value, x * (a + b * V / Z))

    def _mean(self, V: Any, U: Any, Z: Any) -> Any:
        """Return m, the mean of log(k/k(0)) − L over Q."""
        return U / Z + 1 - V / Z

    def _value(self, psi: Any, mean: Any, Z: Any) -> Any:
        """Return the loss from Ψ = Σ P log k, m and Z."""
        log_Z = array_namespace(Z).log(Z)
        forward = self._negative_entropy - psi + log_Z
        backward = mean + log(self.entropy.at_zero) - log_Z - log(self.floor)
        return self.forward * forward + self.backward * backward

    def to(self, placement: Placement) -> TwoWayKL:
        return self._with_arrays(placement.to_device)

    def permuted(self, order: Array) -> TwoWayKL:
        return self._with_arrays(lambda A: permuted(A, order))

    def _with_arrays(self, change: Callable[[Matrix], Matrix]) -> TwoWayKL:
        """Return a copy with `change` applied to every matrix."""
        other = copy(self)
        other.affinities, other.lift = change(self.affinities), change(self.lift)
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        """Return the function that `Objective.freeze` describes.

        A new point is treated as one of the n points, so P_ij = p_{j|i}/n; Z and m are those of the fitted map.
        """
        a, b, sums = self.forward, self.backward, engine.placement.sums
        n = sums.count(Y)
        V, _ = engine.edges(Y, self.lift, self.kernel, 0.0, potential=True)
        Z = float(sums.total(engine.field(Y, self.kernel).potential))
        mean = float(self._mean(V, sums.total(engine.field(Y, self.entropy).potential), Z))
        field, entropy = engine.freeze(Y, self.kernel), engine.freeze(Y, self.entropy)

        def force(targets: Array, P: Matrix, near: Array) -> Array:
            pull = engine.edges_to(targets, near, with_values(P, stored_values(P) / n), self.kernel, -1.0)
            lifted = engine.edges_to(targets, near, self._lifted(P, 1 / n), self.kernel, 0.0)
            push = (b * mean - a) * field(targets).gradient - b * entropy(targets).gradient
            return 4 * exaggeration * (a * pull + b / Z * lifted) + 2 / Z * push

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with affinity p, for KL(Q ‖ P') = 0, its value at Q = P', and ε → 0."""
        d2 = r**2
        xp, q = array_namespace(r), self.kernel.value(d2) / Z
        unit = 4 / Z * xp.abs(self.kernel.slope(d2)) * r
        backward = self.backward * xp.log(at_least(q / p, TINY)) * unit
        attraction = self.forward * 4 * p * xp.abs(self.kernel.log_slope(d2)) * r + at_least(-backward, 0.0)
        return attraction, self.forward * unit + at_least(backward, 0.0)
