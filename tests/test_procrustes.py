"""Procrustes alignment and the variation that remains after it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import procrustes
from scipy.stats import special_ortho_group

from equipoise.procrustes import disagreement, fit_similarity, mean_map, superimpose, variation


def transformed(Y, rng, scale=3.0, mirrored=True):
    """Return Y after a rotation, a scaling, a translation and optionally a reflection."""
    d = Y.shape[1]
    R = special_ortho_group.rvs(d, random_state=0) if d > 1 else np.eye(1)
    R[0] *= -1 if mirrored else 1
    return scale * Y @ R + rng.normal(size=d)


@given(seed=st.integers(0, 1000), d=st.integers(1, 4), mirrored=st.booleans(), scale=st.floats(0.01, 100))
def test_fit_similarity_recovers_a_similarity(seed, d, mirrored, scale):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(30, d))
    other = transformed(Y, rng, scale, mirrored)
    np.testing.assert_allclose(fit_similarity(other, Y)(other), Y, atol=1e-9)
    assert disagreement(other, Y) < 1e-6


def test_fitted_rotation_is_optimal(rng):
    Y, target = rng.normal(size=(2, 50, 2))
    fit = fit_similarity(Y, target)
    least = ((fit(Y) - target) ** 2).sum()
    for angle in np.linspace(0, 2 * np.pi, 40):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        for flip in (1, -1):
            other = fit.s * (Y - fit.a) @ (turn * [1, flip]) + fit.b
            assert ((other - target) ** 2).sum() >= least - 1e-9


def test_disagreement_matches_scipy(rng):
    Y, target = rng.normal(size=(2, 40, 3))
    target += Y
    apart = disagreement(Y, target)
    np.testing.assert_allclose(1 - (1 - apart**2) ** 2, procrustes(Y, target)[2], rtol=1e-9)
    np.testing.assert_allclose(apart, disagreement(target, transformed(Y, rng)), rtol=1e-9)


def test_variation_of_two_maps_equals_their_disagreement(rng):
    Y = rng.normal(size=(60, 2))
    maps = superimpose(np.stack([Y, transformed(Y + 0.3 * rng.normal(size=Y.shape), rng)]))
    np.testing.assert_allclose(np.sqrt((variation(maps) ** 2).mean()), disagreement(*maps), rtol=1e-3)


def test_unconverged_superposition_warns(rng, monkeypatch):
    monkeypatch.setattr("equipoise.procrustes.ROUNDS", 1)
    with pytest.warns(UserWarning, match="has not converged after 1 iterations; the maps have little in common"):
        superimpose(rng.normal(size=(6, 50, 2)))


def test_variation_is_zero_for_equal_shapes_and_near_one_for_unrelated(rng):
    Y = rng.normal(size=(200, 2))
    assert variation(superimpose(np.stack([transformed(Y, rng, scale) for scale in (1, 5, 0.2)]))).max() < 1e-9
    v = variation(superimpose(rng.normal(size=(6, 2000, 2))))
    assert 0.9 < np.sqrt((v**2).mean()) <= 1


def test_only_the_moving_point_varies(rng):
    Y = rng.normal(size=(500, 2))
    maps = np.stack([Y, Y, Y, Y])
    maps[:, 7] = [[1, 1], [-1, 1], [1, -1], [-1, -1]]
    v = variation(superimpose(maps))
    assert v[7] > 0.8 and np.delete(v, 7).max() < 0.02


def test_superposition_ignores_position_rotation_and_scale(rng):
    Y = rng.normal(size=(100, 3))
    maps = np.stack([Y + 0.4 * rng.normal(size=Y.shape) for _ in range(5)])
    transformed_maps = np.stack([transformed(M, rng, 1 + r) for r, M in enumerate(maps)])
    np.testing.assert_allclose(variation(superimpose(maps)), variation(superimpose(transformed_maps)), rtol=1e-6)
    np.testing.assert_allclose(variation(superimpose(maps)), variation(superimpose(maps[::-1])), rtol=0.02)
    radius = np.sqrt((superimpose(maps) ** 2).sum(axis=2).mean(axis=1))
    np.testing.assert_allclose(radius, 1, rtol=1e-9)


def test_missing_points_stay_nan(rng):
    Y = rng.normal(size=(100, 2))
    maps = np.stack([transformed(Y, rng, 1 + r) for r in range(4)])
    for r in range(4):
        maps[r, r * 20 : r * 20 + 30] = np.nan
    maps[1:, 95] = np.nan  # present in only one map
    aligned = superimpose(maps)
    np.testing.assert_array_equal(np.isnan(aligned), np.isnan(maps))
    v = variation(aligned)
    assert np.isnan(v[95]) and np.delete(v, 95).max() < 1e-6
    np.testing.assert_allclose(fit_similarity(mean_map(aligned), Y)(mean_map(aligned)), Y, atol=1e-6)


def test_incomparable_maps_raise(rng):
    Y, point = rng.normal(size=(5, 2)), np.full((5, 2), 0.1)
    for compare, name in (
        (lambda: disagreement(point, Y), "Y"),
        (lambda: disagreement(Y, point), "target"),
        (lambda: superimpose([point, Y, Y]), "map 0"),
        (lambda: superimpose([Y, Y, point]), "map 2"),
    ):
        with pytest.raises(ValueError, match=f"all points of {name} are at the same position"):
            compare()
    infinite = np.stack([Y, Y])
    infinite[1, :2], infinite[1, 3, 1] = np.nan, np.inf
    with pytest.raises(ValueError, match="map 1 contains inf at row 3, column 1"):
        superimpose(infinite)
    maps = np.full((2, 10, 2), np.nan)
    maps[0, :6], maps[1, 4:] = rng.normal(size=(2, 6, 2))
    with pytest.raises(ValueError, match=r"map 1 has only 2 points in common with .*, too few to align it; at least 3"):
        superimpose(maps)


@pytest.mark.parametrize("compare", [disagreement, fit_similarity])
def test_invalid_maps_raise(compare, rng):
    Y = rng.normal(size=(5, 2))
    with pytest.raises(ValueError, match=r"target has shape \(4, 2\); expected \(n_samples, n_components\) = \(5, 2\)"):
        compare(Y, Y[1:])
    with pytest.raises(ValueError, match="Y contains NaN at row 3, column 1"):
        compare(np.where(np.arange(10).reshape(5, 2) == 7, np.nan, Y), Y)


def test_superimpose_refuses_infinite_and_empty_maps(rng):
    maps = rng.normal(size=(2, 9, 2))
    maps[1, 4, 0] = np.inf
    with pytest.raises(ValueError, match="map 1 contains inf at row 4, column 0"):
        superimpose(maps)
    with pytest.raises(ValueError, match=r"maps must have shape \(m, n, d\) with at least one map and one point"):
        superimpose(np.empty((2, 0, 2)))
    with pytest.raises(ValueError, match=r"Y contains .*; values beyond 1e\+150"):
        fit_similarity(1e300 * rng.normal(size=(9, 2)), rng.normal(size=(9, 2)))
