"""The loss E = Σ P f(Q/P), Q = k/Z, for f with a finite limit of f' at infinity, from the stored pairs of P alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.blocks import FIXED_SUM
from ..arrays.csr import entry_rows, is_sparse, permuted, stored_values, with_values
from ..arrays.namespace import array_namespace, cast_like, is_numpy, to_float64, total
from ..divergences import Divergence
from ..engines import Engine, Placement
from ..kernels import Gaussian, Kernel
from .base import Balance, require_positive

# For the exponent b = −1 the edges of this kernel are −Σ_j A_ij (y_i − y_j): weights A of any form give any force.
SPRINGS = Gaussian()


def stored_distances(U: Array, V: Array, A: Matrix) -> Iterator[tuple[slice, Array]]:
    """Yield, block by block, a slice of `stored_values(A)` and the squared distances ‖u_i − v_j‖² of its pairs.

    The distances are in float64. A has one row per point of U and one column per point of V. A dense A has blocks of
    rows; CSR matrices on a device, and arrays of libraries other than NumPy, are not divided.
    """
    xp, U, V = array_namespace(U), to_float64(U), to_float64(V)
    if not is_sparse(A):
        step = max(1, FIXED_SUM // max(1, V.shape[0])) if is_numpy(U) else U.shape[0]
        for start in range(0, U.shape[0], step):
            rows = slice(start, min(start + step, U.shape[0]))
            yield rows, sum((U[rows, c][:, None] - V[:, c][None, :]) ** 2 for c in range(U.shape[1]))
        return
    i, j = entry_rows(A), A.indices
    if not is_numpy(U):
        i, j = (xp.asarray(index) for index in (i, j))
    step = FIXED_SUM if is_numpy(U) else max(1, A.nnz)
    for start in range(0, A.nnz, step):
        part = slice(start, min(start + step, A.nnz))
        yield part, xp.sum((U[i[part], :] - V[j[part], :]) ** 2, axis=1)


@tagged("objectives.stored_divergence.StoredDivergence")
class StoredDivergence:
    """The loss E = Σ_{P>0} [P f(Q/P) − c Q] + c, where c = f'(∞): a pair with P = 0 contributes c Q, and Σ Q = 1.

    With w = c − f'(Q/P) ≥ 0, which is 0 where P is, and W = Σ Q w:

        ∇_i E = −(4/Z) Σ_j w_ij k'(y_i − y_j) + (2W/Z) ∇Φ_i                                  docs/math.md, eq. (V7)

    The first sum runs over pairs with P > 0 only. Its weights are general functions of P and Q, computed here from the
    distances of the stored pairs; the engine sums them. Exaggeration x multiplies P in w, as in eq. (4).
    """

    mass = 1.0

    def __init__(self, P: Matrix, kernel: Kernel, divergence: Divergence):
        self.affinities = P
        self.kernel = kernel
        self.divergence = divergence

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        phi, gradient = engine.field(Y, self.kernel)
        Z = require_positive(total(phi), loss)
        springs, load, mean, value = self._springs(Y, Y, self.affinities, Z, exaggeration)
        _, pull = engine.edges(Y, springs, SPRINGS, -1.0, potential=False)
        return Balance(4 / Z * pull, (-2 / Z * mean) * gradient, value if loss else np.nan, load)

    def _springs(self, U: Array, V: Array, P: Matrix, Z: Any, x: float) -> tuple[Matrix, Any, Any, Any]:
        """Return the weights −w k' with exaggeration x, the sums Σ Q w with and without x, and the loss."""
        p_all, c, divergence = stored_values(P), self.divergence.limit, self.divergence
        xp = array_namespace(p_all)
        weights = xp.zeros_like(p_all)
        load = mean = 0.0
        value = c
        for part, d2 in stored_distances(U, V, P):
            p = to_float64(p_all[part, ...])
            stored = p > 0
            p = xp.where(stored, p, 1.0)
            q = xp.where(stored, self.kernel.value(d2) / Z, 1.0)
            t, one = q / p, xp.where(stored, q, 0.0)
            w = c - divergence.slope(t)
            pull = w if x == 1 else c - divergence.slope(t / x)
            mean, load = mean + total(one * w), load + total(one * pull)
            value = value + total(xp.where(stored, p * divergence.value(t) - c * q, 0.0))
            weights[part, ...] = cast_like(p_all, xp.where(stored, -pull * self.kernel.slope(d2), 0.0))
        return with_values(P, weights), load, mean, value

    def to(self, placement: Placement) -> StoredDivergence:
        return self._with_affinities(placement.to_device(self.affinities))

    def permuted(self, order: Array) -> StoredDivergence:
        return self._with_affinities(permuted(self.affinities, order))

    def _with_affinities(self, affinities: Matrix) -> StoredDivergence:
        other = copy(self)
        other.affinities = affinities
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> Callable[[Array, Matrix], Array]:
        """Return the function that `Objective.freeze` describes.

        A new point is treated as one of the n points, so P_ij = p_{j|i}/n; Z and W are those of the fitted map.
        """
        n, Z = Y.shape[0], float(total(engine.field(Y, self.kernel).potential))
        mean = float(self._springs(Y, Y, self.affinities, Z, 1.0)[2])
        field = engine.freeze(Y, self.kernel)

        def force(targets: Array, P: Matrix) -> Array:
            rows = with_values(P, stored_values(P) / n)
            springs = self._springs(targets, Y, rows, Z, exaggeration)[0]
            return 4 / Z * engine.edges_to(targets, Y, springs, SPRINGS, -1.0) - 2 / Z * mean * field(targets).gradient

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with affinity p, for W = c − f'(1), its value at Q = P."""
        xp, d2 = array_namespace(r), r**2
        c, slope = self.divergence.limit, self.divergence.slope
        unit = 4 / Z * xp.abs(self.kernel.slope(d2)) * r
        return (c - slope(self.kernel.value(d2) / (Z * p))) * unit, (c - slope(xp.ones_like(d2))) * unit
