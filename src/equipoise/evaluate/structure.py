"""Measure how well a map preserves large-scale structure, by triplets of points and by class centroids."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist

from .._types import Array
from ..arrays.csr import dense
from ..arrays.namespace import check_random_state
from ..data import check_sparse_table
from ..inputs import Input
from .checks import check_pair, is_euclidean_table, number_labels
from .curved_map import CurvedMap, describe_geometry
from .distances import rank_correlation
from .measured import Measured
from .sample import draw_partners, sample_points

ALL_TRIPLETS = 60  # up to this number of points all triplets are compared, at most 102,660
TRIPLETS = 100_000  # sample size above that; a standard error of at most 0.0016
MIN_TRIPLETS = 5  # minimum number of triplets per point; chosen


def triplet_accuracy(X: Any, Y: Any, *, metric: Any = None, random_state: Any = 0) -> Measured:
    """Return the fraction of triplets (i; j, l) for which d(i, j) and d(i, l) have the same order in data and map.

    For a random map it is about 1/2. Up to 60 points, all triplets are compared; for more points, about 100,000 random
    triplets are compared, the same number for each i. Above 20,000 points, i runs only over a random sample of points.

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
        Seed of the sample of triplets.

    Returns
    -------
    accuracy : Measured
    """
    data, embedding = check_pair(X, Y, metric)
    n = data.n
    if n <= ALL_TRIPLETS:
        j, l = np.triu_indices(n - 1, 1)  # noqa: E741
        points = np.arange(n)
        others = np.array([np.delete(points, i) for i in points])
        same = _same_order(data, embedding, points, others[:, j], others[:, l])
        return Measured.over(same.mean(axis=1), points, n)
    points = sample_points(n, random_state)
    m, t = len(points), max(MIN_TRIPLETS, -(-TRIPLETS // len(points)))
    rng = check_random_state(random_state)
    first = draw_partners(points, n, t, rng)
    second = _draw_third(points, first, n, rng)
    values = _same_order(data, embedding, points, first, second).mean(axis=1)
    # Two-stage sampling: m of n points, t triplets at each (Cochran 1977, section 10.3).
    between, within, fraction = values.var(ddof=1), (values * (1 - values)).mean() * t / (t - 1), m / n
    error = np.sqrt((1 - fraction) * between / m + fraction * within / (m * t))
    return Measured(float(values.mean()), error, points, values)


def centroid_correlation(X: Any, Y: Any, labels: Any) -> Measured:
    """Return the rank correlation of the distances between class centroids in the data and in the map.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D)
        The data, with Euclidean distances.
    Y : array-like of shape (n, d)
        The map.
    labels : array-like of shape (n,)
        The class of each point; at least three classes. Masked points of a masked array are left out.

    Returns
    -------
    correlation : Measured
    """
    _, embedding = check_pair(X, Y, "euclidean")
    if isinstance(embedding, CurvedMap):
        raise ValueError(
            f"centroid_correlation needs centroids, which are not defined in"
            f" {describe_geometry(embedding.geometry)}; use triplet_accuracy"
        )
    if not is_euclidean_table(X, "euclidean"):
        raise ValueError("centroid_correlation needs a table X (n, D), got a metric space; pass its coordinates")
    number = number_labels(labels, embedding.n)
    points = np.flatnonzero(number >= 0)
    sizes = np.bincount(number[points])[:, None]
    if len(sizes) < 3:
        raise ValueError(f"centroid_correlation needs three or more classes, but labels has {len(sizes)}")
    member = sparse.csr_matrix((np.ones(len(points)), (number[points], points)), shape=(len(sizes), embedding.n))
    table = check_sparse_table(X) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    centroids = dense(member @ table) / sizes
    return Measured(rank_correlation(pdist(centroids), pdist(member @ embedding.X / sizes)), points=points)


def _same_order(data: Input, embedding: Input, points: Array, first: Array, second: Array) -> Array:
    """Return for each triplet whether its two distances have the same order in data and map.

    A tie in the data must also be a tie in the map, and vice versa. A triplet consists of points[a], first[a, b]
    and second[a, b]; the result has the shape (m, t) of `first` and `second`.
    """
    rows = np.repeat(points, first.shape[1])
    signs = [
        np.sign(source.pairs(rows, first.ravel()) - source.pairs(rows, second.ravel())) for source in (data, embedding)
    ]
    return (signs[0] == signs[1]).reshape(first.shape)


def _draw_third(points: Array, first: Array, n: int, rng: np.random.RandomState) -> Array:
    """Return a random third point for each pair (point, first), different from both."""
    other = rng.randint(n - 2, size=first.shape)
    low, high = np.minimum(points[:, None], first), np.maximum(points[:, None], first)
    other += other >= low
    return other + (other >= high)
