"""Defines `MixedTable`, the input for a table of numbers, dates, booleans and categories with the distance of Gower."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.blocks import row_blocks
from ..linalg.pca import principal_components
from ..mixed.gower import Gower
from ..mixed.nearest import nearest_rows
from ..mixed.settings import Mixed
from ..neighbors.search import MIN_RECALL
from ..neighbors.vectors import Graph
from .base import Input, Nearby, nearby, square


@tagged("inputs.mixed_table.MixedTable")
class MixedTable(Input):
    """Input whose points are the rows of a table of mixed columns.

    Parameters
    ----------
    X : data frame, Arrow table or array-like, shape (n, D)
    metric : Mixed or "mixed"
    """

    reads_frames = True

    def __init__(self, X: Any, metric: Any):
        self.metric = metric
        self.gower, self.codes = Gower.fit_encode(X, metric if isinstance(metric, Mixed) else Mixed())
        self.n = len(self.codes)
        self.limit = min(self.codes.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of compared columns."""
        return self.n, self.codes.shape[1]

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        return self.gower.block(self.codes[rows], self.codes if columns is None else self.codes[columns])

    def pairs(self, i: Array, j: Array) -> Array:
        d = np.empty(len(i))
        for part in row_blocks(len(i), 8 * self.codes.shape[1]):
            d[part] = self.gower.pairs(self.codes[i[part]], self.codes[j[part]])
        return d

    def neighbors(self, k: int, n_threads: int, min_recall: float = MIN_RECALL) -> tuple[Matrix, float]:
        graph = Graph(*nearest_rows(self.gower, self.codes, k, n_threads))
        return graph.into_squared(self.n, self.fix_exponent(graph.distances)), 1.0

    def principal(self, d: int, rng: np.random.RandomState | None) -> Array:
        return principal_components(self.gower.features(self.codes), d, rng)

    def check_new(self, X: Any) -> Array:
        return self.gower.encode(X)

    def nearest(self, X: Array, k: int, n_threads: int) -> Nearby:
        graph = Graph(*nearest_rows(self.gower, self.codes, k, n_threads, X))
        return nearby(graph, self.n, self.exponent)

    def rows(self, i: Array) -> Array:
        return self.codes[i]

    def squared_to_all(self, X: Array) -> Array:
        return np.asarray(square(self.gower.block(X, self.codes), self.exponent or 0))

    def new_block(self, X: Array, columns: Array) -> Array:
        return self.gower.block(X, self.codes[columns])

    def stored_pairs(self, pattern: Matrix, n_threads: int) -> Array:
        rows = np.repeat(np.arange(self.n), np.diff(pattern.indptr))
        return self.pairs(rows, pattern.indices)
