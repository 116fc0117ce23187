"""The same data again, a little different: a part of the points, or with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags

from .._types import Array
from ..data import check_table, is_neighbors
from ..neighbors import Graph
from ..spaces import Restriction
from ..spaces.base import MetricSpace


@dataclass(frozen=True)
class Variants:
    """X for a method, of which `make` gives variants: the share `subsample` of its points, and noise on its columns.

    X is what the method takes: a table, dense or sparse, distances (n, n), or a metric space. `noise` is the standard
    deviation of what is added to each column, as a part of its own: rows move by about `noise` times their distance
    from the mean.
    """

    method: Any
    X: Any
    subsample: float = 1.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.subsample <= 1:
            raise ValueError(f"subsample must be a share of the points, above 0 and up to 1, got {self.subsample!r}")
        if not 0 <= self.noise < np.inf:
            raise ValueError(f"noise must be a number from 0 on, got {self.noise!r}")
        if is_neighbors(self.X) and self.subsample < 1:
            raise ValueError("X is lists of neighbours, which a part of the points does not have; give X as a table")
        if self.noise and not self._is_table():
            raise ValueError("noise is added to the columns of a dense table, and X is none; leave noise at 0")

    @property
    def n(self) -> int:
        """The number of points."""
        if isinstance(self.X, MetricSpace):
            return int(self.X.n)
        if isinstance(self.X, Graph):
            return len(self.X.indices)
        return len(self.X[0]) if is_neighbors(self.X) else int(np.shape(self.X)[0])

    def draw_rows(self, rng: np.random.RandomState) -> Array:
        """Return the rows of X that a variant holds, in their order."""
        if self.subsample == 1:
            return np.arange(self.n)
        return np.sort(rng.choice(self.n, max(2, round(self.subsample * self.n)), replace=False))

    def make(self, rows: Array, rng: np.random.RandomState) -> Any:
        """Return the variant of X with these rows, and with noise where it is asked for."""
        X = self.X
        if self.noise:
            X = check_table(X)
            X = X + self.noise * X.std(axis=0) * rng.standard_normal(X.shape)
        return X if len(rows) == self.n else self._part(X, rows)

    def _is_table(self) -> bool:
        X = self.X
        return not (sparse.issparse(X) or isinstance(X, MetricSpace) or is_neighbors(X) or self._pairwise())

    def _pairwise(self) -> bool:
        return bool(get_tags(self.method).input_tags.pairwise)

    def _part(self, X: Any, rows: Array) -> Any:
        if isinstance(X, MetricSpace):
            return Restriction(X, rows)
        if hasattr(X, "iloc"):
            return X.iloc[rows, rows] if self._pairwise() else X.iloc[rows]
        X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        return X[rows][:, rows] if self._pairwise() else X[rows]
