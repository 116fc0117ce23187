"""The loss E = Σ P f(Q/P), Q = k/Z, for f with a finite limit of f' at infinity, from the stored pairs of P alone."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import entry_rows, is_sparse, permuted, stored_values, with_values
from ..arrays.namespace import array_like, array_namespace, at_least, cast_like, is_numpy, to_float64
from ..divergences import Divergence
from ..engines import Engine, Placement
from ..engines.base import EntrySum, PointSums
from ..geometry.flat import squared_distances
from ..kernels import Kernel
from .base import SPRINGS, Balance, FrozenForce, require_positive

BLOCK = 2**14  # pairs whose distances are computed at once: arrays of 128 kB stay in the cache; sums depend on it
ZERO = 1e-100  # affinity of pairs with P = 0, for which w and the summand of the loss then vanish by rounding


class Sums(NamedTuple):
    """Sums over the stored pairs of P, on the device of the map."""

    load: EntrySum  # Σ Q w, with exaggeration
    mean: EntrySum  # W = Σ Q w
    loss: EntrySum | None  # if requested


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
        placement, P = engine.placement, self.affinities
        phi, gradient = engine.field(Y, self.kernel)
        Z = require_positive(placement.sums.total(phi), loss)
        sums = self._empty_sums(placement.sums, loss)
        springs = self._springs((Y, placement.column_points(Y)), P, Z, engine, exaggeration, sums)
        _, pull = engine.edges(Y, springs, SPRINGS, -1.0, potential=False)
        load, mean = sums.load.total(), sums.mean.total()
        value = np.nan if sums.loss is None else sums.loss.total()
        return Balance(4 * pull, (-2 / Z * mean) * gradient, value, load)

    def over(self, sums: PointSums) -> StoredDivergence:
        """Return the objective of a map whose rows of P are shared by several processes: it has no sums of its own."""
        return self

    def _empty_sums(self, sums: PointSums, loss: bool) -> Sums:
        P = self.affinities
        return Sums(sums.entry_sum(P), sums.entry_sum(P), sums.entry_sum(P, self.divergence.limit) if loss else None)

    def _springs(
        self, ends: tuple[Array, Array], P: Matrix, Z: Any, engine: Engine, exaggeration: float, sums: Sums | None
    ) -> Matrix:
        """Return the weights −w Q k'/k of the pairs between `ends` that P stores, with exaggeration; add to `sums`."""
        c, f, affinities = self.divergence.limit, self.divergence, stored_values(P)
        weights = array_namespace(affinities).empty_like(affinities)
        for part, d2 in stored_distances(*ends, P, engine):
            p = at_least(to_float64(array_like(d2, affinities[part, ...])), ZERO)
            q = self.kernel.value(d2) / Z
            t = q / p
            pull = w = q * (c - f.slope(t))
            if exaggeration != 1:
                pull = q * (c - f.slope(t / exaggeration))
            weights[part, ...] = cast_like(affinities, -pull * self.kernel.log_slope(d2))
            if sums is not None:
                sums.mean.add(part, w)
                sums.load.add(part, pull)
                if sums.loss is not None:
                    sums.loss.add(part, p * f.value(t) - c * q)
        return with_values(P, weights)

    def to(self, placement: Placement) -> StoredDivergence:
        return self._with_affinities(placement.to_device(self.affinities))

    def permuted(self, order: Array) -> StoredDivergence:
        return self._with_affinities(permuted(self.affinities, order))

    def _with_affinities(self, affinities: Matrix) -> StoredDivergence:
        other = copy(self)
        other.affinities = affinities
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        """Return the function that `Objective.freeze` describes.

        A new point is treated as one of the n points, so P_ij = p_{j|i}/n; Z and W are those of the fitted map.
        """
        placement, P = engine.placement, self.affinities
        n, Z = placement.sums.count(Y), float(placement.sums.total(engine.field(Y, self.kernel).potential))
        sums = self._empty_sums(placement.sums, False)
        self._springs((Y, placement.column_points(Y)), P, Z, engine, 1.0, sums)
        mean, field = float(sums.mean.total()), engine.freeze(Y, self.kernel)

        def force(targets: Array, P: Matrix, near: Array) -> Array:
            rows = with_values(P, stored_values(P) / n)
            springs = self._springs((targets, near), rows, Z, engine, exaggeration, None)
            return 4 * engine.edges_to(targets, near, springs, SPRINGS, -1.0) - 2 / Z * mean * field(targets).gradient

        return force

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with affinity p, for W = c − f'(1), its value at Q = P."""
        xp, d2 = array_namespace(r), r**2
        c, slope = self.divergence.limit, self.divergence.slope
        unit = 4 / Z * xp.abs(self.kernel.slope(d2)) * r
        return (c - slope(self.kernel.value(d2) / (Z * p))) * unit, (c - slope(xp.ones_like(d2))) * unit
