"""Lower bounds on the stress of every map of a finite metric space (docs/math.md, eq. (E2) to (E7)).

All functions take distances D (n, n), symmetric with a zero diagonal. The stress of a map with distances d_Y is
Σ_{i<j} (d_Y − D)², and S = Σ_{i<j} D².
"""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.spatial.distance import cdist

from .._types import Array
from ..linalg.pca import double_center

EPS = float(np.finfo(np.float64).eps)
MAX_RANK = 50  # dimensions of the reference map of more than MAX_FULL points; chosen
MAX_FULL = 400  # points up to which the reference map has all dimensions; chosen
WORK = 2e9  # multiplications in the search for the reference map, about a second on one core; chosen
FEWEST, MOST = 5, 300  # iterations of this search; chosen
WEIGHT_ROUNDS = 30  # iterations of `_factor_weights`, each of which halves the logarithm of the gap; chosen


def centered_gram(d2: Array) -> Array:
    """Return B = −½ C d2 C with C = I − 11ᵀ/n, for squared distances d2 (n, n)."""
    B = -0.5 * d2
    double_center(B)
    return B


def lower_bounds(D: Array, values: Array, vectors: Array | None, dimensions: Array) -> tuple[float, Array]:
    """Return a lower bound on the stress in any number of dimensions, and one for each of some numbers of dimensions.

    Parameters
    ----------
    D : ndarray of shape (n, n)
    values : ndarray of shape (n,)
        Eigenvalues of `centered_gram(D²)`, ascending; those that differ from 0 only by rounding are set to 0.
    vectors : ndarray of shape (n, n) or None
        The eigenvectors; None if no eigenvalue is negative, when the first bound is 0.
    dimensions : ndarray of int, shape (m,)
        Numbers of dimensions d of the maps.

    Returns
    -------
    unlimited : float
        No map in any ℝᵏ has a smaller stress, eq. (E4); the minimum itself up to the convergence of an iteration.
    limited : ndarray of shape (m,)
        No map in ℝᵈ has a smaller stress, eq. (E7).
    """
    limited = _low_rank_bounds(D, D, dimensions)
    if vectors is None:
        return 0.0, limited
    unlimited, reference = _unlimited_bound(D, values, vectors)
    # Where the search ends early, as it does for many points, (E4) may be negative, and (E7) is smaller by as much.
    return max(0.0, unlimited), np.maximum(limited, unlimited + _low_rank_bounds(D, reference, dimensions))


def _unlimited_bound(D: Array, values: Array, vectors: Array) -> tuple[float, Array]:
    """Return S − β Σ_{i<j} D_ij d_ij, eq. (E4), possibly negative, and the distances β d (n, n) of the reference.

    β is the largest eigenvalue of B(d)/n, and d are the distances of a map in many dimensions, the positive part of
    classical scaling improved by over-relaxed Guttman transforms (de Leeuw & Heiser 1980). The bound holds for any
    positive d; it is the minimum of the stress if the map is a minimiser in n − 1 dimensions, where β = 1.
    """
    n = len(D)
    rank = int((values > 0).sum())
    rank = rank if n <= MAX_FULL else min(rank, MAX_RANK)
    Y = vectors[:, n - rank :] * np.sqrt(values[n - rank :])
    for _ in range(int(np.clip(WORK / (n * n * max(rank, 1)), FEWEST, MOST))):
        Y = 2 * (_guttman(D, cdist(Y, Y)) @ Y) / n - Y
    d = np.maximum(cdist(Y, Y), EPS * D.max())
    np.fill_diagonal(d, 0.0)
    beta = float(linalg.eigvalsh(_guttman(D, d), subset_by_index=[n - 1, n - 1])[0]) / n * (1 + 4 * n * EPS)
    S = np.square(D).sum() / 2
    bound = S - beta * float((D * d).sum()) / 2 - 4 * n * EPS * S  # the last term bounds the rounding errors
    return float(bound), beta * d


def _guttman(D: Array, d: Array) -> Array:
    """Return B(d) of section 14: −D_ij/d_ij for i ≠ j, and rows that add up to 0."""
    B = np.zeros_like(D)
    np.divide(-D, d, out=B, where=d > 0)
    np.fill_diagonal(B, 0.0)
    np.fill_diagonal(B, -B.sum(axis=1))
    return B


