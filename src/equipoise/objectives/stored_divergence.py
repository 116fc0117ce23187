"""The loss E = Σ P f(Q/P), Q = k/Z, for f with a finite limit of f' at infinity, from the stored pairs of P alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import entry_rows, is_sparse, permuted, stored_values, with_values
from ..arrays.namespace import array_like, array_namespace, at_least, cast_like, is_numpy, to_float64, total
from ..divergences import Divergence
from ..engines import Engine, Placement
from ..geometry.flat import squared_distances
from ..kernels import Kernel
from .base import SPRINGS, Balance, require_positive

BLOCK = 2**14  # pairs whose distances are computed at once: arrays of 128 kB stay in the cache; sums depend on it
ZERO = 1e-100  # affinity of pairs with P = 0, for which w and the summand of the loss then vanish by rounding


class Sums(NamedTuple):
    """Sums over the stored pairs of P, on the device of the map."""

    load: Any  # Σ Q w, with exaggeration
    mean: Any  # W = Σ Q w
    loss: Any  # NaN unless requested


def stored_distances(U: Array, V: Array, A: Matrix, engine: Engine) -> Iterator[tuple[slice, Array]]:
    """Yield, block by block, a slice of `stored_values(A)` and the squared distances d2 of u_i and v_j for its pairs.

    The distances are in float64. A has one row per point of U and one column per point of V. Only NumPy arrays are
    divided into blocks; those of a dense A consist of rows.
    """
    xp, whole, U, V = array_namespace(U), not is_numpy(U), to_float64(U), to_float64(V)
    if is_sparse(A):
        i, j = (xp.asarray(index) if whole else index for index in (entry_rows(A), A.indices))
        step = A.nnz if whole else BLOCK
        for start in range(0, A.nnz, max(1, step)):
            part = slice(start, min(start + step, A.nnz))
            yield part, squared_distances(engine.pairs, xp.take(U, i[part], axis=0), xp.take(V, j[part], axis=0))
        return
    step = A.shape[0] if whole else max(1, BLOCK // A.shape[1])
    for start in range(0, A.shape[0], step):
        rows = slice(start, min(start + step, A.shape[0]))
        yield rows, squared_distances(engine.pairs, U[rows, None, :], V[None, :, :])


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
        springs, sums = self._springs((Y, Y), self.affinities, Z, engine, exaggeration, loss)
        _, pull = engine.edges(Y, springs, SPRINGS, -1.0, potential=False)
        return Balance(4 * pull, (-2 / Z * sums.mean) * gradient, sums.loss, sums.load)

    def _springs(
        self, ends: tuple[Array, Array], P: Matrix, Z: Any, engine: Engine, exaggeration: float, loss: bool
    ) -> tuple[Matrix, Sums]:
        """Return the weights −w Q k'/k of the pairs between `ends` that P stores, with exaggeration, and their sums."""
        c, f, affinities = self.divergence.limit, self.divergence, stored_values(P)
        weights = array_namespace(affinities).empty_like(affinities)
        load = mean = 0.0
        value = c if loss else np.nan
        for part, d2 in stored_distances(*ends, P, engine):
            p = at_least(to_float64(array_like(d2, affinities[part, ...])), ZERO)
            q = self.kernel.value(d2) / Z
            t = q / p
            pull = w = q * (c - f.slope(t))
            mean += total(w)
            if exaggeration != 1:
                pull = q * (c - f.slope(t / exaggeration))
            load += total(pull)
            if loss:
                value += total(p * f.value(t) - c * q)
            weights[part, ...] = cast_like(affinities, -pull * self.kernel.log_slope(d2))
        return with_values(P, weights), Sums(load, mean, value)

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
        mean = float(self._springs((Y, Y), self.affinities, Z, engine, 1.0, False)[1].mean)
        field = engine.freeze(Y, self.kernel)

        def force(targets: Array, P: Matrix) -> Array:
            rows = with_values(P, stored_values(P) / n)
            springs, _ = self._springs((targets, Y), rows, Z, engine, exaggeration, False)
            return 4 * engine.edges_to(targets, Y, springs, SPRINGS, -1.0) - 2 / Z * mean * field(targets).gradient

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with affinity p, for W = c − f'(1), its value at Q = P."""
        xp, d2 = array_namespace(r), r**2
        c, slope = self.divergence.limit, self.divergence.slope
        unit = 4 / Z * xp.abs(self.kernel.slope(d2)) * r
        return (c - slope(self.kernel.value(d2) / (Z * p))) * unit, (c - slope(xp.ones_like(d2))) * unit
