"""Estimates the recall of a neighbour search on a sample of rows; used by the searches on the CPU and on GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..arrays.namespace import array_namespace

SAMPLE = 500  # rows on which the search on the CPU estimates its recall
ROUNDING = 1e-5  # relative difference between float32 sums of squares that are added in another order


def sample_rows(n: int) -> Array:
    """Return sorted indices of 500 random rows (all if n < 500); the search on the CPU estimates its recall on them.

    The same n always gives the same rows.
    """
    return np.sort(np.random.RandomState(0).permutation(n)[:SAMPLE])


def estimate_recall(d2: Any, kth: Any) -> float:
    """Return the recall: the fraction of found neighbours that are no farther than the true k-th neighbour.

    If several points are at the distance of the k-th neighbour, each of them counts as a true neighbour.

    Parameters
    ----------
    d2 : array or tensor of shape (m, k)
        Squared distances from the sampled rows to the neighbours found.
    kth : array or tensor of shape (m,)
        Squared distances from the sampled rows to their true k-th neighbours.
    """
    xp = array_namespace(d2)
    return float(xp.mean(xp.astype(d2 <= (kth * (1 + ROUNDING))[:, None], xp.float64)))


def reach_for_recall(ranks: Any, min_recall: float) -> int:
    """Return how many of the nearest cells must be searched to reach the recall `min_recall`.

    Parameters
    ----------
    ranks : array or tensor of int
        For each sampled point and each of its true neighbours: the rank, counted from 0, of the neighbour's cell among
        the cells nearest to the point.
    min_recall : float
        Fraction of the true neighbours that must lie in the searched cells.
    """
    xp = array_namespace(ranks)
    ordered = xp.sort(xp.reshape(ranks, (-1,)))
    count = ordered.shape[0]
    return int(ordered[min(count, max(1, int(np.ceil(min_recall * count)))) - 1]) + 1
