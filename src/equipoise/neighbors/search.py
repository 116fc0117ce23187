"""Find the k nearest neighbours of every row of a table, and estimate the recall of the search.

For metrics that vectors.py turns into Euclidean distances between vectors, vectors of up to five coordinates are
searched with a k-d tree. With more coordinates, all pairs are compared if the data are small; in large data each
point is compared only with the points of the k-means cells near its own (cells.py). L1 and L∞ distances are computed
for all pairs by faiss, and those of other metrics by scikit-learn, block by block. Sparse tables are searched by
sparse.py. The result is the same, to the last bit, for any number of threads; faiss's HNSW graphs do not have this
property and are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree
from sklearn.metrics import pairwise_distances_chunked

from .. import progress
from .._types import Array, Matrix
from ..arrays.blocks import FIXED_QUERY_ROWS
from ..arrays.csr import run_on_threads
from ..arrays.namespace import is_integer, require
from ..arrays.numbers import as_numbers
from ..linalg.pca import openmp_threads
from ..mixed.base import SQUARED, ColumnDistance
from ..mixed.fit import fit_columns
from ..mixed.nearest import nearest_rows
from .cells import Cells, listed_for
from .panels import QueryScan, scan
from .sparse import SparseSearcher
from .vectors import (
    EuclideanVectors,
    Graph,
    Vectors,
    check_metric,
    check_metric_results,
    check_range,
    is_mixed,
    is_nan_euclidean,
    make_vectors,
    metric_parameters,
    smallest,
)

# Largest number of columns for a k-d tree, which is exact. Measured on 10,000 normal points, k = 15, one thread, tree
# and scan: 3 columns 0.04 s, 0.44 s; 5 columns 0.12 s, 0.49 s; 8 columns 0.46 s, 0.56 s; 12 columns 1.4 s, 0.53 s.
TREE = 5
# Measured on t-SNE of MNIST, 70,000 points, at a recall of 0.95, 0.98 and 0.99: 1-NN error 3.07, 2.92, 2.91 %, KL on
# exact neighbours 2.791, 2.785, 2.784.
MIN_RECALL = 0.99
EXACT_WORK = 5e10  # largest n² · D for a scan of all pairs: about a second; chosen
MOST_THREADS = 1024  # more than the cores of any machine; far more would exhaust the system's threads
FAR = 1e15  # largest coordinate of a new row, in units of the extent of the data: float32 squares overflow at 1e38
BLOCK = 2**20  # bytes of the temporary arrays of a block that is scaled, 1 MB: fits the second-level cache


def nearest_neighbors(
    X: Matrix, k: int, metric: Any = "euclidean", *, n_threads: int = 1, min_recall: float = MIN_RECALL
) -> Graph:
    """Find the k nearest neighbours of each row of a table.

    Parameters
    ----------
    X : array-like or sparse matrix, shape (n, D)
        With metric="mixed" also a data frame or Arrow table, with categories, dates and missing values.
    k : int
        Number of neighbours, from 1 to n − 1.
    metric : str or callable, default="euclidean"
        "euclidean", "cosine", "correlation", "inner_product", "manhattan" and "chebyshev" are fast; other metrics of
        scikit-learn and functions of two rows work too. "mixed", `equipoise.Mixed` and `equipoise.Blocks` compare
        columns of several kinds, and "nan_euclidean" numbers with missing values (NaN), all exactly. For sparse X the
        metric must be "euclidean", "sqeuclidean", "cosine", "inner_product", "manhattan" or a function.
    n_threads : int, default=1
        Number of threads; the result does not depend on it.
    min_recall : float, default=0.99
        Minimum recall of the search in large data, estimated on a sample; small data are searched exactly.

    Returns
    -------
    Graph
        Indices and distances (n, k) of the neighbours, without the point itself, and the recall.

    Raises
    ------
    ValueError
        If X is not a table of finite numbers, if distances would overflow, if k or another parameter is out of range,
        or if the metric is unknown, is not defined for a row, or gives a distance that is negative or not finite.
    """
    if is_mixed(metric):
        return _nearest_of_mixed_rows(X, k, metric, n_threads)
    if not (type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2):
        X = as_numbers(X, accept_sparse="csr", ensure_min_samples=2)
    if not sparse.issparse(X):
        X = np.require(X, requirements="A")  # the core accepts no other
    if X.shape[1] == 0:
        raise ValueError(f"X has no columns: its shape is {X.shape}; pass a table (n, D) with D >= 1")
    require(min_recall, "min_recall", "between 0 and 1", lambda x: 0 <= x <= 1)
    check_n_threads(n_threads)
    _check_k(k, X.shape[0])
    if not (isinstance(metric, str) or callable(metric)):
        raise ValueError(f"metric must be the name of a metric or a function of two rows, got {metric!r}")
    if sparse.issparse(X):
        searcher = SparseSearcher(X, metric)
        check_metric(X, metric)
        return searcher.within(k)
    if isinstance(metric, str) and metric == "precomputed":
        raise ValueError('nearest_neighbors does not accept metric="precomputed"; pass a table and another metric')
    check_range(X, metric)
    check_metric(X, metric)
    progress.stage("neighbours", X.shape[0])
    vectors = make_vectors(X, metric)
    if vectors is None:
        return _scan_by_metric(X, k, metric)
    indices, order, recall = _search(vectors, k, n_threads, min_recall)
    # The search uses float32; the distances, which determine the affinities, are computed again in float64.
    return Graph(indices, vectors.own_distances(indices, n_threads, order), recall)


def _check_k(k: Any, n: int) -> None:
    if not (is_integer(k) and 0 < k < n):
        raise ValueError(f"k must be an integer from 1 to n_samples - 1 = {n - 1}, got {k!r}")


def _nearest_of_mixed_rows(X: Any, k: int, metric: Any, n_threads: int) -> Graph:
    """Return the neighbours of the rows of a table by a distance over columns."""
    check_n_threads(n_threads)
    distance, codes = fit_columns(as_numbers(X) if is_nan_euclidean(metric) else X, metric)
    _check_k(k, len(codes))
    progress.stage("neighbours", len(codes))
    return nearest_mixed(distance, codes, k, n_threads)


def nearest_mixed(distance: ColumnDistance, codes: Array, k: int, n_threads: int) -> Graph:
    """Return the neighbours of rows given as codes (n, C) by a distance over columns.

    If all columns contribute squared differences, and none has a gap, the distance is Euclidean and so is the search.
    """
    if (distance.kinds == SQUARED).all() and not np.isnan(codes).any():
        scaled = codes * np.sqrt(distance.weights)
        indices, _, recall = _search(EuclideanVectors(scaled, "euclidean"), k, n_threads, MIN_RECALL)
        return Graph(indices, distance.listed(codes, codes, indices, n_threads), recall)
    return Graph(*nearest_rows(distance, codes, k, n_threads))


def check_n_threads(n_threads: Any) -> None:
    """Raise ValueError unless `n_threads` is an integer from 1 to `MOST_THREADS`."""
    if not (is_integer(n_threads) and 1 <= n_threads <= MOST_THREADS):
        raise ValueError(f"n_threads must be an integer from 1 to {MOST_THREADS}, got {n_threads!r}")


class Searcher:
    """Finds the rows of a table X (n, D) that are nearest to new rows, by an exact search.

    The result for a new row does not depend on the other new rows.
    """

    SPARE = 16  # candidates beyond k found in float32; float64 then selects the k nearest

    def __init__(self, X: Array, metric: Any, n_threads: int):
        self.X, self.metric, self.n_threads = X, metric, n_threads
        self._vectors: Vectors | None = None

    def nearest(self, X_new: Array, k: int) -> Graph:
        """Return the k rows of X nearest to each row of X_new (m, D); the k neighbours are sorted by index."""
        self._vectors = self._vectors or make_vectors(self.X, self.metric)
        if self._vectors is None:
            blocks = pairwise_distances_chunked(
                X_new, self.X, metric=self.metric, **metric_parameters(self.X, self.metric)
            )
            graphs, start = [], 0
            for block in blocks:
                check_metric_results(block, self.metric, start, new=True)
                graphs.append(smallest(block, k))
                start += len(block)
            return Graph(np.concatenate([g.indices for g in graphs]), np.concatenate([g.distances for g in graphs]))
        Q = self._vectors.queries(X_new)
        found = np.sort(self._candidates(self._vectors, Q, min(k + self.SPARE, len(self.X))), axis=1)
        distances = self._vectors.distances(Q, found, self.n_threads)
        near = smallest(distances, k)
        return Graph(np.take_along_axis(found, near.indices, axis=1), near.distances)

    def _candidates(self, vectors: Vectors, Q: Array, width: int) -> Array:
        """Return the indices (m, width) of the vectors nearest to each query, as computed in float32."""
        if not hasattr(self, "_base"):
            self._unit = UnitScale(vectors.base, self.n_threads)
            self._base = self._unit.float32(vectors.base, self.n_threads)
            self._scan = QueryScan(self._base, self.n_threads) if vectors.search == "l2" else None
        with np.errstate(over="ignore"):
            queries = np.clip(self._unit.float32(Q), -FAR, FAR)
        if self._scan is not None:
            return self._scan.nearest(queries, width)
        with faiss_threads(self.n_threads):
            return _in_blocks(_faiss_scan(self._base, vectors.search), queries, width)


def nearest_in_matrix(D: Array, k: int) -> Graph:
    """Return the k nearest neighbours of each point, from the matrix D (n, n) of all distances."""
    return nearest_in_rows(D, np.arange(len(D)), k)


def nearest_in_rows(D: Array, rows: Array, k: int) -> Graph:
    """Return the k nearest neighbours of the points `rows` (m,), from their distances D (m, n) to all points."""
    D = D.copy()
    D[np.arange(len(rows)), rows] = np.inf
    near = np.argpartition(D, k - 1, axis=1)[:, :k]
    return Graph(near.astype(np.int32), np.take_along_axis(D, near, axis=1))


class UnitScale:
    """Shifts and scales vectors so that those of V (n, D) lie in [−1, 1].

    This prevents overflow and underflow of their squares in float32.
    """

    def __init__(self, V: Array, n_threads: int = 1):
        blocks = _query_blocks(len(V), 16 * V.shape[1])
        sums, extremes = np.empty((len(blocks), V.shape[1])), np.empty((len(blocks), 2, V.shape[1]))

        def read(b: int) -> None:
            rows = V[blocks[b]]
            sums[b], extremes[b] = rows.sum(axis=0), (rows.min(axis=0), rows.max(axis=0))

        run_on_threads(read, range(len(blocks)), n_threads)
        self.center = sums.sum(axis=0) / len(V)
        self.scale = max(float(np.abs(extremes - self.center).max()), np.finfo(np.float64).tiny)

    def float32(self, V: Array, n_threads: int = 1) -> Array:
        """Return (V − center)/scale in float32, without a full copy in float64."""
        result = np.empty(V.shape, np.float32)

        def write(rows: slice) -> None:
            result[rows] = (V[rows] - self.center) / self.scale

        run_on_threads(write, _query_blocks(len(V), 16 * V.shape[1]), n_threads)
        return result


def _query_blocks(n: int, bytes_per_row: int = 1) -> list[slice]:
    step = max(1, min(FIXED_QUERY_ROWS, BLOCK // bytes_per_row))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


@contextmanager
def faiss_threads(n_threads: int) -> Iterator[None]:
    """Set the number of threads of faiss for a `with` block, and restore it afterwards."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(openmp_threads(n_threads))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def without_self(found: Array, rows: Array) -> Array:
    """Return the neighbours `found` (m, k + 1) of the points `rows` (m,) without the points themselves, (m, k).

    If a point is not among its own neighbours, its last neighbour is left out instead.
    """
    m, width = found.shape
    own = found == rows[:, None]
    own[~own.any(axis=1), -1] = True  # not found, as among many points at distance 0
    return found[~own].reshape(m, width - 1)


