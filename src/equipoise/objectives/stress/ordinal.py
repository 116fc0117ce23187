"""Computes ordinal stress, 0 if the distances in the map have the order of the dissimilarities (Kruskal 1964)."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.isotonic import isotonic_regression

from ..._types import Array
from .metric import NONE, AllPairs, Slope


class OrdinalStress:
    """The loss σ₁²(Y) = Σ w (d − δ̂)² / Σ w d², δ̂ the values closest to d in the order of δ    docs/math.md, eq. (8)

    d are the distances in the map Y, and δ̂ is their isotonic regression on the order of the dissimilarities δ. Pairs
    with equal δ can have different δ̂: they are sorted by d (Kruskal's primary treatment of ties). δ̂ minimises the
    numerator, so the gradient treats it as constant. Only the order of δ matters, and the loss does not change if Y is
    scaled. It takes O(n²) memory, about 40 bytes per pair.
    """

    dtype = np.float32
    majorized = True

    def __init__(self, delta: Array, n: int, n_threads: int, weights: Array = NONE):
        self.n, self.n_threads, self.weights = n, n_threads, weights
        weighted = np.arange(len(delta)) if not len(weights) else np.flatnonzero(weights > 0)
        order = weighted[np.argsort(delta[weighted], kind="stable")]
        self.order = order
        step = np.diff(delta[order]) > 0
        # The same level for ties; None without ties.
        self.level = np.concatenate([[0], np.cumsum(step)]) if not step.all() else None
        self._pairs = AllPairs(np.empty(0, np.float32), n, n_threads, weights)

    def disparities(self, Y: Array) -> Array:
        """Return δ̂ of the pairs i < j in float32; 0 for pairs with weight 0."""
        d = pdist(np.asarray(Y, dtype=np.float64))
        order = self.order
        if self.level is not None:
            # One sort key: the level, plus a fraction for the order of d within it.
            order = order[np.argsort(self.level + d[order] / (2 * max(d.max(), np.finfo(np.float64).tiny)))]
        w = self.weights[order].astype(np.float64) if len(self.weights) else None
        result = np.zeros(len(d), np.float32)
        result[order] = isotonic_regression(d[order], sample_weight=w)
        return result

    def slope(self, Y: Array) -> Slope:
        raw, G, VY, squares = self._parts(Y)
        loss = raw / squares
        return Slope(loss, (G - loss * VY) / squares, self._pairs.stiffness * (1 - loss) / squares)

    def _parts(self, Y: Array) -> tuple[float, Array, Array, float]:
        """Return Σ w (d − δ̂)², half its gradient for fixed δ̂, V Y, and Σ w d² = tr YᵀVY."""
        self._pairs.delta = self.disparities(Y)
        raw, G, _ = self._pairs.slope(Y)
        VY = self._pairs.laplacian(Y)
        return raw, G, VY, max(float((Y * VY).sum()), np.finfo(np.float64).tiny)

    def attraction(self, Y: Array) -> Array:
        raw, _, VY, squares = self._parts(Y)
        return -2 / squares * (1 - raw / squares) * VY

    def scale(self, Y: Array) -> float:
        """Return the factor that makes the weighted root mean square distance 1; it does not change the loss."""
        weight = float(self._pairs.stiffness.sum()) / 4 if len(self.weights) else self.n * (self.n - 1) / 2
        squares = float((Y * self._pairs.laplacian(Y)).sum())
        return float(np.sqrt(weight / squares)) if squares > 0 else 1.0
