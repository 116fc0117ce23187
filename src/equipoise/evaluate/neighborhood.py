"""Measure how well a map preserves neighbourhoods.

Each function finds the neighbours again. For several measures of one map, use `Neighborhoods`, which finds them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .checks import check_k, count_points
from .measured import Measured, RecallCurve
from .ranks import Neighborhoods, check_ranks

LARGEST = 200  # largest neighbourhood of a recall curve by default; chosen


def trustworthiness(
    X: Any, Y: Any, k: int = 15, *, metric: Any = None, n_jobs: int | None = None, random_state: Any = 0
) -> Measured:
    """Return the trustworthiness: 1 if the k nearest points in the map are the k nearest in the data, 0 at worst.

    See Venna & Kaski 2001 and docs/math.md, eq. (19). The attribute `values` of the result shows, for each point,
    whether it has false neighbours: points that are near in the map but not in the data.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data.
    Y : array-like of shape (n, d)
        The map.
    k : int, default=15
        Size of the neighbourhoods.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of a fitted method Y, else
        "euclidean".
    n_jobs : int, optional
        Number of threads for a dense table with Euclidean distances; by default all cores, or OMP_NUM_THREADS if that
        is fewer. Other data use one thread.
    random_state : int or RandomState, default=0
        Seed of the sample of points, if there are more than 20,000.

    Returns
    -------
    trustworthiness : Measured
    """
    return Neighborhoods(X, Y, k, metric=metric, n_jobs=n_jobs, random_state=random_state).trustworthiness(k)


def continuity(
    X: Any, Y: Any, k: int = 15, *, metric: Any = None, n_jobs: int | None = None, random_state: Any = 0
) -> Measured:
    """Return the continuity: 1 if the k nearest points in the data are the k nearest in the map, 0 at worst.

    See Venna & Kaski 2001 and docs/math.md, eq. (19). The attribute `values` of the result shows, for each point,
    whether the map separates it from its neighbours in the data.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data.
    Y : array-like of shape (n, d)
        The map.
    k : int, default=15
        Size of the neighbourhoods.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of a fitted method Y, else
        "euclidean".
    n_jobs : int, optional
        Number of threads for a dense table with Euclidean distances; by default all cores, or OMP_NUM_THREADS if that
        is fewer. Other data use one thread.
    random_state : int or RandomState, default=0
        Seed of the sample of points, if there are more than 20,000.

    Returns
    -------
    continuity : Measured
    """
    return Neighborhoods(X, Y, k, metric=metric, n_jobs=n_jobs, random_state=random_state).continuity(k)


def neighbor_recall(
    X: Any, Y: Any, k: int = 10, *, metric: Any = None, n_jobs: int | None = None, random_state: Any = 0
) -> Measured:
    """Return the mean fraction of a point's k nearest neighbours in X that are among its k nearest in Y.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data.
    Y : array-like of shape (n, d)
        The map.
    k : int, default=10
        Size of the neighbourhoods.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of a fitted method Y, else
        "euclidean".
    n_jobs : int, optional
        Number of threads for a dense table with Euclidean distances; by default all cores, or OMP_NUM_THREADS if that
        is fewer. Other data use one thread.
    random_state : int or RandomState, default=0
        Seed of the sample of points, if there are more than 20,000.

    Returns
    -------
    recall : Measured
    """
    return Neighborhoods(X, Y, k, metric=metric, n_jobs=n_jobs, random_state=random_state).recall(k)


def recall_curve(
    X: Any,
    Y: Any,
    ks: Sequence[int] | None = None,
    *,
    metric: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> RecallCurve:
    """Return the neighbour recall for several sizes of neighbourhoods.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data.
    Y : array-like of shape (n, d)
        The map.
    ks : sequence of int, optional
        Sizes of the neighbourhoods; by default 1, 2, 5, 10, … up to 200, or up to n − 1 if that is smaller.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of a fitted method Y, else
        "euclidean".
    n_jobs : int, optional
        Number of threads for a dense table with Euclidean distances; by default all cores, or OMP_NUM_THREADS if that
        is fewer. Other data use one thread.
    random_state : int or RandomState, default=0
        Seed of the sample of points, if there are more than 20,000.

    Returns
    -------
    curve : RecallCurve
    """
    n = count_points(X)
    if ks is not None and len(ks) == 0:
        raise ValueError("ks is empty; pass at least one size, such as [10], or omit ks")
    largest = min(LARGEST, n - 1) if ks is None else max(check_k(k, n, "each of ks") for k in ks)
    hoods = Neighborhoods(X, Y, largest, metric=metric, n_jobs=n_jobs, random_state=random_state)
    return hoods.recall_curve(ks)


def preservation_ratio(
    X: Any,
    Y: Any,
    l: int,  # noqa: E741  letters of the paper
    m: int,
    *,
    metric: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Measured:
    """Return how often the l-th to m-th neighbours keep their rank, divided by how often the first neighbour does.

    See Draganov & Dohn 2024, eq. (9), and docs/math.md, eq. (20). The ratio is NaN if no point keeps its nearest
    neighbour.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data.
    Y : array-like of shape (n, d)
        The map.
    l, m : int
        First and last rank; l must be smaller than m.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of a fitted method Y, else
        "euclidean".
    n_jobs : int, optional
        Number of threads for a dense table with Euclidean distances; by default all cores, or OMP_NUM_THREADS if that
        is fewer. Other data use one thread.
    random_state : int or RandomState, default=0
        Seed of the sample of points, if there are more than 20,000.

    Returns
    -------
    ratio : Measured
    """
    if (n := count_points(X)) > 2:  # fewer points are an error of their own
        check_ranks(l, m, n)
    hoods = Neighborhoods(X, Y, m, metric=metric, n_jobs=n_jobs, random_state=random_state)
    return hoods.preservation_ratio(l, m)
