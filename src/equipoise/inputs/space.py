"""A metric space in place of a table."""

from __future__ import annotations

from typing import Any

from .._tags import tagged
from .._types import Array
from ..affinities.perplexity import Points, SquaredDistances
from ..spaces import MetricSpace
from .base import Input


@tagged("inputs.space.FromSpace")
class FromSpace(Input):
    """The points of a `MetricSpace`; new points have no place in it."""

    def __init__(self, space: MetricSpace):
        self._space = space
        self.n = self.limit = space.n

    def distances(self) -> Points | SquaredDistances:
        return SquaredDistances(self._space.matrix() ** 2)

    def rows(self, i: Array) -> Array:
        return i

    def squared_to_all(self, X: Array) -> Array:
        return self._space.distances(X) ** 2

    def check_new(self, X: Any) -> Any:
        raise ValueError("a metric space has no points beyond its own; fit a table or distances to place new ones")
