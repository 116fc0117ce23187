"""Lower bounds on the distortion of every map of a finite metric space (docs/math.md, eq. (E8) to (E10)).

The distortion of a map is the largest d_Y/D times the largest D/d_Y over all pairs. All functions take distances D
(n, n), symmetric with a zero diagonal.
"""

from __future__ import annotations

import numpy as np

from .._types import Array
from .stress_bounds import EPS, centered_gram, weighted_rank_gaps

MAX_REFINED = 150  # points for which the matrix Q of the any-dimension bound is optimised; chosen
RANK = 30  # columns of A in Q = A Aᵀ; chosen
SMOOTHING = (0.3, 0.03, 0.003)  # of the absolute values |Q_ij|, in units of their mean, one stage each; chosen
ITERATIONS = 60  # of L-BFGS in each stage; chosen


def unlimited_distortion(D: Array, values: Array, vectors: Array | None) -> float:
    """Return a lower bound on the distortion of maps in any ℝᵏ: √ρ(Q) for some Q, eq. (E8); 1 without evidence.

    Q is tried as v vᵀ for the eigenvector of the most negative eigenvalue, as the projection on all eigenvectors of
    that eigenvalue, and, optimised, on a farthest-point sample: the distortion of a subset bounds that of the space.

    Parameters
    ----------
    D : ndarray of shape (n, n)
    values : ndarray of shape (n,)
        Eigenvalues of the centred Gram matrix of D², ascending.
    vectors : ndarray of shape (n, n) or None
        The eigenvectors; None if no eigenvalue is negative.
    """
    if vectors is None:
        return 1.0
    d2 = np.square(D)
    lowest = vectors[:, values <= values[0] * (1 - 1e-6)]
    rho = max(_ratio(A, d2) for A in (vectors[:, :1], lowest))
    subset = greedy_order(D, min(len(D), MAX_REFINED))[0]
    return max(1.0, np.sqrt(max(rho, _optimized_ratio(d2[np.ix_(subset, subset)]))))


def limited_distortion(D: Array, dimensions: Array) -> Array:
    """Return lower bounds on the distortion of maps in ℝᵈ for several d: the larger of eq. (E9) and eq. (E10)."""
    d2, d = np.square(D), dimensions.astype(np.float64)
    n, kappa2 = len(D), np.zeros(len(d))
    for a in (np.ones(n), 1 / np.maximum(d2.mean(axis=1), EPS * d2.max())):
        whole = float(a @ np.square(d2) @ a) / 2
        kappa2 = np.maximum(kappa2, weighted_rank_gaps(d2, a, dimensions) / whole)
    kappa = np.sqrt(np.clip(kappa2, 0.0, 1 - n * EPS)) * (1 - n * EPS)
    by_rank = np.sqrt((1 + kappa) / (1 - kappa))
    _, separation, diameter = greedy_order(D, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = np.where(diameter > 0, separation / diameter, 0.0)[1:]
    packing = np.array([(shape * min_ratios(n, float(k))).max(initial=0.0) for k in d])
    return np.maximum(np.maximum(by_rank, packing * (1 - 8 * EPS)), 1.0)


def min_ratios(n: int, d: float) -> Array:
    """Return lower bounds of the largest over the smallest distance among k = 2, …, n points in ℝᵈ, eq. (S6)."""
    k = np.arange(2, n + 1)
    ratios = np.maximum(k ** (1 / d) - 1, 1.0)
    ratios[k >= d + 2] = np.maximum(ratios[k >= d + 2], np.sqrt(1 + 2 / d))
    return ratios


def greedy_order(D: Array, m: int) -> tuple[Array, Array, Array]:
    """Return m points, each as far as possible from those before it, beginning with one of the farthest pair.

    Returns
    -------
    points : ndarray of int, shape (m,)
    separation, diameter : ndarray of shape (m,)
        The smallest and the largest distance between the first 1, 2, … points; 0 for a single point.
    """
    points = np.empty(m, np.int64)
    separation, diameter = np.zeros(m), np.zeros(m)
    points[0] = D.max(axis=1).argmax()
    gap, reach = D[points[0]].copy(), D[points[0]].copy()
    gap[points[0]] = -1.0
    for k in range(1, m):
        p = points[k] = gap.argmax()
        separation[k] = gap[p] if k == 1 else min(separation[k - 1], gap[p])
        diameter[k] = max(diameter[k - 1], reach[p])
        np.minimum(gap, D[p], out=gap)
        np.maximum(reach, D[p], out=reach)
        gap[p] = -1.0
    return points, separation, diameter


def _ratio(A: Array, d2: Array) -> float:
    """Return ρ(Q) of eq. (E8) for Q = A Aᵀ with centred columns, reduced by its rounding error."""
    A = A - A.mean(axis=0)
    T = (A @ A.T) * d2
    positive = float(np.maximum(T, 0).sum())
    negative = positive - float(T.sum())
    return positive / negative * (1 - 16 * len(d2) * EPS) if negative > 0 else 1.0


def _optimized_ratio(d2: Array) -> float:
    """Return the largest ρ(Q) found by L-BFGS over Q = A Aᵀ, with |Q_ij| smoothed less and less."""
    from scipy.optimize import minimize

    n = len(d2)
    k = min(n - 1, RANK)
    d2 = d2 / d2.mean()
    values, vectors = np.linalg.eigh(-2 * centered_gram(d2))
    scale = np.sqrt(np.maximum(values[::-1][:k], 0.0025 * values[-1]))  # every column takes part from the start
    A = vectors[:, ::-1][:, :k] * scale
    best = _ratio(A, d2)
    for smoothing in SMOOTHING:
        A = A - A.mean(axis=0)
        A = A / np.sqrt(np.abs(A @ A.T).mean())
        found = minimize(
            _smooth_log_ratio, A.ravel(), (d2, smoothing), "L-BFGS-B", jac=True, options={"maxiter": ITERATIONS}
        )
        A = found.x.reshape(n, k)
        best = max(best, _ratio(A, d2))
    return best


def _smooth_log_ratio(entries: Array, d2: Array, smoothing: float) -> tuple[float, Array]:
    """Return −log ρ(Q) for Q = A Aᵀ with |Q_ij| replaced by √(Q_ij² + smoothing²), and its gradient."""
    A = entries.reshape(len(d2), -1)
    A = A - A.mean(axis=0)
    Q = A @ A.T
    np.fill_diagonal(Q, 0.0)
    size = np.hypot(Q, smoothing)
    positive, negative = float(((size + Q) * d2).sum()), float(((size - Q) * d2).sum())
    slope = (Q / size + 1) / positive - (Q / size - 1) / negative
    slope *= d2
    gradient = -2 * slope @ A
    return float(np.log(negative / positive)), (gradient - gradient.mean(axis=0)).ravel()
