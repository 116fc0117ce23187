"""Compute the geodesic distances of Isomap, lengths of shortest paths in a neighbour graph, row by row on demand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from .. import _core
from .._plural import plural
from .._tags import tagged
from .._types import Array, Matrix
from .._warn import warn
from ..arrays.csr import compiled_pattern, entry_rows, make_csr
from ..arrays.namespace import is_integer
from ..data import check_distances, check_neighbors, check_new_distances, check_table, is_neighbors
from ..neighbors.search import Searcher, check_n_threads, nearest_neighbors
from .base import MetricSpace

Closest = Callable[[Array, Array], tuple[int, int, float]]  # two sets of points → their nearest pair, its distance


@tagged("spaces.GraphGeodesic")
class GraphGeodesic(MetricSpace):
    """n points; the distance of two is the length of the shortest path in a neighbour graph (Tenenbaum et al. 2000).

    `distances(i, j)` runs Dijkstra's algorithm from each of the points i, or from each of the points j if j is shorter.
    `from_table` builds the graph from coordinates. New points are described by their edges to points of the graph: a
    sparse matrix (m, n) of lengths, or (indices, distances), each of shape (m, k); or by a dense array (m, n) of
    their distances to all points.

    Parameters
    ----------
    graph : sparse matrix, shape (n, n), or (indices, distances), each of shape (n, k)
        Lengths of the edges, or the neighbours of each point and their distances. An edge stored in one direction can
        be used in both; if it is stored in both directions with different lengths, the shorter one is used. A stored
        zero connects two points at distance 0. The graph must be connected.
    n_threads : int, default=1
    """

    def __init__(self, graph: Any, *, n_threads: int = 1):
        check_n_threads(n_threads)
        self.graph = _check_edges(graph)
        self.n_threads = n_threads
        self.n = self.graph.shape[0]
        count, part = csgraph.connected_components(self.graph, directed=False)
        if count > 1:
            sizes = np.bincount(part)
            raise ValueError(
                f"the graph has {count} components, of {_largest(sizes)} points, and there is no path from point"
                f" 0 to point {int((part != part[0]).argmax())}; add edges between the components, use one of them, or"
                " build the graph with GraphGeodesic.from_table, which connects them"
            )

    @classmethod
    def from_table(
        cls, X: Any, n_neighbors: int = 10, *, metric: Any = "euclidean", n_threads: int = 1
    ) -> GraphGeodesic:
        """Return the space for the graph that connects each row of a table to its nearest neighbours.

        If the graph has several components, it is connected by additional edges, called bridges, and a warning is
        issued. As in Borůvka's algorithm for minimum spanning trees, the shortest edge out of each component but the
        largest is added, and this is repeated until one component remains.

        Parameters
        ----------
        X : array-like, shape (n, D)
        n_neighbors : int, default=10
        metric : str or callable, default="euclidean"
        n_threads : int, default=1
        """
        X = check_table(X)
        if not (is_integer(n_neighbors) and 0 < n_neighbors < len(X)):
            raise ValueError(
                f"n_neighbors must be an integer between 1 and n_samples - 1 = {len(X) - 1}, got {n_neighbors!r}"
            )
        neighbors = nearest_neighbors(X, n_neighbors, metric, n_threads=n_threads)

        def closest(inside: Array, outside: Array) -> tuple[int, int, float]:
            graph = Searcher(X[outside], metric, n_threads).nearest(X[inside], 1)
            k = int(graph.distances[:, 0].argmin())
            return int(inside[k]), int(outside[graph.indices[k, 0]]), float(graph.distances[k, 0])

        return cls(connect_components(check_neighbors(neighbors), closest), n_threads=n_threads)

    def _block(self, i: Array, j: Array) -> Array:
        if len(j) < len(i):
            return self._block(j, i).T
        edges, distances = self.edges, np.empty((len(i), self.n))
        _core.shortest_paths(compiled_pattern(edges), edges.data, i, distances, self.n_threads)
        return distances if np.array_equal(j, np.arange(self.n)) else distances[:, j]

    def _new_block(self, X: Any, j: Array) -> Array:
        if not (sparse.issparse(X) or is_neighbors(X)):
            if np.ndim(X) != 2 or np.shape(X)[1] != self.n:
                raise ValueError(
                    f"new points of a graph are given by their edges to its points, a sparse matrix (m, {self.n}) or"
                    f" neighbour lists (indices, distances) of shape (m, k), or by distances (m, {self.n}) to all"
                    f" points; got {type(X).__name__} of shape {np.shape(X)}"
                )
            return super()._new_block(X, j)
        edges = check_neighbors(X, self.n) if is_neighbors(X) else check_new_distances(X, self.n)
        if not np.diff(edges.indptr).all():
            i = int(np.diff(edges.indptr).argmin())
            raise ValueError(f"new point {i} has no edge to a point of the graph; store at least one edge per row")
        first, where = np.unique(edges.indices, return_inverse=True)
        paths = edges.data[:, None] + self.distances(first, j)[where]
        return np.minimum.reduceat(paths, edges.indptr[:-1], axis=0)

    @cached_property
    def edges(self) -> Matrix:
        """The graph as a symmetric CSR matrix; an edge stored with two lengths has the shorter one."""
        rows, columns = entry_rows(self.graph), self.graph.indices
        begin, end = np.concatenate([rows, columns]), np.concatenate([columns, rows])
        lengths = np.concatenate([self.graph.data, self.graph.data])
        order = np.lexsort((lengths, end, begin))
        begin, end, lengths = begin[order], end[order], lengths[order]
        first = np.concatenate([[True], (begin[1:] != begin[:-1]) | (end[1:] != end[:-1])])
        indptr = np.concatenate([[0], np.cumsum(np.bincount(begin[first], minlength=self.n))])
        return make_csr(lengths[first].astype(np.float64), end[first], indptr, (self.n, self.n))


def connect_components(graph: Matrix, closest: Closest) -> Matrix:
    """Return a graph, CSR (n, n), with bridges added between its components; warn if there are several components.

    For two sets of points, `closest(a, b)` returns the point of a and the point of b that are nearest to each other,
    and their distance.
    """
    n, bridges = graph.shape[0], []
    count, part = csgraph.connected_components(graph, directed=False)
    sizes = np.bincount(part)
    while part.any():
        others = np.delete(np.arange(part.max() + 1), np.bincount(part).argmax())  # all but the largest, for speed
        shortest = [closest(np.flatnonzero(part == c), np.flatnonzero(part != c)) for c in others]
        bridges += shortest
        i, j, length = (np.array(column) for column in zip(*shortest, strict=True))
        links = sparse.csr_matrix((np.ones(len(i)), (part[i], part[j])), shape=2 * (part.max() + 1,))
        part = csgraph.connected_components(links, directed=False)[1][part]
    if not bridges:
        return graph
    i, j, length = (np.array(column) for column in zip(*bridges, strict=True))
    lengths = f"{length.min():.3g} to {length.max():.3g}, the longest" if len(bridges) > 1 else f"{length[0]:.3g}"
    warn(
        f"the neighbour graph has {count} components, of {_largest(sizes)} points; they are connected by"
        f" {plural(len(bridges), 'bridge')}, of length {lengths} between points {i[length.argmax()]} and"
        f" {j[length.argmax()]}; a larger n_neighbors could connect them without bridges",
    )
    rows = np.concatenate([entry_rows(graph), i])
    columns, values = np.concatenate([graph.indices, j]), np.concatenate([graph.data, length])
    order = np.lexsort((columns, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return sparse.csr_matrix((values[order], columns[order], indptr), shape=(n, n))


def _check_edges(graph: Any) -> Matrix:
    if is_neighbors(graph):
        return check_neighbors(graph)
    if not sparse.issparse(graph):
        raise ValueError(
            "graph must be a sparse matrix (n, n) of edge lengths, or neighbour lists (indices, distances), got"
            f" {type(graph).__name__}; for a table of coordinates use GraphGeodesic.from_table(X, n_neighbors), for a"
            " dense matrix of edge lengths scipy.sparse.csr_array(graph)"
        )
    return check_distances(graph, "the graph")


def _largest(sizes: Array) -> str:
    """Return the sizes of the five largest components as text."""
    order = np.sort(sizes)[::-1]
    return ", ".join(str(size) for size in order[:5]) + (", …" if len(order) > 5 else "")
