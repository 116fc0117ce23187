"""X → Graph: the k nearest neighbours of every point, with the recall of the search measured, not hoped for.

Euclidean metrics in up to five columns go through a k-d tree, the other metrics of metrics.py through faiss: an exact
scan for small data and for L1 and L∞; for large data the points of a cell around a k-means centre are compared with
those of the nearest cells (cells.py). All give the same bytes for any number of threads; faiss's HNSW graphs do not, so
they are not used. Other metrics are searched exactly, block by block, and so are sparse tables (sparse_neighbors.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree
from sklearn.metrics import pairwise_distances_chunked

from .. import progress
from .._types import Array, Matrix
from .cells import Cells, faiss_threads, scan, without_self
from .graph import Graph, smallest
from .sparse import SparseSearcher
from .vectors import Space, make_space, metric_parameters

# Columns up to which a k-d tree is searched, exactly. Measured, 10,000 normal points, k = 15, one thread, tree against
# scan: 3 columns 0.04 s, 0.44 s; 5 columns 0.12 s, 0.49 s; 8 columns 0.46 s, 0.56 s; 12 columns 1.4 s, 0.53 s.
TREE = 5
# t-SNE of MNIST, 70,000 points, at a recall of 0.95, 0.98 and 0.99: 1-NN error 3.07, 2.92, 2.91 %, KL on exact
# neighbours 2.791, 2.785, 2.784.
MIN_RECALL = 0.99
EXACT_WORK = 5e10  # n² · D up to which a full scan is used: about a second; chosen
FAR = 1e15  # times the extent of the data, where a new row is taken to be at most: squares in float32 end at 1e38
ROWS = 65536  # rows searched at once: faiss answers in int64, which is not held for all of them


def nearest_neighbors(
    X: Matrix, k: int, metric: Any = "euclidean", *, n_threads: int = 1, min_recall: float = MIN_RECALL
) -> Graph:
    """Return the k nearest neighbours of each row of X (n, D), at a measured recall of at least `min_recall`.

    `metric` is one of the table in metrics.py, any other of scikit-learn, or a callable; X may be sparse.
    """
    n = X.shape[0]
    if not 0 < k < n:
        raise ValueError(f"k must be between 1 and n_samples - 1 = {n - 1}, got {k}")
    if sparse.issparse(X):
        return SparseSearcher(X, metric).within(k)
    progress.stage("neighbours", n)
    space = make_space(X, metric)
    if space is None:
        return _scan(X, k, metric)
    indices, recall = _search(space, k, n_threads, min_recall)
    # faiss works in float32; the distances that set the affinities are computed again in float64.
    return Graph(indices, space.own_distances(indices, n_threads), recall)


class Searcher:
    """Nearest rows of a table X to new rows, exactly; each new row is searched by itself."""

    SPARE = 16  # found in float32 beyond the k asked for, and sorted out in float64

    def __init__(self, X: Array, metric: Any, n_threads: int):
        self.X, self.metric, self.n_threads = X, metric, n_threads
        self._space: Space | None = None

    def nearest(self, X_new: Array, k: int) -> Graph:
        """Return the k nearest rows of X to each row of X_new (m, D)."""
        self._space = self._space or make_space(self.X, self.metric)
        if self._space is None:
            blocks = pairwise_distances_chunked(
                X_new, self.X, metric=self.metric, **metric_parameters(self.X, self.metric)
            )
            graphs = [smallest(block, k) for block in blocks]
            return Graph(np.concatenate([g.indices for g in graphs]), np.concatenate([g.distances for g in graphs]))
        Q = self._space.queries(X_new)
        found = np.sort(self._candidates(self._space, Q, min(k + self.SPARE, len(self.X))), axis=1)
        distances = self._space.distances(Q, found)
        near = smallest(distances, k)
        return Graph(np.take_along_axis(found, near.indices, axis=1), near.distances)

    def _candidates(self, space: Space, Q: Array, width: int) -> Array:
        if not hasattr(self, "_base"):
            self._unit = Unit(space.base)
            self._base = self._unit.float32(space.base)
        with faiss_threads(self.n_threads):
            queries = np.clip(self._unit.float32(Q), -FAR, FAR)
            return _in_blocks(_exact(self._base, space.search), queries, width)


def nearest_in_matrix(D: Array, k: int) -> Graph:
    """Return the k nearest neighbours of each point from all distances, D (n, n)."""
    D = D.copy()
    np.fill_diagonal(D, np.inf)
    near = np.argpartition(D, k - 1, axis=1)[:, :k]
    return Graph(near.astype(np.int32), np.take_along_axis(D, near, axis=1))


class Unit:
    """The shift and the scale that fit vectors into ±1, where float32 and squares hold them."""

    def __init__(self, V: Array):
        self.center = V.mean(axis=0)
        largest = max(np.abs(V[rows] - self.center).max() for rows in _row_blocks(len(V)))
        self.scale = max(largest, np.finfo(np.float64).tiny)

    def float32(self, V: Array) -> Array:
        """Return (V − center)/scale in float32, without a second array in float64."""
        result = np.empty(V.shape, np.float32)
        for rows in _row_blocks(len(V)):
            result[rows] = (V[rows] - self.center) / self.scale
        return result


Search = Callable[[Array, int], Array]  # queries (m, D) and k → indices (m, k), int64


def _exact(base: Array, search: str) -> Search:
    """Return a scan of all of `base`, float32, which is not copied."""
    import faiss

    metric = {"l2": faiss.METRIC_L2, "l1": faiss.METRIC_L1, "linf": faiss.METRIC_Linf}[search]
    return lambda Q, k: faiss.knn(Q, base, k, metric=metric)[1]


def _search(space: Space, k: int, n_threads: int, min_recall: float) -> tuple[Array, float]:
    """Return the neighbours (n, k) of every row, int32, and the recall."""
    unit = Unit(space.base)
    if space.search == "l2" and space.base.shape[1] <= TREE:
        tree = cKDTree((space.base - unit.center) / unit.scale)
        queries = tree.data if space.own is space.base else (space.own - unit.center) / unit.scale
        return _in_blocks(lambda Q, k: tree.query(Q, k, workers=n_threads)[1], queries, k + 1, without_self), 1.0
    base = unit.float32(space.base)
    queries = base if space.own is space.base else unit.float32(space.own)
    n, D = base.shape
    if space.search == "l2" and float(n) * n * D <= EXACT_WORK:
        return scan(base, queries, k, n_threads), 1.0
    with faiss_threads(n_threads):
        if space.search == "l2":
            cells = Cells(base, queries, n_threads)
            count, recall = cells.reach(k, min_recall)
            return cells.search(k, count), recall
        return _in_blocks(_exact(base, space.search), queries, k + 1, without_self), 1.0


def _row_blocks(n: int) -> list[slice]:
    return [slice(start, min(start + ROWS, n)) for start in range(0, n, ROWS)]


def _in_blocks(search: Search, Q: Array, k: int, tidy: Callable[[Array, Array], Array] | None = None) -> Array:
    """Return what the search finds as int32, a block of queries at a time; `tidy` gets each block and its rows."""
    blocks = _row_blocks(len(Q))
    result: Array | None = None
    advance = progress.advance_callback()
    for rows in blocks:
        found = search(Q[rows], k)
        found = found if tidy is None else tidy(found, np.arange(rows.start, rows.stop))
        result = np.empty((len(Q), found.shape[1]), np.int32) if result is None else result
        result[rows] = found
        advance(rows.stop - rows.start)
    return np.empty((0, k), np.int32) if result is None else result


def _scan(X: Array, k: int, metric: Any) -> Graph:
    """Return exact neighbours by any metric of scikit-learn, or a callable, in blocks of rows."""
    indices, distances = np.empty((len(X), k), np.int32), np.empty((len(X), k))
    start, advance = 0, progress.advance_callback()
    for block in pairwise_distances_chunked(X, metric=metric):
        rows = np.arange(start, start + len(block))
        block[np.arange(len(block)), rows] = np.inf
        bad = np.argwhere(~(block >= 0))
        if bad.size:
            i, j = bad[0]
            raise ValueError(f"metric={metric!r} gives the distance {block[i, j]} between rows {rows[i]} and {j}")
        near = np.argpartition(block, k - 1, axis=1)[:, :k]
        indices[rows], distances[rows] = near, np.take_along_axis(block, near, axis=1)
        start += len(block)
        advance(len(block))
    return Graph(indices, distances)
