"""Divergences over all pairs: α ≥ 1, χ², and any convex f. E = Σ_{i≠j} P f(Q/P), for a dense positive P."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import permuted
from ..divergences import Divergence
from ..engines import Engine, Placement
from ..kernels import Kernel
from .base import Balance


def require_dense(is_sparse: bool, divergence: Divergence) -> str:
    """Raise ValueError if P is or will be sparse; return the requirement of the divergence as text for errors."""
    what = f"the divergence {divergence!r} compares every pair and needs P > 0 for each of them"
    if is_sparse:
        raise ValueError(f"{what}, but P is sparse; use dense distances, or an Alpha divergence with α < 1")
    return what


@tagged("objectives.dense.DenseDivergence")
class DenseDivergence:
    """E = Σ P f(Q/P), with the gradient of Lin et al. 2024, eq. (20): for G = f'(Q/P) and ⟨G⟩ = Σ Q G,

        ∇_i E = (4/Z) Σ_j (G_ij − ⟨G⟩) k' (y_i − y_j)                                        docs/math.md, eq. (4)

    Pairs with G < ⟨G⟩, whose Q is too small for their P, attract; the others repel. O(n²) time and memory, in float64.
    """

    mass = 1.0

    def __init__(self, P: Matrix, kernel: Kernel, divergence: Divergence):
        what = require_dense(sparse.issparse(P), divergence)
        zero = np.argwhere((P <= 0) & ~np.eye(len(P), dtype=bool))
        if zero.size:
            i, j = zero[0]
            raise ValueError(
                f"{what}, but P[{i}, {j}] = 0, like {len(zero)} of {P.size - len(P)} pairs; raise the perplexity,"
                " or use an Alpha divergence with α < 1"
            )
        self.affinities = P
        self.kernel = kernel
        self.divergence = divergence

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        Y = np.ascontiguousarray(Y, dtype=np.float64)
        Z = float(engine.field(Y, self.kernel).potential.sum())
        P = np.asarray(self.affinities, dtype=np.float64)
        G, mean, total = np.empty_like(P), 0.0, 0.0
        for i in range(len(Y)):
            d2 = ((Y[i] - Y) ** 2).sum(axis=1)
            q = self.kernel.value(d2) / Z
            off = np.arange(len(Y)) != i
            t = q[off] / P[i, off]
            mean += float(q[off] @ self.divergence.slope(t))
            G[i, off] = self.divergence.slope(t / exaggeration)
            G[i, i] = 0.0
            total += float(P[i, off] @ self.divergence.value(t)) if loss else np.nan
        G -= mean
        # The stiffness of the point with the strongest forces; near Q = P it is f''(1) = 1.
        load = max(float(np.abs(G[i]) @ self.kernel.value(((Y[i] - Y) ** 2).sum(axis=1))) for i in range(len(Y))) / Z
        _, pull = engine.edges(Y, np.minimum(G, 0.0), self.kernel, 0.0, potential=False)
        _, push = engine.edges(Y, np.maximum(G, 0.0), self.kernel, 0.0, potential=False)
        return Balance(-4 / Z * pull, -4 / Z * push, total, max(1.0, len(Y) * load))

    def to(self, placement: Placement) -> DenseDivergence:
        return self._with_affinities(placement.to_device(self.affinities))

    def permuted(self, order: Array) -> DenseDivergence:
        return self._with_affinities(permuted(self.affinities, order))

    def _with_affinities(self, affinities: Array) -> DenseDivergence:
        other = copy(self)
        other.affinities = affinities
        return other

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> Callable[[Array, Matrix], Array]:
        raise ValueError(f"transform needs an Alpha divergence with α < 1; {self.divergence!r} compares every pair")

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """Return the forces for ⟨G⟩ = f'(1), its value at Q = P."""
        d2 = r**2
        G = self.divergence.slope(self.kernel.value(d2) / (Z * p)) - self.divergence.slope(np.ones(1))
        force = 4 / Z * G * np.abs(self.kernel.slope(d2)) * r
        return np.maximum(-force, 0.0), np.maximum(force, 0.0)
