"""Maps in curved spaces: the cut of a torus, the disk, shortest paths, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import equipoise as eq
from equipoise.geometry import Hyperbolic, Sphere, Torus
from equipoise.views.chart_drawing import edge_lines
from equipoise.views.charts import STRIP, emptiest_cut, find_geometry, make_chart, make_flat_chart
from equipoise.views.column import Classes
from equipoise.views.labels import class_centers

PERIOD = 10.0


class Fitted:
    """A fitted method, as far as drawings need it."""

    def __init__(self, Y, geometry):
        self.embedding_, self.geometry_ = Y, geometry


@pytest.fixture
def torus_map():
    """Points on a torus except in two empty strips, the wider one around x = 3, y = 7."""
    rng = np.random.default_rng(0)
    Y = rng.uniform(0, PERIOD, (3000, 2))
    hole = (np.abs(Y - [3, 7]) < 1.5).any(axis=1) | (np.abs(Y - [8, 1]) < 0.3).any(axis=1)
    return Y[~hole]


def artists(figure, gid):
    return [item for item in figure.axes[0].get_children() if item.get_gid() == gid]


def test_cut_passes_through_the_middle_of_the_widest_gap(torus_map):
    cuts = [emptiest_cut(torus_map[:, c], PERIOD) for c in (0, 1)]
    np.testing.assert_allclose(cuts, [3, 7], atol=0.25)


def test_chart_of_a_torus_is_an_isometry(torus_map):
    torus = Torus((PERIOD, PERIOD))
    chart = make_chart(torus_map, torus)
    assert (chart.points >= 0).all() and (chart.points < PERIOD).all()
    i, j = np.random.default_rng(1).integers(0, len(torus_map), (2, 200))
    np.testing.assert_allclose(
        torus.distance(chart.points[i], chart.points[j]), torus.distance(torus_map[i], torus_map[j]), atol=1e-9
    )
    moved = make_chart(np.mod(torus_map + np.array([4.0, 9.0]), PERIOD), torus)  # the cut follows the points
    d = torus.distance(moved.points, chart.points)
    assert d.max() < 0.1 and np.ptp(d) < 1e-6


def test_strip_repeats_the_other_side():
    chart = make_chart(np.random.default_rng(0).uniform(0, PERIOD, (500, 2)), Torus(PERIOD))
    rows, copies = chart.copies()
    outside = (copies < 0) | (copies > PERIOD)
    assert outside.any(axis=1).all() and len(rows)
    assert (np.abs(copies - PERIOD / 2) <= PERIOD * (0.5 + STRIP)).all()
    difference = (copies - chart.points[rows]) / PERIOD
    np.testing.assert_allclose(difference, np.round(difference), atol=1e-9)


def test_center_of_a_class_across_the_cut_is_among_its_points():
    points = np.array([[9.6, 5], [9.8, 5], [0.0, 5], [0.2, 5], [0.4, 5.0]])
    classes = Classes("class", np.zeros(5, np.int32), ("a",))
    np.testing.assert_array_equal(class_centers(points, classes, np.array([PERIOD, PERIOD]))[0], [0.0, 5])


def test_names_of_classes_stay_inside_the_square(rng):
    Y = rng.uniform(0, 1, (400, 2)) * 24.0
    sector = np.array([f"{45 * i}°" for i in (Y[:, 0] // 3).astype(int)])
    axes = eq.plot(Y, sector, geometry=Torus(24.0)).axes[0]
    low, high = axes.transData.transform([(0, 0), (24, 24)])
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text().endswith("°")]
    assert len(boxes) == 8
    for box in boxes:
        assert (box.min > low - 4).all() and (box.max < high + 4).all()  # the size of a cell of `Coverage`


def test_plot_of_a_fitted_method_uses_its_geometry(torus_map):
    labels = np.where(torus_map[:, 0] < 3, "left", "right")
    figure = eq.plot(Fitted(torus_map, Torus((PERIOD, PERIOD))), labels)
    (square,) = artists(figure, "square")
    np.testing.assert_allclose(np.ptp(square.get_xy(), axis=0), PERIOD)
    low, high = figure.axes[0].get_xlim()
    assert low < -STRIP * PERIOD and high > (1 + STRIP) * PERIOD
    placed = eq.plot(torus_map[:50], over=Fitted(torus_map, Torus((PERIOD, PERIOD))))
    assert artists(placed, "square")


def test_disk_has_a_rim_and_its_geodesics_are_arcs_orthogonal_to_it():
    Y = np.array([[0.9, 0.1], [-0.2, 0.85], [0.1, -0.3], [-0.3, 0.9]])
    figure = eq.plot(Y, geometry="hyperbolic", edges=[[0, 1], [2, 3]])
    assert len(artists(figure, "rim")) == 1 and len(artists(figure, "edges")) == 1
    (arc,) = edge_lines(make_chart(Y, Hyperbolic()), Y, np.array([[0, 1]]))
    # A circle orthogonal to the unit circle, with centre c, satisfies 2 c·y = ‖y‖² + 1.
    system = 2 * arc
    c, *_ = np.linalg.lstsq(system, (arc**2).sum(axis=1) + 1, rcond=None)
    np.testing.assert_allclose(system @ c, (arc**2).sum(axis=1) + 1, atol=1e-9)
    np.testing.assert_allclose(arc[[0, -1]], Y[:2], atol=1e-9)


class Forces:
    """A problem with given forces on a map, of equal size and opposite."""

    def __init__(self, F):
        self.F = F

    def attraction(self, Y):
        return self.F

    def repulsion(self, Y):
        return -self.F


def test_arrows_in_the_disk_have_lengths_of_the_hyperbolic_metric():
    Y = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, -0.9], [-0.99, 0.0]])
    conformal = 2 / (1 - (Y**2).sum(axis=1, keepdims=True))
    outwards = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]])
    figure = eq.plot(Y, forces=Forces(conformal * outwards), geometry="hyperbolic")  # unit vectors in the metric
    for gid in ("attraction", "repulsion"):
        (arrows,) = artists(figure, gid)
        V = np.column_stack([arrows.U, arrows.V]) / arrows.scale
        np.testing.assert_allclose(np.linalg.norm(V, axis=1) * conformal[:, 0], np.linalg.norm(V[0]) * 2, rtol=1e-9)
        assert (np.linalg.norm(arrows.XY + V, axis=1) < 1).all()
    np.testing.assert_allclose(V / np.linalg.norm(V, axis=1, keepdims=True), -outwards, atol=1e-12)


@pytest.mark.parametrize("geometry", ["hyperbolic", Torus(1.0)])
def test_legend_of_forces_does_not_cover_the_note(geometry):
    Y = np.random.default_rng(0).uniform(0, 0.7, (30, 2))
    figure = eq.plot(Y, forces=Forces(np.ones((30, 2))), geometry=geometry)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    note, legend = axes.xaxis.label.get_window_extent(), axes.get_legend().get_window_extent()
    assert axes.get_xlabel() and note.y1 <= legend.y0


def test_flat_chart_of_a_sphere_keeps_areas_and_separates_its_sides():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(20_000, 3))
    chart = make_flat_chart(5 * Y / np.linalg.norm(Y, axis=1, keepdims=True), Sphere(5.0))
    assert ((chart.points / (np.sqrt(2) * np.array([2, 1]))) ** 2).sum(axis=1).max() <= 1 + 1e-6
    assert np.mean(np.linalg.norm(chart.points, axis=1) < 0.7) == pytest.approx(0.7**2 / 4, rel=0.05)  # of 4π
    ends = make_flat_chart(np.array([[1.0, 0, 0], [-1, 1e-9, 0], [0, 0, 1]]), Sphere(1.0)).points
    np.testing.assert_allclose(ends, [[0, 0], [2 * np.sqrt(2), 0], [0, np.sqrt(2)]], atol=1e-6)
    assert len(chart.graticule()) == 11 + 5 and len(chart.outline()) == 1


def test_paths_break_where_they_cross_an_edge_of_the_square(torus_map):
    Y = np.array([[0.5, 5.0], [9.5, 5.0], [5.0, 5.0], [5.1, 5.0]])
    chart = make_chart(Y, Torus(PERIOD))
    lines = edge_lines(chart, Y, np.array([[0, 1], [1, 2], [0, 2]]))
    lengths = sum(np.linalg.norm(np.diff(line, axis=0), axis=1).sum() for line in lines)
    assert max(np.abs(np.diff(line, axis=0)).max() for line in lines) < PERIOD / 10
    assert 9 < lengths <= 10 + 1e-9  # 1 + 4.5 + 4.5, less one step at the cut


def test_sphere_of_any_radius_is_drawn_like_the_unit_sphere():
    Y = np.random.default_rng(0).normal(size=(40, 3))
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    expected, found = make_chart(Y, None), make_chart(7 * Y, Sphere(7.0))
    assert found.projection == expected.projection == "mollweide"
    np.testing.assert_allclose(found.points, expected.points, atol=1e-12)


def test_patch_of_a_sphere_is_turned_to_the_centre():
    rng = np.random.default_rng(0)
    Y = np.column_stack([0.3 * rng.normal(size=(50, 2)), np.ones(50)])  # around the pole, where the projection tears
    Y = 7 * Y / np.linalg.norm(Y, axis=1, keepdims=True)
    chart = make_chart(Y, Sphere(7.0))
    gram = np.cos(chart.points[:, 0]) * np.cos(chart.points[:, 1])  # the cosine of the angle to longitude, latitude 0
    center = Y.mean(axis=0) / np.linalg.norm(Y.mean(axis=0))
    np.testing.assert_allclose(gram, Y @ center / 7, atol=1e-6)
    line = edge_lines(chart, Y, np.array([[0, 1]]))[0]
    np.testing.assert_allclose(line[[0, -1]], chart.points[:2], atol=1e-6)  # the paths are turned, too
    np.testing.assert_allclose(make_chart(Y / 7, None).points, chart.points, atol=1e-6)  # coordinates alone


def test_patch_of_a_sphere_keeps_the_third_axis_upright():
    longitude, latitude = np.radians([9.0, 10.0, 11.0, 10.0]), np.radians([50.0, 49.0, 50.0, 51.0])
    Y = np.column_stack([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)])
    points = np.degrees(make_chart(Y, Sphere(1.0)).points)
    np.testing.assert_allclose(points[1], [0, -1], atol=0.01)  # south
    np.testing.assert_allclose(points[3], [0, 1], atol=0.01)  # north
    assert points[0, 0] < -0.6 and points[2, 0] > 0.6  # west and east


def test_coordinates_outside_the_torus_by_rounding_are_drawn():
    Y = np.array([[PERIOD, 1.0], [-1e-6, 2.0], [5.0, 5.0]])
    assert (make_chart(Y, Torus(PERIOD)).points < PERIOD).all()


def test_sphere_in_one_dimension_is_a_circle():
    angle = np.linspace(0, 6, 20)
    chart = make_chart(np.column_stack([3 * np.cos(angle), 3 * np.sin(angle)]), Sphere(3.0))
    assert chart.projection is None and chart.note == "a sphere in one dimension, a circle"


def test_torus_in_other_dimensions():
    Y = np.random.default_rng(0).uniform(0, 5, (60, 3))
    ring = make_chart(Y[:, :1], Torus(5.0))
    np.testing.assert_allclose(np.linalg.norm(ring.points, axis=1), 1, atol=0.061)
    assert "first two of 3 coordinates" in make_chart(Y, Torus(5.0)).note


def test_more_dots_than_the_limit_become_a_density_image(torus_map, monkeypatch):
    monkeypatch.setattr("equipoise.views.plot.MAX_DOTS", 1000)
    figure = eq.plot(torus_map, geometry=Torus(PERIOD))
    assert len(figure.axes[0].images) == 2  # the square and the strip around it


def test_flat_maps_have_no_chart():
    assert find_geometry(None, np.zeros((3, 2))) is None
    assert find_geometry("plane") is None
    Y = np.random.default_rng(0).normal(size=(20, 2))
    figure = eq.plot(Y, edges=[[0, 1]])
    assert not artists(figure, "square") and not artists(figure, "rim") and len(artists(figure, "edges")) == 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"geometry": "torus"}, "does not contain the period"),
        ({"geometry": "cube"}, "unknown geometry 'cube'"),
        ({"geometry": "hyperbolic"}, "outside the Poincaré disk"),
        ({"geometry": Torus((1.0, 2.0, 3.0))}, "3 entries"),
        ({"geometry": Torus(8.0)}, r"column 1 of row 4 of the map is 9, outside \[0, 8\) of a torus"),
        (
            {"geometry": "sphere"},
            "row 0 of the map has norm 1 and row 4 has 12.04; a map on the surface",
        ),
        ({"edges": [[0, 9]]}, "rows from 0 to 4, got 0 to 9"),
        ({"edges": [0, 1]}, r"shape \(m, 2\)"),
    ],
)
def test_errors_of_plot(arguments, message):
    with pytest.raises(ValueError, match=message):
        eq.plot(np.arange(10.0).reshape(5, 2), **arguments)


def test_hyperbolic_maps_have_two_columns():
    with pytest.raises(ValueError, match="has 2 columns, but Y has 3"):
        eq.plot(np.zeros((4, 3)), geometry="hyperbolic")


@pytest.mark.parametrize("draw", [eq.plot, eq.page])
def test_pictures_of_methods_that_are_not_fitted_say_so(draw):
    with pytest.raises(ValueError, match=r"Y is the method TSNE, which is not fitted; call fit\(X\) first"):
        draw(eq.TSNE())
