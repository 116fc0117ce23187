"""Parallel transport unfolding: flat surfaces are exact, holes do not matter, new points, errors."""

import runpy
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist
from support.source_tree import ROOT, needs

import equipoise as eq
from equipoise.procrustes import disagreement
from equipoise.spaces import ParallelTransport

EXAMPLE = ROOT / "examples" / "unfolding.py"


def roll_with_hole(n):
    """Return the data of the example: points on a Swiss roll with a hole, and their coordinates on the sheet."""
    return runpy.run_path(str(EXAMPLE))["roll_with_hole"](n, np.random.default_rng(0))


def mean_error(D, truth):
    return np.abs(D - truth).mean() / truth.mean()


def test_t1_sums_along_shortest_paths():
    """Eq. (T1) of docs/math.md, path by path, on a curved surface; the path back gives the same length."""
    rng = np.random.default_rng(1)
    flat = rng.random((60, 2))
    X = np.column_stack([flat, flat[:, 0] ** 2 - 0.7 * flat[:, 1] ** 2])
    space = ParallelTransport(X, 2, 8)
    T, edges, d = space.tangents, space.paths.edges, space.matrix()
    parents = dijkstra(edges, return_predecessors=True)[1]

    def rotation(i, j):
        U, _, Vt = np.linalg.svd(T[i].T @ T[j])
        return U @ Vt

    def edge(i, j):
        e = X[j] - X[i]
        v = T[i].T @ e + rotation(i, j) @ (T[j].T @ e)
        return v * np.linalg.norm(e) / np.linalg.norm(v)

    for start, end in rng.integers(0, 60, (40, 2)):
        path = [end]
        while path[-1] != start:
            path.append(parents[start, path[-1]])
        path.reverse()
        for way in (path, path[::-1]):
            turned, total = np.eye(2), np.zeros(2)
            for i, j in pairwise(way):
                total, turned = total + turned @ edge(i, j), turned @ rotation(i, j)
            assert_allclose(np.linalg.norm(total), d[start, end], atol=1e-12)
    assert np.abs(d - cdist(X, X)).max() > 0.01  # neither the straight line in space nor the path itself
    assert np.abs(d - dijkstra(edges)).max() > 0.01


def test_flat_sheets_in_space_are_exact():
    """In a plane every transport is the identity, so that the sum of the edges is the straight line."""
    rng = np.random.default_rng(0)
    flat = rng.random((120, 2))
    axes = np.linalg.qr(rng.standard_normal((5, 5)))[0][:2]
    space = ParallelTransport(flat @ axes + 3, 2, 8)
    assert_allclose(space.matrix(), cdist(flat, flat), atol=1e-9)
    assert_allclose(space.distances_from((flat[:3] + 0.01) @ axes + 3), cdist(flat[:3] + 0.01, flat), atol=1e-9)


@needs("examples")
def test_a_hole_distorts_isomap_but_not_parallel_transport():
    X, sheet = roll_with_hole(1000)
    truth, space = cdist(sheet, sheet), ParallelTransport(X, 2, 10)
    D = space.matrix()
    assert_allclose(D, D.T, atol=1e-9)
    assert mean_error(D, truth) < 0.012
    assert mean_error(space.paths.matrix(), truth) > 5 * mean_error(D, truth)

    unrolled, isomap = eq.ClassicalMDS().fit_transform(space), eq.Isomap(n_neighbors=10).fit_transform(X)
    assert disagreement(unrolled, sheet) < 0.02 < 0.08 < disagreement(isomap, sheet)


@needs("examples")
def test_new_points_and_blocks():
    X, sheet = roll_with_hole(1000)
    space = ParallelTransport(X[:-30], 2, 10)
    found = space.distances_from(X[-30:], [5, 9])
    assert mean_error(found, cdist(sheet[-30:], sheet[[5, 9]])) < 0.03
    assert_allclose(space.distances([3, 4], [10, 11, 12]), space.distances([10, 11, 12], [3, 4]).T, atol=1e-9)
    assert_allclose(space.distances_from(X[7:9]), space.distances([7, 8]), atol=1e-9)


def test_a_sphere_is_close_to_its_arcs_nearby():
    rng = np.random.default_rng(0)
    U = rng.standard_normal((800, 3))
    U /= np.linalg.norm(U, axis=1)[:, None]
    arcs, D = eq.spaces.Sphere(U).matrix(), ParallelTransport(U, 2, 10).matrix()
    near = (arcs > 0) & (arcs < 0.5)
    assert np.abs(D[near] / arcs[near] - 1).mean() < 0.03


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 4}, "n_components must be an integer between 1 and 3, got 4"),
        (
            {"n_components": 3, "n_neighbors": 2},
            r"n_neighbors must be an integer between n_components = 3 and .* got 2",
        ),
        ({"n_neighbors": 50}, "n_samples - 1 = 49, got 50"),
    ],
)
def test_invalid_settings_raise(settings, message):
    X = np.random.default_rng(0).random((50, 3))
    with pytest.raises(ValueError, match=message):
        ParallelTransport(X, **settings)
    with pytest.raises(ValueError, match="X has 2 columns, but the points of the space have 3"):
        ParallelTransport(X).distances_from(X[:, :2])
