"""The exact nearest rows of some vectors, among the rows of all ranks: each rank compares them with its own rows.

Candidates are found in float32 and measured in float64. A bound on the rounding errors shows whether a row that was not
a candidate could be nearer than the k-th; where it could, all distances are computed in float64. So the result does not
depend on how the rows are divided among ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy.spatial.distance import cdist

from .._types import Array
from ..neighbors.panels import QueryScan
from ..neighbors.vectors import EuclideanVectors
from .group import Group
from .partition import Partition
from .row_vectors import RowVectors

SPARE = 16  # candidates beyond k found in float32; float64 then selects the k nearest
COMPARED = 2**24  # bytes of the own rows compared with queries at a time, as vectors in float64; chosen
CHECKED = 64  # queries compared with all of these rows in float64 at a time; chosen
FARTHEST = 1e15  # coordinate in float32 beyond which a query is moved: its square still fits, and float64 then decides


class SearchedRows(Protocol):
    """Rows that ranks share, among which neighbours are searched."""

    partition: Partition
    rows: Array  # (count, D): those of this rank, in the order of positions
    vectors: RowVectors
    n_threads: int


@dataclass(eq=False)
class OwnVectors:
    """Rows of this rank, among which neighbours are searched, and how they become vectors: a `SearchedRows`."""

    partition: Partition
    rows: Array
    vectors: RowVectors
    n_threads: int


def nearest_rows(
    group: Group, own: SearchedRows, queries: Array, k: int, excluded: Array | None = None
) -> tuple[Array, Array]:
    """Return the positions (m, k), int64, of the k rows nearest to each query, and squared distances of vectors.

    Every rank passes its own queries, perhaps none; all ranks call this function. Neighbours are sorted by distance and
    then by position.

    Parameters
    ----------
    group : Group
    own : SearchedRows
    queries : array of shape (m, D)
        Rows, as those of `own`.
    k : int
        Number of neighbours, at most the number of rows.
    excluded : array of int64, shape (m,), optional
        A position that is not a neighbour of each query: its own.
    """
    excluded = np.full(len(queries), -1, np.int64) if excluded is None else excluded
    parts = group.all_gather(queries)
    d2, near = scan_own(own, np.concatenate(parts), np.concatenate(group.all_gather(excluded)), k)
    cuts = np.cumsum([0, *map(len, parts)])
    sent = [slice(a, b) for a, b in pairwise(cuts)]
    d2s, nears = (group.all_to_all([found[part] for part in sent]) for found in (d2, near))
    d2, near = smallest(np.hstack(d2s), np.hstack(nears), k)
    return near, d2


def scan_own(own: SearchedRows, queries: Array, excluded: Array, k: int) -> tuple[Array, Array]:
    """Return the squared distances (m, k) to the own rows nearest to each query, and their positions, int64.

    If there are fewer than k own rows, the others have infinite distances and the position n.
    """
    Q, n = own.vectors.vectors(queries), own.partition.n
    d2, near = np.full((len(Q), k), np.inf), np.full((len(Q), k), n, np.int64)
    if not len(Q):
        return d2, near
    center, scale = own.vectors.center, own.vectors.scale
    unit = np.clip((Q - center) / scale, -FARTHEST, FARTHEST).astype(np.float32)
    for first, rows in _parts(own):
        table = EuclideanVectors(own.vectors.vectors(rows), "sqeuclidean")
        count = min(k + 1 + SPARE, len(rows))
        points = own.vectors.unit(rows, own.n_threads)
        found = QueryScan(points, own.n_threads).nearest(unit, count)
        before = d2, near
        more = table.distances(Q, found)
        d2, near = _merged(before, (more, found), first, excluded)
        if count == len(rows):
            continue
        farthest = np.sqrt(more[:, -1]) / scale
        for at in _uncertain(own.vectors, (Q, points), farthest, d2[:, -1]):
            better = _all_distances(table, Q[at], count)
            d2[at], near[at] = _merged((before[0][at], before[1][at]), better, first, excluded[at])
    return d2, near


def smallest(d2: Array, positions: Array, k: int) -> tuple[Array, Array]:
    """Return the k smallest entries of each row of d2, ascending, and their positions; ties by position."""
    order = np.lexsort((positions, d2), axis=1)[:, :k]
    return np.take_along_axis(d2, order, axis=1), np.take_along_axis(positions, order, axis=1)


def _parts(own: SearchedRows) -> Iterator[tuple[int, Array]]:
    """Yield some own rows at a time, with the position of the first."""
    step = max(1, COMPARED // (8 * own.rows.shape[1]))
    for start in range(0, len(own.rows), step):
        yield own.partition.own.start + start, own.rows[start : start + step]


def _merged(best: tuple[Array, Array], more: tuple[Array, Array], first: int, excluded: Array) -> tuple[Array, Array]:
    """Return the nearest of the rows known so far and of further ones, whose indices count from position `first`."""
    d2, at = more[0].copy(), first + more[1].astype(np.int64)
    d2[at == excluded[:, None]] = np.inf
    return smallest(np.hstack([best[0], d2]), np.hstack([best[1], at]), best[0].shape[1])


def _uncertain(vectors: RowVectors, pair: tuple[Array, Array], farthest: Array, kth: Array) -> Iterator[Array]:
    """Yield indices of queries for which a row that is not a candidate could be nearer than the k-th, some at a time.

    Let a be the distance of the farthest candidate in units of `scale`, and R the sum of the norms of the query and of
    the longest row. Rounding coordinates to float32 changes a distance by at most δ = R/2^24, and the sum of D products
    changes its square by at most E = (D + 4) R²/2^23. A row that is not a candidate has a distance of at least
    √((a − δ)² − 2E) − δ.
    """
    Q, points = pair
    longest = float(np.sqrt(np.square(points, dtype=np.float64).sum(axis=1).max()))
    R = np.linalg.norm((Q - vectors.center) / vectors.scale, axis=1) + longest
    delta, E = R / 2**24, (Q.shape[1] + 4) * R**2 / 2**23
    least = np.sqrt(np.maximum(np.maximum(farthest - delta, 0) ** 2 - 2 * E, 0)) - delta
    uncertain = np.flatnonzero(~(least > np.sqrt(kth) / vectors.scale))
    for start in range(0, len(uncertain), CHECKED):
        yield uncertain[start : start + CHECKED]


def _all_distances(table: EuclideanVectors, Q: Array, count: int) -> tuple[Array, Array]:
    """Return the squared distances (m, count) from queries to the nearest rows of a table, and their indices."""
    found = np.argsort(cdist(Q, table.base, "sqeuclidean"), axis=1, kind="stable")[:, :count]
    return table.distances(Q, found), found
