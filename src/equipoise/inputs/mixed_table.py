"""Defines `MixedTable`, the input for a table with a distance over columns of several kinds, some values missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.blocks import row_blocks
from ..linalg.pca import principal_components
from ..mixed.fit import fit_columns
from ..mixed.nearest import nearest_rows
from ..neighbors.search import MIN_RECALL, nearest_mixed
from ..neighbors.vectors import Graph, is_nan_euclidean
from .base import Input, Nearby, check_block, nearby, square


@tagged("inputs.mixed_table.MixedTable")
class MixedTable(Input):
    """Input whose points are the rows of a table of mixed columns.

    Parameters
    ----------
    X : data frame, Arrow table or array-like, shape (n, D)
        With metric="nan_euclidean" an array of float64.
    metric : Mixed, Blocks, "mixed" or "nan_euclidean"
    """

    def __init__(self, X: Any, metric: Any):
        self.metric = metric
        self.distance, self.codes = fit_columns(X, metric)
        self.reads_frames = not is_nan_euclidean(metric)
        self.n = len(self.codes)
        self.limit = min(self.codes.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of compared columns."""
        return self.n, self.codes.shape[1]

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        to = self.codes if columns is None else self.codes[columns]
        return check_block(self.distance.block(self.codes[rows], to), rows, columns)

    def pairs(self, i: Array, j: Array) -> Array:
        d = np.empty(len(i))
        for part in row_blocks(len(i), 8 * self.codes.shape[1]):
            listed = np.ascontiguousarray(j[part, None], dtype=np.int32)
            d[part] = self.distance.listed(self.codes[i[part]], self.codes, listed)[:, 0]
        return d

    def neighbors(self, k: int, n_threads: int, min_recall: float = MIN_RECALL) -> tuple[Matrix, float]:
        graph = nearest_mixed(self.distance, self.codes, k, n_threads)
        return graph.into_squared(self.n, self.fix_exponent(graph.distances)), graph.recall

    def principal(self, d: int, rng: np.random.RandomState | None) -> Array:
        return principal_components(self.distance.features(self.codes), d, rng)

    def check_new(self, X: Any) -> Array:
        return self.distance.encode(X)

    def nearest(self, X: Array, k: int, n_threads: int) -> Nearby:
        graph = Graph(*nearest_rows(self.distance, self.codes, k, n_threads, X))
        return nearby(graph, self.n, self.exponent)

    def rows(self, i: Array) -> Array:
        return self.codes[i]

    def squared_to_all(self, X: Array) -> Array:
        return np.asarray(square(self.distance.block(X, self.codes), self.exponent or 0))

    def new_block(self, X: Array, columns: Array) -> Array:
        return self.distance.block(X, self.codes[columns])

    def stored_pairs(self, pattern: Matrix, n_threads: int) -> Array:
        rows = np.repeat(np.arange(self.n), np.diff(pattern.indptr))
        return self.pairs(rows, pattern.indices)
