"""A triangle mesh as geodesics need it: checked, with the lengths of its edges and what joins them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from .._types import Array
from .._warn import warn
from ..data import check_finite

FLAT = 1e-10  # of its longest edge: two sides of a face exceed the third by less, and it has no area but for rounding
THICKER = 1e-6  # of the mean edge: what is added to all edges of a mesh with such faces; chosen


def check_mesh(vertices: Any, faces: Any) -> tuple[Array, Array]:
    """Return vertices (n, 3), float64, and triangles (m, 3), int32, of one connected surface; refuses any other."""
    vertices, faces = np.asarray(vertices), np.asarray(faces)
    if vertices.ndim != 2 or vertices.shape[1] != 3 or vertices.dtype.kind not in "iuf":
        raise ValueError(f"vertices must be numbers (n, 3), got {vertices.dtype} of shape {vertices.shape}")
    if faces.ndim != 2 or faces.shape[1] != 3 or not len(faces) or faces.dtype.kind not in "iu":
        raise ValueError(
            f"faces must be triangles, whole numbers (m, 3), got {faces.dtype} of shape {faces.shape};"
            " split larger polygons first"
        )
    vertices = np.ascontiguousarray(vertices, dtype=np.float64)
    check_finite(vertices, "vertices")
    n = len(vertices)
    outside = np.argwhere((faces < 0) | (faces >= n))
    if outside.size:
        f, k = outside[0]
        raise ValueError(
            f"face {f} lists the vertex {faces[f, k]}, but there are {n} vertices, 0 to {n - 1}; files that count from"
            " 1 need faces - 1"
        )
    twice = np.flatnonzero((faces == faces[:, [1, 2, 0]]).any(axis=1))
    if twice.size:
        raise ValueError(f"face {twice[0]} lists a vertex twice: {faces[twice[0]].tolist()}; drop such faces")
    unused = np.flatnonzero(np.bincount(faces.ravel(), minlength=n) == 0)
    if unused.size:
        raise ValueError(f"vertex {unused[0]} belongs to no face, as do {unused.size - 1} others; drop them")
    _check_connected(faces, n)
    return vertices, np.ascontiguousarray(faces, dtype=np.int32)


def _check_connected(faces: Array, n: int) -> None:
    edges = sparse.csr_matrix((np.ones(faces.size), (faces.ravel(), faces[:, [1, 2, 0]].ravel())), shape=(n, n))
    count, part = csgraph.connected_components(edges, directed=False)
    if count > 1:
        sizes = ", ".join(str(size) for size in np.sort(np.bincount(part))[::-1][:5])
        raise ValueError(
            f"the mesh falls into {count} components, of {sizes}{', …' if count > 5 else ''} vertices, and no path"
            f" joins vertex 0 to vertex {int((part != part[0]).argmax())}; take one component, or join them"
        )


@dataclass(frozen=True)
class Surface:
    """The mesh as the core walks over it; half-edge h = 3 f + k runs from vertex k to vertex k + 1 of face f."""

    faces: Array  # (m, 3), int32
    lengths: Array  # (m, 3), of the half-edges
    twins: Array  # (m, 3), int32: the half-edge of the face beyond, or −1 at a boundary
    bends: Array  # (n,), uint8: where a shortest path may bend
    indptr: Array  # (n + 1,) and (3 m,): the half-edges that leave each vertex
    leaving: Array


def make_surface(vertices: Array, faces: Array) -> Surface:
    """Return the surface of a checked mesh; warns of faces without area, and refuses three faces at one edge."""
    n = len(vertices)
    lengths = _thickened(np.linalg.norm(vertices[faces[:, [1, 2, 0]]] - vertices[faces], axis=2), faces)
    twins = _paired(faces)
    leaving = np.argsort(faces.ravel(), kind="stable").astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(faces.ravel(), minlength=n))])
    return Surface(faces, lengths, twins.reshape(-1, 3), _bends(faces, lengths, twins, n), indptr, leaving)


def _thickened(lengths: Array, faces: Array) -> Array:
    """Return the lengths of the edges, all a little longer if there are faces without area (Sharp & Crane 2020)."""
    a, b, c = lengths.T
    excess = np.minimum(np.minimum(a + b - c, b + c - a), c + a - b)
    flat = np.flatnonzero(excess <= FLAT * lengths.max(axis=1))
    if not flat.size:
        return lengths
    more = THICKER * lengths.mean()
    if not more:
        raise ValueError("all vertices of the mesh are at one place")
    warn(
        f"{flat.size} faces have no area, the first of them face {flat[0]}, of vertices {faces[flat[0]].tolist()}; all"
        f" edges are taken {more:.2g} longer, {THICKER:g} of their mean",
    )
    return lengths + more


def _paired(faces: Array) -> Array:
    """Return the twin of each half-edge, int32, −1 at a boundary."""
    ends = np.sort(np.stack([faces.ravel(), faces[:, [1, 2, 0]].ravel()]), axis=0)
    order = np.lexsort(ends)
    same = (ends[:, order[1:]] == ends[:, order[:-1]]).all(axis=0)
    thrice = np.flatnonzero(same[1:] & same[:-1])
    if thrice.size:
        u, v = ends[:, order[thrice[0]]]
        raise ValueError(
            f'more than two faces meet at the edge between vertices {u} and {v}; method="exact" needs a surface,'
            ' method="heat" does not'
        )
    twins = np.full(faces.size, -1, np.int32)
    first, second = order[:-1][same], order[1:][same]
    twins[first], twins[second] = second, first
    return twins


def _bends(faces: Array, lengths: Array, twins: Array, n: int) -> Array:
    """Return where a shortest path may bend: angles above 2π in all, a boundary, or several fans of faces (uint8)."""
    at, corners = faces.ravel(), np.arange(faces.size)
    ab, ca = lengths.ravel(), lengths[:, [2, 0, 1]].ravel()  # the edges at each corner, and the one across
    cosine = (ab**2 + ca**2 - lengths[:, [1, 2, 0]].ravel() ** 2) / (2 * ab * ca)
    bends = np.bincount(at, np.arccos(np.clip(cosine, -1, 1)), minlength=n) > 2 * np.pi * (1 + 1e-12)
    rim = corners[twins < 0]
    after = corners + 1 - 3 * (corners % 3 == 2)
    bends[at[rim]] = bends[at[after[rim]]] = True
    h = corners[twins >= 0]
    t = twins[h]
    along = at[t] == at[h]  # the twin runs the same way: the faces do not agree on a side
    links = sparse.csr_matrix(
        (
            np.ones(2 * len(h)),
            (
                np.concatenate([h, after[h]]),
                np.concatenate([np.where(along, t, after[t]), np.where(along, after[t], t)]),
            ),
        ),
        shape=2 * (faces.size,),
    )  # corners of two faces at the ends of the edge between them
    fan = csgraph.connected_components(links, directed=False)[1]
    fans = np.bincount(at[np.unique(fan, return_index=True)[1]], minlength=n)
    bends[fans > 1] = True
    return bends.astype(np.uint8)
