"""Shortest paths in a graph: the geodesic distances of Isomap, row by row on demand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from .. import _core
from .._types import Array, Matrix
from .._warn import warn
from ..arrays.csr import entry_rows, make_csr
from ..arrays.pattern import compiled_pattern
from ..data import check_distances, check_neighbors, check_table, is_neighbors
from ..neighbors.search import Searcher, nearest_neighbors
from .base import MetricSpace

Closest = Callable[[Array, Array], tuple[int, int, float]]  # two sets of points → the nearest pair and its distance


class GraphGeodesic(MetricSpace):
    """n points with the length of the shortest path between them in a graph of near pairs (Tenenbaum et al. 2000).

    `graph` holds the lengths of the edges: a sparse matrix (n, n), or lists of neighbours (indices, distances). An
    edge stored in one direction is walked in both, and of two lengths the shorter counts; a stored zero joins two
    points at distance 0. A graph that falls apart is refused. `from_table` makes the graph from coordinates.

    `distances(i, j)` runs Dijkstra's algorithm from the points i or j, whichever are fewer, and from no others.
    """

    def __init__(self, graph: Any, *, n_threads: int = 1):
        self.graph = _check_edges(graph)
        self.n_threads = n_threads
        self.n = self.graph.shape[0]
        count, part = csgraph.connected_components(self.graph, directed=False)
        if count > 1:
            sizes = np.bincount(part)
            raise ValueError(
                f"the graph falls into {count} components, of {_largest(sizes)} points, and there is no path from point"
                f" 0 to point {int((part != part[0]).argmax())}; add edges between them, take one component, or let"
                " GraphGeodesic.from_table build and join the graph"
            )

    @classmethod
    def from_table(
        cls, X: Any, n_neighbors: int = 10, *, metric: Any = "euclidean", n_threads: int = 1
    ) -> GraphGeodesic:
        """Return the geodesics of the graph that joins each row of X (n, D) to its nearest.

        If the graph falls apart it is joined, with a warning, by the shortest bridges: every component in turn gets the
        shortest edge that leads out of it, as in Borůvka's minimum spanning tree, until one is left.
        """
        X = check_table(X)
        if not 0 < n_neighbors < len(X):
            raise ValueError(f"n_neighbors must be between 1 and n_samples - 1 = {len(X) - 1}, got {n_neighbors}")
        near = nearest_neighbors(X, n_neighbors, metric, n_threads=n_threads)

        def closest(inside: Array, outside: Array) -> tuple[int, int, float]:
            found = Searcher(X[outside], metric, n_threads).nearest(X[inside], 1)
            k = int(found.distances[:, 0].argmin())
            return int(inside[k]), int(outside[found.indices[k, 0]]), float(found.distances[k, 0])

        return cls(joined(check_neighbors(near), closest), n_threads=n_threads)

    def _block(self, i: Array, j: Array) -> Array:
        if len(j) < len(i):
            return self._block(j, i).T
        edges, distances = self._edges, np.empty((len(i), self.n))
        _core.shortest_paths(compiled_pattern(edges), edges.data, i, distances, self.n_threads)
        return distances if np.array_equal(j, np.arange(self.n)) else distances[:, j]

    @cached_property
    def _edges(self) -> Matrix:
        """Both directions of every edge, as CSR, with the shorter of two lengths."""
        rows, columns = entry_rows(self.graph), self.graph.indices
        begin, end = np.concatenate([rows, columns]), np.concatenate([columns, rows])
        lengths = np.concatenate([self.graph.data, self.graph.data])
        order = np.lexsort((lengths, end, begin))
        begin, end, lengths = begin[order], end[order], lengths[order]
        first = np.concatenate([[True], (begin[1:] != begin[:-1]) | (end[1:] != end[:-1])])
        indptr = np.concatenate([[0], np.cumsum(np.bincount(begin[first], minlength=self.n))])
        return make_csr(lengths[first].astype(np.float64), end[first], indptr, (self.n, self.n))


def joined(graph: Matrix, closest: Closest) -> Matrix:
    """Return the graph, CSR (n, n), with bridges between its components; warns if there are any."""
    n, bridges = graph.shape[0], []
    count, part = csgraph.connected_components(graph, directed=False)
    sizes = np.bincount(part)
    while part.any():
        others = np.delete(np.arange(part.max() + 1), np.bincount(part).argmax())  # all but the largest, the dearest
        found = [closest(np.flatnonzero(part == c), np.flatnonzero(part != c)) for c in others]
        bridges += found
        i, j, length = (np.array(column) for column in zip(*found, strict=True))
        links = sparse.csr_matrix((np.ones(len(i)), (part[i], part[j])), shape=2 * (part.max() + 1,))
        part = csgraph.connected_components(links, directed=False)[1][part]
    if not bridges:
        return graph
    i, j, length = (np.array(column) for column in zip(*bridges, strict=True))
    warn(
        f"the neighbour graph falls into {count} components, of {_largest(sizes)} points; they are joined by"
        f" {len(bridges)} bridges, of length {length.min():.3g} to {length.max():.3g}, the longest between points"
        f" {i[length.argmax()]} and {j[length.argmax()]}. More neighbours may join them better",
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
            "graph must be a sparse matrix (n, n) of edge lengths, or lists of neighbours (indices, distances); for a"
            " table of coordinates use GraphGeodesic.from_table(X, n_neighbors)"
        )
    return check_distances(graph, "the graph")


def _largest(sizes: Array) -> str:
    """Return the sizes of the components, the largest five of them, as text."""
    order = np.sort(sizes)[::-1]
    return ", ".join(str(size) for size in order[:5]) + (", …" if len(order) > 5 else "")
