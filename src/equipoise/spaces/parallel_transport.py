"""Parallel transport unfolding: geodesic distances that holes in the data do not distort (Budninskiy et al. 2019)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csgraph

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.blocks import FIXED_ENTRIES, row_blocks
from ..arrays.csr import entry_rows
from ..arrays.namespace import is_integer
from ..data import check_table
from ..linalg.pca import on_one_blas_thread
from ..neighbors.search import Searcher, nearest_neighbors
from .base import MetricSpace
from .graph_geodesic import GraphGeodesic
from .simple import check_new_rows


@tagged("spaces.ParallelTransport")
class ParallelTransport(MetricSpace):
    """Points near a d-dimensional surface, with the lengths of shortest paths after the paths are unfolded in a plane.

    Each edge of a shortest path in the neighbour graph is carried to the tangent plane of the first point by parallel
    transport, and the distance is the length of their sum, ‖Σ_t R_1 R_2 ⋯ R_{t−1} v_t‖, where v_t is edge t in the
    tangent plane of its first point, and R_t rotates the tangent plane of the next point onto it (Budninskiy et al.
    2019). On a surface that can be unrolled, the sum is the straight line between its ends, even if the path goes
    around a hole, so that `ClassicalMDS` of this space unrolls a Swiss roll with a hole, which Isomap does not.
    Distances are symmetric; they can violate the triangle inequality where the surface is curved. New points are rows
    (m, D).

    Parameters
    ----------
    X : array-like, shape (n, D)
    n_components : int, default=2
        Dimension d of the surface.
    n_neighbors : int, default=10
        Neighbours of each point: its edges, and the points from which its tangent plane is found. If the graph is not
        connected, its components are joined by the shortest bridges, with a warning.
    n_threads : int, default=1
        Number of threads of the neighbour search.
    """

    def __init__(self, X: Any, n_components: int = 2, n_neighbors: int = 10, *, n_threads: int = 1):
        self.X = check_table(X)
        self.n, self.n_threads = len(self.X), n_threads
        if not is_integer(n_components) or not 1 <= n_components <= min(self.X.shape[1], self.n - 1):
            largest = min(self.X.shape[1], self.n - 1)
            raise ValueError(f"n_components must be an integer between 1 and {largest}, got {n_components!r}")
        if not is_integer(n_neighbors) or not n_components <= n_neighbors < self.n:
            raise ValueError(
                f"n_neighbors must be an integer between n_components = {n_components} and n_samples - 1 ="
                f" {self.n - 1}, got {n_neighbors!r}; a tangent plane needs as many neighbours as it has dimensions"
            )
        self.d, self.n_neighbors = int(n_components), int(n_neighbors)
        self.paths = GraphGeodesic.from_table(self.X, self.n_neighbors, n_threads=n_threads)

    @cached_property
    def tangents(self) -> Array:
        """Orthonormal bases (n, D, d) of the tangent planes: the principal axes of each point and its neighbours."""
        near = nearest_neighbors(self.X, self.n_neighbors, n_threads=self.n_threads).indices
        T = np.empty((self.n, self.X.shape[1], self.d))
        for rows in row_blocks(self.n, 8 * near.shape[1] * self.X.shape[1]):
            patches = np.concatenate([self.X[rows, None], self.X[near[rows]]], axis=1)
            patches -= patches.mean(axis=1, keepdims=True)
            T[rows] = np.swapaxes(np.linalg.svd(patches, full_matrices=False)[2][:, : self.d], 1, 2)
        return T

    @cached_property
    def _transported(self) -> tuple[Array, Array]:
        """For each edge from i to j: the edge in the tangent plane of i (nnz, d), and R from plane j to i (nnz, d, d).

        The edge is the mean of its projections on both planes, at its true length, so that −Rᵀ v is the edge from j to
        i, and distances are symmetric. R is the rotation or reflection nearest to T_iᵀ T_j.
        """
        edges: Matrix = self.paths.edges
        begin, end = entry_rows(edges), edges.indices
        v, R = np.empty((edges.nnz, self.d)), np.empty((edges.nnz, self.d, self.d))
        for part in row_blocks(edges.nnz, 16 * self.d * self.X.shape[1]):
            i, j = begin[part], end[part]
            Ti, Tj, e = self.tangents[i], self.tangents[j], self.X[j] - self.X[i]
            U, _, Vt = np.linalg.svd(np.swapaxes(Ti, 1, 2) @ Tj)
            R[part] = U @ Vt
            there = np.einsum("eDb,eD->eb", Tj, e)
            v[part] = np.einsum("eDa,eD->ea", Ti, e) + np.einsum("eab,eb->ea", R[part], there)
        v[(v == 0).all(axis=1), 0] = 1.0  # an edge at right angles to both planes
        return v * (edges.data / np.linalg.norm(v, axis=1))[:, None], R

    @on_one_blas_thread
    def vectors(self, i: Array) -> Array:
        """Return the unfolded paths (len(i), n, d) from points i to all points, in the tangent planes of points i."""
        result = np.empty((len(i), self.n, self.d))
        step = max(1, FIXED_ENTRIES // (self.n * (self.d + 1) ** 2))
        for start in range(0, len(i), step):
            result[start : start + step] = self._unfold(i[start : start + step])
        return result

    def _unfold(self, sources: Array) -> Array:
        edges, (v, R), n = self.paths.edges, self._transported, self.n
        parents = csgraph.dijkstra(edges, indices=sources, return_predecessors=True)[1].astype(np.int64)
        at_source = np.arange(len(sources)) * n + sources  # the path s → j has the index s n + j
        parents[np.arange(len(sources)), sources] = sources
        child = np.tile(np.arange(n), len(sources))
        edge = np.searchsorted(entry_rows(edges) * np.int64(n) + edges.indices, parents.ravel() * n + child)
        parent = (parents + n * np.arange(len(sources))[:, None]).ravel()
        depth = _depths(parent)
        sums, turned = np.zeros((parent.size, self.d)), np.empty((parent.size, self.d, self.d))
        turned[at_source] = np.eye(self.d)
        order = np.argsort(depth, kind="stable")
        for level in np.split(order, np.cumsum(np.bincount(depth))[:-1])[1:]:  # paths with equally many edges
            before = turned[parent[level]]
            sums[level] = sums[parent[level]] + np.einsum("pab,pb->pa", before, v[edge[level]])
            turned[level] = before @ R[edge[level]]
        return sums.reshape(len(sources), n, self.d)

    def _block(self, i: Array, j: Array) -> Array:
        if len(j) < len(i):
            return self._block(j, i).T
        return np.linalg.norm(self.vectors(i)[:, j], axis=2)

    def _new_block(self, X: Any, j: Array) -> Array:
        """Return the distances from new points; a new point is in the tangent plane of its nearest point."""
        X = check_new_rows(X, self.X)
        nearest = Searcher(self.X, "euclidean", self.n_threads).nearest(X, 1)
        near, step = nearest.indices[:, 0].astype(np.int64), X - self.X[nearest.indices[:, 0]]
        offset = np.einsum("mDd,mD->md", self.tangents[near], step)
        length = np.linalg.norm(offset, axis=1)
        offset *= (nearest.distances[:, 0] / np.where(length > 0, length, 1.0))[:, None]
        return np.linalg.norm(self.vectors(near)[:, j] - offset[:, None], axis=2)


def _depths(parent: Array) -> Array:
    """Return the number of steps from each node of a forest to its root; the parent of a root is itself."""
    depth = (parent != np.arange(parent.size)).astype(np.int64)
    while (parent != parent[parent]).any():
        depth += depth[parent]
        parent = parent[parent]
    return depth
