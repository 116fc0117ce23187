"""A metric space as an input, and an input as a metric space."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._tags import tagged
from .._types import Array
from ..spaces import MetricSpace
from .base import Input, check_block


@runtime_checkable
class SpaceLike(Protocol):
    """n points with distances: the part of `spaces.MetricSpace` that an input needs."""

    n: int

    def distances(self, i: Any = None, j: Any = None) -> Array:
        """Return the distances (len(i), len(j)) from points i to points j, all points by default."""
        ...


@tagged("inputs.space.FromSpace")
class FromSpace(Input):
    """The points of a metric space. Rows are indices of points, and there are no new points."""

    def __init__(self, space: SpaceLike):
        self._space = space
        self.n = self.limit = space.n

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        return check_block(np.asarray(self._space.distances(rows, columns), dtype=np.float64), rows, columns)

    def squared(self) -> Array:
        return self._space.distances() ** 2

    def rows(self, i: Array) -> Array:
        return i

    def squared_to_all(self, X: Array) -> Array:
        return self._space.distances(X) ** 2

    def check_new(self, X: Any) -> Any:
        raise ValueError("transform needs a table or distances: a metric space cannot contain new points")


class InputSpace(MetricSpace):
    """Some points of an input as a metric space."""

    def __init__(self, data: Input, points: Array):
        self.data, self.points = data, points
        self.n = len(points)

    def _block(self, i: Array, j: Array) -> Array:
        return self.data.block(self.points[i], self.points[j])
