"""Find the rows nearest to each row by a distance over columns, by comparing all pairs in the compiled core."""

from __future__ import annotations

import numpy as np

from .. import progress
from .._types import Array
from .base import ABSOLUTE, CATEGORY, ColumnDistance, core

SPARE = 16  # candidates beyond k found in float32; float64 then selects the k nearest
COMPARED = 2e9  # differences of columns per call of the core, about a second; Ctrl-C is noticed between calls
FAR = 1e3  # most ranges by which a new value is outside the range of a column with gaps, in float32; chosen


def nearest_rows(
    distance: ColumnDistance, codes: Array, k: int, n_threads: int, queries: Array | None = None
) -> tuple[Array, Array]:
    """Return the indices, int32, and the distances, both (m, k), of the k nearest rows of each query.

    Rows are compared in float32, and the distances of the nearest are computed again in float64. So a neighbour may be
    replaced by another one only if their distances differ by about one part in a million.

    Parameters
    ----------
    distance : ColumnDistance
    codes : array of float64, shape (n, C)
        The rows among which neighbours are found.
    k : int
    n_threads : int
    queries : array of float64, shape (m, C), default=None
        By default the rows themselves, and a row is then not its own neighbour.
    """
    Q = codes if queries is None else queries
    n, C = codes.shape
    order, sizes = _column_order(distance.kinds, codes, Q)
    weights, kinds = distance.weights[order] / distance.weights.sum(), distance.kinds[order]
    scale = np.choose(kinds, [weights, np.sqrt(weights), 1.0])
    base = _tiles((codes[:, order] * scale).astype(np.float32))
    vectors = np.ascontiguousarray(_inside(Q, codes, distance.kinds)[:, order] * scale, dtype=np.float32)
    width = min(k + SPARE, n - (queries is None))
    found = np.empty((len(Q), width), np.int32)
    step, advance = max(1, int(COMPARED // (n * C))), progress.advance_callback()
    for start in range(0, len(Q), step):
        part = slice(start, start + step)
        own = start if queries is None else -1
        settings = weights.astype(np.float32), sizes, distance.none, own
        core.mixed_nearest(base, n, vectors[part], *settings, found[part], n_threads)
        advance(len(found[part]))
    found.sort(axis=1)
    distances = distance.listed(Q, codes, found, n_threads)
    keep = np.sort(np.argsort(distances, axis=1, kind="stable")[:, :k], axis=1)
    return np.take_along_axis(found, keep, axis=1), np.take_along_axis(distances, keep, axis=1)


def _column_order(kinds: Array, codes: Array, Q: Array) -> tuple[Array, Array]:
    """Return the columns in the order that the core expects: without missing values first, and each part by kind.

    The second result is the number of columns of each kind, without and with missing values.
    """
    gaps = np.isnan(codes).any(axis=0) | np.isnan(Q).any(axis=0)
    group = 3 * gaps + kinds
    return np.argsort(group, kind="stable"), np.bincount(group, minlength=6)


def _inside(Q: Array, codes: Array, kinds: Array) -> Array:
    """Return query rows whose values lie not far outside the range of the column, as float32 requires.

    A value outside the range of a column of numbers without gaps adds a constant to the distances from its row, so
    that it can be moved to the end of the range.
    """
    if Q is codes:
        return Q
    low, high = np.nanmin(codes, axis=0), np.nanmax(codes, axis=0)
    far = np.where((kinds == ABSOLUTE) & ~np.isnan(codes).any(axis=0), 0.0, FAR * (high - low))
    return np.where(kinds == CATEGORY, Q, np.clip(Q, low - far, high + far))


def _tiles(rows: Array) -> Array:
    """Return rows (n, C) in tiles of some rows, each stored column by column: (tiles, C, rows of a tile)."""
    n, C = rows.shape
    height = core.MIXED_TILE
    tiles = np.zeros((-(-n // height), height, C), np.float32)
    tiles.reshape(-1, C)[:n] = rows
    return np.ascontiguousarray(tiles.transpose(0, 2, 1))
