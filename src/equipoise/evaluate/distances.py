"""Measure how well a map preserves distances: stress, Shepard diagram, distortion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import rankdata

from .._types import Array
from ..arrays.blocks import FIXED_PAIRS
from ..arrays.namespace import check_random_state
from ..inputs import Input, InputSpace
from ..linalg.pca import on_one_blas_thread
from ..spaces import Distortion, Precomputed, summarize_distortion
from ..spaces.embeddability import stress_bound
from .checks import check_pair
from .measured import Measured
from .sample import ALL, draw_partners, draw_points

PAIRS = 2**20  # sampled pairs for the stress: a relative error of about 1/1000
SHEPARD_PAIRS = 50_000  # pairs of a Shepard diagram: an error of the correlation below 0.005
BOUND_POINTS = 500  # points whose distances bound the stress of every map, which takes a tenth of a second; chosen
DISTORTION_POINTS = 3_000  # points whose pairs give the distribution of dilations; chosen


@dataclass(frozen=True)
class Stress:
    """The stress of a map, raw and normalised in two ways (docs/math.md, eq. (21)).

    d_X and d_Y are the distances of a pair of points in the data and in the map.

    Attributes
    ----------
    raw : Measured
        Σ_{i<j} (d_Y − d_X)².
    normalised : Measured
        √(raw / Σ_{i<j} d_X²).
    scale_free : Measured
        The smallest `normalised` that can be reached by multiplying the map by a factor.
    scale : float
        The factor by which the map must be multiplied to reach `scale_free`.
    """

    raw: Measured
    normalised: Measured
    scale_free: Measured
    scale: float


@on_one_blas_thread
def stress(X: Any, Y: Any, *, metric: Any = None, random_state: Any = 0) -> Stress:
    """Return the stress of a map; above 20,000 points it is estimated from 2²⁰ random pairs.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data.
    Y : array-like of shape (n, d)
        The map.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of a fitted method Y, else
        "euclidean".
    random_state : int or RandomState, default=0
        Seed of the sample of pairs.

    Returns
    -------
    stress : Stress
    """
    data, embedding = check_pair(X, Y, metric)
    n = data.n
    pairs = n * (n - 1) / 2
    if n <= ALL:
        totals = np.zeros(4)
        for d_x, d_y in _all_pairs(data, embedding):
            totals += [np.square(d_y - d_x).sum(), d_x @ d_x, d_y @ d_y, d_x @ d_y]
        means, errors = totals / pairs, np.zeros(3)
    else:
        i, j = _random_pairs(n, PAIRS, random_state)
        d_x, d_y = data.pairs(i, j), embedding.pairs(i, j)
        terms = np.stack([np.square(d_y - d_x), d_x * d_x, d_y * d_y, d_x * d_y])
        means, errors = terms.mean(axis=1), _errors(terms)
    raw, xx, yy, xy = means
    if not xx > 0:
        raise ValueError("all distances in X are 0, so the stress is undefined; check the data")
    points = np.arange(n)
    return Stress(
        Measured(raw * pairs, errors[0] * pairs, points),
        Measured(np.sqrt(raw / xx), errors[1], points),
        Measured(np.sqrt(max(0.0, 1 - xy**2 / (xx * yy))), errors[2], points),
        float(xy / yy),
    )


@dataclass(frozen=True)
class LowestStress:
    """A lower bound on the scale-free stress of every map in as many dimensions, beside the stress of one map.

    Attributes
    ----------
    bound : float
        Lower bound on `Stress.scale_free` and `Stress.normalised` of every map of `points` (docs/math.md, eq. (E7)).
    of_map : float
        The scale-free stress of the map on the same points.
    points : ndarray of shape (m,)
        The rows for which both hold: all of them or, above 500, a random sample of 500.
    """

    bound: float
    of_map: float
    points: Array = field(repr=False)


def lowest_stress(
    X: Any, Y: Any, *, metric: Any = None, random_state: Any = 0, bound: float | None = None
) -> LowestStress:
    """Return a lower bound on the stress of every map of some points, beside the stress of the map Y on them.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data.
    Y : array-like of shape (n, d)
        The map; the bound holds for maps in d dimensions.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of a fitted method Y, else
        "euclidean".
    random_state : int or RandomState, default=0
        Seed of the sample of points.
    bound : float, optional
        The bound, if it is known from another map of the same data in d dimensions with the same seed.

    Returns
    -------
    lowest : LowestStress
    """
    data, embedding = check_pair(X, Y, metric)
    points = draw_points(data.n, BOUND_POINTS, random_state)
    D, d = (InputSpace(source, points).matrix() for source in (data, embedding))
    np.fill_diagonal(D, 0.0)
    if bound is None:
        bound = stress_bound(Precomputed((D + D.T) / 2), embedding.X.shape[1])
    D, d = D / (D.max() or 1.0), d / (d.max() or 1.0)  # squares neither overflow nor underflow
    xx, yy, xy = float((D * D).sum()), float((d * d).sum()), float((D * d).sum())
    of_map = float(np.sqrt(max(0.0, 1 - xy**2 / (xx * yy)))) if xx * yy > 0 else 0.0
    return LowestStress(bound, of_map, points)


@dataclass(frozen=True)
class Shepard:
    """A Shepard diagram: the distances of pairs of points in the data and in the map (Shepard 1962).

    Attributes
    ----------
    i, j : ndarray of shape (m,)
        The two points of each pair.
    d_x, d_y : ndarray of shape (m,)
        The distances of the pairs in the data and in the map.
    correlation : Measured
        Spearman's rank correlation of d_x and d_y.
    """

    i: Array = field(repr=False)
    j: Array = field(repr=False)
    d_x: Array = field(repr=False)
    d_y: Array = field(repr=False)
    correlation: Measured


def shepard(X: Any, Y: Any, pairs: int = SHEPARD_PAIRS, *, metric: Any = None, random_state: Any = 0) -> Shepard:
    """Return a Shepard diagram: the distances of pairs in the data and in the map, and their rank correlation.

    The standard error of a rank correlation ρ is (1 − ρ²) √((1 + ρ²/2) / (pairs − 3)) (Bonett & Wright 2000), or 0 if
    all pairs are used.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data.
    Y : array-like of shape (n, d)
        The map.
    pairs : int, default=50_000
        Number of random pairs, at least 4. All pairs are used if there are no more than this.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of a fitted method Y, else
        "euclidean".
    random_state : int or RandomState, default=0
        Seed of the sample of pairs.

    Returns
    -------
    shepard : Shepard
    """
    data, embedding = check_pair(X, Y, metric)
    if not isinstance(pairs, int | np.integer) or pairs < 4:
        raise ValueError(f"pairs={pairs!r} is not an integer of at least 4; pass how many pairs to draw")
    n = data.n
    all_pairs = pairs >= n * (n - 1) // 2
    i, j = np.triu_indices(n, 1) if all_pairs else _random_pairs(n, int(pairs), random_state)
    d_x, d_y = data.pairs(i, j), embedding.pairs(i, j)
    if not (d_x != d_x[0]).any():
        raise ValueError(
            f"the distances of all {len(i):,} compared pairs in X equal {d_x[0]:g}, so their ranks are undefined; check"
            " the data"
        )
    rho = rank_correlation(d_x, d_y)
    error = 0.0 if all_pairs else (1 - rho**2) * np.sqrt((1 + rho**2 / 2) / (len(i) - 3))
    return Shepard(i, j, d_x, d_y, Measured(rho, error, np.arange(n)))


def distortions(X: Any, Y: Any, *, metric: Any = None, random_state: Any = 0) -> Distortion:
    """Return the distributions of dilation and absolute distortion over all pairs of up to 3,000 points.

    The dilation of a pair is its distance in the map divided by that in the data, and its absolute distortion is the
    absolute difference of the two. Above 3,000 points, a random sample of 3,000 is measured, and all numbers are those
    of the sample. Even then, the attributes `expanded` and `contracted` of the result are pairs of row indices of X.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data.
    Y : array-like of shape (n, d)
        The map.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of a fitted method Y, else
        "euclidean".
    random_state : int or RandomState, default=0
        Seed of the sample of points.

    Returns
    -------
    distortion : Distortion
    """
    data, embedding = check_pair(X, Y, metric)
    points = draw_points(data.n, DISTORTION_POINTS, random_state)
    distortion = summarize_distortion(InputSpace(data, points), InputSpace(embedding, points))
    expanded, contracted = ((int(points[i]), int(points[j])) for i, j in (distortion.expanded, distortion.contracted))
    return replace(distortion, expanded=expanded, contracted=contracted)


@on_one_blas_thread
def rank_correlation(a: Array, b: Array) -> float:
    """Return Spearman's rank correlation of two arrays (m,); 0 if either is constant."""
    deviations = [ranks - ranks.mean() for ranks in (rankdata(a), rankdata(b))]
    norms = [np.sqrt(d @ d) for d in deviations]
    return float(deviations[0] @ deviations[1] / (norms[0] * norms[1])) if all(norms) else 0.0


