"""The normalised joint family: symmetric SNE, t-SNE, p-SNE, g-SNE, s-SNE. E = D_α(P ‖ Q), Q = k/Z, Z = Σ_{i≠j} k."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..divergences import Alpha, Divergence, deformed_log
from ..engines import Engine
from ..kernels import Kernel
from .base import Balance, Objective, sum_positive
from .dense import DenseDivergence


def joint_objective(P: Matrix, kernel: Kernel, divergence: Divergence) -> Objective:
    """Return the objective for joint affinities P (symmetric, Σ P = 1): sparse edges where the divergence allows it."""
    if isinstance(divergence, Alpha) and divergence.s is not None:
        return JointDivergence(P, kernel, divergence)
    return DenseDivergence(P, kernel, divergence)


class JointDivergence:
    """E = (1 − Σ_ij P^s Q^{1−s}) / (s(1−s)), s = (1−α)/2 > 0; Σ P log(P/Q) at s = 1.

    With e = 1 − s, A = P^s, Ψ = Σ A ln_e(k) from the edges and H = −Σ P ln_{−e}(P), this is

        E = [ln_{−e}(Z) − Z^{−e} (H + Ψ)] / s                                                docs/math.md, eq. (2')

    which has no cancellation at α = −1 (e = 0), where it reads log Z + Σ P log P − Σ P log k.
    Its gradient, Lin et al. 2024, eq. (21), with T = Σ P^s Q^{1−s} and R_i = Σ_j k'(y_i − y_j) = ½∇Φ_i:

        ∇_i E = −(4/s) [Z^{−e} Σ_j P^s k^{−s} k'(y_i − y_j) − (T/Z) R_i]                     docs/math.md, eq. (3)

    For α < 1 the sum runs over the pairs with P > 0 only: sparse edges and one field.
    """

    mass = 1.0

    def __init__(self, P: Matrix, kernel: Kernel, divergence: Alpha):
        assert divergence.s is not None
        self.affinities = P
        self.kernel = kernel
        self.s = divergence.s
        self.e = 1 - self.s
        self._H = -sum_positive(P, lambda p: p * deformed_log(np.log(p), -self.e))
        self._A = P if self.e == 0 else P.power(self.s) if sparse.issparse(P) else P**self.s

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        s, e = self.s, self.e
        if s < 0.1:  # near α = 1 the two forces are of order 1/s and cancel: float64 keeps the difference
            Y = Y.astype(np.float64)
        psi, edges = engine.edges(Y, self._A, self.kernel, -s, potential=loss or e != 0)
        phi, gradient = engine.field(Y, self.kernel)
        log_Z = np.log(max(phi.sum(), np.finfo(np.float64).tiny))
        balance = float(deformed_log(log_Z, -e) - np.exp(-e * log_Z) * (self._H + psi))  # = (1 − T)/e
        T = 1 - e * balance if e != 0 else 1.0
        attraction = (4 / s * np.exp(-e * log_Z) * exaggeration**s) * edges
        repulsion = (-4 / s * T / np.exp(log_Z) / 2) * gradient
        return Balance(attraction, repulsion, balance / s, exaggeration**s * T / s)

    def freeze(self, Y: Array, engine: Engine) -> Callable[[Array, Matrix], Array]:
        """A new point enters as one of the n: P_ij = p_{j|i}/n; Z and T stay those of the map."""
        s, e, n = self.s, self.e, len(Y)
        psi, _ = engine.edges(Y, self._A, self.kernel, -s, potential=True)
        log_Z = np.log(max(engine.field(Y, self.kernel).potential.sum(), np.finfo(np.float64).tiny))
        T = 1 - e * float(deformed_log(log_Z, -e) - np.exp(-e * log_Z) * (self._H + psi)) if e != 0 else 1.0
        field = engine.freeze(Y, self.kernel)

        def force(targets: Array, P: Matrix) -> Array:
            A = sparse.csr_matrix(((P.data / n) ** s, P.indices, P.indptr), shape=P.shape)
            pull = engine.edges_to(targets, Y, A, self.kernel, -s)
            return 4 / s * (np.exp(-e * log_Z) * pull - T / np.exp(log_Z) / 2 * field(targets).gradient)

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Lin et al. 2024, Table 1, for any kernel and α; with T = 1, its value at Q = P."""
        d2 = r**2
        q = self.kernel.value(d2) / Z
        attraction = 4 / self.s * p**self.s * q**self.e * np.abs(self.kernel.log_slope(d2)) * r
        repulsion = 4 / self.s / Z * np.abs(self.kernel.slope(d2)) * r
        return attraction, repulsion
