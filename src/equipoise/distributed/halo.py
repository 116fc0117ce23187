"""Positions of points that other ranks own and this rank needs, because its rows of the affinities contain them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..arrays.csr import make_csr
from .group import Group
from .partition import Partition


class Halo:
    """Exchanges the positions of neighbours across ranks.

    Parameters
    ----------
    group : Group
    partition : Partition
    needed : array of int64
        Positions of points in the order of the partition, among them own ones.

    Attributes
    ----------
    ids : array of int64
        Positions of the points of the halo, ascending.
    sent : list of array of int64
        The own rows that each rank needs.
    received : list of int
        The number of points of the halo that each rank owns.
    size : int
        The number of own points and points of the halo.
    """

    def __init__(self, group: Group, partition: Partition, needed: Array):
        self.group, self.partition = group, partition
        own = partition.own
        self.ids = np.empty(0, np.int64)
        if group.size > 1:
            marked = np.zeros(partition.n, bool)
            marked[needed] = True
            marked[own] = False
            self.ids = np.flatnonzero(marked)  # sorted, and so by owner
        cuts = np.searchsorted(self.ids, partition.bounds)
        wanted = group.all_to_all([self.ids[a:b] for a, b in pairwise(cuts)])
        self.sent = [positions - own.start for positions in wanted]
        self.received = np.diff(cuts).tolist()
        self.size = (own.stop - own.start) + len(self.ids)

    def extended(self, Y: Array) -> Array:
        """Return the rows of own points Y (own, d), followed by those of the halo, (size, d)."""
        return self.start(Y)()

    def start(self, Y: Array) -> Callable[[], Array]:
        """Start to exchange positions, and return a function that waits and returns what `extended` returns."""
        if self.group.size == 1:
            return lambda: Y
        finish = self.group.start_all_to_all([Y[rows] for rows in self.sent], self.received)
        return lambda: np.concatenate([Y, finish()])

    def localized(self, A: Matrix) -> Matrix:
        """Return A (own, n), whose columns are positions, with columns that are rows of `extended`, (own, size)."""
        own, columns = self.partition.own, A.indices
        if self.group.size == 1:
            return make_csr(A.data, columns.astype(np.int32, copy=False), A.indptr, A.shape)
        inside = (columns >= own.start) & (columns < own.stop)
        local = np.where(inside, columns - own.start, 0)
        local[~inside] = np.searchsorted(self.ids, columns[~inside]) + (own.stop - own.start)
        return make_csr(A.data, local.astype(np.int32), A.indptr, (A.shape[0], self.size))

    def globalized(self, A: Matrix) -> sparse.csr_matrix:
        """Return the inverse of `localized`."""
        own = self.partition.own
        positions = np.concatenate([np.arange(own.start, own.stop), self.ids])
        return make_csr(A.data, positions[A.indices], A.indptr, (A.shape[0], self.partition.n))
