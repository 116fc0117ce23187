"""Find a column that has most of the variance."""

from __future__ import annotations

import numpy as np

from .._types import Array
from ..arrays.blocks import row_blocks

DOMINANT = 0.9  # fraction of the variance in one column; chosen


def dominant_column(X: Array) -> tuple[int, float] | None:
    """Return the index of the column of X (n, D) with most of the variance and its fraction, or None if there is none.

    Most is more than 90%. Missing values (NaN) are ignored.
    """
    if X.shape[1] < 2:
        return None
    variance = _variance(X)
    j, total = int(np.argmax(variance)), float(variance.sum())
    return (j, variance[j] / total) if total > 0 and variance[j] > DOMINANT * total else None


def _variance(X: Array) -> Array:
    """Return the variance of the values of each column, without a copy of the table."""
    mean, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    known = np.zeros(X.shape[1])
    for rows in row_blocks(len(X), 8 * X.shape[1]):
        known += np.isfinite(X[rows]).sum(axis=0)
        mean += np.nansum(X[rows], axis=0, dtype=np.float64)
    mean /= np.maximum(known, 1)
    for rows in row_blocks(len(X), 8 * X.shape[1]):
        total += np.nansum(np.square(X[rows] - mean), axis=0)
    return total / np.maximum(known, 1)
