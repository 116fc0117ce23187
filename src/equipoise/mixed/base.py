"""Defines `ColumnDistance`: a distance whose square, or which itself, is a weighted sum of differences of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._types import Array

core: Any = _core
ABSOLUTE, SQUARED, CATEGORY = range(3)  # how the core compares two values: |a − b|, (a − b)², or equal or different
MOST_LEVELS = 20  # categories of a column that become features of the initial map; chosen


class ColumnDistance:
    """A distance between rows given as codes (n, C), float64, with NaN for missing values.

    The compiled core computes the weighted mean of the differences in the columns where both rows have a value;
    `finish` turns it into the distance.

    Attributes
    ----------
    weights : array, shape (C,)
    kinds : array of uint8, shape (C,)
        How the values of each column are compared: ABSOLUTE, SQUARED or CATEGORY.
    none : float
        The mean for two rows without a value in a common column.
    summary : str
        In words, which columns are compared, and how many values are missing.
    """

    weights: Array
    kinds: Array
    none: float
    summary: str

    def encode(self, X: Any) -> Array:
        """Return new rows of a table as codes (m, C)."""
        raise TypeError(f"{type(self).__name__} must define encode()")

    def finish(self, means: Array) -> Array:
        """Return distances for means of differences, which may be overwritten."""
        return means

    def block(self, A: Array, B: Array, n_threads: int = 1) -> Array:
        """Return the distances (m, k) from rows A to rows B."""
        D = np.empty((len(A), len(B)))
        core.mixed_block(_rows(A), _rows(B), self.weights, self.kinds, self.none, D, n_threads)
        return self.finish(D)

    def listed(self, A: Array, B: Array, found: Array, n_threads: int = 1) -> Array:
        """Return the distances (m, k) from each row of A to the rows of B with indices `found` (m, k), int32."""
        d = np.empty(found.shape)
        core.mixed_distances(_rows(A), _rows(B), self.weights, self.kinds, self.none, found, d, n_threads)
        return self.finish(d)

    def features(self, codes: Array) -> Array:
        """Return rows as vectors for an initial map: weighted numbers, and indicators of the frequent categories.

        Missing values are replaced by the mean of the column.
        """
        parts = []
        for c, w in enumerate(np.sqrt(self.weights)):
            values = codes[:, c]
            missing = np.isnan(values)
            if self.kinds[c] == CATEGORY:
                present, counts = np.unique(values[~missing], return_counts=True)
                frequent = present[np.argsort(-counts, kind="stable")[:MOST_LEVELS]]
                part = (values[:, None] == frequent) / np.sqrt(2)
            else:
                part = values[:, None].copy()
            part[missing] = part[~missing].mean(axis=0)
            parts.append(w * part)
        return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _rows(A: Array) -> Array:
    return np.ascontiguousarray(A, dtype=np.float64)
