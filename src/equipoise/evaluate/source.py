"""Distances of the data and of the map: in blocks, and along pairs."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from sklearn.metrics import euclidean_distances

from .._types import Array
from ..inputs.dissimilarities import Dissimilarities
from ..linalg.blas import one_blas_thread
from ..spaces import Euclidean, MetricSpace

BLOCK = 2**21  # numbers at once, 16 MB


class Source:
    """n points with a distance."""

    n: int

    def block(self, i: Array, j: Array) -> Array:
        """Return the distances (len(i), len(j)), float64."""
        raise TypeError(f"{type(self).__name__} must define block(i, j)")

    def along(self, i: Array, j: Array) -> Array:
        """Return the distances (m,) from the points i (m,) to the points j (m,), pair by pair."""
        raise TypeError(f"{type(self).__name__} must define along(i, j)")

    def space(self, points: Array) -> MetricSpace:
        """Return some of the points as a metric space."""
        raise TypeError(f"{type(self).__name__} must define space(points)")


class Points(Source):
    """The rows of X (n, D), float64, with d = ‖x − x'‖."""

    def __init__(self, X: Array):
        self.X = X
        self.n = len(X)

    @cached_property
    def _centred(self) -> Array:
        return self.X - self.X.mean(axis=0)

    def block(self, i: Array, j: Array) -> Array:
        # By products of centred rows: off by up to about 1e-8 of the largest distance, between equal points too.
        with one_blas_thread():
            return np.asarray(euclidean_distances(self._centred[i], self._centred[j]))

    def along(self, i: Array, j: Array) -> Array:
        d = np.empty(len(i))
        step = max(1, BLOCK // self.X.shape[1])
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            d[part] = np.linalg.norm(self.X[i[part]] - self.X[j[part]], axis=1)
        return d

    def space(self, points: Array) -> MetricSpace:
        return Euclidean(self.X[points])


class Others(Source):
    """Points of which the distances are computed by some other metric, or given."""

    def __init__(self, source: Dissimilarities):
        self._source = source
        self.n = source.n

    def block(self, i: Array, j: Array) -> Array:
        return self._source.block(i, j)

    def along(self, i: Array, j: Array) -> Array:
        d = np.empty(len(i))
        order = np.argsort(i, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(i[order])) + 1):  # all pairs of one i at once
            if part.size:
                d[part] = self._source.block(i[part[:1]], j[part])[0]
        return d

    def space(self, points: Array) -> MetricSpace:
        return _Part(self._source, points)


class _Part(MetricSpace):
    """Some points of a source."""

    def __init__(self, source: Dissimilarities, points: Array):
        self.source, self.points = source, points
        self.n = len(points)

    def _block(self, i: Array, j: Array) -> Array:
        return self.source.block(self.points[i], self.points[j])
