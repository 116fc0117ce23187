"""Ordinal MDS: invariance to monotone transformations, initialisation and stress-1."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import rankdata
from support.mds_cases import D, X, Y, rigid_error

import equipoise as eq


def test_ordinal_loss_decreases_at_every_step():
    for solver in ("smacof", "lbfgs"):
        curve = eq.MDS(stress="ordinal", init="random", solver=solver, random_state=0, n_iter=40).fit(X).loss_curve_
        assert (np.diff(curve[:, 1]) < 0).all() and curve[-1, 1] < 0.9 * curve[0, 1]


def test_ordinal_map_depends_only_on_the_order_of_distances():
    a, b, c = (
        eq.MDS(stress="ordinal", metric="precomputed", random_state=0, n_iter=50).fit(delta)
        for delta in (D, D**3, np.log1p(D))
    )
    assert a.embedding_.tobytes() == b.embedding_.tobytes() == c.embedding_.tobytes()


def test_ordinal_start_is_classical_scaling_of_the_ranks():
    ranks = squareform(rankdata(pdist(X)))
    Y = eq.MDS(metric="precomputed", random_state=0).problem(ranks).Y0
    start = eq.MDS(stress="ordinal", random_state=0).problem(X).Y0
    np.testing.assert_allclose(start / np.abs(start).max(), Y / np.abs(Y).max(), atol=1e-6)
    np.testing.assert_allclose(np.square(pdist(start)).mean(), 1, rtol=1e-5)


def test_ordinal_start_is_the_rescaled_init():
    a, b = (eq.MDS(stress=stress, init="pca", random_state=0).problem(X).Y0 for stress in ("metric", "ordinal"))
    np.testing.assert_allclose(b / np.linalg.norm(b), a / np.linalg.norm(a), atol=1e-6)
    assert np.sqrt((pdist(b) ** 2).mean()) == pytest.approx(1, rel=1e-5)


def test_ordinal_recovers_a_configuration_up_to_scale():
    Z = np.random.RandomState(0).standard_normal((60, 2))
    method = eq.MDS(stress="ordinal", metric="precomputed", random_state=0, tol=0).fit(squareform(pdist(Z)) ** 2)
    found = method.embedding_ * np.sqrt((pdist(Z) ** 2).sum() / (pdist(method.embedding_) ** 2).sum())
    assert rigid_error(found, Z) < 0.05
    assert method.stress_1_ < 0.01


def test_ordinal_stress_is_kruskal_stress_1():
    method = eq.MDS(stress="ordinal", random_state=0).fit(X)
    assert method.stress_1_ == pytest.approx(np.sqrt(method.loss_))
    assert method.stress_1_ < eq.MDS(random_state=0).fit(X).stress_1_
    problem = method.problem(X)
    d, target = pdist(method.embedding_.astype(float)), problem.stress.disparities(method.embedding_)
    assert (np.diff(target[np.argsort(pdist(X))]) >= 0).all()
    assert np.sqrt(((d - target) ** 2).sum() / (d**2).sum()) == pytest.approx(method.stress_1_, rel=1e-4)
    assert problem.loss(3 * Y) == pytest.approx(problem.loss(Y), rel=1e-5)


def test_tied_distances_may_have_different_disparities():
    levels = np.ceil(D / 2)  # a handful of distinct values; the order within each is free
    np.fill_diagonal(levels, 0)
    loose = eq.MDS(stress="ordinal", metric="precomputed", random_state=0).fit(levels)
    problem = loose.problem(levels)
    target, flat = problem.stress.disparities(loose.embedding_), squareform(levels)
    values = np.unique(flat)
    for low, high in itertools.pairwise(values):
        assert target[flat == low].max() <= target[flat == high].min()
    assert any(np.ptp(target[flat == a]) > 0 for a in np.unique(flat))


def test_ordinal_stress_with_weights_is_that_of_the_weighted_pairs():
    n = len(X)
    plain, equal = (
        eq.MDS(stress="ordinal", weights=w, random_state=0, n_iter=30).problem(X) for w in (None, np.full((n, n), 2.0))
    )
    assert equal.loss(Y) == pytest.approx(plain.loss(Y), rel=1e-5)
    np.testing.assert_allclose(equal.gradient(Y), plain.gradient(Y), rtol=1e-3, atol=1e-7)
    w = squareform(np.random.RandomState(0).rand(n * (n - 1) // 2))
    method = eq.MDS(stress="ordinal", weights=w, random_state=0).fit(X)
    problem, (d, w) = method.problem(X), (pdist(method.embedding_.astype(float)), squareform(w))
    target = problem.stress.disparities(method.embedding_)
    assert np.sqrt((w * (d - target) ** 2).sum() / (w * d**2).sum()) == pytest.approx(method.stress_1_, rel=1e-3)
    missing = D.copy()
    missing[0, 1] = missing[1, 0] = np.nan
    fitted = eq.MDS(stress="ordinal", metric="precomputed", random_state=0, n_iter=30).fit(missing)
    assert np.isfinite(fitted.embedding_).all()
