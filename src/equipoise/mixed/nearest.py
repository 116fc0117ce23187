"""Find the rows nearest to each row under the distance of Gower."""

from __future__ import annotations

import numpy as np

from .. import progress
from .._types import Array
from ..arrays.blocks import FIXED_ENTRIES
from .gower import Gower


def nearest_rows(
    gower: Gower, codes: Array, k: int, n_threads: int, queries: Array | None = None
) -> tuple[Array, Array]:
    """Return the indices, int32, and the distances, both (m, k), of the k nearest rows of each query.

    Parameters
    ----------
    gower : Gower
    codes : array of float64, shape (n, C)
        The rows among which neighbours are found.
    k : int
    n_threads : int
    queries : array of float64, shape (m, C), default=None
        By default the rows themselves, and a row is then not its own neighbour.
    """
    Q = codes if queries is None else queries
    indices, distances = np.empty((len(Q), k), np.int32), np.empty((len(Q), k))
    step, advance = max(1, FIXED_ENTRIES // len(codes)), progress.advance_callback()
    for start in range(0, len(Q), step):
        rows = slice(start, min(start + step, len(Q)))
        D = gower.block(Q[rows], codes)
        if queries is None:
            D[np.arange(rows.stop - start), np.arange(start, rows.stop)] = np.inf
        near = np.sort(np.argsort(D, axis=1, kind="stable")[:, :k], axis=1)
        indices[rows], distances[rows] = near, np.take_along_axis(D, near, axis=1)
        advance(rows.stop - start)
    return indices, distances
