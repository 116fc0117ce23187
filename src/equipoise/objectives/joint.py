"""The loss E = D_α(P ‖ Q) of symmetric SNE, t-SNE, p-SNE, g-SNE and s-SNE, with Q = k/Z and Z = Σ_{i≠j} k."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import singledispatch
from typing import Any

import numpy as np

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import permuted, stored_values, with_values
from ..arrays.namespace import array_namespace, is_numpy, to_float64
from ..divergences import NEAR_LOG, Beta, Divergence, Gamma, NeRV, Renyi, SymmetricKL, deformed_log, log_overlap
from ..engines import Engine, Placement
from ..engines.base import LinearForce, PointSums
from ..engines.cpu import WHOLE_MAP
from ..kernels import Kernel
from .base import DIVERGED, Balance, FrozenForce, Objective
from .beta_gamma import BetaDivergence, GammaDivergence
from .dense import DenseDivergence
from .stored_divergence import StoredDivergence
from .two_way import TwoWayKL


def joint_objective(P: Matrix, kernel: Kernel, divergence: Divergence) -> Objective:
    """Return the objective for symmetric joint affinities P, Σ P = 1; P must be dense if `divergence.all_pairs`."""
    return _objective(divergence, P, kernel)


@singledispatch
def _objective(divergence: Divergence, P: Matrix, kernel: Kernel) -> Objective:
    """Return the objective of an f-divergence; other divergences have functions of their own, below."""
    if divergence.s is not None:
        return JointDivergence(P, kernel, divergence.s)
    if divergence.all_pairs:
        return DenseDivergence(P, kernel, divergence)
    return StoredDivergence(P, kernel, divergence)


@_objective.register
def _(divergence: Renyi, P: Matrix, kernel: Kernel) -> Objective:
    return RenyiDivergence(P, kernel, divergence.order)


@_objective.register
def _(divergence: Beta, P: Matrix, kernel: Kernel) -> Objective:
    return BetaDivergence(P, kernel, divergence.beta)


@_objective.register
def _(divergence: Gamma, P: Matrix, kernel: Kernel) -> Objective:
    return GammaDivergence(P, kernel, divergence.gamma)


@_objective.register
def _(divergence: NeRV, P: Matrix, kernel: Kernel) -> Objective:
    if divergence.lam == 1:
        return JointDivergence(P, kernel, 1.0)  # KL(P ‖ Q), exactly as in t-SNE
    return TwoWayKL(P, kernel, divergence.weights, divergence.epsilon)


@_objective.register
def _(divergence: SymmetricKL, P: Matrix, kernel: Kernel) -> Objective:
    return TwoWayKL(P, kernel, divergence.weights, divergence.epsilon)


@tagged("objectives.joint.JointDivergence")
class JointDivergence:
    """The loss E = (1 − Σ_ij P^s Q^{1−s}) / (s(1−s)), s = (1−α)/2 > 0; at s = 1 it is Σ P log(P/Q).

    With e = 1 − s, A = P^s, ln_e(t) = (t^e − 1)/e, Ψ = Σ A ln_e(k) from the edges and H = −Σ P ln_{−e}(P), it is

        E = [ln_{−e}(Z) − Z^{−e} (H + Ψ)] / s                                                docs/math.md, eq. (2')

    This form has no cancellation at α = −1 (e = 0), where it is log Z + Σ P log P − Σ P log k. The gradient of E, with
    T = Σ P^s Q^{1−s} and R_i = Σ_j k'(y_i − y_j) = ½∇Φ_i, is that of Lin et al. 2024, eq. (21):

        ∇_i E = −(4/s) [Z^{−e} Σ_j P^s k^{−s} k'(y_i − y_j) − (T/Z) R_i]                     docs/math.md, eq. (3)

    Its sum runs over pairs with P > 0 only, so the engine computes edges over the stored entries of P, and one field.
    For |e| ≥ 1/16 the edges give Ψ = Σ A k^e / e instead, and E is (1 − T)/(s e).
    """

    mass = 1.0

    def __init__(self, P: Matrix, kernel: Kernel, s: float):
        self.affinities = P
        self.kernel = kernel
        self.s = s
        self.e = 1 - self.s
        self._set_sums(WHOLE_MAP)

    def _set_sums(self, sums: PointSums) -> None:
        P, values = self.affinities, stored_values(self.affinities)
        self._H = -sums.entry_total(P, lambda p: p * deformed_log(array_namespace(p).log(p), -self.e))
        # A = P^s = unit · weights, with the largest weight 1, which float32 represents for any s.
        largest = sums.maximum(float(array_namespace(values).max(values)) if values.shape[0] else 0.0)
        self.unit = 1.0 if self.e == 0 else largest**self.s
        self.weights = P if self.e == 0 else with_values(P, (values / largest) ** self.s)

    def over(self, sums: PointSums) -> JointDivergence:
        """Return the objective of a map whose rows of P are shared by several processes."""
        other = copy(self)
        other._set_sums(sums)
        return other

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        s, e = self.s, self.e
        if s < 0.1 and is_numpy(Y):  # near α = 1 the two forces, of order 1/s, nearly cancel: float64 is needed
            Y = to_float64(Y)
        (psi, edges), (phi, gradient) = engine.placement.concurrently(
            lambda: engine.edges(Y, self.weights, self.kernel, -s, potential=loss or e != 0),
            lambda: engine.field(Y, self.kernel),
        )
        Z = engine.placement.sums.total(phi)
        if (loss or isinstance(Z, float)) and not Z > 0:  # reading a tensor would wait for its device
            raise FloatingPointError(DIVERGED)
        divergence, T = self.divergence_and_overlap(self.unit * psi, Z) if loss or e != 0 else (np.nan, 1.0)
        divisor = self.divisor(T)
        attraction = (4 / divisor * (1.0 if e == 0 else _power(Z, -e)) * self.unit * _power(exaggeration, s)) * edges
        repulsion = (-2 / divisor * T / Z) * gradient
        return Balance(attraction, repulsion, divergence, _power(exaggeration, s) * T / divisor)

    def linear_force(self, exaggeration: float) -> LinearForce | None:
        """Return the force of eq. (3) with s = 1, where T = 1; None for other s, where T depends on the map."""
        if self.e != 0:
            return None
        divisor = self.divisor(1.0)
        pull, push = 4 / divisor * exaggeration, -2 / divisor
        return LinearForce(self.weights, self.kernel, self.kernel, pull, push, exaggeration / divisor)

    def divisor(self, T: Any) -> Any:
        """Return the number by which the forces are divided: s for E = (1 − T)/(s e)."""
        return self.s

    def divergence_and_overlap(self, psi: Any, Z: Any) -> tuple[Any, Any]:
        """Return E and T = Σ P^s Q^{1−s} from Z and Ψ = Σ P^s ψ(k), where ψ(k) is ln_e(k), or k^e/e for |e| ≥ 1/16."""
        s, e = self.s, self.e
        if abs(e) >= NEAR_LOG:  # Ψ = Σ P^s k^e / e, and E = (1 − T)/(s e) has no cancellation
            T = _power(Z, -e) * e * psi
            return (1 - T) / (s * e), T
        balance = deformed_log(array_namespace(Z).log(Z), -e) - _power(Z, -e) * (self._H + psi)  # (1 − T)/e
        return balance / s, 1.0 if e == 0 else 1 - e * balance

    def to(self, placement: Placement) -> JointDivergence:
        return self._with_arrays(placement.to_device)

    def permuted(self, order: Array) -> JointDivergence:
        return self._with_arrays(lambda A: permuted(A, order))

    def _with_arrays(self, change: Callable[[Matrix], Matrix]) -> JointDivergence:
        """Return a copy with `change` applied to affinities and weights; if they are one matrix, it is applied once."""
        other = copy(self)
        other.affinities = change(self.affinities)
        other.weights = other.affinities if self.weights is self.affinities else change(self.weights)
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        """Return the function that `Objective.freeze` describes.

        A new point is treated as one of the n points, so P_ij = p_{j|i}/n; Z and T are those of the fitted map.
        """
        s, e, sums = self.s, self.e, engine.placement.sums
        n = sums.count(Y)
        psi, _ = engine.edges(Y, self.weights, self.kernel, -s, potential=True)
        Z = float(sums.total(engine.field(Y, self.kernel).potential))
        _, T = self.divergence_and_overlap(self.unit * psi, Z)
        field = engine.freeze(Y, self.kernel)

        def force(targets: Array, P: Matrix, near: Array) -> Array:
            A = with_values(P, (exaggeration * stored_values(P) / n) ** s)
            pull = engine.edges_to(targets, near, A, self.kernel, -s)
            return 4 / self.divisor(T) * (Z**-e * pull - T / Z / 2 * field(targets).gradient)

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of Lin et al. 2024, Table 1, for any kernel and α < 1, with T = 1, its value at Q = P."""
        xp, d2 = array_namespace(r), r**2
        q = self.kernel.value(d2) / Z
        unit = 4 / self.divisor(1.0)
        attraction = unit * p**self.s * q**self.e * xp.abs(self.kernel.log_slope(d2)) * r
        repulsion = unit / Z * xp.abs(self.kernel.slope(d2)) * r
        return attraction, repulsion


@tagged("objectives.joint.RenyiDivergence")
class RenyiDivergence(JointDivergence):
    """The loss E = −log(T)/e, T = Σ P^r Q^{1−r}, of order r = s = 1 − e.

    It is a function of the α-divergence, and its gradient is that of eq. (3) times s/T    docs/math.md, eq. (V1).
    """

    def divergence_and_overlap(self, psi: Any, Z: Any) -> tuple[Any, Any]:
        """Return E and T, from Z and Ψ as in the α-divergence."""
        alpha, T = super().divergence_and_overlap(psi, Z)
        if abs(self.e) >= NEAR_LOG:
            return -array_namespace(T).log(T) / self.e, T
        return -log_overlap(-self.s * alpha, self.e), T

    def divisor(self, T: Any) -> Any:
        return T


def _power(base: Any, exponent: float) -> Any:
    """Return base^exponent, a number or tensor; raise FloatingPointError if a number overflows."""
    try:
        return base**exponent
    except OverflowError as error:
        raise FloatingPointError(
            f"the power {base:g}^{exponent:g} in the loss overflows, because alpha is too far from -1; use an alpha"
            " nearer to -1"
        ) from error
