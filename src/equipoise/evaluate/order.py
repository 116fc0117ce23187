"""All points in the order of their distance from one of them, exactly, without sorting or storing all distances.

Products in float32 tell most distances apart. Where two are closer than the products may be off, float64 decides: the
order is that of distances computed one by one in float64, whatever the BLAS (src/_core/ranks.hpp).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._types import Array
from .source import Points, Source

HALF_ULP = 2.0**-24  # of float32: the relative error of one rounding
GROUP, TILE = 8, 64  # of ranks.hpp


class Sheet:
    """Memory for the rough distances from some points to all n, which serves one block of rows after another."""

    def __init__(self, rows: int, n: int):
        tiles = -(-n // TILE)
        self.n = n
        self._values, self._least = (
            np.empty((rows, tiles * TILE), np.float32),
            np.empty((rows, tiles * GROUP), np.float32),
        )

    def dots(self, m: int) -> Array:
        """Return the place (m, n) for the dots that `fill` turns into distances."""
        return self._values[:m, : self.n]

    def fill(self, norms: Array, rows: Array) -> tuple[Array, Array]:
        """Return norms − 2 dots in tiles, and the least of each group in them; see ranks.hpp."""
        rough = self._values[: len(rows)], self._least[: len(rows)]
        _core.make_rough(norms, rows, *rough)
        return rough


class PointOrder:
    """Points X (n, D), float64, in the order of their Euclidean distance from one of them."""

    def __init__(self, X: Array):
        centre = X.mean(axis=0)
        largest = max(float((X.max(axis=0) - centre).max()), float((centre - X.min(axis=0)).max()))
        self._X = np.ldexp(X, -int(np.frexp(largest)[1]))  # a power of two, so that equal distances stay equal
        centred = self._X - self._X.mean(axis=0)
        self._vectors = centred.astype(np.float32)
        self._norms = np.einsum("ij,ij->i", centred, centred)
        self._norms32 = self._norms.astype(np.float32)
        self._reach = np.sqrt(self._norms)
        # With r = ‖x‖ + max ‖x‖: D products sum to within D/4 r² half ulps, and count twice; rounding vectors, norms
        # and the sum takes up to 4 r²; the rest covers terms of second order.
        self._loss = HALF_ULP * (0.6 * X.shape[1] + 8)

    def nearest(self, rows: Array, k: int, sheet: Sheet) -> Array:
        """Return the k points nearest to each of `rows`, (m, k) int32, from the nearest on; equally near by number."""
        near = np.empty((len(rows), k), np.int32)
        _core.nearest_of_points(*self._seen(rows, sheet), near)
        return near

    def ranks(self, rows: Array, others: Array, sheet: Sheet) -> Array:
        """Return the ranks, from 1, that the points `others` (m, k) int32 have for each of `rows`."""
        ranks = np.empty_like(others)
        _core.ranks_of_points(*self._seen(rows, sheet), others, ranks)
        return ranks

    def _seen(self, rows: Array, sheet: Sheet) -> tuple[Any, ...]:
        np.matmul(self._vectors[rows], self._vectors.T, out=sheet.dots(len(rows)))
        slack = self._loss * np.square(self._reach[rows] + self._reach.max())
        return self._X, sheet.n, *sheet.fill(self._norms32, rows), self._norms[rows], slack, rows


class BlockOrder:
    """Points of which the distances come in blocks, in the order of their distance from one of them."""

    def __init__(self, source: Source):
        self._source = source
        self._everyone = np.arange(source.n)
        self._zeros = np.zeros(source.n, np.float32)

    def nearest(self, rows: Array, k: int, sheet: Sheet) -> Array:
        """Return the k points nearest to each of `rows`, (m, k) int32, from the nearest on; equally near by number."""
        near = np.empty((len(rows), k), np.int32)
        _core.nearest_of_rows(*self._seen(rows, sheet), near)
        return near

    def ranks(self, rows: Array, others: Array, sheet: Sheet) -> Array:
        """Return the ranks, from 1, that the points `others` (m, k) int32 have for each of `rows`."""
        ranks = np.empty_like(others)
        _core.ranks_of_rows(*self._seen(rows, sheet), others, ranks)
        return ranks

    def _seen(self, rows: Array, sheet: Sheet) -> tuple[Any, ...]:
        D = self._source.block(rows, self._everyone)
        D = np.ldexp(D, -int(np.frexp(D.max())[1]))  # at most 1
        np.multiply(D, -0.5, out=sheet.dots(len(rows)), casting="same_kind")
        slack = np.full(len(rows), 2 * HALF_ULP)
        return D, sheet.n, *sheet.fill(self._zeros, rows), np.zeros(len(rows)), slack, rows


Order = PointOrder | BlockOrder


def make_order(source: Source) -> Order:
    """Return the order of the points of a source."""
    return PointOrder(source.X) if isinstance(source, Points) else BlockOrder(source)
