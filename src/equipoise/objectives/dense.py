"""The loss E = Σ_{i≠j} P f(Q/P) for divergences that need P > 0 for every pair: α ≥ 1, χ², and any convex f."""

from __future__ import annotations

from copy import copy

import numpy as np

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import is_sparse, permuted
from ..arrays.namespace import array_namespace, at_least, at_most, device_of, to_float64, total
from ..divergences import Divergence
from ..engines import Engine, Placement
from ..geometry import Pairs
from ..kernels import Kernel
from .base import Balance, FrozenForce


def require_dense(sparse: bool, divergence: Divergence) -> str:
    """Raise ValueError if `sparse` is true, which means that P is, or will be, a sparse matrix.

    Otherwise return the first clause of an error message, which says that the divergence needs P > 0 for every pair.
    """
    what = f"the divergence {divergence!r} needs P > 0 for every pair of points"
    if sparse:
        raise ValueError(
            f'{what}, but P is sparse, that is, 0 for most pairs; use affinity="gaussian" and pass coordinates or the'
            " distances of all pairs, or use an Alpha divergence with alpha < 1"
        )
    return what


@tagged("objectives.dense.DenseDivergence")
class DenseDivergence:
    """The loss E = Σ P f(Q/P). Its gradient, for G = f'(Q/P) and ⟨G⟩ = Σ Q G, is that of Lin et al. 2024, eq. (20):

        ∇_i E = (4/Z) Σ_j (G_ij − ⟨G⟩) k' (y_i − y_j)                                        docs/math.md, eq. (4)

    Pairs with G < ⟨G⟩, whose Q is too small for their P, attract; the others repel. The sums are in float64 and take
    O(n²) time and memory.
    """

    mass = 1.0

    def __init__(self, P: Matrix, kernel: Kernel, divergence: Divergence):
        what = require_dense(is_sparse(P), divergence)
        xp, n = array_namespace(P), P.shape[0]
        rows, columns = xp.nonzero((P <= 0) & ~xp.eye(n, dtype=xp.bool, device=device_of(P)))
        if rows.shape[0]:
            raise ValueError(
                f"{what}, but P is 0 for {rows.shape[0]} of {n * (n - 1)} pairs, the first at [{int(rows[0])},"
                f" {int(columns[0])}]; raise the perplexity, or use an Alpha divergence with alpha < 1"
            )
        self.affinities = P
        self.kernel = kernel
        self.divergence = divergence

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        Y, P = to_float64(Y), to_float64(self.affinities)
        xp, n = array_namespace(Y), Y.shape[0]
        Z = float(total(engine.field(Y, self.kernel).potential))
        G, mean, value = xp.zeros_like(P), 0.0, 0.0
        for i in range(n):
            p, q = _without(P[i, :], i), _without(self._kernel_row(Y, i, engine.pairs) / Z, i)
            t = q / p
            mean += float(q @ self.divergence.slope(t))
            slope = self.divergence.slope(t / exaggeration)
            G[i, :i], G[i, i + 1 :] = slope[:i], slope[i:]
            value += float(p @ self.divergence.value(t)) if loss else np.nan
        G -= mean
        for i in range(n):
            G[i, i] = 0.0  # a point does not act on itself
        # The stiffness of the point with the strongest forces, and at least f''(1) = 1, that of KL.
        load = max(float(xp.abs(G[i, :]) @ self._kernel_row(Y, i, engine.pairs)) for i in range(n)) / Z
        _, pull = engine.edges(Y, at_most(G, 0.0), self.kernel, 0.0, potential=False)
        _, push = engine.edges(Y, at_least(G, 0.0), self.kernel, 0.0, potential=False)
        return Balance(-4 / Z * pull, -4 / Z * push, value, max(1.0, n * load))

    def _kernel_row(self, Y: Array, i: int, pairs: Pairs | None) -> Array:
        """Return k between point i and every point, (n,)."""
        if pairs is not None:
            return self.kernel.value(pairs.between(Y[i], Y)[0])
        return self.kernel.value(array_namespace(Y).sum((Y[i, :] - Y) ** 2, axis=1))

    def to(self, placement: Placement) -> DenseDivergence:
        return self._with_affinities(placement.to_device(self.affinities))

    def permuted(self, order: Array) -> DenseDivergence:
        return self._with_affinities(permuted(self.affinities, order))

    def _with_affinities(self, affinities: Array) -> DenseDivergence:
        other = copy(self)
        other.affinities = affinities
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        raise ValueError(f"transform needs an Alpha divergence with alpha < 1, but this model has {self.divergence!r}")

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces of a pair with affinity p, for ⟨G⟩ = f'(1), its value at Q = P."""
        xp, d2 = array_namespace(r), r**2
        G = self.divergence.slope(self.kernel.value(d2) / (Z * p)) - self.divergence.slope(xp.ones_like(d2))
        force = 4 / Z * G * xp.abs(self.kernel.slope(d2)) * r
        return at_least(-force, 0.0), at_least(force, 0.0)


def _without(x: Array, i: int) -> Array:
    """Return x (n,) without entry i."""
    return array_namespace(x).concat([x[:i], x[i + 1 :]])
