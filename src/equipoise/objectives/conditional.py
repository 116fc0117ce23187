"""The loss E = Σ_i KL(p_{·|i} ‖ q_{·|i}), q_{j|i} = k/Z_i, of original SNE (Hinton & Roweis 2002).

Every row i of the affinities is a distribution of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np
from scipy.special import logsumexp

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import is_sparse, permuted, sum_positive, symmetrized
from ..arrays.namespace import array_like, array_namespace, to_numpy
from ..engines import Engine, Placement
from ..engines.base import PointSums
from ..geometry import Pairs
from ..kernels import Kernel
from .base import Balance, FrozenForce

UNDERFLOW = 1e-30  # Z_i below this underflows in float32: the row is then summed from logarithms


def _inverse(Z: Array) -> Array:
    """Return 1/Z, or 0 where Z underflows."""
    xp, underflows = array_namespace(Z), Z < UNDERFLOW
    return xp.where(underflows, 0.0, 1 / xp.where(underflows, 1.0, Z))


@tagged("objectives.conditional.ConditionalKL")
class ConditionalKL:
    """The loss E = Σ_ij p_{j|i} log(p_{j|i} / q_{j|i}), q_{j|i} = k(d2_ij)/Z_i, Z_i = Σ_{j≠i} k.

        ∇_i E = 2 Σ_j [(1/Z_i + 1/Z_j) k' − (p_{j|i} + p_{i|j}) k'/k] (y_i − y_j)            docs/math.md, eq. (5)

    The repulsion on point i is −(1/Z_i) ∇Φ_i[1] − ∇Φ_i[1/Z], where Φ[1] and Φ[1/Z] are the potentials of the kernel
    for charges 1 and 1/Z_j.
    """

    def __init__(self, P: Matrix, kernel: Kernel):
        self.affinities = P
        self.kernel = kernel
        self.mass = float(P.shape[0])
        self.negative_entropy = sum_positive(P, lambda p: p * array_namespace(p).log(p))
        self._A = symmetrized(P) if is_sparse(P) else P + P.T

    @classmethod
    def of_sums(cls, P: Matrix, A: Matrix, kernel: Kernel, sums: PointSums) -> ConditionalKL:
        """Return the objective of a map whose rows of P and of A = P + Pᵀ are shared by several processes."""
        other = cls.__new__(cls)
        other.affinities, other.kernel, other._A = P, kernel, A
        other.mass = float(sums.count(P))
        other.negative_entropy = sums.entry_total(P, lambda p: p * array_namespace(p).log(p))
        return other

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        (psi, edges), (Z, gradient) = engine.placement.concurrently(
            lambda: engine.edges(Y, self._A, self.kernel, -1.0, potential=loss),
            lambda: engine.field(Y, self.kernel),
        )
        xp, underflows = array_namespace(Z), Z < UNDERFLOW
        charge = _inverse(Z)
        repulsion = -(gradient * charge[:, None] + engine.field(Y, self.kernel, charge).gradient)
        log_Z = xp.log(xp.where(underflows, 1.0, Z))
        self._add_underflowing_rows(Y, underflows, (repulsion, log_Z), engine)
        value = self.negative_entropy - psi / 2 + engine.placement.sums.total(log_Z) if loss else np.nan
        return Balance(2 * exaggeration * edges, repulsion, value, self.mass * exaggeration)

    def _add_underflowing_rows(self, Y: Array, underflows: Array, results: tuple[Array, Array], engine: Engine) -> None:
        """Set log Z, the second of `results`, where Z underflows, and add the forces to the first, the repulsion."""
        repulsion, log_Z = results
        for i in engine.placement.indices_where(underflows):
            log_Z[i] = self._add_underflowing_row(to_numpy(Y), int(i), repulsion, engine.pairs)

    def _add_underflowing_row(self, Y: Array, i: int, repulsion: Array, pairs: Pairs | None) -> float:
        """Return log Z_i of a point i whose Z_i underflows, and add its forces to `repulsion`.

        log Z_i and the forces are computed from log k, which does not underflow. Such points are rare. Their rows are
        summed in NumPy, in float64, even if the map is an array of another library.
        """
        if pairs is None:
            diff = (Y[i] - Y).astype(np.float64)
            d2, back = (diff**2).sum(axis=1), -diff
        else:
            Y = Y.astype(np.float64)
            (d2, diff), (_, back) = pairs.between(Y[i], Y), pairs.between(Y, Y[i])
        log_k = self.kernel.log_value(d2)
        log_k[i] = -np.inf
        log_Z = float(logsumexp(log_k))
        weight = 2 * (np.exp(log_k - log_Z) * self.kernel.log_slope(d2))[:, None]
        force = weight * back
        force[i] += (weight * diff).sum(axis=0)
        repulsion -= array_like(repulsion, force)
        return log_Z

    def to(self, placement: Placement) -> ConditionalKL:
        return self._with_arrays(placement.to_device)

    def permuted(self, order: Array) -> ConditionalKL:
        return self._with_arrays(lambda A: permuted(A, order))

    def _with_arrays(self, change: Callable[[Matrix], Matrix]) -> ConditionalKL:
        """Return a copy with `change` applied to every matrix."""
        other = copy(self)
        other.affinities, other._A = change(self.affinities), change(self._A)
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        """Return the function that `Objective.freeze` describes.

        A new point has its own row p_{j|i} = p_{i|j} and its own Z_i; the Z_j of the map do not change.
        """
        charge = _inverse(engine.field(Y, self.kernel).potential)
        ones, inverse = engine.freeze(Y, self.kernel), engine.freeze(Y, self.kernel, charge)

        def force(targets: Array, P: Matrix, near: Array) -> Array:
            own = ones(targets)
            push = own.gradient * _inverse(own.potential)[:, None] + inverse(targets).gradient
            return 4 * exaggeration * engine.edges_to(targets, near, P, self.kernel, -1.0) - push

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of Lin et al. 2024, Table 1, for p = p_{j|i} = p_{i|j} and Z = Z_i = Z_j."""
        xp, d2 = array_namespace(r), r**2
        return 4 * p * xp.abs(self.kernel.log_slope(d2)) * r, 4 / Z * xp.abs(self.kernel.slope(d2)) * r
