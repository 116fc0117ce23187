"""Classes for the results of measures: numbers with standard errors, and curves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._types import Array


class Measured(float):
    """A float with its standard error and, if it is a mean over points, the value at each point.

    Attributes
    ----------
    error : float
        Standard error if the number comes from a sample, else 0.0.
    points : ndarray of shape (m,)
        The rows of the data on which the number was computed, in increasing order.
    values : ndarray of shape (m,) or None
        The values at these points, whose mean is the number; None if the measure is not a mean over points.
    """

    error: float
    points: Array
    values: Array | None

    def __new__(
        cls, value: float, error: float = 0.0, points: Array | None = None, values: Array | None = None
    ) -> Measured:
        self = super().__new__(cls, value)
        self.error = float(error)
        self.points = np.empty(0, np.int64) if points is None else points
        self.values = values
        return self

    @classmethod
    def over(cls, values: Array, points: Array, n: int) -> Measured:
        """Return the mean of `values`, with its standard error.

        The values belong to `points`, which were drawn without replacement from n points.
        """
        m = len(points)
        error = 0.0 if m == n else float(np.std(values, ddof=1) / np.sqrt(m) * np.sqrt(1 - m / n))
        return cls(float(np.mean(values)), error, points, values)


@dataclass(frozen=True)
class RecallCurve:
    """Neighbour recall as a function of the size k of the neighbourhoods.

    Attributes
    ----------
    ks : ndarray of int, shape (c,)
        Sizes of the neighbourhoods.
    recall : ndarray of shape (c,)
        Recall for each size.
    errors : ndarray of shape (c,)
        Standard errors of the recall; 0 if it was computed on all points.
    chance : ndarray of shape (c,)
        Expected recall of a random map, k / (n − 1).
    points : ndarray of int
        The rows of the data on which the recall was computed.
    """

    ks: Array
    recall: Array
    errors: Array
    chance: Array
    points: Array = field(repr=False)


@dataclass(frozen=True)
class DaviesBouldinCurve:
    """The Davies-Bouldin index of k-means clusters of a map as a function of the number of clusters.

    Attributes
    ----------
    clusters : ndarray of int, shape (c,)
        Numbers of clusters.
    index : ndarray of shape (c,)
        The index for each number of clusters; lower is better.
    points : ndarray of int
        The rows that were clustered.
    """

    clusters: Array
    index: Array
    points: Array = field(repr=False)

    @property
    def best(self) -> int:
        """The number of clusters with the lowest index."""
        return int(self.clusters[self.index.argmin()])
