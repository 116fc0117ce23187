"""The p-norm of residuals, which approaches the largest residual as p grows, and a lower bound for every map.

See docs/math.md, section 14, eq. (S3) to (S6).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from ..._types import Array
from ...linalg.pca import on_one_blas_thread
from ...spaces.distortion_bounds import greedy_order, min_ratios
from ...spaces.embeddability import embeddability
from ...spaces.stress_bounds import centered_gram
from .metric import Metric, Misfit, Slope

# p = 1024: the norm of the residuals of 10⁶ pairs is at most 1.4 % above the largest. Measured on 120 Gaussian points
# and 150 points of a sphere: linear programming from there lowers the largest residual by another 0.1 and 0.03 %.
DOUBLINGS = 10
BOUND_POINTS = 2_000  # points up to which a fit computes the bound: a few seconds on one core
ROUNDING = 1e-12  # relative size up to which an eigenvalue counts as 0; chosen


class WorstCase:
    """The loss (Σ_{i<j} (w |e|)^p)^{1/p} of a map, with p = 2^doublings    docs/math.md, eq. (S3)

    It lies between the largest w |e| and m^{1/p} times that, for m pairs. The residual e of a pair is that of `pairs`:
    d − δ, or log(d/δ).
    """

    dtype = np.float64  # p-th powers amplify rounding errors by p
    majorized = False

    def __init__(self, pairs: Metric, doublings: int = DOUBLINGS):
        self.pairs, self.doublings = pairs, doublings

    def stages(self) -> list[WorstCase]:
        """Return the losses with p = 2, 4, …, 2^doublings, which are minimised one after another."""
        return [WorstCase(self.pairs, m) for m in range(1, self.doublings + 1)]

    def slope(self, Y: Array) -> Slope:
        loss, gradient = self._sums(Y)
        # No quadratic function bounds this loss from above. Without L-BFGS, a step moves a point by at most half of the
        # loss, which changes a distance by at most the loss; the optimiser shortens it if necessary.
        longest = float(np.sqrt(np.square(gradient).sum(axis=1).max(initial=0.0)))
        stiffness = longest / self._length(Y, loss) if longest > 0 and loss > 0 else 1.0
        return Slope(loss, gradient / 2, np.full((1, 1), stiffness))

    def _length(self, Y: Array, loss: float) -> float:
        """Return the loss as a length; for logarithmic residuals, a typical distance times the loss."""
        if self.pairs.residual == "absolute":
            return loss
        return min(loss, 1.0) * float(np.sqrt(np.square(Y - Y.mean(axis=0)).sum(axis=1).mean()))

    def _sums(self, Y: Array, stretched: bool = False) -> tuple[float, Array]:
        """Return the loss and its gradient, or the part of it due to pairs with e > 0."""
        Y = np.ascontiguousarray(Y)
        largest = self.pairs.largest(Y)
        if not 0 < largest < np.inf:
            return largest, np.zeros(Y.shape)
        # Scaling by a power of two is exact: the result does not depend on the unit, and 2^512 bounds the powers.
        unit, p = 2.0 ** round(np.log2(largest)), 2.0**self.doublings
        total, G = self.pairs.sums(Y, Misfit(self.pairs.residual, self.doublings, unit))
        factor = unit * total ** (1 / p - 1)
        if stretched:
            G = self.pairs.sums(Y, Misfit(self.pairs.residual, self.doublings, unit, stretched=True))[1]
        return unit * total ** (1 / p), factor * G

    def attraction(self, Y: Array) -> Array:
        return -self._sums(np.asarray(Y, np.float64), stretched=True)[1]

    def scale(self, Y: Array) -> float:
        """Return the factor that is best for p = 2 and unit weights."""
        return self.pairs.scale(Y)


@on_one_blas_thread
def worst_case_bound(D: Array, d: int, residual: str = "absolute", weights: Array | None = None) -> float:
    """Return a number t such that every map of the points in d dimensions has a pair with w |e| ≥ t.

    If all w |e| ≤ t, the distances of the map are between the limits of `_Limits`, and the inequalities (S4), (S5) and
    (S6) of docs/math.md hold. The result is the largest t for which one of them fails; for unit weights, it is at least
    what the bounds of `spaces.embeddability` on stress and distortion imply.

    Parameters
    ----------
    D : ndarray of shape (n, n)
        The dissimilarities δ; those of all pairs must be known.
    d : int
        Dimension of the map.
    residual : {"absolute", "logarithmic"}, default="absolute"
        e = d − δ, or log(d/δ).
    weights : ndarray of shape (n, n), optional
        Positive weights w; all 1 by default.
    """
    i, j = np.triu_indices(len(D), 1)
    unit = float(D.max(initial=0.0))
    if not unit > 0:
        return 0.0
    w = np.ones(len(i)) if weights is None else np.asarray(weights, dtype=np.float64)[i, j]
    D = D / unit
    limits = _Limits(D[i, j], w, residual)
    values, vectors = linalg.eigh(centered_gram(np.square(D)))
    noise = ROUNDING * float(np.abs(values).max()) * len(D)
    tail = float(np.square(values).sum() - np.square(np.maximum(values[max(0, len(D) - d) :], 0)).sum())
    if tail <= noise**2:  # the points embed in d dimensions
        return 0.0
    v = vectors[:, 0] if values[0] < -noise else np.zeros(len(D))
    separations, ratios = greedy_order(D, len(D))[1][1:], min_ratios(len(D), d)

    def is_possible(t: float) -> bool:
        return limits.negative_type(-v[i] * v[j], t) and limits.rank(tail, t) and limits.packing(separations, ratios, t)

    above = 1.0
    while not is_possible(above):
        above *= 2
    below = 0.0
    for _ in range(40):
        middle = (below + above) / 2
        below, above = (below, middle) if is_possible(middle) else (middle, above)
    if weights is None:
        found = embeddability((D + D.T) / 2, d)
        mean_square, ratio2 = float(found.stress[-1]) / len(i), float(found.distortion[-1])
        below = max(below, float(np.sqrt(mean_square) if residual == "absolute" else np.log(ratio2) / 2))
    return below * (1 - 1e-9) * (unit if residual == "absolute" else 1.0)  # less the rounding of the sums


class _Limits:
    """The limits of distances in the map for dissimilarities δ and weights w of pairs with w |e| ≤ t."""

    def __init__(self, delta: Array, w: Array, residual: str):
        self.delta, self.w, self.residual = delta, w, residual

    def _limits(self, delta: Any, w: Any, t: float) -> tuple[Any, Any]:
        """Return the smallest and the largest possible distance in the map."""
        if self.residual == "absolute":
            return np.maximum(delta - t / w, 0), delta + t / w
        factor = np.exp(np.minimum(t / w, 300.0))
        return delta / factor, delta * factor

    def negative_type(self, u: Array, t: float) -> bool:
        """Return whether Σ u d² ≥ 0 is possible, for u for which every map satisfies it    docs/math.md, eq. (S4)"""
        low, high = self._limits(self.delta, self.w, t)
        return float((u * np.square(np.where(u > 0, high, low))).sum()) >= 0

    def rank(self, tail: float, t: float) -> bool:
        """Return whether the Gram matrix can have rank d    docs/math.md, eq. (S5)"""
        low, high = (np.square(limit) for limit in self._limits(self.delta, self.w, t))
        d2 = np.square(self.delta)
        return float(np.square(np.maximum(high - d2, d2 - low)).sum()) / 2 >= tail

    def packing(self, separations: Array, ratios: Array, t: float) -> bool:
        """Return whether k points with given separations have room, for all k    docs/math.md, eq. (S6)"""
        w = float(self.w.min())
        low, _ = self._limits(separations, w, t)
        high = float(self._limits(self.delta.max(), w, t)[1])
        return bool((high >= ratios * low).all())
