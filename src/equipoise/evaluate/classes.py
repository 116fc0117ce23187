"""What a map shows of known classes: errors of nearest-neighbour classifiers, and how apart the classes lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from .._types import Array
from .checks import check_k, check_labels, check_map
from .measured import DaviesBouldinCurve, Measured
from .sample import ALL, draw_points, sample_points

BLOCK = 2**21  # distances at a time
STARTS = 4  # of k-means; chosen


def one_nn_error(Y: Any, labels: Any, folds: int = 10) -> Measured:
    """Return the error of a 1-nearest-neighbour classifier on the map, cross-validated (Lin et al. 2024, Table 2).

    Classes smaller than the number of folds lower it to their size, and to no less than 2.
    """
    return Measured(1 - _accuracy(Y, labels, 1, folds), points=np.arange(len(Y)))


def knn_accuracy(Y: Any, labels: Any, k: int = 10, folds: int = 10) -> Measured:
    """Return the accuracy of a k-nearest-neighbour classifier on the map, cross-validated as in `one_nn_error`."""
    return Measured(_accuracy(Y, labels, k, folds), points=np.arange(len(Y)))


def _accuracy(Y: Any, labels: Any, k: int, folds: int) -> float:
    Y = check_map(Y)
    _, number = check_labels(labels, len(Y))
    smallest = int(np.bincount(number).min())
    splits = max(2, min(folds, smallest))
    k = check_k(k, len(Y) - -(-len(Y) // splits))  # of the points that are left to learn from
    split = StratifiedKFold(n_splits=splits, shuffle=True, random_state=0)
    return float(cross_val_score(KNeighborsClassifier(n_neighbors=k), Y, number, cv=split).mean())


def silhouette(Y: Any, labels: Any, *, random_state: Any = 0) -> Measured:
    """Return (b − a) / max(a, b), on average (Rousseeuw 1987).

    a is the mean distance of a point to its class, b to the nearest of the others; a class of one point counts 0. Of
    more than 20,000 points a sample is looked at.
    """
    Y = check_map(Y)
    classes, number = check_labels(labels, len(Y))
    sizes = np.bincount(number)
    if len(classes) == len(Y):
        raise ValueError("every point has a class of its own; a silhouette needs classes of several points")
    Z = Y[np.argsort(number, kind="stable")]  # a class is a run of columns
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    points = sample_points(len(Y), random_state)
    values = np.empty(len(points))
    step = max(1, BLOCK // len(Y))
    for start in range(0, len(points), step):
        rows = points[start : start + step]
        own, line = number[rows], np.arange(len(rows))
        sums = np.add.reduceat(cdist(Y[rows], Z), starts, axis=1)
        inside = sums[line, own] / np.maximum(sizes[own] - 1, 1)
        means = sums / sizes
        means[line, own] = np.inf
        outside = means.min(axis=1)
        larger = np.maximum(inside, outside)
        score = (outside - inside) / np.where(larger > 0, larger, 1.0)
        values[start : start + step] = np.where(sizes[own] == 1, 0.0, score)
    return Measured.over(values, points, len(Y))


def davies_bouldin(Y: Any, labels: Any) -> Measured:
    """Return the mean over classes a of max_b (s_a + s_b) / d_ab (Davies & Bouldin 1979); the lower, the more apart.

    s is the mean distance of a class to its centre, d_ab the distance between centres. Infinite if centres coincide.
    """
    Y = check_map(Y)
    classes, number = check_labels(labels, len(Y))
    if len(classes) == len(Y):
        raise ValueError("every point has a class of its own; the index needs classes of several points")
    return Measured(_davies_bouldin(Y, number), points=np.arange(len(Y)))


def _davies_bouldin(Y: Array, number: Array) -> float:
    sizes = np.bincount(number)
    centres = np.stack([np.bincount(number, weights=column) for column in Y.T], axis=1) / sizes[:, None]
    spread = np.bincount(number, weights=np.linalg.norm(Y - centres[number], axis=1)) / sizes
    apart, both = cdist(centres, centres), spread[:, None] + spread
    with np.errstate(divide="ignore"):
        ratio = np.divide(both, apart, out=np.zeros_like(both), where=both > 0)
    np.fill_diagonal(ratio, 0.0)
    return float(ratio.max(axis=1).mean())


def davies_bouldin_curve(
    Y: Any, clusters: Iterable[int] = range(2, 31), *, random_state: Any = 0
) -> DaviesBouldinCurve:
    """Return the Davies-Bouldin index of k-means clusters of the map over their number (Lin et al. 2024, Fig. 6-7).

    Of more than 20,000 points as many are drawn and clustered.
    """
    Y = check_map(Y)
    counts = np.array(list(clusters))
    points = draw_points(len(Y), ALL, random_state)
    Y = Y[points]
    places = len(np.unique(Y, axis=0))
    if counts.ndim != 1 or not counts.size or counts.dtype.kind not in "iu":
        raise ValueError(f"clusters must list numbers of clusters, got {clusters!r}")
    if counts.min() < 2 or counts.max() >= places:
        raise ValueError(
            f"numbers of clusters must be between 2 and {places - 1}, one less than the places of the points;"
            f" got {counts.min()} to {counts.max()}"
        )
    index = [_davies_bouldin(Y, _clusters(Y, int(count), random_state)) for count in counts]
    return DaviesBouldinCurve(counts, np.array(index), points)


def _clusters(Y: Array, count: int, random_state: Any) -> Array:
    with threadpool_limits(1):  # the same clusters for any number of threads
        found: Array = KMeans(count, n_init=STARTS, random_state=random_state).fit_predict(Y)
    return np.unique(found, return_inverse=True)[1]
