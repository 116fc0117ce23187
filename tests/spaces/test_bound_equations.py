"""Equations (E1) to (E10) of docs/math.md, section 18, written out in float64, agree with the code."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, squareform

import equipoise as eq
from equipoise import spaces
from equipoise.spaces import stress_bounds
from equipoise.spaces.distortion_bounds import _ratio, limited_distortion, min_ratios
from equipoise.spaces.embeddability import _Spectrum
from equipoise.spaces.stress_bounds import _unlimited_bound, weighted_rank_gaps

N = 11
C = np.eye(N) - 1 / N
PAIRS = np.triu_indices(N, 1)
DIMENSIONS = np.array([1, 2, 3])


@pytest.fixture
def D(rng):
    """Return distances that no Euclidean space contains."""
    X = rng.normal(size=(N, 5))
    return cdist(X, X, "cityblock")


def gram(d2):
    return -0.5 * C @ d2 @ C


def laplacian(D, c):
    """Return B_c, with the entries −D_ij/c_ij and rows that add up to 0."""
    B = -np.divide(D, c, out=np.zeros_like(D), where=c > 0)
    return B - np.diag(B.sum(axis=1))


def weighted_gram(d2, a):
    """Return −½ A^½ C_a d2 C_aᵀ A^½."""
    centre, root = np.eye(len(a)) - np.outer(np.ones(len(a)), a) / a.sum(), np.diag(np.sqrt(a))
    return -0.5 * root @ centre @ d2 @ centre.T @ root


def gap(d2, a, d):
    """Return γ_d of (E6), minimised over μ numerically."""
    values = np.sort(np.linalg.eigvalsh(weighted_gram(d2, a)))[::-1]

    def cost(mu):
        rest = mu.sum() - values.sum()
        return np.square(mu - values[:d]).sum() + rest**2, 2 * (mu - values[:d]) + 2 * rest

    found = minimize(cost, np.full(d, values[0]), jac=True, bounds=[(0, None)] * d, options={"ftol": 1e-15})
    return found.fun + np.square(values[d:]).sum()


def farthest_first(D):
    """Return the points in order, beginning with one of the farthest pair."""
    order = [int(D.max(axis=1).argmax())]
    while len(order) < len(D):
        rest = np.setdiff1d(np.arange(len(D)), order)
        order.append(int(rest[D[np.ix_(rest, order)].min(axis=1).argmax()]))
    return order


def test_e1_spectrum(D, rng):
    flat = cdist(*[rng.normal(size=(N, 3))] * 2)
    for distances, least in ((D, None), (flat, 3)):
        found = spaces.embeddability(distances)
        values = np.linalg.eigvalsh(gram(distances**2))[::-1]
        assert_allclose(found.eigenvalues, values, atol=1e-12 * values[0])
        assert bool(found) == bool(values[-1] > -1e-9 * values[0]) and found.min_dimension == least


def test_e1_errors_of_distances_move_no_eigenvalue_beyond_the_rounding_bound(D):
    tau, clique = 0.1, np.zeros((1500, 1500))
    clique[:30, :30] = 1 - np.eye(30)  # the bound of Weyl is nearly attained
    for distances in (D, clique):
        spectrum = _Spectrum(distances, tau)
        largest = np.abs(spectrum.exact).max()
        moved = ((1 + tau) ** 2 - 1) * largest  # if all distances grow by the factor 1 + τ
        assert moved <= spectrum.rounding
        assert_allclose(spectrum.rounding, tau * (1 + tau / 2) * np.linalg.norm(distances**2), rtol=1e-9)
    assert moved > 0.96 * spectrum.rounding


def test_e3_and_e4_any_positive_c_gives_a_bound(D, rng):
    S = np.square(D[PAIRS]).sum()
    lowest = eq.MDS(N - 1, metric="precomputed", n_iter=3000, tol=0, random_state=0).fit(D).loss_
    V = N * np.eye(N) - 1
    for _ in range(20):
        c = D + squareform(rng.uniform(0, 3, len(PAIRS[0])))
        beta = np.linalg.eigvalsh(laplacian(D, c))[-1] / N
        difference = np.linalg.eigvalsh(C @ (V - laplacian(D, beta * c)) @ C)
        assert difference[0] > -1e-9 and difference[1] < 1e-9  # (E3) is an equality: 0 beside that of the constants
        assert S - beta * (D * c)[PAIRS].sum() <= lowest
    values, vectors = np.linalg.eigh(gram(D**2))
    bound, reference = _unlimited_bound(D, values, vectors)  # the reference is β c
    assert np.linalg.eigvalsh(laplacian(D, reference))[-1] <= N
    assert_allclose(bound, S - (D * reference)[PAIRS].sum(), rtol=1e-9)
    assert_allclose(spaces.embeddability(D).any_stress, bound, rtol=1e-9)
    assert 0.999 * lowest < bound <= lowest


@pytest.mark.parametrize("d", [1, 2, 3])
def test_e5_maps_of_minimum_stress_are_small(D, d):
    Y = eq.MDS(d, metric="precomputed", n_iter=3000, tol=0, random_state=0).fit_transform(D).astype(np.float64)
    Y -= Y.mean(axis=0)
    r = D.sum(axis=1) / N
    assert (np.linalg.norm(Y, axis=1) <= r * (1 + 1e-5)).all()
    within = cdist(Y, Y)[PAIRS] / (r[:, None] + r)[PAIRS]
    assert 0.5 < within.max() <= 1 + 1e-5


def test_e6_identity_and_gap(D, rng):
    a, c2 = rng.uniform(0.5, 2, N), D**2
    for d in DIMENSIONS:
        delta = cdist(*[rng.normal(size=(N, d))] * 2) ** 2 - c2
        K = weighted_gram(delta, a)
        k = np.diag(K) / a
        left = (np.outer(a, a) * delta**2)[PAIRS].sum()
        assert_allclose(left, 2 * np.square(K).sum() + a.sum() * (a * k**2).sum() + np.trace(K) ** 2)
        assert left >= 2 * np.square(K).sum() + 2 * np.trace(K) ** 2 >= 2 * gap(c2, a, d)
    assert_allclose(weighted_rank_gaps(c2, a, DIMENSIONS), [2 * gap(c2, a, d) for d in DIMENSIONS], rtol=1e-6)


def test_e6_gap_of_the_regular_simplex():
    simplex, d = 1 - np.eye(60), 2
    found = weighted_rank_gaps(simplex, np.ones(60), np.array([d]))[0] / 2
    mu = 60 / (2 * (d + 1))
    assert_allclose(found, d * (mu - 0.5) ** 2 + (59 - d) / 4 + (d * mu - 29.5) ** 2)
    assert_allclose(found, 60**2 / (4 * (d + 1)), rtol=0.06)


@pytest.mark.parametrize("searched", [True, False])
def test_e7_stress_in_few_dimensions(D, rng, monkeypatch, searched):
    if not searched:  # as for many points, where few steps improve the reference: the first sum may be negative
        monkeypatch.setattr(stress_bounds, "FEWEST", 0)
        monkeypatch.setattr(stress_bounds, "MOST", 0)
        noise = 0.05 * rng.normal(size=(N, N))
        D = cdist(*[rng.normal(size=(N, 5))] * 2) * (1 + (noise + noise.T) / 2)
        np.fill_diagonal(D, 0.0)
    values, vectors = np.linalg.eigh(gram(D**2))
    r, limited = D.mean(axis=1), np.zeros(3)
    for c in (D, _unlimited_bound(D, values, vectors)[1]):
        w = np.divide(D, c, out=np.ones_like(D), where=c > 0) / (c + r + r[:, None]) ** 2
        np.fill_diagonal(w, np.inf)
        a = np.full(N, np.sqrt(w.min()))
        for _ in range(30):
            a = np.sqrt(a * (w / a).min(axis=1))
        assert (np.outer(a, a) <= w * (1 + 1e-12)).all()
        first = (D * (D - c))[PAIRS].sum()
        limited = np.maximum(limited, [first + 2 * gap(c**2, a, d) for d in DIMENSIONS])
    assert (first > 0) == searched
    assert_allclose(spaces.embeddability(D).stress, limited, rtol=1e-5)


def test_e8_ratio(D, rng):
    for A in (rng.normal(size=(N, 3)), np.linalg.eigh(gram(D**2))[1][:, :1]):
        Q = C @ A @ A.T @ C
        rho = (np.maximum(Q, 0) * D**2).sum() / (np.maximum(-Q, 0) * D**2).sum()
        assert_allclose(_ratio(A, D**2), rho, rtol=1e-9)
        Y = rng.normal(size=(N, 3))
        ratio = (cdist(Y, Y) / np.where(D > 0, D, 1))[PAIRS]
        assert (ratio.max() / ratio.min()) ** 2 >= rho
        assert spaces.embeddability(D).any_distortion ** 2 >= rho * (1 - 1e-9)


def by_rank(D, d):
    """Return q of (E9), the larger of the two choices of a."""
    kappa2 = 0.0
    for a in (np.ones(len(D)), len(D) / np.square(D).sum(axis=1)):
        whole = (np.outer(a, a) * D**4)[np.triu_indices(len(D), 1)].sum()
        kappa2 = max(kappa2, 2 * gap(D**2, a, d) / whole)
    kappa = np.sqrt(kappa2)
    return np.sqrt((1 + kappa) / (1 - kappa))


def by_packing(D, d):
    """Return q of (E10)."""
    order, largest = farthest_first(D), 0.0
    for m in range(2, len(D) + 1):
        part = D[np.ix_(order[:m], order[:m])][np.triu_indices(m, 1)]
        ratio = m ** (1 / d) - 1
        if m >= d + 2:
            ratio = max(ratio, np.sqrt(1 + 2 / d))
        largest = max(largest, part.min() / part.max() * ratio)
    return largest


def test_e9_and_e10_distortion_in_few_dimensions(rng):
    line = np.abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))
    spiky = 1 - np.eye(40) + squareform(rng.uniform(0, 0.1, 780))
    X = rng.normal(size=(15, 6)) * [5, 4, 3, 2, 1, 1]
    wins = set()
    for D in (line, spiky, cdist(X, X), cdist(X, X, "cityblock")):
        for d, found in zip(DIMENSIONS, limited_distortion(D, DIMENSIONS), strict=True):
            rank, packing = by_rank(D, d), by_packing(D, d)
            if max(rank, packing) > 1.001:
                wins.add("packing" if packing > rank else "rank")
            assert_allclose(found, max(rank, packing, 1.0), rtol=1e-6)
    assert wins == {"rank", "packing"}  # each of the two counts for some space


@pytest.mark.parametrize("d", [1, 2, 3])
def test_e10_no_points_have_a_smaller_ratio(rng, d):
    """The largest over the smallest distance of k points, also of arrangements with a small one."""
    bounds = dict(zip(range(2, 60), min_ratios(59, d), strict=True))
    lattice = [[[1.0]], [[1, 0], [0.5, np.sqrt(0.75)]], [[0, 1, 1], [1, 0, 1], [1, 1, 0]]][
        d - 1
    ]  # the densest packings
    steps = np.arange(-30, 31) if d == 1 else np.arange(-5, 6)
    grid = np.stack(np.meshgrid(*[steps] * d), axis=-1).reshape(-1, d) @ np.array(lattice)
    grid = grid[np.argsort(np.linalg.norm(grid - 0.1, axis=1))]
    for k in range(2, 60):
        for Y in (grid[:k], rng.normal(size=(k, d))):
            distances = cdist(Y, Y)[np.triu_indices(k, 1)]
            assert distances.max() / distances.min() >= bounds[k] * (1 - 1e-12)


def test_e10_ratio_is_attained():
    """By d + 2 points: the square in the plane; by equally spaced points on a line."""
    square = np.array([[0, 0], [1, 0], [0, 1], [1, 1.0]])
    assert_allclose(min_ratios(4, 2)[-1], cdist(square, square).max())
    assert_allclose(min_ratios(9, 1), np.arange(1, 9))
