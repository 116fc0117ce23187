"""Distances, lists of neighbours and affinities that the user has computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..affinities.perplexity import Points, SquaredDistances
from ..arrays.csr import entry_rows
from ..data import check_affinities, check_neighbors, check_new_distances, is_neighbors
from ..linalg.pca import principal_coordinates
from ..neighbors.graph import in_range, smallest
from ..neighbors.search import MIN_RECALL, nearest_in_matrix
from .base import Input, Nearby, nearby, square


@tagged("inputs.given.Distances")
class Distances(Input):
    """Distances given by the user: dense (n, n), or CSR with the stored pairs as neighbours."""

    def __init__(self, D: Matrix, recall: float = 1.0):
        self.D, self.recall = D, recall
        self.n = self.limit = D.shape[0]
        self.sparse = sparse.issparse(D)
        self.has_principal = not self.sparse

    def distances(self) -> Points | SquaredDistances:
        return SquaredDistances(square(self.D))

    def neighbors(self, k: int, n_threads: int, min_recall: float = MIN_RECALL) -> tuple[SquaredDistances, float]:
        if self.sparse:
            return SquaredDistances(square(self.D)), self.recall
        return SquaredDistances(nearest_in_matrix(in_range(self.D), k).into_squared(self.n)), 1.0

    def check_new(self, X: Any) -> Matrix:
        if is_neighbors(X):
            return check_neighbors(X, self.n)
        return check_new_distances(X, self.n)

    def nearest(self, X: Matrix, k: int, n_threads: int) -> Nearby:
        if not sparse.issparse(X):
            return nearby(smallest(X, k), self.n)
        twins = np.full(X.shape[0], -1)
        at_zero = X.data == 0
        twins[entry_rows(X)[at_zero][::-1]] = X.indices[at_zero][::-1]  # the first of several
        return Nearby(square(X), twins)

    def rows(self, i: Array) -> Matrix:
        return self.D[i]

    def squared_to_all(self, X: Matrix) -> Array:
        if sparse.issparse(X):
            raise ValueError(f"X has the distances of some pairs; all of them, dense (m, {self.n}), are needed")
        return np.asarray(X**2)

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        if self.sparse:
            raise ValueError(
                'init="pca" needs coordinates or all distances; with a sparse graph use init="random" or "spectral"'
            )
        return principal_coordinates(square(self.D), d, rng)


@tagged("inputs.given.Affinities")
class Affinities(Input):
    """The user's own affinities P (n, n), dense or CSR, not negative; the diagonal is 0."""

    has_principal = False

    def __init__(self, P: Matrix):
        self.P = P
        if sparse.issparse(P):
            P.data = in_range(P.data)
        else:
            self.P = in_range(P)
        self.n = self.limit = P.shape[0]
        self.sparse = sparse.issparse(P)

    def check_new(self, X: Any) -> Matrix:
        return check_affinities(X, self.n)

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        raise ValueError('init="pca" needs coordinates or all distances; with affinities use "random" or "spectral"')
