"""Initial maps: principal components and coordinates, a random ball, and their scale."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances
from support.cases import correlations

import equipoise as eq
from equipoise.initialize.random import random_ball
from equipoise.initialize.start import check_init
from equipoise.linalg.pca import JITTER, principal_components, principal_coordinates
from equipoise.methods import METHODS

every_method = pytest.mark.parametrize("Method", METHODS, ids=lambda M: M.__name__)


def seed(value=0):
    return np.random.RandomState(value)


def table(n, D, rank=None):
    """Return points with principal axes of distinct lengths, rotated at random."""
    rng = seed(n + D)
    rank = min(n - 1, D) if rank is None else rank
    Q, _ = np.linalg.qr(rng.standard_normal((D, D)))
    return 3 + rng.standard_normal((n, rank)) * 0.7 ** np.arange(rank) @ Q[:rank]


tall_and_wide = pytest.mark.parametrize(("n", "D"), [(200, 8), (20, 20), (30, 200)], ids=["tall", "square", "wide"])


@tall_and_wide
def test_principal_components_match_scikit_learn(n, D):
    X = table(n, D)
    Y = principal_components(X, 3, seed())
    expected = PCA(3).fit_transform(X)
    assert Y.shape == (n, 3)
    assert correlations(Y, expected).min() > 0.99
    # One scale for all axes: the map is not whitened.
    np.testing.assert_allclose(Y.std(axis=0), expected.std(axis=0) / expected[:, 0].std(), atol=3 * JITTER)


@tall_and_wide
def test_principal_coordinates_match_principal_components(n, D):
    X = table(n, D)
    scores = principal_components(X, 3, seed())
    coordinates = principal_coordinates(pairwise_distances(X) ** 2, 3, seed())
    signs = np.sign((scores * coordinates).sum(axis=0))
    np.testing.assert_allclose(signs * coordinates, scores, atol=10 * JITTER)  # up to sign and two draws of jitter
    assert correlations(scores, coordinates).min() > 0.99


def test_tall_and_wide_tables_agree():
    X = table(30, 8)
    Q, _ = np.linalg.qr(seed(1).standard_normal((60, 8)))
    tall, wide = principal_components(X, 3, seed()), principal_components(X @ Q.T, 3, seed())
    signs = np.sign((tall * wide).sum(axis=0))
    np.testing.assert_allclose(signs * wide, tall, atol=10 * JITTER)


def test_the_first_component_sets_the_scale():
    for unit in (1e-12, 1.0, 1e12):
        Y = principal_components(unit * table(200, 5), 2, seed())
        assert Y[:, 0].std() == pytest.approx(1, abs=3 * JITTER)


def test_signs_are_deterministic():
    X = table(50, 6)
    first = principal_components(X, 2, seed())
    for same in (np.asfortranarray(X), X + 5, 1e9 * X):
        np.testing.assert_allclose(principal_components(same, 2, seed()), first, atol=1e-10)


def test_jitter_separates_duplicates_and_moves_other_points_little():
    X = np.repeat(table(20, 4), 3, axis=0)
    Y = principal_components(X, 2, seed())
    assert len(np.unique(Y, axis=0)) == 60
    triples = Y.reshape(20, 3, 2)
    assert np.ptp(triples, axis=1).max() < 10 * JITTER
    jitter = Y - principal_components(X, 2, seed(1))
    assert jitter.std() == pytest.approx(np.sqrt(2) * JITTER, rel=0.3)


@pytest.mark.parametrize("build", [principal_components, lambda X, d, rng: principal_coordinates(X, d, rng)])
def test_constant_data_give_jitter(build):
    Y = build(np.zeros((10, 10)), 2, seed())
    assert len(np.unique(Y, axis=0)) == 10 and np.abs(Y).max() < 5 * JITTER


@pytest.mark.parametrize("n_features", [6, 100])
def test_components_beyond_the_rank_are_jitter(n_features):
    X = table(50, n_features, rank=1)
    for Y in (principal_components(X, 3, seed()), principal_coordinates(pairwise_distances(X) ** 2, 3, seed())):
        assert Y[:, 0].std() == pytest.approx(1, abs=3 * JITTER)
        np.testing.assert_allclose(Y[:, 1:].std(axis=0), JITTER, rtol=0.5)


def test_more_components_than_features_or_samples():
    assert principal_components(table(50, 2), 3, seed()).shape == (50, 3)
    assert principal_components(table(3, 50), 5, seed()).shape == (3, 5)
    assert principal_coordinates(pairwise_distances(table(3, 50)) ** 2, 5, seed()).shape == (3, 5)


def test_principal_coordinates_of_non_euclidean_distances():
    # Arc lengths on a circle are not Euclidean: negative eigenvalues are dropped, and the circle stays round.
    angle = 2 * np.pi * np.arange(40) / 40
    arc = np.abs((angle[:, None] - angle + np.pi) % (2 * np.pi) - np.pi)
    Y = principal_coordinates(arc**2, 2, seed())
    radius = np.linalg.norm(Y, axis=1)
    assert radius.std() < 5 * JITTER * radius.mean()


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_random_init_is_a_ball(d):
    Y = random_ball(20_000, d, seed())
    radius = np.linalg.norm(Y, axis=1)
    assert Y.shape == (20_000, d)
    assert radius.max() <= np.sqrt(d + 2) * (1 + 1e-12)
    np.testing.assert_allclose(Y.std(axis=0), 1, atol=0.03)
    np.testing.assert_allclose(Y.mean(axis=0), 0, atol=0.03)
    # Uniform: the fraction inside radius r grows with r^d.
    for fraction in (0.1, 0.5, 0.9):
        assert np.mean(radius < fraction ** (1 / d) * np.sqrt(d + 2)) == pytest.approx(fraction, abs=0.015)


def test_equal_seeds_give_identical_starts():
    assert random_ball(10, 2, seed()).tobytes() == random_ball(10, 2, seed()).tobytes()
    assert random_ball(10, 2, seed()).tobytes() != random_ball(10, 2, seed(1)).tobytes()


@every_method
@pytest.mark.parametrize("init", ["pca", "random"])
def test_initial_maps_scale_with_the_kernel(Method, init):
    problem = Method(init=init, random_state=0).problem(table(300, 5))
    kernel = problem.objective.kernel
    Y = problem.Y.astype(np.float64)
    if Method is eq.SphericalSNE:
        np.testing.assert_allclose(np.linalg.norm(Y, axis=1), 1, atol=1e-6)
    else:
        assert Y[:, 0].std() == pytest.approx(kernel.spread * kernel.length, rel=0.1)


@every_method
def test_precomputed_distances_start_like_their_points(Method):
    X = table(40, 5)
    D = pairwise_distances(X)
    np.fill_diagonal(D, 0)
    points, distances = Method(random_state=0).problem(X).Y0, Method(random_state=0, metric="precomputed").problem(D).Y0
    assert correlations(points, distances).min() > 0.98


def test_user_init_is_copied_unchanged():
    init = seed().standard_normal((40, 2)).astype(np.float32)
    Y = check_init(init, 40, 2)
    assert Y.dtype == np.float64 and np.array_equal(Y, init) and not np.shares_memory(Y, init)
    assert np.array_equal(eq.TSNE(init=init).problem(table(40, 5)).Y0, init)
    assert np.array_equal(eq.TSNE(init=init.tolist()).problem(table(40, 5)).Y0, init)
