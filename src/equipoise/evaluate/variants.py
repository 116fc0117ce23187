"""Make perturbed versions of a data set: random subsamples, added noise, or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags

from .._plural import plural
from .._types import Array
from ..arrays.namespace import is_finite, to_numpy
from ..arrays.sparse_structure import check_structure
from ..data import check_table, is_neighbors
from ..inputs import is_space
from ..neighbors import Graph
from ..spaces import MetricSpace, Restriction
from .checks import count_points


@dataclass(frozen=True)
class Variants:
    """Makes random variants of the data X, to which a method can be fitted.

    Parameters
    ----------
    method : estimator
    X : table, sparse table, distances, neighbour lists or MetricSpace
        The data, as for `method.fit`.
    subsample : float, default=1.0
        Fraction of the points in a variant; must be 1 for neighbour lists.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to each column, relative to the standard deviation of the column:
        a row moves by about `noise` times the root mean square distance of the rows from their mean. Must be 0 unless X
        is a dense table.
    """

    method: Any
    X: Any
    subsample: float = 1.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        if not (is_finite(self.subsample) and 0 < self.subsample <= 1):
            raise ValueError(f"subsample must be a fraction above 0 and at most 1, got {self.subsample!r}")
        if not (is_finite(self.noise) and self.noise >= 0):
            raise ValueError(f"noise must be finite and not negative, got {self.noise!r}")
        if is_neighbors(self.X) and self.subsample < 1:
            raise ValueError(
                "subsample below 1 needs a table or distances, but X contains neighbour lists; pass the data, or use"
                " subsample=1"
            )
        if self.noise and not self._is_table():
            raise ValueError("noise requires a dense table X; use noise=0 for other data")
        if self.n < 2:
            raise ValueError(f"X has {plural(self.n, 'point')}; at least 2 are needed")

    @property
    def n(self) -> int:
        """Number of points."""
        if is_space(self.X):
            return int(self.X.n)
        if isinstance(self.X, Graph):
            return len(self.X.indices)
        return len(self.X[0]) if is_neighbors(self.X) else count_points(self.X)

    def draw_rows(self, rng: np.random.RandomState) -> Array:
        """Return the indices of the rows of X that form a random variant, in increasing order."""
        if self.subsample == 1:
            return np.arange(self.n)
        return np.sort(rng.choice(self.n, max(2, round(self.subsample * self.n)), replace=False))

    def make(self, rows: Array, rng: np.random.RandomState) -> Any:
        """Return X restricted to `rows`, with noise if `noise` is positive."""
        X = self.X
        if self.noise:
            X = check_table(X)
            X = X + self.noise * X.std(axis=0) * rng.standard_normal(X.shape)
        return X if len(rows) == self.n else self._restrict(X, rows)

    def _is_table(self) -> bool:
        X = self.X
        return not (sparse.issparse(X) or is_space(X) or is_neighbors(X) or self._pairwise())

    def _pairwise(self) -> bool:
        return bool(get_tags(self.method).input_tags.pairwise)

    def _restrict(self, X: Any, rows: Array) -> Any:
        if is_space(X):
            return Restriction(cast(MetricSpace, X), rows)
        if hasattr(X, "iloc"):
            return X.iloc[rows, rows] if self._pairwise() else X.iloc[rows]
        if hasattr(X, "column_names"):  # an Arrow table
            return X.take(rows)
        X = check_structure(X).tocsr() if sparse.issparse(X) else to_numpy(X)
        return X[rows][:, rows] if self._pairwise() else X[rows]
