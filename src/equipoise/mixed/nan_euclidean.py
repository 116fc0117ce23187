"""The Euclidean distance between rows of numbers with missing values (Dixon 1979)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tags import tagged
from .._types import Array
from .base import SQUARED, ColumnDistance
from .gaps import describe_gaps, require_values


@tagged("mixed.nan_euclidean.NanEuclidean")
class NanEuclidean(ColumnDistance):
    """d = √(C/m Σ (x_c − y_c)²), summed over the m of C columns in which both rows have a value.

    The distance of two rows without a common column is the root mean square of Σ (x_c − y_c)² over all pairs of rows,
    each column by itself.

    Rows are stored as codes: centred, and divided by the largest absolute value.

    Parameters
    ----------
    X : array of float64, shape (n, C)
        The fitted rows, NaN for missing values.
    """

    def __init__(self, X: Array):
        if (empty := np.flatnonzero(np.isnan(X).all(axis=0))).size:
            raise ValueError(f"column {empty[0]} of X has no value in any row; drop such columns")
        C = X.shape[1]
        self.center = np.nanmean(X, axis=0)
        self.scale = float(np.nanmax(np.abs(X - self.center))) or 1.0
        self.weights, self.kinds = np.ones(C), np.full(C, SQUARED, np.uint8)
        with np.errstate(all="ignore"):
            self.none = 2 * float(np.nanmean(np.nanvar((X - self.center) / self.scale, axis=0)))
        gaps = describe_gaps(X)
        self.summary = f"missing: {gaps}; rows are compared in the columns where both have a value" if gaps else ""

    def encode(self, X: Any) -> Array:
        require_values(X)
        return np.asarray((X - self.center) / self.scale)

    def finish(self, means: Array) -> Array:
        means *= len(self.weights)
        np.sqrt(means, out=means)
        means *= self.scale
        return means