Search = Callable[[Array, int], Array]  # queries (m, D) and k → indices (m, k), int64


def _faiss_scan(base: Array, search: str) -> Search:
    """Return a function that searches `base` (n, D), float32, exactly; `base` is not copied."""
    import faiss

    metric = {"l2": faiss.METRIC_L2, "l1": faiss.METRIC_L1, "linf": faiss.METRIC_Linf}[search]
    return lambda Q, k: faiss.knn(Q, base, k, metric=metric)[1]


def _search(vectors: Vectors, k: int, n_threads: int, min_recall: float) -> tuple[Array, Array | None, float]:
    """Return the indices (n, k), int32, of the k neighbours of every row, and the recall of the search.

    Between them is an order (n,), int32, in which rows near each other follow each other, or None if there is none.
    """
    unit = UnitScale(vectors.base, n_threads)
    if vectors.search == "l2" and vectors.base.shape[1] <= TREE:
        tree = cKDTree((vectors.base - unit.center) / unit.scale)
        queries = tree.data if vectors.own is vectors.base else (vectors.own - unit.center) / unit.scale
        return _in_blocks(lambda Q, k: tree.query(Q, k, workers=n_threads)[1], queries, k + 1, without_self), None, 1.0
    base = unit.float32(vectors.base, n_threads)
    queries = base if vectors.own is vectors.base else unit.float32(vectors.own, n_threads)
    n, D = base.shape
    if vectors.search == "l2" and float(n) * n * D <= EXACT_WORK:
        return scan(base, queries, k, n_threads), None, 1.0
    if vectors.search == "l2":
        cells = Cells(base, queries, n_threads, listed_for(min_recall))
        indices, recall = cells.search_with_recall(k, min_recall)
        return indices, cells.order, recall
    with faiss_threads(n_threads):
        return _in_blocks(_faiss_scan(base, vectors.search), queries, k + 1, without_self), None, 1.0


