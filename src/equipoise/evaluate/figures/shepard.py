"""Compute the points and bands of Shepard diagrams: distances in the map against distances in the data."""

from __future__ import annotations

import numpy as np

from ..._types import Array

PAIRS = 4000  # number of pairs drawn; chosen
BINS = 24  # bins of the distances in the data, with equal numbers of pairs; chosen


def sample_pairs(d_x: Array, d_y: Array) -> tuple[Array, Array]:
    """Return the distances of at most PAIRS pairs, at evenly spaced indices of `d_x` and `d_y`."""
    rows = np.linspace(0, len(d_x) - 1, min(len(d_x), PAIRS)).astype(np.int64)
    return d_x[rows], d_y[rows]


def distance_bands(d_x: Array, d_y: Array) -> tuple[Array, Array, Array, Array]:
    """Sort the pairs by d_x and split them into BINS bins; summarise each bin.

    Return four arrays: for each bin, the median of d_x and the 5, 50 and 95 % quantiles of d_y.
    """
    order = np.argsort(d_x, kind="stable")
    bins = [part for part in np.array_split(order, BINS) if len(part)]
    at = np.array([np.median(d_x[part]) for part in bins])
    low, median, high = np.array([np.quantile(d_y[part], (0.05, 0.5, 0.95)) for part in bins]).T
    return at, low, median, high
