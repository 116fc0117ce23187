"""Canonical forms: flat shapes are recovered and bent ones are flattened."""

import numpy as np
import pytest
from scipy.spatial import procrustes
from support.surfaces import globe, sheet

import equipoise as eq
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