def _all_pairs(data: Input, embedding: Input) -> Iterator[tuple[Array, Array]]:
    """Yield the distances of all pairs i < j in the data and in the map, one block of pairs after another."""
    n, start = data.n, 0
    while start < n - 1:
        rows = np.arange(start, min(start + max(1, FIXED_PAIRS // (n - start)), n - 1))
        columns = np.arange(start, n)
        later = columns > rows[:, None]
        yield data.block_by_products(rows, columns)[later], embedding.block_by_products(rows, columns)[later]
        start += len(rows)


def _random_pairs(n: int, count: int, random_state: Any) -> tuple[Array, Array]:
    """Return `count` random pairs of distinct points; a pair can occur several times."""
    rng = check_random_state(random_state)
    i = rng.randint(n, size=count)
    return i, draw_partners(i, n, 1, rng)[:, 0]


def _errors(terms: Array) -> Array:
    """Return the standard errors (3,) of the raw stress per pair, of the normalised and of the scale-free stress.

    The delta method gives the last two.

    Parameters
    ----------
    terms : ndarray of shape (4, m)
        (d_Y − d_X)², d_X², d_Y² and d_X d_Y of m random pairs.
    """
    raw, xx, yy, xy = terms.mean(axis=1)
    normalised = np.sqrt(raw / xx)
    c2 = xy**2 / (xx * yy)
    scale_free = np.sqrt(max(1 - c2, np.finfo(np.float64).tiny))
    deviations = (
        terms[0],
        (terms[0] - raw / xx * terms[1]) / (2 * xx * max(normalised, np.finfo(np.float64).tiny)),
        c2 * (2 * terms[3] / xy - terms[1] / xx - terms[2] / yy) / (2 * scale_free),
    )
    return np.array([d.std(ddof=1) for d in deviations]) / np.sqrt(terms.shape[1])
