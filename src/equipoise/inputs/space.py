"""Converts a metric space to an input (`FromSpace`), and points of an input to a metric space (`InputSpace`)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy import sparse

from .._plural import plural
from .._tags import tagged
from .._types import Array
from ..arrays.blocks import FIXED_ENTRIES
from ..arrays.namespace import to_numpy
from ..linalg.nystrom import Landmarks, choose
from ..linalg.pca import finish
from ..neighbors.vectors import Graph, range_exponent, smallest
from ..spaces import MetricSpace
from ..spaces.base import distances_from, given_distances
from .base import Input, Nearby, check_block, nearby, square

# Principal components of more points than this are computed from the distances to LANDMARKS points: all distances
# would take 200 MB, and their decomposition twice that. Chosen.
PRINCIPAL = 5_000
LANDMARKS = 300


class SpaceLike(Protocol):
    """What `FromSpace` needs of a `spaces.MetricSpace`: the number n of points, and their distances."""

    n: int

    def distances(self, i: Any = None, j: Any = None) -> Array:
        """Return the distances (len(i), len(j)) from points i to points j, all points by default."""
        ...


@tagged("inputs.space.FromSpace")
class FromSpace(Input):
    """Input whose points are those of a metric space. `rows` returns their indices.

    `check_new` returns new points as `NewPoints`. The space is None after loading from a file, if it was user-defined;
    then new points are described by their distances (m, n) to the fitted points.
    """

    space: SpaceLike | None = None

    def __init__(self, space: SpaceLike):
        self.space = space
        self.n = self.limit = int(space.n)

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        if self.space is None:
            raise ValueError(
                "the distances between the fitted points are not known, because their metric space is user-defined and"
                " was not saved; fit the method again"
            )
        return check_block(np.asarray(self.space.distances(rows, columns), dtype=np.float64), rows, columns)

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        """Return principal components; many points need landmark MDS (de Silva & Tenenbaum 2003)."""
        if self.n <= PRINCIPAL:
            return super().principal(d, rng)
        chosen = choose(self.n, LANDMARKS, np.random.RandomState(0))
        D = self.block(chosen)
        try:
            scores = Landmarks(square(D, range_exponent(D)), chosen).F[:, :d]
        except ValueError:  # all landmarks coincide, or their distances are far from Euclidean
            scores = np.zeros((self.n, 1))
        return finish(scores - scores.mean(axis=0), d, rng)

    def rows(self, i: Array) -> Array:
        return i

    def check_new(self, X: Any) -> NewPoints:
        return NewPoints(X)

    def nearest(self, X: NewPoints, k: int, n_threads: int) -> Nearby:
        step, graphs = max(1, FIXED_ENTRIES // self.n), []
        for start in range(0, X.shape[0], step):
            graphs.append(smallest(self.new_block(X[start : start + step], np.arange(self.n)), k))
        indices, distances = (np.concatenate([getattr(g, part) for g in graphs]) for part in ("indices", "distances"))
        return nearby(Graph(indices, distances), self.n, self.exponent)

    def squared_to_all(self, X: Array | NewPoints) -> Array:
        D = self.new_block(X, np.arange(self.n)) if isinstance(X, NewPoints) else self.block(X)
        return np.asarray(square(D, self.exponent or 0))

    def new_block(self, X: NewPoints, columns: Array) -> Array:
        if self.space is None:
            return given_distances(X.description, self.n, columns)
        D = np.asarray(distances_from(self.space, X.description, columns), dtype=np.float64)
        if D.shape != (X.shape[0], len(columns)):
            raise ValueError(
                f"the space returns distances of shape {D.shape} from {plural(X.shape[0], 'new point')} to"
                f" {plural(len(columns), 'fitted point')}; correct its _new_block"
            )
        bad = np.argwhere(~(D >= 0) | np.isinf(D))
        if bad.size:
            a, b = bad[0]
            raise ValueError(
                f"the distance from new point {a} to point {columns[b]} is {D[a, b]}; distances must be finite and"
                " nonnegative, so correct the metric or remove the new point"
            )
        return D


class NewPoints:
    """m new points of a metric space, described as its `distances_from` expects them; can be sliced.

    Parameters
    ----------
    description : array, sparse matrix or tuple of these
        m rows, or one row in each part of the tuple, for each new point.
    """

    def __init__(self, description: Any):
        self.description = self._sliceable(description)
        first = self.description
        while isinstance(first, tuple):
            first = first[0]
        if not first.shape or not first.shape[0]:
            raise ValueError("X contains no new points; pass at least one")
        self.shape = (int(first.shape[0]),)

    @classmethod
    def _sliceable(cls, X: Any) -> Any:
        if isinstance(X, Graph):
            return X.indices, X.distances
        if isinstance(X, tuple) and X:
            return tuple(map(cls._sliceable, X))
        return X.tocsr() if sparse.issparse(X) else to_numpy(X)

    def __getitem__(self, part: slice) -> NewPoints:
        def take(X: Any) -> Any:
            return tuple(map(take, X)) if isinstance(X, tuple) else X[part]

        return NewPoints(take(self.description))


class InputSpace(MetricSpace):
    """Metric space that consists of the points of an input with the indices `points` (m,)."""

    def __init__(self, data: Input, points: Array):
        self.data, self.points = data, points
        self.n = len(points)

    def _block(self, i: Array, j: Array) -> Array:
        return self.data.block(self.points[i], self.points[j])
