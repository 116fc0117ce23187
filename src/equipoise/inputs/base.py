"""Every question a method asks of its data: distances, neighbours, an initial map."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..affinities.perplexity import Points, SquaredDistances
from ..neighbors.graph import Graph, in_range
from ..neighbors.search import MIN_RECALL


class Nearby(NamedTuple):
    """The fitted points near new rows."""

    d2: Matrix  # CSR (m, n): squared distances to the nearest ones
    twins: Array  # (m,): the fitted point that a row equals, or −1


class Input:
    """What a method may ask of its data."""

    n: int
    limit: int  # the most dimensions a map of it can use
    sparse = False  # whether only some pairs are known
    recall = 1.0  # of the search behind the pairs that are known
    on_device = False  # whether PyTorch has it
    has_principal = True  # whether it has coordinates, or all distances

    @property
    def limited_by(self) -> str:
        """What sets the limit."""
        return f"n_samples={self.n}" if self.limit == self.n else f"n_features={self.limit}"

    def distances(self) -> Points | SquaredDistances:
        """Return the distances between all pairs, or what they are computed from."""
        raise TypeError(f"{type(self).__name__} must define distances()")

    def neighbors(self, k: int, n_threads: int, min_recall: float = MIN_RECALL) -> tuple[SquaredDistances, float]:
        """Return d² from each point to its k nearest, and the recall of the search, at least `min_recall`."""
        raise TypeError(f"{type(self).__name__} must define neighbors()")

    def check_new(self, X: Any) -> Any:
        """Return new rows, checked."""
        raise TypeError(f"{type(self).__name__} must define check_new()")

    def nearest(self, X: Any, k: int, n_threads: int) -> Nearby:
        """Return the k points nearest to each new row."""
        raise TypeError(f"{type(self).__name__} must define nearest()")

    def rows(self, i: Array) -> Any:
        """Return points of its own as new rows."""
        raise TypeError(f"{type(self).__name__} must define rows()")

    def squared_to_all(self, X: Any) -> Array:
        """Return d² (m, n) from new rows to every point."""
        raise TypeError(f"{type(self).__name__} must define squared_to_all()")

    def principal(self, d: int, rng: np.random.RandomState) -> Array:
        """Return the first d principal components, of standard deviation 1."""
        raise TypeError(f"{type(self).__name__} must define principal()")


def nearby(graph: Graph, n: int, twins: Array | None = None) -> Nearby:
    """Return the neighbours that a search found; a row equals the point at distance 0 unless `twins` says otherwise."""
    if twins is None:
        nearest = graph.distances.argmin(axis=1)[:, None]
        at_zero = np.take_along_axis(graph.distances, nearest, axis=1) == 0
        twins = np.where(at_zero, np.take_along_axis(graph.indices, nearest, axis=1), -1)[:, 0]
    return Nearby(graph.into_squared(n), twins)


def square(D: Matrix) -> Matrix:
    """Return D² entry by entry; zeros stored in a sparse D stay stored, they are neighbours."""
    if not sparse.issparse(D):
        return in_range(D) ** 2
    return sparse.csr_matrix((in_range(D.data) ** 2, D.indices, D.indptr), shape=D.shape)