def _low_rank_bounds(D: Array, reference: Array, dimensions: Array) -> Array:
    """Return lower bounds of Σ_{i<j} (D_ij/d_ij) (d_Y − d_ij)² over the maps Y of minimum stress in ℝᵈ, eq. (E6).

    `reference` contains the distances d (n, n). A map of minimum stress has d_Y ≤ r_i + r_j with r_i = Σ_j D_ij/n, eq.
    (E5), so that the weights of (d_Y² − d_ij²)² are at least w_ij = (D_ij/d_ij)/(d_ij + r_i + r_j)².
    """
    ratio = np.ones_like(D)
    np.divide(D, reference, out=ratio, where=reference > 0)
    r = D.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = ratio / np.square(reference + r + r[:, None])
    off_diagonal = ~np.eye(len(D), dtype=bool)
    if not weights[off_diagonal].min() > 0:  # coincident points that the reference separates
        return np.zeros(len(dimensions))
    return weighted_rank_gaps(np.square(reference), _factor_weights(weights), dimensions)


def _factor_weights(weights: Array) -> Array:
    """Return positive a (n,) with a_i a_j ≤ weights_ij for i ≠ j, such that no a_i can be increased alone."""
    weights = weights.copy()
    np.fill_diagonal(weights, np.inf)
    a = np.full(len(weights), np.sqrt(weights.min()))
    for _ in range(WEIGHT_ROUNDS):  # a_i a_j ≤ √(a_i a_j · w_ij/a_j · w_ij/a_i) = w_ij throughout
        a = np.sqrt(a * (weights / a).min(axis=1))
    return a * (1 - 8 * EPS)


def weighted_rank_gaps(d2: Array, a: Array, dimensions: Array) -> Array:
    """Return lower bounds of Σ_{i<j} a_i a_j (d_Y² − d2_ij)² over all maps in ℝᵈ, eq. (E6), for several d.

    Parameters
    ----------
    d2 : ndarray of shape (n, n)
        Symmetric with a zero diagonal; not necessarily squared distances of points in ℝᵏ.
    a : ndarray of shape (n,)
        Positive weights.
    dimensions : ndarray of int, shape (m,)
    """
    n, root = len(d2), np.sqrt(a)
    rows = d2 @ (a / a.sum())
    K = -0.5 * root[:, None] * (d2 - rows - rows[:, None] + rows @ (a / a.sum())) * root
    values = np.delete(values := linalg.eigvalsh(K)[::-1], np.abs(values).argmin())  # K √a = 0
    # The eigenvalues have errors of up to n ε ‖K‖, and the square root of the gap is a distance from them and their sum
    # to a set, so that it changes by at most √(n + 1) times their change in the Euclidean norm.
    slack = 4 * n * EPS * float(np.linalg.norm(K)) * np.sqrt(n + 1)
    gaps = [max(0.0, np.sqrt(_spectral_gap(values, min(d, n - 1))) - slack) for d in dimensions]
    return 2 * np.square(gaps)


def _spectral_gap(values: Array, d: int) -> float:
    """Return the minimum over μ ≥ 0 of Σ_{i≤d} (μ_i − λ_i)² + Σ_{i>d} λ_i² + (Σ_i μ_i − Σ_i λ_i)².

    λ are the `values`, descending. The minimum has μ_i − λ_i = max(s, −λ_i) with one number s, which solves
    s + Σ_i max(s, −λ_i) = R = Σ_{i>d} λ_i; the left side increases with s.
    """
    floors, R = np.sort(-values[:d]), float(values[d:].sum())
    free = np.arange(d + 1)  # for the number of terms with max(s, −λ_i) = s
    tails = np.append(floors[::-1].cumsum()[::-1], 0.0)
    s = (R - tails) / (1 + free)
    s_value = s[int((s <= np.append(floors, np.inf)).argmax())]
    change = np.maximum(s_value, floors)
    return float(change @ change + np.square(values[d:]).sum() + (change.sum() - R) ** 2)
