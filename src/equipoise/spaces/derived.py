"""Spaces made of other spaces: compressed, multiplied, restricted."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from .base import MetricSpace, check_points


class LogCompressed(MetricSpace):
    """The points of a space with log(1 + d): a metric again, in which far points are hardly farther than near ones."""

    def __init__(self, space: MetricSpace):
        self.space, self.n = space, space.n

    def _block(self, i: Array, j: Array) -> Array:
        d = self.space.distances(i, j)
        return np.log1p(d, out=d)


class Product(MetricSpace):
    """All pairs (a, b) of two spaces A and B, with √(d_A² + d_B²); the pair (a, b) is point number a · B.n + b."""

    def __init__(self, a: MetricSpace, b: MetricSpace):
        self.a, self.b, self.n = a, b, a.n * b.n

    def _block(self, i: Array, j: Array) -> Array:
        in_a = _block_of_factor(self.a, i // self.b.n, j // self.b.n)
        in_b = _block_of_factor(self.b, i % self.b.n, j % self.b.n)
        return np.hypot(in_a, in_b, out=in_a)


class Restriction(MetricSpace):
    """The points `subset` of an ambient space, with its distances."""

    def __init__(self, space: MetricSpace, subset: Any):
        self.space = space
        self.subset = check_points(subset, space.n, "subset")
        if len(np.unique(self.subset)) != len(self.subset):
            values, counts = np.unique(self.subset, return_counts=True)
            raise ValueError(f"subset lists the point {values[counts > 1][0]} twice; list each once")
        if not self.subset.size:
            raise ValueError("subset is empty; a space needs a point")
        self.n = len(self.subset)

    def _block(self, i: Array, j: Array) -> Array:
        return self.space.distances(self.subset[i], self.subset[j])


def _block_of_factor(space: MetricSpace, i: Array, j: Array) -> Array:
    """Return the distances from i to j, each of the points that recur in them looked up once."""
    (rows, i), (columns, j) = np.unique(i, return_inverse=True), np.unique(j, return_inverse=True)
    return space.distances(rows, columns)[np.ix_(i, j)]