def _in_blocks(search: Search, Q: Array, k: int, postprocess: Callable[[Array, Array], Array] | None = None) -> Array:
    """Search for the neighbours of a block of queries at a time, and return all indices as int32.

    Without blocks, faiss would return all indices as int64, which take twice the memory. `postprocess(found, rows)`, if
    not None, is applied to the indices found for each block of queries `rows`.
    """
    result: Array | None = None
    advance = progress.advance_callback()
    for rows in _query_blocks(len(Q)):
        found = search(Q[rows], k)
        found = found if postprocess is None else postprocess(found, np.arange(rows.start, rows.stop))
        result = np.empty((len(Q), found.shape[1]), np.int32) if result is None else result
        result[rows] = found
        advance(rows.stop - rows.start)
    return np.empty((0, k), np.int32) if result is None else result


def _scan_by_metric(X: Array, k: int, metric: Any) -> Graph:
    """Return the exact neighbours under any scikit-learn metric or callable, computed in blocks of rows."""
    parameters = metric_parameters(X, metric)
    indices, distances = np.empty((len(X), k), np.int32), np.empty((len(X), k))
    start, advance = 0, progress.advance_callback()
    for block in pairwise_distances_chunked(X, metric=metric, **parameters):
        rows = np.arange(start, start + len(block))
        block[np.arange(len(block)), rows] = 0.0
        check_metric_results(block, metric, start)
        block[np.arange(len(block)), rows] = np.inf
        near = np.argpartition(block, k - 1, axis=1)[:, :k]
        indices[rows], distances[rows] = near, np.take_along_axis(block, near, axis=1)
        start += len(block)
        advance(len(block))
    return Graph(indices, distances)
