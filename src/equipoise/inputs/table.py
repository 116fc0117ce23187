"""Rows of numbers under a metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import euclidean_distances, pairwise_distances

from .._tags import tagged
from .._types import Array
from ..affinities.perplexity import Points, SquaredDistances
from ..data import check_distances, check_finite
from ..geometry import factor
from ..linalg.blas import one_blas_thread
from ..linalg.pca import principal_components
from ..neighbors.graph import Graph, in_range
from ..neighbors.search import MIN_RECALL, Searcher, nearest_neighbors
from ..neighbors.vectors import metric_parameters, product_distances
from .base import Input, Nearby, nearby, square

Keep = Callable[[Array, int, list[Any], Callable[[], Graph]], Graph]  # table, k, settings, the search → its neighbours


@tagged("inputs.table.Table")
class Table(Input):
    """Rows of numbers (n, D) under a metric; h makes it Mahalanobis': d² = (x_i − x_j)ᵀ h (x_i − x_j)."""

    keep: Keep | None = None  # who keeps the neighbours that are found, or knows them

    def __init__(self, X: Array, metric: Any, h: Any = None):
        self.metric = metric
        self._A = None if h is None else factor(h, "h", X.shape[1])
        self.X = self._under_h(X)
        self.n = len(X)
        self.limit = min(X.shape)
        self._searcher: Searcher | None = None
        self._places: dict[bytes, int] | None = None

    def _under_h(self, X: Array) -> Array:
        return X if self._A is None else np.ascontiguousarray(X @ self._A.T)

    def distances(self) -> Points | SquaredDistances:
        if isinstance(self.metric, str) and self.metric in ("euclidean", "l2"):
            return Points(in_range(self.X))
        if isinstance(self.metric, str) and self.metric == "inner_product":
            return SquaredDistances(_all_products(in_range(self.X)))
        name = getattr(self.metric, "__name__", self.metric)
        D = check_distances(pairwise_distances(self.X, metric=self.metric), f"the distances by metric={name}")
        return SquaredDistances(square(D))

    def neighbors(self, k: int, n_threads: int, min_recall: float = MIN_RECALL) -> tuple[SquaredDistances, float]:
        X = in_range(self.X) if self.metric in ("euclidean", "l2", "inner_product") else self.X

        def search() -> Graph:
            return nearest_neighbors(X, k, self.metric, n_threads=n_threads, min_recall=min_recall)

        named = isinstance(self.metric, str)  # a function of the same name may be another
        graph = self.keep(X, k, [self.metric, min_recall], search) if self.keep and named else search()
        return SquaredDistances(graph.into_squared(self.n)), graph.recall

    def check_new(self, X: Any) -> Array:
        X = X.toarray() if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        check_finite(X, "X")
        return self._under_h(X)

    def nearest(self, X: Any, k: int, n_threads: int) -> Nearby:
        if self._searcher is None:
            self._searcher = Searcher(self.X, self.metric, n_threads)
        return nearby(self._searcher.nearest(X, k), self.n, self._equal_rows(X))

    def rows(self, i: Array) -> Array:
        return self.X[i]

    def squared_to_all(self, X: Array) -> Array:
        if isinstance(self.metric, str) and self.metric in ("euclidean", "l2"):
            center = self.X.mean(axis=0)  # far from the origin products lose the digits
            return np.asarray(euclidean_distances(X - center, self.X - center, squared=True))
        return np.asarray(
            pairwise_distances(X, self.X, metric=self.metric, **metric_parameters(self.X, self.metric)) ** 2
        )

    def _equal_rows(self, X: Array) -> Array | None:
        """Return which row each of X equals, by the numbers themselves, where a distance of 0 does not say so."""
        if self.metric != "inner_product":
            return None
        if self._places is None:
            self._places = {(row + 0.0).tobytes(): i for i, row in enumerate(self.X)}  # −0 + 0 = 0
        return np.array([self._places.get((row + 0.0).tobytes(), -1) for row in X])

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        return principal_components(self.X, d, rng)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_searcher": None, "_places": None}  # quickly built again, and large


def _all_products(X: Array) -> Array:
    """Return d² of metrics.InnerProduct between all rows, (n, n)."""
    with one_blas_thread():
        S = X @ X.T
    np.fill_diagonal(S, -np.inf)  # a row's constant is its largest product with another
    D = product_distances(S)
    np.fill_diagonal(D, 0.0)
    return np.square(D, out=D)
