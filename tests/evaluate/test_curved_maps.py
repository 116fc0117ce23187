"""Measures of maps on a torus and in the hyperbolic plane, by the distances of these spaces."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import equipoise as eq
from equipoise.evaluate.classes import davies_bouldin, one_nn_error
from equipoise.evaluate.curved_map import CurvedMap
from equipoise.evaluate.structure import centroid_correlation
from equipoise.geometry import Hyperbolic, Sphere, Torus

TORUS = Torus((7.0, 5.0))
FRAMES = {
    "torus": ("square", "a torus: opposite edges meet"),
    "hyperbolic": ("rim", "the hyperbolic plane, as the Poincaré disk"),
    "sphere": ("ellipse", "a sphere, in the equal-area projection of Mollweide"),
}


class Fitted:
    """A fitted method, as far as measures need it."""

    def __init__(self, Y, geometry):
        self.embedding_, self.geometry_ = Y, geometry


def fitted(kind, n=150):
    rng = np.random.default_rng(0)
    if kind == "torus":
        return Fitted(rng.uniform(0, 1, (n, 2)) * TORUS.period, TORUS)
    if kind == "sphere":
        Y = rng.normal(size=(n, 3))
        return Fitted(5 * Y / np.linalg.norm(Y, axis=1, keepdims=True), Sphere(5.0))
    angle, radius = 2 * np.pi * rng.uniform(size=n), np.tanh(rng.uniform(0, 3, n) / 2)
    return Fitted(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), Hyperbolic(2.0))


def all_distances(method):
    Y = method.embedding_
    return method.geometry_.distance(Y[:, None], Y[None])


@pytest.mark.parametrize("kind", ["torus", "hyperbolic"])
def test_a_map_with_the_distances_of_the_data_is_perfect(kind):
    method = fitted(kind)
    labels = np.arange(len(method.embedding_)) % 3
    report = eq.evaluate(all_distances(method), method, labels, metric="precomputed")
    assert report.trustworthiness == report.continuity == report.recall == report.triplet_accuracy == 1
    assert report.stress.normalised < 1e-7 and report.stretch == pytest.approx(1)
    assert report.centroid_correlation is None and report.geometry is method.geometry_
    straight = eq.evaluate(all_distances(method), method.embedding_, metric="precomputed")
    assert straight.recall < 0.98 and straight.stress.normalised > 0.05


def test_report_names_the_space_and_compares_maps_of_both_kinds():
    method = fitted("torus")
    D = all_distances(method)
    assert "map in a torus (period 7 × 5)" in str(eq.evaluate(D, method, metric="precomputed"))
    assert "No flat map in 2 dimensions" in eq.evaluate(D, method, metric="precomputed").footer
    assert "≥" not in str(eq.evaluate(D, method, metric="precomputed"))  # the bound does not hold on a torus
    comparison = eq.compare(D, {"torus": method, "plane": method.embedding_}, metric="precomputed")
    recalls = {name: float(report.recall) for name, report in comparison.reports.items()}
    assert recalls["torus"] == 1 > recalls["plane"]
    report = eq.evaluate(D, fitted("hyperbolic"), metric="precomputed")
    assert "map in the hyperbolic plane (radius of curvature 2)" in report.subtitle


@pytest.mark.parametrize("kind", ["torus", "hyperbolic"])
def test_coordinates_with_a_geometry_are_measured_like_the_fitted_method(kind):
    method = fitted(kind)
    D, Y = all_distances(method), method.embedding_
    expected = eq.evaluate(D, method, metric="precomputed")
    assert str(eq.evaluate(D, Y, metric="precomputed", geometry=method.geometry_)) == str(expected)
    comparison = eq.compare(D, {"a": Y, "b": method}, metric="precomputed", geometry=method.geometry_)
    assert str(comparison["a"]) == str(comparison["b"]) == str(expected)
    each = eq.compare(D, {"a": Y, "b": Y}, metric="precomputed", geometry={"a": method.geometry_})
    assert each["a"].geometry == method.geometry_ and each["b"].geometry is None
    flat = eq.evaluate(D, method, metric="precomputed", geometry="plane")
    assert flat.geometry is None and flat.recall < 0.98


def test_radius_of_the_hyperbolic_plane_only_scales_distances():
    method = fitted("hyperbolic")
    D = all_distances(method)
    report = eq.evaluate(D, method.embedding_, metric="precomputed", geometry="hyperbolic")
    assert report.recall == 1 and report.stress.scale_free < 1e-7


@pytest.mark.parametrize(
    ("geometry", "message"),
    [
        ("torus", "does not contain the period"),
        (Torus(4.0), r"outside \[0, 4\) of a torus"),
        ("hyperbolic", "outside the Poincaré disk"),
        ("sphere", "the points of a sphere have equal norms"),
        ({"c": "plane"}, "geometry has the key 'c', but the maps are 'a', 'b'"),
    ],
)
def test_errors_of_a_given_geometry(geometry, message):
    method = fitted("torus")
    D, Y = all_distances(method), method.embedding_
    with pytest.raises(ValueError, match=message):
        eq.compare(D, {"a": Y, "b": Y}, metric="precomputed", geometry=geometry)
    if not isinstance(geometry, dict):
        with pytest.raises(ValueError, match=message):
            eq.evaluate(D, Y, metric="precomputed", geometry=geometry)


@pytest.mark.parametrize("kind", ["torus", "hyperbolic"])
def test_blocks_and_pairs_of_a_curved_map_agree(kind, monkeypatch):
    monkeypatch.setattr(sys.modules["equipoise.evaluate.curved_map"], "FIXED_PAIRS", 64)
    method = fitted(kind, 40)
    points, D = CurvedMap(method.embedding_, method.geometry_), all_distances(method)
    rows, columns = np.array([3, 1, 30]), np.array([0, 2, 39])
    np.testing.assert_allclose(points.block(rows), D[rows], rtol=1e-12)
    np.testing.assert_allclose(points.block(rows, columns), D[np.ix_(rows, columns)], rtol=1e-12)
    i, j = np.random.default_rng(1).integers(0, 40, (2, 200))
    np.testing.assert_allclose(points.pairs(i, j), D[i, j], rtol=1e-12)


def test_measures_along_straight_lines_reject_curved_maps():
    method = fitted("torus")
    labels = np.arange(150) % 3
    with pytest.raises(ValueError, match=r"lies in a torus \(period 7 × 5\); use equipoise.evaluate"):
        davies_bouldin(method, labels)
    with pytest.raises(ValueError, match="centroids, which are not defined in a torus"):
        centroid_correlation(np.random.default_rng(0).normal(size=(150, 4)), method, labels)


def test_nearest_neighbour_classifier_uses_wrapped_distances(monkeypatch):
    method = fitted("torus", 140)
    labels = (method.embedding_[:, 0] < 3.5).astype(int)
    moved = Fitted(TORUS.wrap(method.embedding_ + np.array([2.0, 1.0])), TORUS)  # an isometry
    assert one_nn_error(moved, labels) == one_nn_error(method, labels) != one_nn_error(method.embedding_, labels)
    monkeypatch.setattr(sys.modules["equipoise.evaluate.curved_map"], "MAX_ALL", 100)
    with pytest.raises(ValueError, match="needs all distances of 140 points, at most 100"):
        one_nn_error(method, labels)


@pytest.mark.parametrize("function", [eq.local_isometry, eq.axis_loadings])
def test_local_measures_refuse_curved_maps_and_accept_their_coordinates(function):
    method = fitted("torus")
    with pytest.raises(ValueError, match=r"straight lines .* lies in a torus \(period 7 × 5\); use equipoise.evaluate"):
        function(method.embedding_, method)
    function(method.embedding_, method.embedding_)


@pytest.mark.parametrize("function", [eq.stability, lambda method, X: eq.sweep(method, X, {"perplexity": [5, 9]})])
def test_maps_in_curved_spaces_cannot_be_superimposed(function):
    with pytest.raises(ValueError, match="superimposes maps in flat space, but geometry='torus'"):
        function(eq.TSNE(geometry="torus"), np.random.default_rng(0).normal(size=(60, 3)))


@pytest.mark.parametrize("kind", ["torus", "hyperbolic", "sphere"])
def test_figures_of_reports_show_the_frame_of_the_space(kind):
    method = fitted(kind)
    gid, note = FRAMES[kind]
    report = eq.evaluate(method.embedding_, method)
    for figure in (report.figure(), eq.compare(method.embedding_, [method]).figure()):
        axes = next(axes for axes in figure.axes if axes.get_xlabel() == note)
        assert [item.get_gid() for item in axes.patches].count(gid) == 1
    figure = report.figure()
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert axes.xaxis.label.get_window_extent().y1 <= axes.get_legend().get_window_extent().y0


def test_fitted_torus_is_evaluated_by_wrapped_distances():
    a = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    X = np.column_stack([np.cos(a), np.sin(a)])
    method = eq.TSNE(geometry="torus", perplexity=8, n_iter=60, random_state=0, n_jobs=1).fit(X)
    report = eq.evaluate(X, method)
    assert report.geometry == method.geometry_
    assert report.recall >= eq.evaluate(X, method.embedding_).recall
