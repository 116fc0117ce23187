"""Points in the layout of the compiled neighbour search, and the search among groups of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import _core
from .._types import Array
from ..progress import advance_callback

# Products of coordinates per call of the core; Ctrl-C is noticed between calls. One thread of an AMD EPYC computes 4e10
# per second, one without AVX about 1e10.
WORK = 4e9


class Members:
    """The members of groups, sorted by group.

    Attributes
    ----------
    order : array of int32, shape (n,)
        Rows, sorted by group; rows of a group are in ascending order.
    starts : array of int64, shape (count + 1,)
        Where each group starts in `order`.
    csr : _core.Csr
        The same as a pattern of shape (count, n).
    """

    def __init__(self, group: Array, count: int):
        # NumPy sorts 16-bit integers by radix, ten times as fast.
        narrow = group.astype(np.uint16) if count <= 2**16 else group
        self.order = np.argsort(narrow, kind="stable").astype(np.int32)
        self.starts = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(group, minlength=count), out=self.starts[1:])
        self.csr = _core.Csr(self.starts, self.order, len(group))

    @property
    def sizes(self) -> Array:
        """The number of members of each group."""
        return np.diff(self.starts)


class Panels:
    """Points X (n, D), float32, sorted by group and stored as panels of `_core.PANEL` points for the core."""

    def __init__(self, X: Array, members: Members, n_threads: int):
        self.members, self._n_threads = members, n_threads
        n, D = X.shape
        count = -(-n // _core.PANEL)
        self._ids = np.full((count, _core.PANEL), -1, np.int32)
        self._ids.reshape(-1)[:n] = members.order
        self._data = np.empty((count, D, _core.PANEL), np.float32)
        self._norms = np.empty((count, _core.PANEL), np.float32)
        _core.pack_panels(X, self._ids, self._data, self._norms, n_threads)

    def nearest(
        self,
        k: int,
        queries: Array,
        members: Members,
        near: tuple[Array, Array],
        *,
        self_ids: Array | None = None,
        advance: Callable[[int], None] = lambda count: None,
    ) -> Array:
        """Return the indices (m, k), int32, of the k points nearest to each query, in groups near its own.

        Distances are computed in float32 from products. If a query is so much nearer to its neighbours than to the
        origin that rounding could change the result, they are computed again from differences. The result does not
        depend on the number of threads; ties go to the lower index.

        Parameters
        ----------
        k : int
        queries : array of float32, shape (m, D)
        members : Members
            Groups of queries with the same candidates.
        near : pair of arrays
            `indptr` and `indices`: the groups of points with which each group of queries is compared, ascending.
        self_ids : array of int32, shape (m,), optional
            The point that each query represents, which is not its own neighbour. Neighbours are then in no particular
            order; without it they are sorted, nearest first.
        advance : callable, optional
            Called with the numbers of queries that have been completed.
        """
        result = np.empty((len(queries), k), np.int32)
        lists = _core.Csr(near[0], near[1], len(self.members.starts) - 1)
        ids = np.empty(0, np.int32) if self_ids is None else self_ids
        cuts = self._cuts(members, near)
        for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            _core.nearest_in_groups(
                self._data, self._norms, self._ids, self.members.starts, queries, ids, members.csr, lists, first, last,
                self_ids is None, result, self._n_threads,
            )  # fmt: skip
            advance(last - first)
        return result

    def _cuts(self, members: Members, near: tuple[Array, Array]) -> Array:
        """Return where to cut the queries, sorted by group, into parts of about `WORK` products."""
        indptr, indices = near
        compared = np.concatenate([[0], np.cumsum(self.members.sizes[indices])])
        products = members.sizes * np.diff(compared[indptr]) * float(self._data.shape[1])
        done = np.concatenate([[0.0], np.cumsum(products)])
        parts = int(done[-1] // WORK) + 1
        cuts = np.interp(np.linspace(0.0, done[-1], parts + 1)[1:-1], done, members.starts)
        return np.concatenate([[0], cuts.astype(np.int64), members.starts[-1:]])


def one_group(n: int) -> Members:
    """Return n rows as one group."""
    return Members(np.zeros(n, np.int32), 1)


ALL = np.array([0, 1]), np.zeros(1, np.int32)  # one group of queries, which is compared with one group of points


class QueryScan:
    """Finds the points of `base` (n, D), float32, nearest to new vectors; all pairs are compared."""

    def __init__(self, base: Array, n_threads: int):
        self._points = Panels(base, one_group(len(base)), n_threads)

    def nearest(self, Q: Array, k: int) -> Array:
        """Return the indices (m, k), int32, of the k points nearest to each row of Q (m, D), nearest first."""
        return self._points.nearest(k, Q, one_group(len(Q)), ALL, advance=advance_callback())


def scan(base: Array, queries: Array, k: int, n_threads: int) -> Array:
    """Return the indices (n, k), int32, of the k points of `base` (n, D) nearest to each of `queries` (n, D), float32.

    All pairs are compared. Query i represents point i of `base`, which is left out of the neighbours of query i.
    """
    members, self_ids = one_group(len(base)), np.arange(len(base), dtype=np.int32)
    points = Panels(base, members, n_threads)
    return points.nearest(k, queries, members, ALL, self_ids=self_ids, advance=advance_callback())
