"""Isolines on meshes, graphs and maps: closed forms, closed curves, and drawing."""

import numpy as np
import pytest
from scipy import sparse
from support.surfaces import globe, sheet

import equipoise as eq
from equipoise import spaces
from equipoise.views.isoline_drawing import draw_surface
from equipoise.views.style import new_figure


def length(line):
    return np.linalg.norm(np.diff(line, axis=0), axis=1).sum()


def test_isolines_of_a_sphere_are_circles():
    V, F = globe(800)
    found = spaces.isolines(spaces.MeshGeodesic(V, F, "exact"), 3, [0.6, 1.5, 2.5])
    for level, lines in zip(found.levels, found.lines, strict=True):
        (line,) = lines
        np.testing.assert_array_equal(line[0], line[-1])
        angle = np.arccos(np.clip(line @ V[3] / np.linalg.norm(line, axis=1), -1, 1))
        np.testing.assert_allclose(angle, level, atol=0.03)
        assert length(line) == pytest.approx(2 * np.pi * np.sin(level), rel=0.03)


def test_isolines_of_a_sheet_end_at_its_boundary():
    V, F = sheet(20, 20)
    (lines,) = spaces.isolines(spaces.MeshGeodesic(V, F, "exact"), 0, [10.5]).lines
    (line,) = lines
    np.testing.assert_allclose(np.linalg.norm(line, axis=1), 10.5, atol=0.02)  # a quarter of a circle
    assert length(line) == pytest.approx(10.5 * np.pi / 2, rel=1e-2)
    assert sorted(line[[0, -1], 0].round(6)) == [0.0, 10.5]
    far = spaces.isolines(spaces.MeshGeodesic(V, F, "exact"), [0, 440], [10.5])  # two opposite corners
    assert [len(lines) for lines in far.lines] == [2]


def test_isolines_on_a_map_use_the_distances_of_the_data(rng):
    X = rng.uniform(-1, 1, size=(900, 2))
    found = spaces.isolines(spaces.Euclidean(X), int(np.square(X).sum(axis=1).argmin()), [0.5], Y=3 * X)
    (line,) = found.lines[0]
    np.testing.assert_allclose(np.linalg.norm(line, axis=1) / 3, 0.5, atol=0.06)
    np.testing.assert_array_equal(line[0], line[-1])
    halves = X + np.where(X[:, :1] > 0, 20.0, 0.0) * [1, 0]  # a map torn along a line
    torn = spaces.isolines(spaces.Euclidean(X).matrix(), 0, 5, Y=halves)
    for lines in torn.lines:
        for line in lines:
            assert np.ptp(line[:, 0]) < 5  # no line crosses the gap


def test_crossings_on_a_graph_have_the_distance_of_their_level():
    ring = sparse.csr_matrix((np.ones(10), (np.arange(10), (np.arange(10) + 1) % 10)), shape=(10, 10))
    space = spaces.GraphGeodesic(ring)
    found = spaces.isolines(space, 0, [1.25, 4.5, 5.0])
    np.testing.assert_allclose(found.values[found.i] + found.t, found.levels[found.level])
    assert np.bincount(found.level).tolist() == [2, 2, 2]
    assert found.group[found.level == 0].tolist() == [0, 1]  # two fronts
    assert sorted(zip(found.i[:2].tolist(), found.j[:2].tolist(), strict=True)) == [(1, 2), (9, 8)]
    turn = np.exp(2j * np.pi * np.arange(10) / 10)
    corners = np.column_stack([turn.real, turn.imag])
    np.testing.assert_allclose(found.crossings(corners)[0], 0.75 * corners[1] + 0.25 * corners[2])
    triangle = sparse.csr_matrix(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], float))
    middle = spaces.isolines(spaces.GraphGeodesic(triangle), 0, [1.5])  # both paths end in the middle of the edge
    assert (len(middle.t), middle.t[0]) == (1, 0.5)


def test_number_of_levels_divides_the_largest_distance():
    V, F = sheet(4, 4)
    found = spaces.isolines(spaces.MeshGeodesic(V, F, "exact"), 0, 3, Y=V[:, :2])
    np.testing.assert_allclose(found.levels, np.sqrt(32) * np.array([1, 2, 3]) / 4)
    assert found.lines[0][0].shape[1] == 2


def test_isolines_are_drawn(rng):
    X = rng.uniform(size=(100, 2))
    lines = spaces.isolines(spaces.Euclidean(X), 0, 4, Y=X)
    axes = eq.plot(X, isolines=lines).axes[0]
    drawn = [path.vertices for collection in axes.collections[-4:] for path in collection.get_paths()]
    assert sum(map(len, drawn)) == sum(len(line) for level in lines.lines for line in level)
    graph = spaces.isolines(spaces.GraphGeodesic.from_table(X, 8), 0, 4)
    dots = eq.plot(X, isolines=graph).axes[0].collections[-1].get_offsets()
    np.testing.assert_allclose(dots, graph.crossings(X))
    V, F = globe(60)
    circles = spaces.isolines(spaces.MeshGeodesic(V, F, "exact"), 0, 3)
    axes = new_figure().subplots()
    polylines = [line for level in circles.lines for line in level]
    draw_surface(axes, V, F, np.ones((len(F), 3)), polylines)
    assert len(axes.collections[0].get_paths()) == len(F) + sum(len(line) - 1 for line in polylines)


X = np.random.default_rng(0).uniform(size=(20, 2))
SPACE = spaces.Euclidean(X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spaces.isolines(SPACE, 0), "Euclidean has neither triangles nor edges; pass a map of its points as Y"),
        (lambda: spaces.isolines(SPACE, 0, 0, Y=X), "levels must be at least 1, got 0"),
        (lambda: spaces.isolines(SPACE, 0, "all", Y=X), "levels must be a number .*got 'all'"),
        (lambda: spaces.isolines(SPACE, 0, [-1.0], Y=X), r"levels must be a number of levels, or positive distances"),
        (lambda: spaces.isolines(SPACE, 20, Y=X), "source contains the index 20"),
        (lambda: spaces.isolines(SPACE, [], Y=X), "source is empty; pass the index of at least one point"),
        (lambda: spaces.isolines(SPACE, 0, Y=X[:9]), "Y has 9 rows, but the space has 20 points"),
        (lambda: spaces.isolines(SPACE, 0, Y=X @ np.ones((2, 3))), "maps in two dimensions, but Y has 3"),
        (lambda: spaces.isolines(SPACE, 0, Y=X[:, [0, 0]]), "the 20 points of Y have no triangulation"),
        (lambda: spaces.isolines(SPACE, 0, Y=X, reach=0), "reach must be a positive number, got 0"),
        (
            lambda: spaces.isolines(spaces.GraphGeodesic.from_table(X, 5), 0).crossings(X[:3]),
            "Y has 3 rows, but the graph has 20 points",
        ),
        (
            lambda: eq.plot(2 * X, isolines=spaces.isolines(SPACE, 0, Y=X)),
            "`isolines` was computed for other",
        ),
        (lambda: eq.plot(X[:9], isolines=spaces.isolines(SPACE, 0, Y=X)), "`isolines` is for 20 points, but Y has 9"),
        (lambda: eq.plot(X, isolines=0), "`isolines` must be a result of spaces.isolines, not 0; use"),
        (
            lambda: eq.plot(X @ np.eye(2, 3), isolines=spaces.isolines(SPACE, 0, Y=X)),
            "`isolines` can be drawn only on a 2-D map",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
