"""Shepard plots: distances in the map over distances in the data."""

from __future__ import annotations

import numpy as np

from ..._types import Array

DOTS = 4000  # pairs that are drawn; chosen
BINS = 24  # along the distances in the data, each with as many pairs; chosen


def dots(d_x: Array, d_y: Array) -> tuple[Array, Array]:
    """Return the distances of as many pairs as are drawn, evenly from the list."""
    rows = np.linspace(0, len(d_x) - 1, min(len(d_x), DOTS)).astype(np.int64)
    return d_x[rows], d_y[rows]


def bands(d_x: Array, d_y: Array) -> tuple[Array, Array, Array, Array]:
    """Return, for bins of pairs with like d_x, the median d_x and the 5, 50 and 95 % quantiles of d_y."""
    order = np.argsort(d_x, kind="stable")
    bins = [part for part in np.array_split(order, BINS) if len(part)]
    at = np.array([np.median(d_x[part]) for part in bins])
    low, median, high = np.array([np.quantile(d_y[part], (0.05, 0.5, 0.95)) for part in bins]).T
    return at, low, median, high
