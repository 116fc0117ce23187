"""Geodesics on triangulated surfaces against closed forms; degenerate and invalid surfaces."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial import Delaunay
from support.surfaces import globe, sheet, torus

from equipoise.spaces import (
    Euclidean,
    MeshGeodesic,
    Precomputed,
    Restriction,
    Sphere,
    check_metric,
    summarize_distortion,
)


def tube(around, high):
    """Return an open tube: a regular prism without its two ends."""
    angle, z = np.meshgrid(2 * np.pi * np.arange(around) / around, np.arange(high + 1.0))
    flat, faces = sheet(high, around)
    ring = np.round(flat[:, 0]).astype(int) % around + around * np.round(flat[:, 1]).astype(int)
    return np.column_stack([np.cos(angle.ravel()), np.sin(angle.ravel()), z.ravel()]), ring[faces]


def test_flat_sheet_has_euclidean_distances():
    V, F = sheet(6, 9)
    D = MeshGeodesic(V, F, "exact").matrix()
    np.testing.assert_allclose(D, Euclidean(V).matrix(), atol=1e-9)


def test_random_triangulation_and_rolled_sheet_have_flat_distances():
    corners = [[0, 0], [1, 0], [0, 1], [1, 1]]
    square = np.concatenate([corners, np.random.default_rng(0).uniform(size=(120, 2))])
    flat = np.column_stack([square, np.zeros(len(square))])
    D = MeshGeodesic(flat, Delaunay(square).simplices, "exact").matrix()
    np.testing.assert_allclose(D, Euclidean(flat).matrix(), atol=1e-12)
    V, F = sheet(9, 9)
    rolled = np.column_stack([4 * np.cos(V[:, 0] / 4), 4 * np.sin(V[:, 0] / 4), V[:, 1]])
    chord = 8 * np.sin(1 / 8)
    D = MeshGeodesic(rolled, F, "exact").matrix()
    np.testing.assert_allclose(D, Euclidean(V * [chord, 1, 1]).matrix(), atol=1e-12)


def test_opposite_corners_of_a_cube_are_sqrt_5_apart():
    V = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    F = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4]]
    F += [[1, 5, 7], [1, 7, 3]]
    D = MeshGeodesic(V, np.array(F), "exact").matrix()
    apart = np.abs(V[:, None] - V[None]).sum(axis=2)
    np.testing.assert_allclose(D, np.array([0, 1, np.sqrt(2), np.sqrt(5)])[apart.astype(int)], atol=1e-12)


def test_tube_distances_match_the_unrolled_sheet():
    V, F = tube(8, 5)
    side = 2 * np.sin(np.pi / 8)
    D = MeshGeodesic(V, F, "exact").distances([0])[0]
    turns = np.arange(len(V)) % 8
    np.testing.assert_allclose(D, np.hypot(side * np.minimum(turns, 8 - turns), V[:, 2]), atol=1e-9)


def test_paths_bend_at_concave_corners_and_saddles():
    V, F = sheet(6, 6, keep=lambda x, y: not (x >= 3 and y >= 3))  # an L with its inner corner at (3, 3)
    start, end = (int(np.flatnonzero((V[:, :2] == place).all(axis=1))[0]) for place in ([5, 3], [3, 6]))
    assert MeshGeodesic(V, F, "exact").distances([start], [end])[0, 0] == pytest.approx(2 + 3)
    # A fan of ten faces around one vertex, more than 450° in total: paths of over 180° go through the vertex.
    angle = np.arange(10) * np.pi / 4
    V = np.concatenate([[[0, 0, 0]], np.column_stack([np.cos(angle), np.sin(angle), np.zeros(10)])])
    F = np.array([[0, 1 + k, 1 + (k + 1) % 10] for k in range(10)])
    V[1:, 2] = 0.3 * (-1.0) ** np.arange(10)  # the sheet may intersect itself: only edge lengths matter
    angle = np.arccos((2 * (V[1] @ V[1]) - ((V[1] - V[2]) ** 2).sum()) / (2 * (V[1] @ V[1])))
    r = np.linalg.norm(V[1])
    D = MeshGeodesic(V, F, "exact").distances([1])[0]
    for k in range(10):
        turn = min(k, 10 - k) * angle
        assert D[1 + k] >= (2 * r if turn >= np.pi else 2 * r * np.sin(turn / 2)) - 1e-12
    assert D[1 + 5] == pytest.approx(2 * r)


@pytest.mark.parametrize("method", ["exact", "heat"])
def test_globe_distances_approach_great_circles(method):
    if method == "heat":
        pytest.importorskip("potpourri3d")
    V, F = globe(600)
    sources = np.arange(0, 600, 40)
    arcs, D = Sphere(V).distances(sources), MeshGeodesic(V, F, method).distances(sources)
    assert np.abs(D - arcs).max() < (0.02 if method == "exact" else 0.05) * np.pi


def test_exact_distances_are_a_metric_invariant_to_relabelling():
    V, F = globe(150)
    V = V * [1, 0.3, 1] + np.random.default_rng(0).normal(scale=0.03, size=V.shape)
    space = MeshGeodesic(V, F, "exact")
    D = space.matrix()
    assert check_metric(space)
    order = np.random.default_rng(1).permutation(150)
    place = np.argsort(order)
    reordered = np.random.default_rng(2).permuted(place[F], axis=1)  # any vertex order, hence any orientation
    np.testing.assert_allclose(MeshGeodesic(V[order], reordered, "exact").matrix(), D[np.ix_(order, order)], rtol=1e-9)
    np.testing.assert_array_equal(MeshGeodesic(V, F, "exact", n_threads=3).matrix(), D)


@pytest.mark.parametrize(("around", "across"), [(10, 7), (12, 7), (10, 9), (9, 7)])
def test_distances_are_symmetric_where_paths_touch_several_vertices(around, across):
    D = MeshGeodesic(*torus(around, across), "exact").matrix()
    np.testing.assert_allclose(D, D.T, rtol=1e-12)


def test_subdividing_faces_does_not_change_distances():
    V, F = globe(60)
    edges, number = np.unique(
        np.sort(F[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0, return_inverse=True
    )
    m = 60 + number.reshape(-1, 3)  # midpoints of the three edges of each face
    corners = [np.column_stack([F[:, k], m[:, k], m[:, k - 1]]) for k in range(3)]
    fine = np.concatenate([*corners, m])
    D = MeshGeodesic(np.concatenate([V, V[edges].mean(axis=1)]), fine, "exact").distances(slice(60), slice(60))
    np.testing.assert_allclose(D, MeshGeodesic(V, F, "exact").matrix(), atol=1e-9)


def test_heat_distances_are_symmetric_and_close_to_exact():
    pytest.importorskip("potpourri3d")
    V, F = globe(500)
    V = V * [1, 0.5, 1.5]
    subset = np.arange(0, 500, 25)
    heat = MeshGeodesic(V, F)
    D = Restriction(heat, subset).matrix()
    np.testing.assert_array_equal(D, D.T)
    assert not D.diagonal().any()
    found = summarize_distortion(Restriction(MeshGeodesic(V, F, "exact"), subset), Precomputed(D))
    assert found.dilation.quantiles[0.05] > 0.93 and found.dilation.quantiles[0.95] < 1.07
    np.testing.assert_array_equal(heat.distances(None, [3]), heat.distances([3]).T)


def test_zero_area_faces_warn():
    V, F = sheet(4, 4)
    a, _, e = F[0]
    V = np.concatenate([V, [(V[a] + V[e]) / 2]])  # on the diagonal: one face is split, and a sliver remains
    m = len(V) - 1
    d = F[1][2]
    F = np.concatenate([F[[0]], [[a, e, m]], [[a, m, d], [m, e, d]], F[2:]])
    with pytest.warns(UserWarning, match=r"^face 1, with vertices \[.*\], has no area"):
        D = MeshGeodesic(V, F, "exact").matrix()
    np.testing.assert_allclose(D, Euclidean(V).matrix(), atol=1e-3)


def test_heat_method_handles_zero_area_faces():
    pytest.importorskip("potpourri3d")
    V, F = globe(300)
    V[F[0, 0]] = (V[F[0, 1]] + V[F[0, 2]]) / 2
    D = MeshGeodesic(V, F).distances([150])
    assert np.isfinite(D).all() and D.max() == pytest.approx(np.pi, rel=0.05)


SHEET, FACES = sheet(2, 2)


@pytest.mark.parametrize(
    "vertices, faces, message",
    [
        (SHEET[:, :2], FACES, r"vertices must be an array of numbers of shape \(n, 3\), got float64 of shape \(9, 2\)"),
        (SHEET, FACES + 0.5, r"faces must be an array of integers of shape \(m, 3\), m > 0, got float64"),
        (SHEET, [[0, 1, 4, 3]], "split larger polygons into triangles"),
        (SHEET, [[0, 1, 4], [0, 1, 4, 3]], "faces must have 3 numbers in each row, but row 1 has length 4; split"),
        ([[0, 0, 0], [1, 0]], [[0, 1, 2]], "vertices must have 3 numbers in each row, but row 1 has length 2$"),
        ([[0, 0, 0], [1, 0, [1]]], [[0, 1, 2]], r"vertices \(list\) is not a table of numbers: setting an array"),
        (
            SHEET,
            FACES + 1,
            "the vertex 9, but the indices of vertices run from 0 to 8; if the file counts from 1, use faces - 1",
        ),
        (SHEET, np.concatenate([FACES, [[0, 1, 0]]]), r"face 8 contains a vertex twice: \[0, 1, 0\]"),
        (
            np.concatenate([SHEET, [[5, 5, 5], [6, 6, 6]]]),
            FACES,
            "vertex 9 and 1 other belong to no face; remove them",
        ),
        (np.where(SHEET == 2, np.nan, SHEET), FACES, "vertices contains NaN at row 2, column 0"),
        (
            np.concatenate([SHEET, SHEET[:4] + 9]),
            np.concatenate([FACES, 9 + np.array([[0, 1, 2], [1, 2, 3]])]),
            "2 components, of 9, 4 vertices, and there is no path from vertex 0 to vertex 9",
        ),
        (
            np.concatenate([SHEET, [[0.5, 0.5, 1]]]),
            np.concatenate([FACES, [[0, 4, 9]]]),
            'more than two faces meet at the edge between vertices 0 and 4, which method="exact" does not support',
        ),
        (np.zeros((9, 3)), FACES, "all vertices are at the same position"),
    ],
)
def test_invalid_surfaces_raise(vertices, faces, message):
    with pytest.raises(ValueError, match=message):
        MeshGeodesic(vertices, faces, "exact")


def test_paths_cross_between_sheets_at_a_shared_vertex():
    V = np.array([[-1, -1, 0], [-1, 1, 0], [0, 0, 0], [1, -1, 0], [1, 1, 0]], float)
    D = MeshGeodesic(V, [[0, 1, 2], [2, 3, 4]], "exact").matrix()
    assert D[0, 3] == pytest.approx(2 * np.sqrt(2)) and D[0, 1] == pytest.approx(2)


def test_unknown_method_and_missing_package_raise(monkeypatch):
    with pytest.raises(ValueError, match='method must be "heat" or "exact", got \'dijkstra\''):
        MeshGeodesic(SHEET, FACES, "dijkstra")
    with pytest.raises(ValueError, match=r'method must be "heat" or "exact", got array\('):
        MeshGeodesic(SHEET, FACES, np.ones(2))
    with pytest.raises(ValueError, match="n_threads must be an integer from 1 to 1024, got 'a'"):
        MeshGeodesic(SHEET, FACES, "exact", n_threads="a")
    monkeypatch.setitem(sys.modules, "potpourri3d", None)
    with pytest.raises(ImportError, match=r'pip install "equipoise\[mesh\]"; or use method="exact"'):
        MeshGeodesic(SHEET, FACES)


def test_import_loads_no_mesh_library():
    code = "import sys, equipoise; sys.exit('potpourri3d' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
