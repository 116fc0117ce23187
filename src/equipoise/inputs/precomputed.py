"""Inputs for distances, neighbour lists, affinities and kernels that the user has computed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import entry_rows
from ..data import (
    check_affinities,
    check_finite,
    check_kernel_matrix,
    check_neighbors,
    check_new_distances,
    is_neighbors,
)
from ..data.checks.dissimilarities import warn_if_not_metric
from ..neighbors.search import MIN_RECALL, nearest_in_matrix
from ..neighbors.vectors import in_range, range_exponent, smallest
from .base import Input, Nearby, nearby, square


@tagged("inputs.given.Distances")
class Distances(Input):
    """Input given by precomputed distances.

    Parameters
    ----------
    D : array of float64 or CSR matrix, shape (n, n)
        A dense matrix of all distances, NaN where a distance is missing; or a sparse matrix that stores only the known
        distances or only the distances to neighbours.
    recall : float, default=1.0
        Recall of the search that found the neighbours.
    """

    def __init__(self, D: Matrix, recall: float = 1.0):
        self.D, self.recall = D, recall
        self.n = self.limit = D.shape[0]
        self.sparse = sparse.issparse(D)
        self.has_principal = not self.sparse

    @cached_property
    def known(self) -> Matrix | None:
        if self.sparse:
            return self.D
        known = ~np.isnan(self.D)
        if known.all():
            return None
        rows, columns = np.nonzero(known & ~np.eye(self.n, dtype=bool))
        return sparse.csr_matrix((self.D[rows, columns], (rows, columns)), shape=self.D.shape)

    def warn_if_not_metric(self) -> None:
        if not self.sparse:
            warn_if_not_metric(self.D)

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        if self.sparse:
            raise ValueError("X contains the distances of only some pairs; pass all distances as a dense matrix")
        return self.D[rows] if columns is None else self.D[np.ix_(rows, columns)]

    def pairs(self, i: Array, j: Array) -> Array:
        return np.asarray(self.D[i, j], dtype=np.float64) if not self.sparse else super().pairs(i, j)

    def check_power(self, power: int) -> None:
        check_finite(self.D, "X", power=power)

    def squared(self) -> Matrix:
        return square(self.D, self.fix_exponent(self.D))

    def neighbors(self, k: int, n_threads: int, min_recall: float = MIN_RECALL) -> tuple[Matrix, float]:
        if self.sparse:
            return self.squared(), self.recall
        graph = nearest_in_matrix(self.D, k)
        return graph.into_squared(self.n, self.fix_exponent(graph.distances)), 1.0

    def check_new(self, X: Any) -> Matrix:
        if is_neighbors(X):
            return check_neighbors(X, self.n)
        return check_new_distances(X, self.n)

    def nearest(self, X: Matrix, k: int, n_threads: int) -> Nearby:
        if not sparse.issparse(X):
            return nearby(smallest(X, k), self.n, self.exponent)
        twins = np.full(X.shape[0], -1)
        at_zero = X.data == 0
        twins[entry_rows(X)[at_zero][::-1]] = X.indices[at_zero][::-1]  # the first one, if there are several
        return Nearby(square(X, range_exponent(X) if self.exponent is None else self.exponent), twins)

    def rows(self, i: Array) -> Matrix:
        return self.D[i]

    def squared_to_all(self, X: Matrix) -> Array:
        if sparse.issparse(X):
            raise ValueError(
                f"X contains only some of the distances to the {self.n:,} fitted points; pass all of them as a dense"
                f" array (m, {self.n})"
            )
        return np.asarray(square(X, self.exponent or 0))

    def new_block(self, X: Matrix, columns: Array) -> Array:
        if self.sparse or sparse.issparse(X):
            if self.sparse:
                raise ValueError(
                    "transform is not available after a fit to sparse distances; pass dense distances to fit"
                )
            raise ValueError(
                "transform needs the distances to all fitted points, not only to some of them; pass a dense array"
                f" (m, {self.n})"
            )
        return np.asarray(X[:, columns])

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        if self.sparse:
            raise ValueError(
                'init="pca" needs coordinates or all distances; with a sparse graph use init="random" or "spectral"'
            )
        return super().principal(d, rng)


@tagged("inputs.given.Affinities")
class Affinities(Input):
    """Input given by precomputed affinities. It has no distances.

    Parameters
    ----------
    P : array of float64 or CSR matrix, shape (n, n)
        Nonnegative, with a zero diagonal.
    """

    has_principal = False

    def __init__(self, P: Matrix):
        self.P = P
        if sparse.issparse(P):
            P.data = in_range(P.data)
        else:
            self.P = in_range(P)
        self.n = self.limit = P.shape[0]
        self.sparse = sparse.issparse(P)

    @property
    def affinities(self) -> Matrix:
        return self.P

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        raise ValueError("X contains affinities, not distances; pass a table or distances")

    def check_new(self, X: Any) -> Matrix:
        return check_affinities(X, self.n)

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        raise ValueError(
            'init="pca" needs coordinates or all distances; with affinities use init="random" or "spectral"'
        )


@tagged("inputs.given.KernelMatrix")
class KernelMatrix(Input):
    """Input given by a precomputed kernel, the inner products K of n points in a feature space.

    Distances are ‖φ_i − φ_j‖ = √(K_ii + K_jj − 2 K_ij). New points are given by their
    kernel (m, n) with the fitted ones.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Symmetric and finite.
    """

    def __init__(self, K: Any):
        self.K = check_kernel_matrix(K)
        self.n = self.limit = len(self.K)

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        own = self.K.diagonal()
        K, to = (self.K[rows], own) if columns is None else (self.K[np.ix_(rows, columns)], own[columns])
        return np.sqrt(np.maximum(own[rows, None] + to - 2 * K, 0.0))

    def check_new(self, X: Any) -> Array:
        return check_kernel_matrix(X, self.n)
