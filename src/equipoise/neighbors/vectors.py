"""Metrics that a vector search can serve: vectors to search, and the distances between them in float64.

| metric | searched as | distance |
|---|---|---|
| euclidean, l2, sqeuclidean | Euclidean | as it says |
| cosine, correlation | Euclidean, on unit vectors x̂: ‖x̂ − ŷ‖² = 2 (1 − cos) | 1 − cos, 1 − correlation |
| inner_product | Euclidean, on augmented vectors | √(2 (m_i − x_i·x_j)), see `InnerProduct` |
| manhattan, cityblock, l1 | L1 | as it says |
| chebyshev | L∞ | as it says |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._types import Array

BLOCK = 2**21  # numbers per block of gathered neighbours, 16 MB


def metric_parameters(X: Array, metric: Any) -> dict[str, Array]:
    """Return what a metric of scikit-learn takes from the data X (n, D), for distances to and from new rows."""
    if isinstance(metric, str) and metric == "seuclidean":
        return {"V": X.var(axis=0, ddof=1)}
    if isinstance(metric, str) and metric == "mahalanobis":
        return {"VI": np.linalg.inv(np.cov(X.T)).T}
    return {}


class Space:
    """A table (n, D) as vectors: `base` holds what is searched, `queries` turns rows into what is searched for."""

    search = "l2"  # or "l1", "linf": the distance that the search sees

    def __init__(self, X: Array, metric: str):
        self.metric = metric
        self.base = self.queries(X)
        self.own = self.base  # the rows of X as queries

    def queries(self, X: Array) -> Array:
        """Return rows (m, D) as query vectors, float64."""
        return np.ascontiguousarray(X, dtype=np.float64)

    def distances(self, Q: Array, found: Array) -> Array:
        """Return the distances (m, k) from each query to the rows of the table it found, each row by itself."""
        result = np.empty(found.shape)
        step = max(1, BLOCK // max(1, found.shape[1] * self.base.shape[1]))
        for start in range(0, len(Q), step):
            rows = slice(start, start + step)
            result[rows] = self._pairs(Q[rows, None, :], self.base[found[rows]])
        return self._finish(result)

    def own_distances(self, found: Array, n_threads: int) -> Array:
        """Return the distances (n, k) from each row of the table to those it found."""
        return self.distances(self.own, found)

    def _pairs(self, q: Array, x: Array) -> Array:
        raise TypeError(f"{type(self).__name__} must define _pairs()")

    def _finish(self, result: Array) -> Array:
        """Return distances from what `_pairs` gave, in its memory."""
        return result


class Euclidean(Space):
    """Distances that are Euclidean, or a function of Euclidean distances."""

    def queries(self, X: Array) -> Array:
        if self.metric in ("euclidean", "l2", "sqeuclidean"):
            return np.ascontiguousarray(X, dtype=np.float64)
        V = X - X.mean(axis=1, keepdims=True) if self.metric == "correlation" else X
        norm = np.linalg.norm(V, axis=1, keepdims=True)
        if not norm.all():
            i = int(norm.argmin())
            raise ValueError(f"row {i} has no direction, so metric={self.metric!r} gives it no distances; drop it")
        return np.ascontiguousarray(V / norm)

    def own_distances(self, found: Array, n_threads: int) -> Array:
        d2 = np.empty(found.shape)
        _core.pair_distances(self.base, found, d2, n_threads)
        return self._finish(d2)

    def _pairs(self, q: Array, x: Array) -> Array:
        return np.square(x - q).sum(axis=2)

    def _finish(self, result: Array) -> Array:
        if self.metric in ("euclidean", "l2"):
            return np.sqrt(result, out=result)
        if self.metric != "sqeuclidean":
            result /= 2
        return result


class InnerProduct(Space):
    """The nearest row is the one with the largest inner product; a similarity, made a distance.

    With M the largest norm, base vectors (x, √(M² − ‖x‖²)) and queries (q, 0) have d² = M² + ‖q‖² − 2 q·x (Bachrach et
    al. 2014), so a Euclidean search finds the largest products. Affinities exp(−d²/2σ²) of one row do not see what
    is added to all its d². So the row's constant is chosen to lose no digits, and the distance is
    √(2 (m_i − x_i·x_j)), m_i the largest product found: 0 to the nearest, comparable within a row and not between rows.
    """

    def __init__(self, X: Array, metric: str):
        self.metric = metric
        X = np.asarray(X, dtype=np.float64)
        norm2 = np.square(X).sum(axis=1)
        self.base = np.column_stack([X, np.sqrt(norm2.max() - norm2)])
        self.own = self.queries(X)

    def queries(self, X: Array) -> Array:
        return np.column_stack([np.asarray(X, dtype=np.float64), np.zeros(len(X))])

    def _pairs(self, q: Array, x: Array) -> Array:
        return (x * q).sum(axis=2)

    def _finish(self, result: Array) -> Array:
        return product_distances(result)


class Manhattan(Space):
    """Σ |x − y|."""

    search = "l1"

    def _pairs(self, q: Array, x: Array) -> Array:
        return np.abs(x - q).sum(axis=2)


class Chebyshev(Space):
    """max |x − y|."""

    search = "linf"

    def _pairs(self, q: Array, x: Array) -> Array:
        return np.abs(x - q).max(axis=2)


SPACES: dict[str, type[Space]] = {
    **dict.fromkeys(("euclidean", "l2", "sqeuclidean", "cosine", "correlation"), Euclidean),
    **dict.fromkeys(("manhattan", "cityblock", "l1"), Manhattan),
    "chebyshev": Chebyshev,
    "inner_product": InnerProduct,
}


def make_space(X: Array, metric: Any) -> Space | None:
    """Return the table X (n, D) as vectors, or None for a metric that no vector search serves."""
    return SPACES[metric](X, metric) if isinstance(metric, str) and metric in SPACES else None


def product_distances(S: Array) -> Array:
    """Return √(2 (m_i − S_ij)), m_i the largest entry of row i of the inner products S, in the memory of S."""
    np.subtract(S.max(axis=1, keepdims=True), S, out=S)
    S *= 2
    return np.sqrt(S, out=S)
