"""Spaces derived from other spaces: compressed distances, products and subsets."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from .base import MetricSpace, check_points, check_space


class LogCompressed(MetricSpace):
    """The points of a space with the distance log(1 + d), which is also a metric and compresses large distances."""

    def __init__(self, space: MetricSpace):
        self.space = check_space(space, "space")
        self.n = space.n

    def _block(self, i: Array, j: Array) -> Array:
        d = self.space.distances(i, j)
        return np.log1p(d, out=d)


class Product(MetricSpace):
    """All pairs (x, y) of a point x of space `a` and a point y of space `b`, with the distance √(d_a² + d_b²).

    The pair (x, y) has the index x · b.n + y.
    """

    def __init__(self, a: MetricSpace, b: MetricSpace):
        self.a, self.b = check_space(a, "a"), check_space(b, "b")
        self.n = a.n * b.n

    def _block(self, i: Array, j: Array) -> Array:
        in_a = _block_of_factor(self.a, i // self.b.n, j // self.b.n)
        in_b = _block_of_factor(self.b, i % self.b.n, j % self.b.n)
        return np.hypot(in_a, in_b, out=in_a)


class Restriction(MetricSpace):
    """A subset of the points of `space`, with the distances of `space`.

    Parameters
    ----------
    space : MetricSpace
    subset : array of int
        Indices of the points, without repetitions.
    """

    def __init__(self, space: MetricSpace, subset: Any):
        self.space = check_space(space, "space")
        self.subset = check_points(subset, space.n, "subset")
        if len(np.unique(self.subset)) != len(self.subset):
            values, counts = np.unique(self.subset, return_counts=True)
            raise ValueError(f"subset contains the index {values[counts > 1][0]} more than once; list each point once")
        if not self.subset.size:
            raise ValueError("subset is empty; a space needs at least one point")
        self.n = len(self.subset)

    def _block(self, i: Array, j: Array) -> Array:
        return self.space.distances(self.subset[i], self.subset[j])


def _block_of_factor(space: MetricSpace, i: Array, j: Array) -> Array:
    """Return the distances from the points i to the points j; distances of repeated points are computed once."""
    (rows, i), (columns, j) = np.unique(i, return_inverse=True), np.unique(j, return_inverse=True)
    return space.distances(rows, columns)[np.ix_(i, j)]
