"""Canonical forms: flat shapes are recovered and bent ones are flattened."""

import numpy as np
import pytest
from scipy.spatial import procrustes
from support.surfaces import globe, sheet

import equipoise as eq
from equipoise import canonical
from equipoise.spaces import MeshGeodesic, Restriction, summarize_distortion


def rolled(V, radius):
    """Return a sheet bent around a cylinder: an isometry of the surface, not of space."""
    return np.column_stack([radius * np.cos(V[:, 0] / radius), radius * np.sin(V[:, 0] / radius), V[:, 1]])


@pytest.mark.parametrize("n_landmarks", [500, 60])
def test_rolled_sheet_unrolls(n_landmarks):
    V, F = sheet(8, 12)
    Y = eq.canonical_form(rolled(V, 3.0), F, n_landmarks=n_landmarks, method="exact")
    assert Y.shape == V.shape
    assert procrustes(V, rolled(V, 3.0))[2] > 0.1  # two thirds of a turn
    assert procrustes(V, Y)[2] < 1e-4
    found = summarize_distortion(V, Y)
    assert found.dilation.quantiles[0.01] > 0.97 and found.dilation.quantiles[0.99] < 1.01  # chords of the bent edges


def test_landmarks_approximate_the_full_canonical_form():
    V, F = globe(200)
    V = V * [1, 0.4, 2]
    everything = eq.canonical_form(V, F, n_landmarks=200, method="exact")
    some = eq.canonical_form(V, F, n_landmarks=60, method="exact")
    assert procrustes(everything, some)[2] < 2e-3
    again = eq.canonical_form(V, F, n_landmarks=60, method="exact", n_jobs=2)
    np.testing.assert_array_equal(some, again)
    exact = Restriction(MeshGeodesic(V, F, "exact"), np.arange(0, 200, 7))
    flat, form = (summarize_distortion(exact, Y[::7]).stress for Y in (V, some))
    assert form < 0.5 * flat  # Euclidean distances in the original shape differ more from the geodesics


def test_too_few_landmarks_raise():
    with pytest.raises(
        ValueError, match="n_landmarks must be an integer >= 4, because three dimensions need four points; got 3"
    ):
        eq.canonical_form(*sheet(2, 2), n_landmarks=3, method="exact")


def bent_shapes():
    """Return flat and rolled sheets of two proportions, and their kinds."""
    shapes, kinds = [], []
    for rows, columns, kind in ((6, 12, "long"), (9, 9, "square")):
        V, F = sheet(rows, columns)
        shapes += [(V, F), (rolled(V, 3.0), F), (2 * rolled(V, 4.0) @ np.diag([1, -1, 1]), F)]
        kinds += 3 * [kind]
    return shapes, kinds


@pytest.mark.parametrize("compare", ["gw", "icp"])
def test_bent_shapes_are_retrieved_by_their_canonical_forms(compare):
    shapes, kinds = bent_shapes()
    D = canonical.distance_matrix(shapes, compare=compare, n_landmarks=40, method="exact")
    np.testing.assert_array_equal(D, D.T)
    assert not D.diagonal().any()
    found = canonical.retrieve(D, kinds)
    assert found.accuracy == found.first_tier == 1.0
    in_space = canonical.cloud_distances([V for V, _ in shapes], compare=compare, n_points=40)
    assert canonical.retrieve(in_space, kinds).first_tier < 1
    same = np.equal.outer(kinds, kinds) & ~np.eye(6, dtype=bool)
    assert D[same].max() < 0.8 * D[~same & ~np.eye(6, dtype=bool)].min()


@pytest.mark.parametrize("compare", ["gw", "icp"])
def test_clouds_are_compared_up_to_similarity_and_order(rng, compare):
    X = rng.normal(size=(30, 3)) * [3, 2, 1]
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    other = rng.normal(size=(25, 3))
    D = canonical.cloud_distances([X, 7 * X[::-1] @ turn + 2, other], compare=compare)
    assert D[0, 1] < 1e-6 < 0.05 < D[0, 2]
    assert D[1, 2] == pytest.approx(D[0, 2], rel=0.15)  # local minima may differ


def test_retrieval_counts_the_nearest():
    D = np.abs(np.subtract.outer([0.0, 1, 5, 5.5, 1.4], [0.0, 1, 5, 5.5, 1.4]))
    found = canonical.retrieve(D, ["a", "a", "b", "b", "b"])
    assert found.nearest.tolist() == [1, 4, 3, 2, 1]
    assert found.accuracy == 3 / 5 and found.first_tier == pytest.approx((1 + 0 + 1 + 1 + 0) / 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: canonical.distance_matrix([sheet(2, 2)]), "shapes has 1 entry; at least 2 are needed"),
        (lambda: canonical.distance_matrix(2 * [np.zeros((5, 3))]), "shape 0 must be a pair .* use cloud_distances"),
        (lambda: canonical.distance_matrix(2 * [sheet(2, 2)], compare="x"), 'compare must be "icp" or "gw", got \'x\''),
        (lambda: canonical.distance_matrix(2 * [sheet(2, 2)], n_landmarks=3), "n_landmarks must be an integer >= 4"),
        (lambda: canonical.cloud_distances([np.eye(3), np.eye(2)]), r"same number of dimensions, got \[2, 3\]"),
        (lambda: canonical.cloud_distances([np.eye(3)] * 2, n_points=1), "n_points must be an integer >= 2, got 1"),
        (
            lambda: canonical.cloud_distances([np.eye(3), np.ones((4, 3))]),
            "all points of cloud 1 are at the same position",
        ),
        (lambda: canonical.retrieve(1 - np.eye(3), "ab"), "one entry for each of the 3 shapes"),
        (lambda: canonical.retrieve(1 - np.eye(3), list("aab")), "the label 'b' occurs once"),
    ],
)
def test_comparison_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
