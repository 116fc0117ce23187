"""How data becomes affinities: a way to make the rows p_{j|i} of the fitted points, and those of new ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..inputs import Affinities, Input
from . import perplexity as affinities

# Of few neighbours each counts: on MNIST, 70,000 points, the 10-NN accuracy of UMAP's maps was 0.966, 0.973, 0.975 and
# 0.975 at a recall of 0.952, 0.990, 0.997 and 0.999.
RECALL = 0.997


class Neighborhoods(Protocol):
    """Affinities of one set of data, with every "auto" resolved."""

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        """Return the rows p_{j|i}, on the nearest neighbours alone if `few`, and the recall of the search for them."""
        ...

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        """Return p_{j|i} from checked new rows to the fitted points, CSR (m, n), and the point each equals or −1."""
        ...


@tagged("methods.neighborhoods.Gaussian")
@dataclass(frozen=True)
class Gaussian:
    """p_{j|i} ∝ exp(−d²_ij / 2σ_i²), of given perplexities."""

    perplexities: Array
    n_threads: int

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        if few:
            D2, recall = data.neighbors(width(self.perplexities, data.n - 1), self.n_threads)
            return affinities.conditional(D2, self.perplexities, dtype, self.n_threads), recall
        if (X := data.points) is not None:
            return affinities.conditional_of_points(X, self.perplexities, dtype, self.n_threads), data.recall
        return affinities.conditional(data.squared(), self.perplexities, dtype, self.n_threads), data.recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        nearby = data.nearest(X, width(self.perplexities, data.n), self.n_threads)
        with warnings.catch_warnings():  # a row among many duplicates is no news here
            warnings.simplefilter("ignore", UserWarning)
            return affinities.conditional(nearby.d2, self.perplexities, np.float64, self.n_threads), nearby.twins


@tagged("methods.neighborhoods.Uniform")
@dataclass(frozen=True)
class Uniform:
    """p_{j|i} = 1/k on the k nearest neighbours, k the rounded perplexity."""

    perplexities: Array
    n_threads: int

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        D2, recall = data.neighbors(int(max(1, np.rint(self.perplexities.max()))), self.n_threads)
        return affinities.uniform(D2, self.perplexities, dtype), recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        nearby = data.nearest(X, width(self.perplexities, data.n), self.n_threads)
        return affinities.uniform(nearby.d2, self.perplexities, np.float64), nearby.twins


@tagged("methods.neighborhoods.Fuzzy")
@dataclass(frozen=True)
class Fuzzy:
    """μ, the fuzzy union of memberships in the neighbourhoods of k points each; with labels, of like with like."""

    k: int
    n_threads: int
    labels: Array | None = None  # whole numbers, −1 for none
    target_weight: float = 0.5

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        if isinstance(data, Affinities):
            largest = float(data.P.max())
            W, recall = sparse.csr_matrix(data.P / largest if largest > 0 else data.P, dtype=dtype), 1.0
        else:
            D2, recall = data.neighbors(self.k - 1, self.n_threads, RECALL)
            W = affinities.memberships(D2, self.k, dtype, self.n_threads)
        mu = affinities.fuzzy_union(W, self.n_threads)
        if self.labels is not None:
            mu = affinities.intersected(mu, self.labels, self.target_weight)
        if mu.nnz == 0:
            raise ValueError("no two points are joined: no neighbours share a label; lower target_weight")
        return mu, recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        if isinstance(data, Affinities):
            W = sparse.csr_matrix(X, dtype=np.float64) / float(data.P.max())  # the scale of the fit
            return W, np.full(X.shape[0], -1)
        nearby = data.nearest(X, self.k - 1, self.n_threads)
        W = affinities.memberships(nearby.d2, self.k, np.float64, self.n_threads)
        return W, nearby.twins


@tagged("methods.neighborhoods.Given")
@dataclass(frozen=True)
class Given:
    """The user's own affinities, brought to the scale of rows p_{j|i}."""

    scaled: Callable[[Matrix, type[np.floating]], Matrix]

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        if not isinstance(data, Affinities):
            raise TypeError(f"affinities are given by {type(data).__name__}")
        return self.scaled(sparse.csr_matrix(data.P) if few else data.P, dtype), 1.0

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        return affinities.of_rows(sparse.csr_matrix(X), np.float64), np.full(X.shape[0], -1)


def width(perplexities: Array, most: int) -> int:
    """Return how many neighbours a row has: beyond 3 · perplexity p_{j|i} is negligible (van der Maaten 2014)."""
    return min(most, int(np.ceil(3 * perplexities.max())))
