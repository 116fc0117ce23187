"""Find exact nearest neighbours, and exact ranks by distance, without sorting or storing all distances.

Matrix products in float32 suffice to compare most pairs of distances. Two distances that differ by less than the error
of the products are computed again in float64. So the order is the same as if every distance were computed on its own in
float64, and it does not depend on the BLAS library (src/_core/neighbors/ranks.hpp).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._types import Array
from ..arrays.blocks import row_blocks
from ..inputs import Input

HALF_ULP = 2.0**-24  # relative error of one rounding in float32
TILE = _core.RANK_TILE
MAX_CACHED = 2**26  # maximum number of coordinates cached in float32, 256 MB; larger data are converted in parts
RANGE = 40  # data whose largest coordinate is not within 2**±40 are scaled, so that squares are in the range of float32


class Buffer:
    """Reusable memory for float32 values that order all n points by their distance from each point of a block.

    For a point x_i of the block and any point x_j, a `PointOrder` stores ‖x_i − x_j‖² − ‖x_i‖². A `BlockOrder` stores
    their distance, times a factor that is the same for the whole block. Both values grow with the distance.
    """

    def __init__(self, rows: int, n: int):
        tiles = -(-n // TILE)
        self.n = n
        self._values = np.empty((rows, tiles * TILE), np.float32)

    def values(self, m: int) -> Array:
        """Return the array (m, n) for the values of a block of m points."""
        return self._values[:m, : self.n]

    def padded(self, m: int) -> Array:
        """Return the array of `values(m)` with its rows padded to a multiple of TILE, as the compiled code expects."""
        return self._values[:m]


class Order:
    """Ranks the points of an input by their distance from any one of them."""

    _nearest: Any  # the functions of _core
    _ranks: Any

    def nearest(self, rows: Array, k: int, buffer: Buffer) -> Array:
        """Return the k nearest other points of each of the m points `rows`, nearest first, as an int32 array (m, k).

        Of points at the same distance, the one with the lower index comes first.
        """
        nearest = np.empty((len(rows), k), np.int32)
        self._nearest(*self._arguments(rows, buffer), nearest)
        return nearest

    def ranks(self, rows: Array, others: Array, buffer: Buffer) -> Array:
        """Return the ranks of the points `others` (m, k), int32, by their distance from the points `rows` (m,).

        Row i of `others` is ranked by distance from `rows[i]`; the nearest of all other points has rank 1.
        """
        ranks = np.empty_like(others)
        self._ranks(*self._arguments(rows, buffer), others, ranks)
        return ranks

    def _arguments(self, rows: Array, buffer: Buffer) -> tuple[Any, ...]:
        """Return the arguments for `_nearest` and `_ranks` that describe the distances from `rows` to all points."""
        raise TypeError(f"{type(self).__name__} must define _arguments(rows, buffer)")


class PointOrder(Order):
    """Ranks points X (n, D), float64, by Euclidean distance."""

    _nearest, _ranks = staticmethod(_core.nearest_of_points), staticmethod(_core.ranks_of_points)

    def __init__(self, X: Array):
        n, D = X.shape
        self._mean, self._parts = X.mean(axis=0), row_blocks(n, 8 * D)  # any blocks give the same order
        unit = int(np.frexp(max(np.abs(X[part] - self._mean).max() for part in self._parts))[1])
        if abs(unit) > RANGE:
            X, self._mean = np.ldexp(X, -unit), np.ldexp(self._mean, -unit)  # exact, so that equal distances stay equal
        self._X = X
        self._norms = np.empty(n)
        for part in self._parts:
            centred = X[part] - self._mean
            self._norms[part] = np.einsum("ij,ij->i", centred, centred)
        self._lengths = np.sqrt(self._norms)
        self._cached = None if X.size > MAX_CACHED else np.empty((n, D + 1), np.float32)
        if self._cached is not None:
            for part in self._parts:
                self._cached[part] = self._convert(part)
        # The sum of D + 1 products has an error of at most D + 1 half ulps of (‖x_i‖ + ‖x_j‖)², in any order; rounding
        # the vectors and norms adds two; the remainder covers terms of second order.
        self._error = HALF_ULP * (1.1 * D + 8)

    def _arguments(self, rows: Array, buffer: Buffer) -> tuple[Any, ...]:
        # ‖x_j‖² − 2 x_i·x_j is the product of (−2 x_i, 1) and (x_j, ‖x_j‖²).
        factors, values = -2 * self._vectors(rows), buffer.values(len(rows))
        factors[:, -1] = 1
        for part in [slice(None)] if self._cached is not None else self._parts:
            np.matmul(factors, self._vectors(part).T, out=values[:, part])
        slack = self._error * np.square(self._lengths[rows] + self._lengths.max())
        return self._X, buffer.n, buffer.padded(len(rows)), self._norms[rows], slack, rows

    def _vectors(self, rows: Array | slice) -> Array:
        return self._convert(rows) if self._cached is None else self._cached[rows]

    def _convert(self, rows: Array | slice) -> Array:
        """Return an array (m, D + 1), float32, whose rows are (x_j, ‖x_j‖²) for m centred points x_j."""
        vectors = np.empty((len(self._norms[rows]), self._X.shape[1] + 1), np.float32)
        vectors[:, :-1] = self._X[rows] - self._mean
        vectors[:, -1] = self._norms[rows]
        return vectors


class BlockOrder(Order):
    """Ranks the points of any input, by distances that the input computes block by block."""

    _nearest, _ranks = staticmethod(_core.nearest_of_rows), staticmethod(_core.ranks_of_rows)

    def __init__(self, data: Input):
        self._data = data
        self._all_points = np.arange(data.n)

    def _arguments(self, rows: Array, buffer: Buffer) -> tuple[Any, ...]:
        D = self._data.block(rows, self._all_points)
        D = np.ldexp(D, -int(np.frexp(D.max())[1]))  # at most 1
        buffer.values(len(rows))[:] = D
        slack = np.full(len(rows), 2 * HALF_ULP)
        return D, buffer.n, buffer.padded(len(rows)), np.zeros(len(rows)), slack, rows


def make_order(data: Input) -> Order:
    """Return a `PointOrder` for a dense table with Euclidean distances, and a `BlockOrder` for any other input."""
    return BlockOrder(data) if data.points is None else PointOrder(data.points)
