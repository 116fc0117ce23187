"""Local isometry: Jacobians, Tissot ellipses and bi-Lipschitz constants of maps that are known in closed form."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from support.surfaces import spiral

import equipoise as eq
from equipoise.evaluate.figures.tissot_figure import COUNT
from equipoise.evaluate.reading import NOT, READ
from equipoise.geometry import Sphere

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
FLAT = np.linalg.qr(RNG.normal(size=(7, 2)))[0].T  # isometric embedding of the plane in seven dimensions


def test_l1_to_l4_point_by_point():
    """Eq. (L1) to (L4) of docs/math.md, by least squares at each point of a map that is not linear."""
    data = RNG.normal(size=(80, 3)) * [1, 0.8, 0.1]
    Y, k = np.column_stack([data[:, 0] + data[:, 1] ** 2, np.sin(data[:, 1]) - 0.3 * data[:, 0]]), 9
    found, loadings = eq.local_isometry(data, Y, n_neighbors=k), eq.axis_loadings(data, Y, n_neighbors=k)
    L = []
    for i in range(80):
        near = np.argsort(np.linalg.norm(data - data[i], axis=1))[: k + 1]
        centred = data[near] - data[near].mean(axis=0)
        t = np.linalg.svd(centred)[2][:2]  # unit vectors of the principal components
        design = np.column_stack([np.ones(k + 1), centred @ t.T])
        J = np.linalg.lstsq(design, Y[near], rcond=None)[0][1:].T
        sigma = np.linalg.svd(J)[1]
        np.testing.assert_allclose(found.stretch[i], sigma, rtol=1e-9)
        np.testing.assert_allclose(found.area[i], sigma[0] * sigma[1], rtol=1e-9)
        np.testing.assert_allclose(found.anisotropy[i], sigma[0] / sigma[1], rtol=1e-9)
        np.testing.assert_allclose(found.scale[i], np.sqrt(sigma[0] * sigma[1]), rtol=1e-9)
        ratio = np.linalg.norm(Y[near[1:]] - Y[i], axis=1) / np.linalg.norm(data[near[1:]] - data[i], axis=1)
        np.testing.assert_allclose([found.expansion[i], found.contraction[i]], [ratio.max(), ratio.min()], rtol=1e-9)
        L.append(J @ t * data.std(axis=0))
    np.testing.assert_allclose(loadings.median, np.median(L, axis=0), rtol=1e-9)


@pytest.mark.parametrize("data", [X, X @ FLAT], ids=["plane", "plane in 7-D"])
def test_linear_map_has_its_own_singular_values_everywhere(data):
    A = np.array([[2.0, 1.0], [0.0, 0.5]])
    found = eq.local_isometry(data, X @ A.T)
    U, sigma, _ = np.linalg.svd(A)
    np.testing.assert_allclose(found.stretch, np.broadcast_to(sigma, (300, 2)), rtol=1e-8)
    np.testing.assert_allclose(np.abs(U.T @ found.axes), np.broadcast_to(np.eye(2), (300, 2, 2)), atol=1e-7)
    np.testing.assert_allclose(found.area, 1.0, rtol=1e-8)  # |det A|
    np.testing.assert_allclose(found.anisotropy, sigma[0] / sigma[1], rtol=1e-8)
    np.testing.assert_allclose(found.linearity, 1, atol=1e-12)
    np.testing.assert_allclose(found.tangent_share, 1, atol=1e-12)
    assert (found.expansion <= sigma[0] * (1 + 1e-9)).all() and (found.contraction >= sigma[1] * (1 - 1e-9)).all()
    assert (found.expansion >= found.contraction).all()


@pytest.mark.parametrize("factor", [0.01, 1.0, 250.0])
def test_scaling_multiplies_all_measures(factor):
    found = eq.local_isometry(X, factor * X + 3)
    for values in (found.scale, found.expansion, found.contraction):
        np.testing.assert_allclose(values, factor, rtol=1e-7)
    np.testing.assert_allclose(found.area, factor**2, rtol=1e-7)
    np.testing.assert_allclose(found.anisotropy, 1, rtol=1e-7)


@pytest.mark.parametrize("space", [False, True], ids=["coordinates", "great-circle distances"])
def test_stereographic_projection_is_conformal_with_known_area_factor(space):
    S = spiral(2000)
    S = S[S[:, 2] < 0.8]
    Y = S[:, :2] / (1 - S[:, 2:])  # scale 1/(1 − z)
    found = eq.local_isometry(eq.spaces.Sphere(S) if space else S, Y, 8)
    inner = S[:, 2] < 0.6
    np.testing.assert_allclose(found.anisotropy[inner], 1, atol=0.03)
    np.testing.assert_allclose(found.area[inner] * (1 - S[inner, 2]) ** 2, 1, atol=0.03)


def test_stereographic_projection_of_random_points():
    S = np.random.default_rng(0).normal(size=(2000, 3))
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    found = eq.local_isometry(S, S[:, :2] / (1 - S[:, 2:]), 8)
    inner = S[:, 2] < 0.6
    assert np.median(np.abs(found.area * (1 - S[:, 2]) ** 2 - 1)[inner]) < 0.025
    assert np.median(found.anisotropy[inner] - 1) < 0.04


def test_equal_area_projection_has_constant_area_and_known_anisotropy():
    S = spiral(3000)
    longitude, z = np.arctan2(S[:, 1], S[:, 0]), S[:, 2]
    found = eq.local_isometry(S, np.column_stack([longitude, z]), 8)  # Lambert's cylindrical projection
    inner = (np.abs(z) < 0.6) & (np.abs(longitude) < 3)
    np.testing.assert_allclose(found.area[inner], 1, atol=0.02)
    np.testing.assert_allclose(found.anisotropy[inner], 1 / (1 - z[inner] ** 2), rtol=0.04)
    torn = np.abs(np.abs(longitude) - np.pi) < 0.02  # neighbours on both sides of the cut
    assert np.median(found.linearity[torn]) < 0.9 < found.linearity[inner].min()
    assert np.median(found.expansion[torn]) > 10


def test_jacobian_converges_with_the_number_of_points():
    errors = []
    for n in (500, 2000):
        P = np.random.default_rng(1).uniform(-1, 1, size=(n, 2))
        found = eq.local_isometry(P, np.column_stack([P[:, 0] + 0.3 * P[:, 1] ** 2, P[:, 1]]), 6)
        shear = 0.6 * P[:, 1]
        exact = np.sqrt(
            np.linalg.eigvalsh(np.stack([[1 + 0 * shear, shear], [shear, 1 + shear**2]]).transpose(2, 0, 1))
        )
        errors.append(np.abs(found.stretch - exact[:, ::-1]).mean())
    assert errors[1] < 0.6 * errors[0] < 0.03


def test_neighbours_that_span_too_little_have_no_jacobian():
    line = np.column_stack([np.arange(20.0), np.zeros(20)])
    P = np.vstack([line, *(line[:3] + np.array([0, height]) for height in (100, 101, 102))])
    found = eq.local_isometry(P, P, 3)
    assert np.isnan(found.stretch[:20]).all() and np.isnan(found.area[:20]).all()
    np.testing.assert_allclose(found.stretch[20:], 1)
    np.testing.assert_allclose(found.expansion, 1)
    repeated = np.repeat(X[:10], 5, axis=0)
    again = eq.local_isometry(repeated, repeated, 4)
    assert np.isnan(again.stretch).all() and np.isnan(again.expansion).all()  # all distances are 0


def test_points_that_coincide_in_the_map_have_stretch_zero():
    Y = X.copy()
    Y[X[:, 0] < 0] = 0
    found = eq.local_isometry(X, Y, 5)
    assert (found.stretch[X[:, 0] < -1] == 0).all() and (found.contraction[X[:, 0] < -1] == 0).all()


def test_other_inputs_agree_with_the_table():
    table = eq.local_isometry(X, np.sin(X), 10)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    for found in (
        eq.local_isometry(D, np.sin(X), 10, metric="precomputed"),
        eq.local_isometry(eq.spaces.Precomputed(D), np.sin(X), 10),
    ):
        np.testing.assert_allclose(found.stretch, table.stretch, rtol=1e-6)
        np.testing.assert_allclose(found.expansion, table.expansion, rtol=1e-9)


def test_tangent_dimension_can_be_smaller_than_the_map():
    t = np.sort(RNG.uniform(0, 6, 200))
    curve = np.column_stack([np.cos(t), np.sin(t)])
    found = eq.local_isometry(curve, 2 * curve, 5, tangent_dimension=1)
    assert found.stretch.shape == (200, 1) and found.axes.shape == (200, 2, 1)
    np.testing.assert_allclose(found.scale, 2, rtol=1e-6)
    np.testing.assert_array_equal(found.anisotropy, 1)


def test_large_data_are_sampled(monkeypatch):
    sample = sys.modules["equipoise.evaluate.sample"]  # eq.evaluate is the function
    monkeypatch.setattr(sample, "ALL", 100)
    monkeypatch.setattr(sample, "MIN_SAMPLE", 50)
    found = eq.local_isometry(X, 2 * X)
    assert len(found.points) == 50 and found.points.max() > 100
    np.testing.assert_allclose(found.scale, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 2}, "n_neighbors=2 is too small for tangent spaces of 2 dimensions; use at least 3"),
        ({"n_neighbors": 300}, "n_neighbors must be between 1 and n_samples - 1 = 299, got 300"),
        ({"tangent_dimension": 3}, "tangent_dimension must be an integer from 1 to 2, the dimension of the map, got 3"),
    ],
)
def test_invalid_options_raise(options, message):
    with pytest.raises(ValueError, match=message):
        eq.local_isometry(X, X, **options)


def test_summary_names_the_extreme_rows():
    Y = X * np.exp(0.3 * X[:, :1])
    found = eq.local_isometry(X, Y)
    low, high = found.extremes()
    assert found.scale[low] == found.scale.min() and found.scale[high] == found.scale.max()
    text = str(found)
    assert "300 points with 15 neighbours each, whose first 2 principal components hold 100% of their variance" in text
    assert f"smallest near row {low}, largest near row {high}" in text


# The figure


@pytest.mark.parametrize("color", ["area", "anisotropy"])
def test_ellipses_have_the_directions_and_lengths_of_the_map(color):
    from matplotlib.collections import EllipseCollection

    P = RNG.uniform(size=(1800, 2))
    figure = eq.local_isometry(P, P * [1, 3]).plot(color)
    (drawn,) = [c for c in figure.axes[0].collections if isinstance(c, EllipseCollection)]
    assert COUNT <= len(drawn.get_offsets()) <= 2.5 * COUNT
    widths, heights, angles = drawn.get_widths(), drawn.get_heights(), drawn.get_angles()
    np.testing.assert_allclose(widths / heights, 3, rtol=1e-6)
    np.testing.assert_allclose(np.abs(np.sin(np.radians(angles))), 1, atol=1e-6)  # the long axis is vertical
    gaps = np.linalg.norm(drawn.get_offsets()[:, None] - drawn.get_offsets(), axis=2) + 9 * np.eye(len(widths))
    assert widths.max() <= 2.5 * gaps.min()


def test_figure_needs_a_map_in_the_plane():
    with pytest.raises(ValueError, match="Tissot ellipses need a map and tangent spaces of 2 dimensions, got 3 and 3"):
        eq.local_isometry(X @ FLAT, RNG.normal(size=(300, 3))).plot()
    with pytest.raises(ValueError, match="unknown color 'size'; choose from 'area', 'anisotropy'"):
        eq.local_isometry(X, X).plot("size")


# The report


def test_report_says_where_shapes_are_stretched():
    same, bent = eq.evaluate(X, 2 * X), eq.evaluate(X, X * np.exp(1.5 * X[:, :1]))
    readings = [{r.about: r for r in report.readings}["small shapes"] for report in (same, bent)]
    assert [r.verdict for r in readings] == [READ, NOT]
    assert "stretched by 1 (near row" in readings[0].text and "1.0 times as much in one direction" in readings[0].text
    assert len(same.local.points) == 300
    line = eq.evaluate(X[:, :1], 2 * X[:, :1])
    assert "direction" not in {r.about: r for r in line.readings}["small shapes"].text
    assert eq.evaluate(X[:4], X[:4], k=1).local is not None and eq.evaluate(X[:3], X[:3]).local is None


# Loadings of columns


def test_loadings_of_a_linear_map_are_its_matrix_times_the_deviations():
    P = RNG.normal(size=(400, 3)) * [1, 2, 1e-3]
    A = np.array([[0.5, 2.0, 0.0], [-1.0, 0.25, 0.0]])
    found = eq.axis_loadings(P, P @ A.T, names=["a", "b", "c"])
    np.testing.assert_allclose(found.median[:, :2], A[:, :2] * P.std(axis=0)[:2], rtol=1e-2)
    np.testing.assert_allclose(found.median[:, 2], 0, atol=1e-3)
    assert [name for name, _ in found.top(0)] == ["b", "a", "c"] and found.top(1, 1)[0][0] == "a"
    assert (found.top_columns() == [1, 0]).all()
    assert "axis 0   b +" in str(found) and str(found).startswith("median over 400 rows")


def test_loadings_differ_between_regions():
    P = RNG.uniform(size=(500, 3)) * [1, 1, 1e-6]
    left = P[:, 0] < 0.5
    Y = np.where(left[:, None], P[:, :2], P[:, [1, 0]] + [3, 0])
    names = {
        region: eq.axis_loadings(P, Y, rows).top(0, 1)[0][0] for region, rows in (("left", left), ("right", ~left))
    }
    assert names == {"left": "column 0", "right": "column 1"}
    one = eq.axis_loadings(P, Y, [7])
    assert one.loadings.shape == (1, 2, 3)


def test_loadings_reject_invalid_input():
    D = np.linalg.norm(X[:, None] - X, axis=2)
    for arguments, options, message in [
        ((eq.spaces.Precomputed(D), X), {}, "needs a dense table"),
        ((X, X), {"names": ["a"]}, "names has 1 entries, but X has 2 columns"),
        ((X, X, [300]), {}, "rows must be a mask of 300 rows, or indices from 0 to 299"),
        ((X, X, []), {}, "rows must be a mask"),
    ]:
        with pytest.raises(ValueError, match=message):
            eq.axis_loadings(*arguments, **options)
    with pytest.raises(ValueError, match="axis must be from 0 to 1, got 2"):
        eq.axis_loadings(X, X).top(2)


def test_loadings_take_the_names_of_a_data_frame():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["height", "width"])
    assert eq.axis_loadings(frame, X).names == ("height", "width")


class OnSphere:
    """A fitted method with a map on a sphere, as far as measures need it."""

    def __init__(self, U, radius):
        self.embedding_, self.geometry_ = radius * U / np.linalg.norm(U, axis=1, keepdims=True), Sphere(radius)


def test_maps_on_a_sphere_are_measured_in_tangent_planes():
    """A sphere enlarged 7 times: 7 in every direction along the sphere, where flat space has a third direction."""
    S = np.random.default_rng(0).standard_normal((1500, 3))
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    method = OnSphere(S, 7.0)
    found = eq.local_isometry(S, method, 8)
    assert found.stretch.shape == (1500, 2) and found.axes.shape == (1500, 3, 2)
    np.testing.assert_allclose(np.median(found.stretch, axis=0), 7.0, rtol=0.02)
    np.testing.assert_allclose(found.expansion, 7.0)
    assert np.median(found.anisotropy) < 1.05
    np.testing.assert_allclose((found.axes * S[:, :, None]).sum(axis=1), 0, atol=1e-12)  # tangent vectors
    np.testing.assert_allclose(found.axes.transpose(0, 2, 1) @ found.axes, np.tile(np.eye(2), (1500, 1, 1)), atol=1e-12)
    assert eq.local_isometry(S, method.embedding_, 8).stretch.shape == (1500, 3)
    stretched = np.column_stack([np.arange(300.0), np.zeros(300)]) / 100
    circle = OnSphere(np.column_stack([np.cos(stretched[:, 0]), np.sin(stretched[:, 0])]), 2.0)
    np.testing.assert_allclose(eq.local_isometry(stretched, circle, 4).stretch, 2.0, rtol=1e-3)
    with pytest.raises(ValueError, match="a sphere of dimension 0"):
        eq.local_isometry(S[:9], OnSphere(S[:9, :1], 1.0))


def test_report_of_a_map_on_a_sphere_names_it():
    S = np.random.default_rng(0).standard_normal((200, 3))
    method = OnSphere(S, 7.0)
    report = eq.evaluate(method.embedding_ / 7, method)
    assert "map on a sphere (radius 7); k = 15" in report.subtitle and report.geometry is method.geometry_
    assert report.local.stretch.shape == (200, 2) and np.median(report.local.anisotropy) < 1.1
    assert "No map in 3 dimensions" in report.footer
    assert eq.evaluate(S, OnSphere(S[:, :1], 1.0)).local is None
