"""Isolines: the points of a mesh, a graph or a map at given distances from a source (docs/math.md, section 18)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from .._plural import plural
from .._types import Array
from ..arrays.csr import entry_rows
from ..arrays.namespace import is_finite, is_integer
from ..data.checks.maps import check_map
from .base import MetricSpace, check_points
from .graph_geodesic import GraphGeodesic
from .simple import Precomputed
from .surface_geodesic import MeshGeodesic


@dataclass(frozen=True)
class Isolines:
    """Level sets of the distance from a source, as polylines on triangles.

    Attributes
    ----------
    levels : ndarray of shape (k,)
        The distances, ascending.
    lines : tuple of k tuples of arrays
        The polylines of each level, arrays of positions (m, 2) or (m, 3); the first and the last position of a closed
        line are equal.
    values : ndarray of shape (n,)
        The distance of each point from the source.
    positions : ndarray of shape (n, 2) or (n, 3)
        The positions of the points.
    triangles : ndarray of int, shape (t, 3)
        The triangles on which the distance was interpolated.
    """

    levels: Array
    lines: tuple[tuple[Array, ...], ...] = field(repr=False)
    values: Array = field(repr=False)
    positions: Array = field(repr=False)
    triangles: Array = field(repr=False)


@dataclass(frozen=True)
class GraphIsolines:
    """Level sets of the distance from a source in a graph: points on edges.

    The distance grows along an edge from its nearer end i until it meets the paths through the other end j; a level is
    crossed at the fraction `t` of the way from i to j.

    Attributes
    ----------
    levels : ndarray of shape (k,)
        The distances, ascending.
    level, i, j : ndarray of int, shape (m,)
        For each crossing the index of its level, and the ends of the edge.
    t : ndarray of shape (m,)
        Position of each crossing on its edge, from 0 at i to 1 at j.
    group : ndarray of int, shape (m,)
        The pieces of each level set: crossings of a level have the same number if edges of the graph connect the ends
        of their edges to one another, through such ends only.
    values : ndarray of shape (n,)
        The distance of each point from the source.
    """

    levels: Array
    level: Array = field(repr=False)
    i: Array = field(repr=False)
    j: Array = field(repr=False)
    t: Array = field(repr=False)
    group: Array = field(repr=False)
    values: Array = field(repr=False)

    def crossings(self, Y: Any) -> Array:
        """Return the crossings on straight edges between the positions Y (n, d) of the points, as an array (m, d)."""
        Y = check_map(Y)
        if len(Y) != len(self.values):
            raise ValueError(f"Y has {plural(len(Y), 'row')}, but the graph has {len(self.values):,} points")
        return np.asarray(Y[self.i] + self.t[:, None] * (Y[self.j] - Y[self.i]))


def isolines(
    space: Any, source: Any, levels: Any = 10, *, Y: Any = None, reach: float = 6.0
) -> Isolines | GraphIsolines:
    """Return the points at given distances from a source, on a mesh, on a graph, or on a map.

    On a mesh and on a map the distance is interpolated on triangles, linearly, and each level is a set of polylines.
    The triangles of a map are those of the Delaunay triangulation of Y. On a graph a level consists of points on edges.

    Parameters
    ----------
    space : MeshGeodesic, GraphGeodesic, other MetricSpace, or array-like of shape (n, n)
        The space in which distances are measured, or a matrix of distances. Isolines are those of its mesh or graph,
        unless Y is given.
    source : int or sequence of int
        Index of the point from which distances are measured; of several points, the nearest counts.
    levels : int or sequence of float, default=10
        The distances; a number k stands for k distances that divide the largest one into k + 1 equal parts.
    Y : array-like of shape (n, 2) or (n, 3), optional
        Positions of the points in a map: the isolines of the data are drawn there. A mesh keeps its triangles; other
        spaces need two dimensions.
    reach : float, default=6.0
        Triangles of a map with an edge longer than this many times the median edge are left out, so that lines do not
        cross gaps.

    Returns
    -------
    Isolines or GraphIsolines
        GraphIsolines for a GraphGeodesic without Y.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import spaces
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> circles = spaces.isolines(spaces.Euclidean(X), 0, [0.2], Y=X)
    >>> len(circles.lines[0])
    1
    """
    if not isinstance(space, MetricSpace):
        space = Precomputed(space)
    if not (is_finite(reach) and reach > 0):
        raise ValueError(f"reach must be a positive number, got {reach!r}")
    if Y is None and not isinstance(space, MeshGeodesic | GraphGeodesic):
        raise ValueError(
            f"{type(space).__name__} has neither triangles nor edges; pass a map of its points as Y, or use"
            " MeshGeodesic or GraphGeodesic"
        )
    positions = None if Y is None else _check_positions(Y, space)
    sources = check_points([source] if is_integer(source) else source, space.n, "source")
    if not len(sources):
        raise ValueError("source is empty; pass the index of at least one point")
    values = space.distances(sources).min(axis=0)
    heights = _check_levels(levels, values)
    if isinstance(space, GraphGeodesic) and positions is None:
        return _graph_isolines(space.graph, values, heights)
    if isinstance(space, MeshGeodesic):
        triangles = space.faces.astype(np.int64)
        positions = space.vertices if positions is None else positions
    else:
        assert positions is not None
        triangles = _map_triangles(positions, reach)
    lines = tuple(_polylines(triangles, values, float(height), positions) for height in heights)
    return Isolines(heights, lines, values, positions, triangles)


def _check_positions(Y: Any, space: MetricSpace) -> Array:
    Y = np.asarray(check_map(Y), dtype=np.float64)
    if len(Y) != space.n:
        raise ValueError(f"Y has {plural(len(Y), 'row')}, but the space has {space.n:,} points")
    allowed = (2, 3) if isinstance(space, MeshGeodesic) else (2,)
    if Y.shape[1] not in allowed:
        raise ValueError(f"isolines are drawn on maps in two dimensions, but Y has {Y.shape[1]}; use a map in 2-D")
    return Y


def _check_levels(levels: Any, values: Array) -> Array:
    """Return the levels, ascending, float64."""
    if is_integer(levels):
        if levels < 1:
            raise ValueError(f"levels must be at least 1, got {levels}")
        return np.linspace(0.0, float(values.max()), int(levels) + 2)[1:-1]
    try:
        heights = np.sort(np.asarray(levels, dtype=np.float64).ravel())
    except (TypeError, ValueError):
        heights = np.empty(0)
    if not heights.size or not np.isfinite(heights).all() or heights[0] <= 0:
        raise ValueError(f"levels must be a number of levels, or positive distances, got {levels!r}")
    return heights


def _map_triangles(Y: Array, reach: float) -> Array:
    """Return the Delaunay triangles (t, 3) of the points Y (n, 2), without those that have long edges."""
    from scipy.spatial import Delaunay, QhullError

    try:
        triangles = Delaunay(Y).simplices.astype(np.int64)
    except (QhullError, ValueError) as error:
        raise ValueError(
            f"the {len(Y):,} points of Y have no triangulation: isolines need at least 3 points that are not on a line"
        ) from error
    lengths = np.linalg.norm(Y[triangles] - Y[triangles[:, [1, 2, 0]]], axis=2)
    return np.asarray(triangles[lengths.max(axis=1) <= reach * np.median(lengths)])


def _polylines(triangles: Array, values: Array, height: float, positions: Array) -> tuple[Array, ...]:
    """Return the polylines on which linearly interpolated values equal `height`.

    A point is above if its value is at least `height`. A triangle with points above and below has one segment, between
    its two edges that have one end above and one below.
    """
    above = values[triangles] >= height
    mixed = above.any(axis=1) & ~above.all(axis=1)
    triangles, above = triangles[mixed], above[mixed]
    lone = np.where(above.sum(axis=1) == 1, above.argmax(axis=1), (~above).argmax(axis=1))  # alone on its side
    rows = np.arange(len(triangles))
    ends = [np.sort(np.column_stack([triangles[rows, lone], triangles[rows, (lone + k) % 3]])) for k in (1, 2)]
    edges, number = np.unique(np.concatenate(ends), axis=0, return_inverse=True)
    low, high = values[edges[:, 0]], values[edges[:, 1]]
    t = ((height - low) / np.where(high != low, high - low, 1.0))[:, None]
    crossings = (1 - t) * positions[edges[:, 0]] + t * positions[edges[:, 1]]
    first, second = number.ravel().reshape(2, -1)
    return tuple(crossings[chain] for chain in _chains(list(zip(first.tolist(), second.tolist(), strict=True))))


def _chains(segments: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return segments joined end to end: chains of numbers, of which the first and the last agree if one is closed.

    Open chains come first; a chain ends where other than two segments meet.
    """
    meeting: dict[int, list[int]] = defaultdict(list)
    for s, (a, b) in enumerate(segments):
        meeting[a].append(s)
        meeting[b].append(s)
    unused = np.ones(len(segments), bool)
    chains = []

    def follow(start: int, s: int) -> list[int]:
        chain, end = [start], start
        while True:
            unused[s] = False
            a, b = segments[s]
            end = b if end == a else a
            chain.append(end)
            following = [other for other in meeting[end] if unused[other]]
            if len(meeting[end]) != 2 or not following:
                return chain
            s = following[0]

    for point, touching in meeting.items():
        if len(touching) != 2:
            chains += [follow(point, s) for s in touching if unused[s]]
    chains += [follow(a, s) for s, (a, _) in enumerate(segments) if unused[s]]
    return chains


