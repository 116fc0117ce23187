"""Lists of neighbours, as a search finds them and as affinities are made from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import Array, Matrix
from ..arrays.csr import make_csr


@dataclass(frozen=True, repr=False)
class Graph:
    """Neighbours of each of n points: `indices` and `distances`, (n, k), the point itself left out."""

    indices: Array  # int32
    distances: Array  # float64
    recall: float = 1.0  # measured on a sample against an exact scan; 1.0 for exact searches

    def __repr__(self) -> str:
        n, k = self.indices.shape
        return f"<{k:,} neighbours of each of {n:,} points, recall {self.recall:.3g}>"

    def into_squared(self, n: int) -> Matrix:
        """Return d², in units that keep it in range, to n points as CSR, in the memory of the distances, now gone."""
        m, k = self.indices.shape
        d2 = np.square(in_range(self.distances), out=self.distances)
        return make_csr(d2.ravel(), self.indices.ravel(), np.arange(0, m * k + 1, k, dtype=np.int64), (m, n))


def in_range(X: Array) -> Array:
    """Return X, scaled by a power of two if its squares would overflow or vanish; affinities do not see the scale."""
    largest = max(X.max(initial=0.0), -X.min(initial=0.0))
    if largest == 0 or 1e-100 < largest < 1e100:
        return X
    return np.ldexp(X, -int(np.frexp(largest)[1]))


def smallest(D: Array, k: int) -> Graph:
    """Return the k smallest entries of each row of D (m, n), in order of their columns; equal ones by column."""
    keep = np.sort(np.argsort(D, axis=1, kind="stable")[:, :k], axis=1)
    return Graph(keep.astype(np.int32), np.take_along_axis(D, keep, axis=1))
