"""Embeddability: the spectrum, the least dimension, and bounds that hold for every map."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist, squareform
from support.surfaces import globe

import equipoise as eq
from equipoise import spaces
from equipoise.spaces.distortion_bounds import _smooth_log_ratio
from equipoise.spaces.stress_bounds import _spectral_gap, lower_bounds, weighted_rank_gaps

FOUR = np.array([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]], float)


def distances(X, metric="euclidean"):
    return cdist(X, X, metric)


def random_space(kind, rng):
    n = int(rng.integers(3, 20))
    if kind == "graph":
        edges = np.triu(rng.uniform(size=(n, n)) < 0.3, 1) * rng.uniform(0.5, 2, size=(n, n))
        edges[np.arange(n - 1), np.arange(1, n)] = 1
        return shortest_path(edges, directed=False)
    if kind == "no metric":
        return squareform(rng.exponential(size=n * (n - 1) // 2) ** 2)
    X = rng.normal(size=(n, int(rng.integers(1, 6))))
    return distances(np.repeat(X, 2, axis=0), "chebyshev") if kind == "twins" else distances(X, kind)


def stress_and_distortion(D, Y):
    d = distances(np.asarray(Y, np.float64))
    pairs = np.triu_indices(len(D), 1)
    d, D = d[pairs], D[pairs]
    ratio = d[D > 0] / D[D > 0]
    torn = (d[D == 0] > 1e-9 * D.max()).any() or not ratio.min() > 0
    return np.square(d - D).sum(), np.inf if torn else ratio.max() / ratio.min()


def test_four_points_on_a_sphere():
    found = spaces.embeddability(spaces.Sphere(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1]]), 1.0), 4)
    unit = np.pi / 2  # a quarter turn
    assert not found and found.min_dimension is None
    np.testing.assert_allclose(found.eigenvalues / unit**2, [2, 0.5, 0, -0.25], atol=1e-12)
    best = 4.5 - 2 * np.sqrt(5)  # of the rhombus, docs/math.md, section 18
    np.testing.assert_allclose([*found.stress[1:], found.any_stress], best * unit**2, rtol=1e-8)
    np.testing.assert_allclose([*found.distortion[1:], found.any_distortion], np.sqrt(5 / 4), rtol=1e-8)
    assert best * unit**2 < found.stress[0] < 0.5 * unit**2  # the best map on a line
    assert "embeds isometrically in no Euclidean space" in str(found)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_euclidean_data_have_no_bound_in_their_dimension(rng, dimension):
    X = rng.normal(size=(40, dimension)) @ rng.normal(size=(dimension, 7)) * 1e3 + 1e4
    found = spaces.embeddability(spaces.Euclidean(X), 6)
    assert found and found.min_dimension == dimension
    assert (found.stress[dimension - 1 :] == 0).all() and (found.distortion[dimension - 1 :] == 1).all()
    assert (found.stress[: dimension - 1] > 0).all() and (found.distortion[: dimension - 1] > 1).all()
    assert found.any_stress == 0 and found.any_distortion == 1
    assert f"in {dimension} dimension" in str(found)
    single = spaces.embeddability(distances(X - X.mean(axis=0)).astype(np.float32), 6)
    assert single.min_dimension == dimension


@pytest.mark.filterwarnings("ignore:the dissimilarities are not a metric:UserWarning")
@pytest.mark.parametrize("kind", ["euclidean", "cityblock", "graph", "no metric", "twins"])
def test_no_map_beats_the_bounds(kind):
    rng = np.random.default_rng(7)
    for trial in range(12):
        D = random_space(kind, rng)
        found = spaces.embeddability(D, 3)
        for d in (1, 2, 3):
            init = "random" if trial % 2 else "classical"
            Y = eq.MDS(n_components=d, metric="precomputed", init=init, n_iter=100, random_state=trial).fit_transform(D)
            stress, distortion = stress_and_distortion(D, Y)
            assert found.stress[d - 1] <= stress + 1e-12 * np.square(D).sum(), (trial, d)
            assert found.distortion[d - 1] <= distortion * (1 + 1e-9), (trial, d)
        assert (np.diff(found.stress) <= 0).all() and found.any_stress <= found.stress[-1]
        assert (np.diff(found.distortion) <= 0).all() and found.any_distortion <= found.distortion[-1]


@pytest.mark.filterwarnings("ignore:the dissimilarities are not a metric:UserWarning")
@pytest.mark.parametrize("kind", ["cityblock", "graph", "no metric"])
def test_bound_in_any_dimension_is_the_minimum(kind):
    rng = np.random.default_rng(3)
    for _ in range(4):
        D = random_space(kind, rng)
        Y = eq.MDS(n_components=len(D) - 1, metric="precomputed", n_iter=2000, tol=0, random_state=0).fit_transform(D)
        stress = stress_and_distortion(D, Y)[0]
        found = spaces.embeddability(D).any_stress
        assert 0.99 * stress - 1e-5 * np.square(D).sum() <= found <= stress * (1 + 1e-9)


def test_closed_forms_of_distortion():
    cube = distances(np.array(list(product((0, 1), repeat=3))), "cityblock")
    assert spaces.embeddability(cube).any_distortion == pytest.approx(np.sqrt(3), rel=1e-3)  # Enflo 1969
    turn = np.arange(6)
    cycle = np.minimum(np.abs(turn[:, None] - turn), 6 - np.abs(turn[:, None] - turn)).astype(float)
    assert spaces.embeddability(cycle).any_distortion == pytest.approx(
        3 * np.sin(np.pi / 6), rel=1e-3
    )  # regular hexagon
    star = 2 * (1 - np.eye(6))
    star[0, 1:] = star[1:, 0] = 1  # five leaves: a simplex of side s has the circumradius s √(4/10)
    assert spaces.embeddability(star).any_distortion == pytest.approx(2 * np.sqrt(0.4), rel=1e-6)
    simplex = spaces.embeddability(spaces.Discrete(20), 1)
    assert simplex.min_dimension == 19
    assert simplex.distortion[0] == pytest.approx(19)  # equally spaced points on a line


def test_identity_e2():
    rng = np.random.default_rng(0)
    Y, D = rng.normal(size=(7, 2)), distances(rng.normal(size=(7, 3)), "cityblock")
    c = squareform(rng.uniform(0.5, 2, 21))
    d = distances(Y)
    with np.errstate(invalid="ignore"):
        W = np.where(c > 0, D / c, 0.0)
    quadratic = sum((1 - W[i, j]) * d[i, j] ** 2 for i in range(7) for j in range(i))
    right = (D * (D - c)).sum() / 2 + quadratic + (W * (d - c) ** 2).sum() / 2
    assert right == pytest.approx(np.square(d - D).sum() / 2, rel=1e-12)


def test_gap_e6_is_below_every_map(rng):
    d2 = np.square(distances(rng.normal(size=(12, 4)), "cityblock"))
    a = rng.uniform(0.5, 2, 12)
    bounds = weighted_rank_gaps(d2, a, np.array([1, 2, 11]))
    pairs = np.triu_indices(12, 1)
    for d, bound in zip((1, 2, 11), bounds, strict=True):
        for scale in (0.3, 1.0, 3.0):
            Y = scale * rng.normal(size=(12, d))
            assert (np.outer(a, a) * (np.square(distances(Y)) - d2) ** 2)[pairs].sum() >= bound > 0


@pytest.mark.parametrize("d", [1, 3, 6])
def test_spectral_gap_is_a_minimum(rng, d):
    for values in (np.sort(rng.normal(size=8))[::-1], np.sort(rng.uniform(size=8))[::-1], -np.arange(8.0)):
        found = _spectral_gap(values, d)
        rest = np.square(values[d:]).sum()
        for mu in rng.exponential(size=(2000, d)) * rng.choice([0.1, 1, 3], size=(2000, 1)):
            assert np.square(mu - values[:d]).sum() + rest + (mu.sum() - values.sum()) ** 2 >= found - 1e-12
        best = minimize(
            lambda mu, v=values: np.square(mu - v[:d]).sum() + (mu.sum() - v.sum()) ** 2,
            np.ones(d),
            bounds=[(0, None)] * d,
        )
        assert best.fun + rest == pytest.approx(found, abs=1e-6)


def test_gradient_of_the_smoothed_ratio(rng):
    d2 = np.square(distances(rng.normal(size=(6, 3)), "cityblock"))
    A, step = rng.normal(size=(6, 2)).ravel(), 1e-6
    _, gradient = _smooth_log_ratio(A, d2, 0.1)
    for k in range(len(A)):
        e = np.zeros(len(A))
        e[k] = step
        slope = (_smooth_log_ratio(A + e, d2, 0.1)[0] - _smooth_log_ratio(A - e, d2, 0.1)[0]) / (2 * step)
        assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-8)


def test_many_points_use_a_reference_of_few_dimensions(monkeypatch):
    from equipoise.spaces import stress_bounds

    space = spaces.Sphere(globe(120)[0])
    whole = spaces.embeddability(space)
    monkeypatch.setattr(stress_bounds, "MAX_FULL", 50)
    few = spaces.embeddability(space)
    assert 0.5 * whole.any_stress < few.any_stress <= whole.any_stress * (1 + 1e-3)
    assert few.distortion[1] > 1.2


def test_scale_and_order_of_points_do_not_matter(rng):
    D = distances(rng.normal(size=(15, 3)), "cityblock")
    found = spaces.embeddability(D)
    order = rng.permutation(15)
    for other, unit in ((spaces.embeddability(1e-140 * D), 1e-140), (spaces.embeddability(D[np.ix_(order, order)]), 1)):
        np.testing.assert_allclose(other.normalised_stress, found.normalised_stress, rtol=1e-6)
        np.testing.assert_allclose(other.eigenvalues / unit / unit, found.eigenvalues, atol=1e-9)
    np.testing.assert_allclose(found.stress, np.square(found.normalised_stress) * np.square(D).sum() / 2)


def test_coincident_points_embed_in_no_dimension():
    found = spaces.embeddability(np.zeros((3, 3)))
    assert found.min_dimension == 0 and found.any_distortion == 1 and not found.stress.any()
    assert lower_bounds(1 - np.eye(3), np.array([0, 0.5, 0.5]), None, np.array([2]))[1][0] < 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spaces.embeddability(FOUR, 0), "max_components must be an integer >= 1, got 0"),
        (lambda: spaces.embeddability(FOUR, tol=-1), "tol must be a finite number between 0 and 0.1, got -1"),
        (lambda: spaces.embeddability(spaces.Discrete(5000)), "limited to 4,000 points; pass spaces.Restriction"),
        (lambda: spaces.embeddability(spaces.Discrete(1)), "space has 1 point; at least 2 are needed"),
        (lambda: spaces.embeddability(FOUR + np.triu(FOUR)), "symmetric"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
