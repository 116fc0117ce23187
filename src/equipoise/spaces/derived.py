"""Spaces derived from other spaces: compressed distances, products and subsets."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array
from .base import MetricSpace, check_points, check_space, distances_from


@tagged("spaces.LogCompressed")
class LogCompressed(MetricSpace):
    """The points of a space with the distance log(1 + d), which is also a metric and compresses large distances.

    New points are described as for the space itself.
    """

    def __init__(self, space: MetricSpace):
        self.space = check_space(space, "space")
        self.n = space.n

    def _block(self, i: Array, j: Array) -> Array:
        d = self.space.distances(i, j)
        return np.log1p(d, out=d)

    def _new_block(self, X: Any, j: Array) -> Array:
        return np.log1p(distances_from(self.space, X, j))


@tagged("spaces.Product")
class Product(MetricSpace):
    """All pairs (x, y) of a point x of space `a` and a point y of space `b`, with the distance √(d_a² + d_b²).

    The pair (x, y) has the index x · b.n + y. New points are a tuple (A, B): m new points of `a`, and m new points of
    `b`, paired row by row.
    """

    def __init__(self, a: MetricSpace, b: MetricSpace):
        self.a, self.b = check_space(a, "a"), check_space(b, "b")
        self.n = a.n * b.n

    def _block(self, i: Array, j: Array) -> Array:
        in_a = _block_of_factor(self.a, i // self.b.n, j // self.b.n)
        in_b = _block_of_factor(self.b, i % self.b.n, j % self.b.n)
        return np.hypot(in_a, in_b, out=in_a)

    def _new_block(self, X: Any, j: Array) -> Array:
        if not (isinstance(X, tuple) and len(X) == 2):
            raise ValueError(
                "new points of a Product must be a tuple (A, B) of new points of its two spaces, got"
                f" {type(X).__name__}"
            )
        blocks = []
        for space, new, columns in ((self.a, X[0], j // self.b.n), (self.b, X[1], j % self.b.n)):
            columns, where = np.unique(columns, return_inverse=True)
            blocks.append(distances_from(space, new, columns)[:, where])
        if len(blocks[0]) != len(blocks[1]):
            raise ValueError(
                f"the tuple (A, B) contains {len(blocks[0])} and {len(blocks[1])} new points; pass as many of the first"
                " space as of the second"
            )
        return np.hypot(*blocks)


@tagged("spaces.Restriction")
class Restriction(MetricSpace):
    """A subset of the points of `space`, with the distances of `space`.

    New points are indices (m,) of any points of `space`, or new points of `space` itself, described as for `space`.
    So a method fitted to a part of any space can place the rest by `transform`.

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

    def _new_block(self, X: Any, j: Array) -> Array:
        if not sparse.issparse(X) and not isinstance(X, tuple) and np.ndim(X) == 1:
            return self.space.distances(check_points(X, self.space.n, "X"), self.subset[j])
        return distances_from(self.space, X, self.subset[j])


def _block_of_factor(space: MetricSpace, i: Array, j: Array) -> Array:
    """Return the distances from the points i to the points j; distances of repeated points are computed once."""
    (rows, i), (columns, j) = np.unique(i, return_inverse=True), np.unique(j, return_inverse=True)
    return space.distances(rows, columns)[np.ix_(i, j)]
