"""All points in the order of their distance from one of them, exactly, without sorting or storing all distances.

Products in float32 tell most distances apart. Where two are closer than the products may be off, float64 decides: the
order is that of distances computed one by one in float64, whatever the BLAS (src/_core/neighbors/ranks.hpp).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._types import Array
from .source import Points, Source

HALF_ULP = 2.0**-24  # of float32: the relative error of one rounding
TILE = _core.RANK_TILE
ROWS = 16384  # centred at once, so that large data are not held twice
HELD = 2**26  # numbers up to which the points are held in float32 too, 256 MB; beyond, made again part by part
RANGE = 40  # binary orders of magnitude that coordinates may have: their squares are well within float32


class Sheet:
    """Memory for the rough distances from some points to all n, which serves one block of rows after another."""

    def __init__(self, rows: int, n: int):
        tiles = -(-n // TILE)
        self.n = n
        self._values = np.empty((rows, tiles * TILE), np.float32)

    def place(self, m: int) -> Array:
        """Return where the rough distances (m, n) from m points to all go."""
        return self._values[:m, : self.n]

    def rough(self, m: int) -> Array:
        """Return these distances with room for the last tile."""
        return self._values[:m]


class Order:
    """The points of a space in the order of their distance from one of them."""

    _nearest: Any  # of _core
    _ranks: Any

    def nearest(self, rows: Array, k: int, sheet: Sheet) -> Array:
        """Return the k points nearest to each of `rows`, (m, k) int32, from the nearest on; equally near by number."""
        near = np.empty((len(rows), k), np.int32)
        self._nearest(*self._seen(rows, sheet), near)
        return near

    def ranks(self, rows: Array, others: Array, sheet: Sheet) -> Array:
        """Return the ranks, from 1, that the points `others` (m, k) int32 have for each of `rows`."""
        ranks = np.empty_like(others)
        self._ranks(*self._seen(rows, sheet), others, ranks)
        return ranks

    def _seen(self, rows: Array, sheet: Sheet) -> tuple[Any, ...]:
        """Return what the core needs to know of the points as `rows` see them."""
        raise TypeError(f"{type(self).__name__} must define _seen(rows, sheet)")


class PointOrder(Order):
    """Points X (n, D), float64, by Euclidean distance."""

    _nearest, _ranks = staticmethod(_core.nearest_of_points), staticmethod(_core.ranks_of_points)

    def __init__(self, X: Array):
        n, D = X.shape
        self._mean, self._parts = X.mean(axis=0), [slice(start, start + ROWS) for start in range(0, n, ROWS)]
        unit = int(np.frexp(max(np.abs(X[part] - self._mean).max() for part in self._parts))[1])
        if abs(unit) > RANGE:
            X, self._mean = np.ldexp(X, -unit), np.ldexp(self._mean, -unit)  # equal distances stay equal
        self._X = X
        self._norms = np.empty(n)
        for part in self._parts:
            centred = X[part] - self._mean
            self._norms[part] = np.einsum("ij,ij->i", centred, centred)
        self._reach = np.sqrt(self._norms)
        self._held = None if X.size > HELD else np.empty((n, D + 1), np.float32)
        if self._held is not None:
            for part in self._parts:
                self._held[part] = self._made(part)
        # D + 1 products sum to within D + 1 half ulps of (‖x_i‖ + ‖x_j‖)², in any order; rounding vectors and norms
        # takes two more; the rest covers terms of second order.
        self._loss = HALF_ULP * (1.1 * D + 8)

    def _seen(self, rows: Array, sheet: Sheet) -> tuple[Any, ...]:
        # ‖x_j‖² − 2 x_i·x_j is the product of (−2 x_i, 1) and (x_j, ‖x_j‖²).
        here, place = -2 * self._vectors(rows), sheet.place(len(rows))
        here[:, -1] = 1
        for part in [slice(None)] if self._held is not None else self._parts:
            np.matmul(here, self._vectors(part).T, out=place[:, part])
        slack = self._loss * np.square(self._reach[rows] + self._reach.max())
        return self._X, sheet.n, sheet.rough(len(rows)), self._norms[rows], slack, rows

    def _vectors(self, rows: Array | slice) -> Array:
        return self._made(rows) if self._held is None else self._held[rows]

    def _made(self, rows: Array | slice) -> Array:
        """Return (x_j, ‖x_j‖²) of some points, centred, (m, D + 1) float32."""
        vectors = np.empty((len(self._norms[rows]), self._X.shape[1] + 1), np.float32)
        vectors[:, :-1] = self._X[rows] - self._mean
        vectors[:, -1] = self._norms[rows]
        return vectors


class BlockOrder(Order):
    """Points of which the distances come in blocks."""

    _nearest, _ranks = staticmethod(_core.nearest_of_rows), staticmethod(_core.ranks_of_rows)

    def __init__(self, source: Source):
        self._source = source
        self._everyone = np.arange(source.n)

    def _seen(self, rows: Array, sheet: Sheet) -> tuple[Any, ...]:
        D = self._source.block(rows, self._everyone)
        D = np.ldexp(D, -int(np.frexp(D.max())[1]))  # at most 1
        sheet.place(len(rows))[:] = D
        slack = np.full(len(rows), 2 * HALF_ULP)
        return D, sheet.n, sheet.rough(len(rows)), np.zeros(len(rows)), slack, rows


def make_order(source: Source) -> Order:
    """Return the order of the points of a source."""
    return PointOrder(source.X) if isinstance(source, Points) else BlockOrder(source)
