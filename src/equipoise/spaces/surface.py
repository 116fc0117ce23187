"""Check triangulated surfaces, and compute their edge lengths and the connections between their faces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from .._plural import plural
from .._types import Array
from .._warn import warn
from ..arrays.namespace import to_numpy
from ..data import check_finite

# A face has no area, up to rounding, if two sides together exceed the third by less than this fraction of the longest.
FLAT = 1e-10
LENGTHENING = 1e-6  # fraction of the mean edge length added to all edges of a surface with such faces; chosen


def check_surface(vertices: Any, faces: Any) -> tuple[Array, Array]:
    """Return vertices (n, 3), float64, and faces (m, 3), int32.

    Raise ValueError unless they form a connected surface.
    """
    vertices, faces = _to_rows(vertices, "vertices"), _to_rows(faces, "faces")
    if vertices.ndim != 2 or vertices.shape[1] != 3 or vertices.dtype.kind not in "iuf":
        raise ValueError(
            f"vertices must be an array of numbers of shape (n, 3), got {vertices.dtype} of shape {vertices.shape}"
        )
    if faces.ndim != 2 or faces.shape[1] != 3 or not len(faces) or faces.dtype.kind not in "iu":
        raise ValueError(
            f"faces must be an array of integers of shape (m, 3), m > 0, got {faces.dtype} of shape {faces.shape};"
            " split larger polygons into triangles"
        )
    vertices = np.ascontiguousarray(vertices, dtype=np.float64)
    check_finite(vertices, "vertices")
    n = len(vertices)
    outside = np.argwhere((faces < 0) | (faces >= n))
    if outside.size:
        f, k = outside[0]
        raise ValueError(
            f"face {f} contains the vertex {faces[f, k]}, but the indices of vertices run from 0 to {n - 1}; if the"
            " file counts from 1, use faces - 1"
        )
    degenerate = np.flatnonzero((faces == faces[:, [1, 2, 0]]).any(axis=1))
    if degenerate.size:
        raise ValueError(
            f"face {degenerate[0]} contains a vertex twice: {faces[degenerate[0]].tolist()}; remove such faces"
        )
    unused = np.flatnonzero(np.bincount(faces.ravel(), minlength=n) == 0)
    if unused.size:
        others = f" and {plural(unused.size - 1, 'other')} belong" if unused.size > 1 else " belongs"
        raise ValueError(f"vertex {unused[0]}{others} to no face; remove {'it' if unused.size == 1 else 'them'}")
    _check_connected(faces, n)
    return vertices, np.ascontiguousarray(faces, dtype=np.int32)


def _to_rows(rows: Any, name: str) -> Array:
    """Return vertices or faces as an array.

    Raise ValueError if this fails; the message names the first row that does not have 3 numbers, if there is one.
    """
    try:
        return to_numpy(rows)
    except ValueError as error:
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in rows]
        i = next((i for i, length in enumerate(lengths) if length != 3), None)
        if i is None:
            raise ValueError(f"{name} ({type(rows).__name__}) is not a table of numbers: {error}") from error
        remedy = "; split larger polygons into triangles" if name == "faces" else ""
        raise ValueError(
            f"{name} must have 3 numbers in each row, but row {i} has length {lengths[i]}{remedy}"
        ) from error


def _check_connected(faces: Array, n: int) -> None:
    edges = sparse.csr_matrix((np.ones(faces.size), (faces.ravel(), faces[:, [1, 2, 0]].ravel())), shape=(n, n))
    count, part = csgraph.connected_components(edges, directed=False)
    if count > 1:
        sizes = ", ".join(str(size) for size in np.sort(np.bincount(part))[::-1][:5])
        raise ValueError(
            f"the mesh has {count} components, of {sizes}{', …' if count > 5 else ''} vertices, and there is no"
            f" path from vertex 0 to vertex {int((part != part[0]).argmax())}; use one component, or connect them"
        )


@dataclass(frozen=True)
class Surface:
    """A triangulated surface, stored as the three half-edges of each face.

    A half-edge is a side of a face with a direction: 3 f + k runs from vertex k to vertex k + 1 (modulo 3) of face f.
    """

    faces: Array  # (m, 3), int32
    lengths: Array  # (m, 3), of the half-edges
    twins: Array  # (m, 3), int32: the same edge in the adjacent face, or −1 at a boundary
    bends: Array  # (n,), uint8: whether a shortest path can bend at each vertex
    indptr: Array  # (n + 1,): start of the half-edges of each vertex in `leaving`
    leaving: Array  # (3 m,): the half-edges that leave each vertex


def make_surface(vertices: Array, faces: Array) -> Surface:
    """Return the half-edges of a checked surface, and warn about faces without area.

    Raise ValueError if more than two faces share an edge.
    """
    n = len(vertices)
    lengths = _lengthened(np.linalg.norm(vertices[faces[:, [1, 2, 0]]] - vertices[faces], axis=2), faces)
    twins = _half_edge_twins(faces)
    leaving = np.argsort(faces.ravel(), kind="stable").astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(faces.ravel(), minlength=n))])
    return Surface(faces, lengths, twins.reshape(-1, 3), _bends(faces, lengths, twins, n), indptr, leaving)


def _lengthened(lengths: Array, faces: Array) -> Array:
    """Return the lengths of the edges, all lengthened slightly if some faces have no area (Sharp & Crane 2020)."""
    a, b, c = lengths.T
    excess = np.minimum(np.minimum(a + b - c, b + c - a), c + a - b)
    flat = np.flatnonzero(excess <= FLAT * lengths.max(axis=1))
    if not flat.size:
        return lengths
    extra = LENGTHENING * lengths.mean()
    if not extra:
        raise ValueError("all vertices are at the same position; pass the vertices of a surface with an area")
    first = f"face {flat[0]}, with vertices {faces[flat[0]].tolist()}"
    warn(
        f"{f'{first}, has' if flat.size == 1 else f'{flat.size} faces (the first is {first}) have'} no area; all edges"
        f" are lengthened by {extra:.2g}, their mean length times {LENGTHENING:g}; remove faces without area to avoid"
        " this",
    )
    return lengths + extra


def _half_edge_twins(faces: Array) -> Array:
    """Return, for each half-edge, the half-edge of the same edge in the adjacent face, int32; −1 at a boundary."""
    ends = np.sort(np.stack([faces.ravel(), faces[:, [1, 2, 0]].ravel()]), axis=0)
    order = np.lexsort(ends)
    same = (ends[:, order[1:]] == ends[:, order[:-1]]).all(axis=0)
    shared = np.flatnonzero(same[1:] & same[:-1])
    if shared.size:
        u, v = ends[:, order[shared[0]]]
        raise ValueError(
            f'more than two faces meet at the edge between vertices {u} and {v}, which method="exact" does not support;'
            ' use method="heat"'
        )
    twins = np.full(faces.size, -1, np.int32)
    first, second = order[:-1][same], order[1:][same]
    twins[first], twins[second] = second, first
    return twins


def _bends(faces: Array, lengths: Array, twins: Array, n: int) -> Array:
    """Return, for each vertex, whether a shortest path can bend there, as uint8.

    A path can bend at a vertex whose angles add up to more than 2π, at a vertex on the boundary, and at a vertex where
    several fans meet; a fan consists of faces that are connected by common edges at the vertex.
    """
    at, corners = faces.ravel(), np.arange(faces.size)
    ab, ca = lengths.ravel(), lengths[:, [2, 0, 1]].ravel()  # the two edges at each corner
    cosine = (ab**2 + ca**2 - lengths[:, [1, 2, 0]].ravel() ** 2) / (2 * ab * ca)
    bends = np.bincount(at, np.arccos(np.clip(cosine, -1, 1)), minlength=n) > 2 * np.pi * (1 + 1e-12)
    rim = corners[twins < 0]
    after = corners + 1 - 3 * (corners % 3 == 2)
    bends[at[rim]] = bends[at[after[rim]]] = True
    h = corners[twins >= 0]
    t = twins[h]
    along = at[t] == at[h]  # the twin has the same direction if the faces have opposite orientations
    links = sparse.csr_matrix(
        (
            np.ones(2 * len(h)),
            (
                np.concatenate([h, after[h]]),
                np.concatenate([np.where(along, t, after[t]), np.where(along, after[t], t)]),
            ),
        ),
        shape=2 * (faces.size,),
    )  # corners of two faces at the ends of their common edge
    fan = csgraph.connected_components(links, directed=False)[1]
    fans = np.bincount(at[np.unique(fan, return_index=True)[1]], minlength=n)
    bends[fans > 1] = True
    return bends.astype(np.uint8)
