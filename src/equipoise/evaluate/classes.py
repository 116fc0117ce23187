"""Measure how well a map separates known classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from .._plural import plural
from .._types import Array
from .._warn import warn
from ..arrays.blocks import rows_per_block
from ..linalg.pca import one_blas_thread
from .checks import check_embedding, check_k, check_labels, check_map, number_labels
from .curved_map import CurvedMap
from .measured import DaviesBouldinCurve, Measured
from .sample import ALL, draw_points, sample_points

STARTS = 4  # initialisations of k-means; chosen


def one_nn_error(Y: Any, labels: Any, folds: int = 10) -> Measured:
    """Return the cross-validated error of a 1-nearest-neighbour classifier on the map (Lin et al. 2024, Table 2).

    Parameters
    ----------
    Y : array-like of shape (n, d)
        The map.
    labels : array-like of shape (n,)
        The class of each point. Masked points of a masked array are left out.
    folds : int, default=10
        Number of folds. If the smallest class has fewer points than this, its size is used instead, but at least 2. A
        warning says how many classes have a single point, which is always an error.

    Returns
    -------
    error : Measured
    """
    accuracy = knn_accuracy(Y, labels, 1, folds)
    return Measured(1 - accuracy, points=accuracy.points)


def knn_accuracy(Y: Any, labels: Any, k: int = 10, folds: int = 10) -> Measured:
    """Return the cross-validated accuracy of a k-nearest-neighbour classifier on the map.

    Parameters
    ----------
    Y : array-like of shape (n, d)
        The map.
    labels : array-like of shape (n,)
        The class of each point. Masked points of a masked array are left out.
    k : int, default=10
        Number of neighbours; at most the number of training points, those outside the largest fold.
    folds : int, default=10
        Number of folds, as in `one_nn_error`.

    Returns
    -------
    accuracy : Measured
    """
    embedding = check_embedding(Y)
    X, metric = embedding.X, "euclidean"
    number, points, splits = check_folds(labels, embedding.n, k, folds)
    if isinstance(embedding, CurvedMap):
        X, metric = CurvedMap(X[points], embedding.geometry).all_distances(), "precomputed"
    else:
        X = X[points]
    from sklearn.model_selection import StratifiedKFold, cross_val_score  # slow to import
    from sklearn.neighbors import KNeighborsClassifier

    if lone := int((np.bincount(number) == 1).sum()):
        warn(f"{plural(lone, 'class has', 'classes have')} a single point, which cannot be classified as its class")
    split = StratifiedKFold(n_splits=splits, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class in y has only 1")  # said above in plainer words
        scores = cross_val_score(KNeighborsClassifier(n_neighbors=k, metric=metric), X, number, cv=split)
    return Measured(float(scores.mean()), points=points)


def check_folds(labels: Any, n: int, k: int, folds: int = 10) -> tuple[Array, Array, int]:
    """Check the arguments of `knn_accuracy` for n points.

    Return the class indices (m,) of the points with a label, these points (m,), and the number of folds.
    """
    number = number_labels(labels, n)
    points = np.flatnonzero(number >= 0)
    number, n = number[points], len(points)
    if number.max() + 1 == n:
        raise ValueError("all labels are different; a classifier needs at least one class with several points")
    splits = max(2, min(folds, int(np.bincount(number).min())))
    training = n - -(-n // splits)  # points outside the largest fold
    check_k(k, training + 1, limit="the number of training points")
    return number, points, splits


def silhouette(Y: Any, labels: Any, *, random_state: Any = 0) -> Measured:
    """Return the mean silhouette, (b − a) / max(a, b) averaged over the points (Rousseeuw 1987).

    Here a is the mean distance of a point to the other points of its class. Its mean distance to the points of each
    other class is also computed, and b is the smallest of these. Points that are alone in their class count as 0. Above
    20,000 points, the average is over a random sample of them.

    Parameters
    ----------
    Y : array-like of shape (n, d)
        The map.
    labels : array-like of shape (n,)
        The class of each point.
    random_state : int or RandomState, default=0
        Seed of the sample.

    Returns
    -------
    silhouette : Measured
    """
    Y = check_map(Y)
    classes, number = check_labels(labels, len(Y))
    sizes = np.bincount(number)
    if len(classes) == len(Y):
        raise ValueError("all labels are different; the silhouette needs at least one class with several points")
    Z = Y[np.argsort(number, kind="stable")]  # sorted by class, so that each class is a contiguous block of columns
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    points = sample_points(len(Y), random_state)
    values = np.empty(len(points))
    step = rows_per_block(8.0 * len(Y))
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
    """Return the Davies-Bouldin index, the mean over classes a of max_b (s_a + s_b) / d_ab; lower is better.

    Here s_a is the mean distance of the points of class a from their centroid, and d_ab is the distance between the
    centroids of classes a and b (Davies & Bouldin 1979). The index is infinite if two centroids coincide, unless all
    points of both classes coincide too.

    Parameters
    ----------
    Y : array-like of shape (n, d)
        The map.
    labels : array-like of shape (n,)
        The class of each point.

    Returns
    -------
    index : Measured
    """
    Y = check_map(Y)
    classes, number = check_labels(labels, len(Y))
    if len(classes) == len(Y):
        raise ValueError(
            "all labels are different; the Davies-Bouldin index needs at least one class with several points"
        )
    return Measured(_davies_bouldin(Y, number), points=np.arange(len(Y)))


def _davies_bouldin(Y: Array, number: Array) -> float:
    sizes = np.bincount(number)
    centroids = np.stack([np.bincount(number, weights=column) for column in Y.T], axis=1) / sizes[:, None]
    spread = np.bincount(number, weights=np.linalg.norm(Y - centroids[number], axis=1)) / sizes
    distance, both = cdist(centroids, centroids), spread[:, None] + spread
    with np.errstate(divide="ignore"):
        ratio = np.divide(both, distance, out=np.zeros_like(both), where=both > 0)
    np.fill_diagonal(ratio, 0.0)
    return float(ratio.max(axis=1).mean())


def davies_bouldin_curve(
    Y: Any, clusters: Iterable[int] = range(2, 31), *, random_state: Any = 0
) -> DaviesBouldinCurve:
    """Cluster the map by k-means with several numbers of clusters, and return the Davies-Bouldin index for each.

    See Lin et al. 2024, Fig. 6-7. Above 20,000 points, a random sample of 20,000 is clustered.

    Parameters
    ----------
    Y : array-like of shape (n, d)
        The map.
    clusters : iterable of int, default=range(2, 31)
        Numbers of clusters to try, each at least 2 and less than the number of distinct points that are clustered.
    random_state : int or RandomState, default=0
        Seed of the sample and of k-means.

    Returns
    -------
    curve : DaviesBouldinCurve
    """
    Y = check_map(Y)
    counts = np.array(list(clusters) if isinstance(clusters, Iterable) else clusters)
    points = draw_points(len(Y), ALL, random_state)
    Y = Y[points]
    distinct = len(np.unique(Y, axis=0))
    if counts.ndim != 1 or not counts.size or counts.dtype.kind not in "iu":
        raise ValueError(f"`clusters` must be a non-empty sequence of integers, such as range(2, 31), got {clusters!r}")
    if counts.min() < 2 or counts.max() >= distinct:
        raise ValueError(
            f"all values in `clusters` must be between 2 and {distinct - 1}, one less than the number of distinct"
            f" points; the smallest value is {counts.min()}, the largest {counts.max()}"
        )
    index = [_davies_bouldin(Y, _clusters(Y, int(count), random_state)) for count in counts]
    return DaviesBouldinCurve(counts, np.array(index), points)


def _clusters(Y: Array, count: int, random_state: Any) -> Array:
    from sklearn.cluster import KMeans  # slow to import

    with (
        one_blas_thread(),
        threadpool_limits(1, user_api="openmp"),
    ):  # so that results do not depend on the number of threads
        clusters: Array = KMeans(count, n_init=STARTS, random_state=random_state).fit_predict(Y)
    return np.unique(clusters, return_inverse=True)[1]
