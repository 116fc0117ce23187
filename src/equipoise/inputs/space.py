"""Converts a metric space to an input (`FromSpace`), and points of an input to a metric space (`InputSpace`)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._tags import tagged
from .._types import Array
from ..spaces import MetricSpace
from .base import Input, check_block, square

# Largest number of points for which principal components are available: all distances take 3.2 GB, and their
# decomposition twice that. Chosen.
PRINCIPAL = 20_000


class SpaceLike(Protocol):
    """What `FromSpace` needs of a `spaces.MetricSpace`: the number n of points, and their distances."""

    n: int

    def distances(self, i: Any = None, j: Any = None) -> Array:
        """Return the distances (len(i), len(j)) from points i to points j, all points by default."""
        ...


@tagged("inputs.space.FromSpace")
class FromSpace(Input):
    """Input whose points are those of a metric space. `rows` returns their indices; new points are not supported."""

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
            "transform is not available after a fit to a metric space: a metric space cannot contain new points; fit"
            " the method to a table or to distances"
        )


class InputSpace(MetricSpace):
    """Metric space that consists of the points of an input with the indices `points` (m,)."""

    def __init__(self, data: Input, points: Array):
        self.data, self.points = data, points
        self.n = len(points)

    def _block(self, i: Array, j: Array) -> Array:
        return self.data.block(self.points[i], self.points[j])
