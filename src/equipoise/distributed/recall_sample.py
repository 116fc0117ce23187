"""The true neighbours of a sample of rows, merged over ranks, on which the recall of a search is measured."""

from __future__ import annotations

import numpy as np

from .._types import Array
from ..neighbors.panels import QueryScan
from ..neighbors.vectors import EuclideanVectors
from .cell_reach import OwnCells
from .group import Group

SPARE = 16  # candidates beyond k found in float32; float64 then selects the k nearest
COMPARED = 2**24  # bytes of the own rows compared with the sample at a time, as vectors in float64; chosen


def true_neighbors(group: Group, own: OwnCells, sample: Array, positions: Array, k: int) -> tuple[Array, Array]:
    """Return the positions (m, k), int64, of the k nearest points of each row of a sample, and squared distances.

    Each rank compares the sample with all of its rows; the k nearest of all ranks are kept, ties by position.

    Parameters
    ----------
    group : Group
    own : OwnCells
    sample : array of shape (m, D)
        Rows, the same on all ranks.
    positions : array of int64, shape (m,)
        Their positions.
    k : int
    """
    Q, queries = own.vectors.vectors(sample), own.vectors.unit(sample, own.n_threads)
    d2, near = np.full((len(sample), k), np.inf), np.full((len(sample), k), own.partition.n)
    step = max(1, COMPARED // (8 * sample.shape[1]))
    for start in range(0, len(own.rows), step):
        rows = own.rows[start : start + step]
        unit = own.vectors.unit(rows, own.n_threads)
        found = QueryScan(unit, own.n_threads).nearest(queries, min(k + 1 + SPARE, len(rows)))
        table = EuclideanVectors(own.vectors.vectors(rows), "sqeuclidean")
        more, at = table.distances(Q, found), own.partition.own.start + start + found.astype(np.int64)
        more[at == positions[:, None]] = np.inf
        d2, near = _nearest(np.hstack([d2, more]), np.hstack([near, at]), k)
    everyone = group.all_gather(d2), group.all_gather(near)
    d2, near = _nearest(np.hstack(everyone[0]), np.hstack(everyone[1]), k)
    return near, d2


def _nearest(d2: Array, positions: Array, k: int) -> tuple[Array, Array]:
    """Return the k smallest entries of each row of d2, ascending, and their positions; ties by position."""
    order = np.lexsort((positions, d2), axis=1)[:, :k]
    return np.take_along_axis(d2, order, axis=1), np.take_along_axis(positions, order, axis=1)