def _graph_isolines(graph: Any, values: Array, heights: Array) -> GraphIsolines:
    """Return the crossings of the levels on the edges of a graph, CSR (n, n), stored in one or both directions.

    On an edge of length w the distance at x from i is min(v_i + x, v_j + w − x): it rises from both ends to
    (v_i + v_j + w)/2. A level below that and above v_i is crossed at x = level − v_i; each end is treated in turn.
    """
    n = len(values)
    pairs = np.sort(np.column_stack([entry_rows(graph), graph.indices]), axis=1)
    order = np.lexsort((graph.data, pairs[:, 1], pairs[:, 0]))
    pairs, lengths = pairs[order], np.asarray(graph.data, dtype=np.float64)[order]
    shorter = np.append(True, (np.diff(pairs, axis=0) != 0).any(axis=1))[: len(pairs)]  # of two stored lengths
    a, b = pairs[shorter].T
    i, j, w = np.append(a, b), np.append(b, a), np.tile(lengths[shorter], 2)
    top = (values[i] + values[j] + w) / 2
    found = []
    for k, height in enumerate(heights):
        below_top = (height < top) | ((height == top) & ((i < j) | (values[j] >= height)))  # the top counts once
        here = np.flatnonzero((values[i] < height) & below_top & (w > 0))
        ends = np.zeros(n, bool)
        ends[i[here]] = ends[j[here]] = True
        near = ends[a] & ends[b]
        links = sparse.csr_matrix((np.ones(int(near.sum())), (a[near], b[near])), shape=(n, n))
        part = csgraph.connected_components(links, directed=False)[1][i[here]]
        t = (height - values[i[here]]) / w[here]
        found.append((np.full(len(here), k), i[here], j[here], t, np.unique(part, return_inverse=True)[1].ravel()))
    level, i, j, t, group = (np.concatenate(column) for column in zip(*found, strict=True))
    return GraphIsolines(heights, level, i, j, t, group, values)
