"""How well the arrangement of the whole survives the embedding: random triplets, and the centres of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.utils import check_random_state

from .._types import Array
from ..data import check_sparse_table
from ..inputs import Input
from .checks import check_labels, check_pair, is_euclidean_table
from .distances import rank_correlation
from .measured import Measured
from .sample import draw_partners, sample_points

EVERY = 60  # points up to which all triplets are compared: at most 102,660
TRIPLETS = 100_000  # compared in all; an error of at most 0.0016
LEAST = 5  # triplets per point, at least; chosen


def triplet_accuracy(X: Any, Y: Any, *, metric: Any = "euclidean", random_state: Any = 0) -> Measured:
    """Return the share of triplets (i; j, l) whose order of d(i, j) and d(i, l) is the same in data and map.

    All triplets of up to 60 points, of more about 100,000 random ones, as many for each point. 1/2 is chance.
    """
    data, drawn = check_pair(X, Y, metric)
    n = data.n
    if n <= EVERY:
        j, l = np.triu_indices(n - 1, 1)  # noqa: E741
        points = np.arange(n)
        others = np.array([np.delete(points, i) for i in points])
        kept = _same_order(data, drawn, points, others[:, j], others[:, l])
        return Measured.over(kept.mean(axis=1), points, n)
    points = sample_points(n, random_state)
    m, t = len(points), max(LEAST, -(-TRIPLETS // len(points)))
    rng = check_random_state(random_state)
    first = draw_partners(points, n, t, rng)
    second = _another(points, first, n, rng)
    values = _same_order(data, drawn, points, first, second).mean(axis=1)
    # Two stages: m of n points, t triplets at each (Cochran 1977, section 10.3).
    between, within, share = values.var(ddof=1), (values * (1 - values)).mean() * t / (t - 1), m / n
    error = np.sqrt((1 - share) * between / m + share * within / (m * t))
    return Measured(float(values.mean()), error, points, values)


def centroid_correlation(X: Any, Y: Any, labels: Any) -> Measured:
    """Return the rank correlation of the distances between class centres in the data with those in the map.

    X is a table (n, D), dense or sparse, with Euclidean distances. At least three classes are needed.
    """
    _, drawn = check_pair(X, Y)
    if not is_euclidean_table(X, "euclidean"):
        raise ValueError("a metric space has no centres of classes; give a table (n, D)")
    classes, number = check_labels(labels, drawn.n)
    if len(classes) < 3:
        raise ValueError(
            f"there are {len(classes)} classes; the order of distances between centres takes three or more"
        )
    member = sparse.csr_matrix((np.ones(drawn.n), (number, np.arange(drawn.n))))
    sizes = np.bincount(number)[:, None]
    table = check_sparse_table(X) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    centres = member @ table
    centres = (centres.toarray() if sparse.issparse(centres) else centres) / sizes
    return Measured(rank_correlation(pdist(centres), pdist(member @ drawn.X / sizes)), points=np.arange(drawn.n))


def _same_order(data: Input, drawn: Input, points: Array, first: Array, second: Array) -> Array:
    """Return whether each triplet (m, t) has its order in both; equal distances have an order of their own."""
    rows = np.repeat(points, first.shape[1])
    signs = [
        np.sign(source.pairs(rows, first.ravel()) - source.pairs(rows, second.ravel())) for source in (data, drawn)
    ]
    return (signs[0] == signs[1]).reshape(first.shape)


def _another(points: Array, first: Array, n: int, rng: np.random.RandomState) -> Array:
    """Return a random third point for each pair: neither the point nor the first."""
    other = rng.randint(n - 2, size=first.shape)
    low, high = np.minimum(points[:, None], first), np.maximum(points[:, None], first)
    other += other >= low
    return other + (other >= high)
