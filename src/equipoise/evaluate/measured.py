"""What a measure returns: a number that knows how sure it is, or a row of such numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._types import Array


class Measured(float):
    """A number with its standard error, the points it was computed on, and its value at each of them.

    Attributes
    ----------
    error : standard error of a sample; 0.0 when the number was computed over everything
    points : the rows it was computed on, in increasing order
    values : its value at each of these, with the number as their mean; None where a measure has no such form
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
        """Return the mean of the values at some of n points, drawn without replacement."""
        m = len(points)
        error = 0.0 if m == n else float(np.std(values, ddof=1) / np.sqrt(m) * np.sqrt(1 - m / n))
        return cls(float(np.mean(values)), error, points, values)


@dataclass(frozen=True)
class RecallCurve:
    """Neighbours kept over the size of the neighbourhood, with what a random map would keep."""

    ks: Array  # (c,) int
    recall: Array  # (c,)
    errors: Array  # (c,): standard errors; 0 when computed on all points
    chance: Array  # (c,): k / (n − 1)
    points: Array = field(repr=False)  # the rows it was computed on


@dataclass(frozen=True)
class DaviesBouldinCurve:
    """The Davies-Bouldin index of k-means clusters of a map, over their number."""

    clusters: Array  # (c,) int
    index: Array  # (c,)
    points: Array = field(repr=False)  # the rows that were clustered

    @property
    def best(self) -> int:
        """The number of clusters with the lowest index."""
        return int(self.clusters[self.index.argmin()])
