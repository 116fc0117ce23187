"""A metric space as an input, and an input as a metric space."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._tags import tagged
from .._types import Array
from ..spaces import MetricSpace
from .base import Input, check_block, square

# Points up to which principal components are available: they need all distances, 3.2 GB, and twice that to decompose
# them. Chosen.
PRINCIPAL = 20_000


class SpaceLike(Protocol):
    """n points with distances: the part of `spaces.MetricSpace` that an input needs."""

    n: int

    def distances(self, i: Any = None, j: Any = None) -> Array:
        """Return the distances (len(i), len(j)) from points i to points j, all points by default."""
        ...


@tagged("inputs.space.FromSpace")
class FromSpace(Input):
    """The points of a metric space. `rows` returns indices of points, and new points are not supported."""

    def __init__(self, space: SpaceLike):
        self._space = space
        self.n = self.limit = int(space.n)
        self.has_principal = self.n <= PRINCIPAL

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        return check_block(np.asarray(self._space.distances(rows, columns), dtype=np.float64), rows, columns)

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        if not self.has_principal:
            raise ValueError(
                f'init="pca" computes all distances of a metric space, so it is limited to {PRINCIPAL:,} points, but'
                f' this space has {self.n:,}; use init="spectral" or "random"'
            )
        return super().principal(d, rng)

    def rows(self, i: Array) -> Array:
        return i

    def squared_to_all(self, X: Array) -> Array:
        return np.asarray(square(self.block(X), self.exponent or 0))

    def check_new(self, X: Any) -> Any:
        raise ValueError(
            "transform needs a method fitted to a table or to distances; a metric space cannot contain new points"
        )


class InputSpace(MetricSpace):
    """Some points of an input as a metric space."""

    def __init__(self, data: Input, points: Array):
        self.data, self.points = data, points
        self.n = len(points)

    def _block(self, i: Array, j: Array) -> Array:
        return self.data.block(self.points[i], self.points[j])
