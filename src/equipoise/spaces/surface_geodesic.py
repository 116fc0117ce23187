"""Compute geodesic distances on a triangulated surface: exactly, or by the heat method."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .. import _core
from .._tags import tagged
from .._types import Array
from ..neighbors.search import check_n_threads
from .base import MetricSpace
from .surface import Surface, check_surface, make_surface


@tagged("spaces.MeshGeodesic")
class MeshGeodesic(MetricSpace):
    """The vertices of a triangle mesh, with the length of the shortest path between them over its faces.

    Paths do not cross boundaries. The mesh must be connected, without unused vertices, and no face may contain a vertex
    twice. New points are described by their distances (m, n) to all vertices; to place vertices of the same mesh that
    were not fitted, fit to a `Restriction`.

    Parameters
    ----------
    vertices : array-like, shape (n, 3)
        Coordinates of the vertices.
    faces : array-like of int, shape (m, 3)
        Vertex indices of each triangle.
    method : {"heat", "exact"}, default="heat"
        "exact" follows straight lines over unfolded faces (Chen & Han 1990; Xin & Wang 2009). "heat" solves two sparse
        linear systems per source vertex (Crane et al. 2013) with potpourri3d, `pip install "equipoise[mesh]"`: it is
        faster on large meshes, and its distances are smoother, with errors of a few per cent. The distance by "heat"
        from x to y can differ from that from y to x; if both are computed, as for `matrix()`, their mean is returned.
    n_threads : int, default=1
        Number of threads for method="exact".
    """

    def __init__(self, vertices: Any, faces: Any, method: str = "heat", *, n_threads: int = 1):
        if not (isinstance(method, str) and method in ("heat", "exact")):
            raise ValueError(f'method must be "heat" or "exact", got {method!r}')
        check_n_threads(n_threads)
        self.vertices, self.faces = check_surface(vertices, faces)
        self.n = len(self.vertices)
        self.method, self.n_threads = method, n_threads
        _ = self._heat if method == "heat" else self._surface  # raise errors now

    @cached_property
    def _heat(self) -> Any:
        """The solver of the heat method; a solver cannot be saved, so it is built again after loading."""
        return _heat_solver(self.vertices, self.faces)

    @cached_property
    def _surface(self) -> Surface:
        """The half-edges of the mesh."""
        return make_surface(self.vertices, self.faces)

    def _block(self, i: Array, j: Array) -> Array:
        if len(j) < len(i):
            return self._block(j, i).T
        return self._by_heat(i, j) if self.method == "heat" else self._exact(i)[:, j]

    def _exact(self, i: Array) -> Array:
        surface, D = self._surface, np.empty((len(i), self.n))
        leaving = _core.Csr(surface.indptr, surface.leaving, surface.leaving.size)
        _core.surface_geodesics(
            surface.faces,
            surface.lengths,
            surface.twins,
            surface.bends,
            leaving,
            i.astype(np.int32),
            D,
            self.n_threads,
        )
        return D

    def _by_heat(self, i: Array, j: Array) -> Array:
        D = np.stack([self._heat.compute_distance(int(source)) for source in i]) if len(i) else np.empty((0, self.n))
        bad = np.argwhere(~np.isfinite(D))
        if bad.size:
            raise ValueError(
                f"the heat method returns no finite distance from vertex {i[bad[0][0]]} to vertex {bad[0][1]}; remove"
                ' faces without area near these vertices, or use method="exact"'
            )
        D[np.arange(len(i)), i] = 0.0
        result = np.maximum(D[:, j], 0.0)
        solved = np.full(self.n, -1)
        solved[i] = np.arange(len(i))
        both = np.flatnonzero(solved[j] >= 0)
        result[:, both] = (result[:, both] + np.maximum(D[np.ix_(solved[j[both]], i)], 0.0).T) / 2
        return result


def _heat_solver(vertices: Array, faces: Array) -> Any:
    try:
        import potpourri3d
    except ImportError as error:
        raise ImportError(
            'method="heat" requires potpourri3d: pip install "equipoise[mesh]"; or use method="exact"'
        ) from error
    try:
        return potpourri3d.MeshHeatMethodDistanceSolver(vertices, faces)
    except RuntimeError as error:  # areas and lengths that overflow or underflow
        raise ValueError(
            'method="heat" cannot solve the heat equation on this surface: its triangles are too large, too small or'
            ' too thin; rescale the vertices, or use method="exact"'
        ) from error
