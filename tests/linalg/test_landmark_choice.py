"""Landmarks by leverage scores and eps, the estimated error, and the certificate of flows on a low-rank matrix."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

import equipoise as eq
from equipoise.linalg.gram import Factor, Inner
from equipoise.linalg.landmark_choice import (
    FromDistances,
    FromRows,
    choose_probes,
    estimate_error,
    ridge_leverage,
)
from equipoise.objectives import GramLoss

N = 1500


@pytest.fixture(scope="module")
def few_heavy_rows():
    """Return a table (1500, 30) in which four rows carry the first principal axis and four others the second."""
    rng = np.random.RandomState(0)
    A = 0.1 * rng.standard_normal((N, 30))
    A[:4, 1] += [200, -200, 150, -150]
    A[4:8, 2] += [100, -100, 80, -80]
    return A


def gram(A):
    A = A - A.mean(axis=0)
    return A @ A.T


def squared(A):
    return lambda i: cdist(A[i], A, "sqeuclidean")


def true_error(method, A):
    G = gram(A)
    return np.linalg.norm(G - method._gram.times(np.eye(len(A)))) / np.linalg.norm(G)


METHODS = [eq.PCA, eq.ClassicalMDS]


@pytest.mark.parametrize("Method", METHODS)
@pytest.mark.parametrize("seed", [0, 1])
def test_leverage_finds_the_rows_that_carry_an_axis_and_uniform_landmarks_miss_them(few_heavy_rows, Method, seed):
    A, exact = few_heavy_rows, eq.PCA().fit(few_heavy_rows)
    fits = {s: Method(n_landmarks=20, sampling=s, random_state=seed).fit(A) for s in ("uniform", "leverage")}
    assert true_error(fits["uniform"], A) > 0.3
    assert true_error(fits["leverage"], A) < 0.01
    np.testing.assert_allclose(fits["leverage"].eigenvalues_, exact.eigenvalues_, rtol=1e-3)
    for fit in fits.values():  # the estimate sees the missing rows, too
        assert fit.low_rank_error_ == pytest.approx(true_error(fit, A), rel=0.2, abs=1e-3)


def test_leverage_flow_reaches_the_closed_form(few_heavy_rows):
    shared = {"n_landmarks": 20, "sampling": "leverage", "random_state": 0}
    flow, eigen = (eq.PCA(solver=solver, **shared).fit(few_heavy_rows) for solver in ("flow", "eigen"))
    np.testing.assert_allclose(flow.embedding_, eigen.embedding_, atol=1e-3 * np.abs(eigen.embedding_).max())
    assert flow.landmarks_.tolist() == eigen.landmarks_.tolist()


@pytest.mark.parametrize(("n", "most"), [(500, 0.2), (300, 0.35)])
def test_leverage_is_no_worse_than_uniform_for_paths(n, most):
    """With 300 points the path lengths are far from Euclidean: a quarter of the eigenvalues' mass is negative."""
    A = eq.data.toys.swiss_roll(n).X
    B = eq.Isomap().fit(A).affinities_
    for seed in (0, 1):
        fits = [eq.Isomap(n_landmarks=40, sampling=s, random_state=seed).fit(A) for s in ("uniform", "leverage")]
        errors = [np.linalg.norm(B - fit._gram.times(np.eye(n))) / np.linalg.norm(B) for fit in fits]
        assert errors[1] < 1.1 * errors[0] and errors[1] < most
        assert fits[1].low_rank_error_ == pytest.approx(errors[1], rel=0.2)


def test_sparse_tables_and_tensors_get_the_same_landmarks(few_heavy_rows):
    settings = {"n_landmarks": 20, "sampling": "leverage", "random_state": 0}
    dense = eq.PCA(**settings).fit(few_heavy_rows)
    rows = eq.PCA(**settings).fit(sparse.csr_matrix(few_heavy_rows))
    assert rows.landmarks_.tolist() == dense.landmarks_.tolist()
    np.testing.assert_allclose(rows.embedding_, dense.embedding_, atol=1e-6)
    pytest.importorskip("torch")
    device = eq.PCA(**settings, engine="torch", device="cpu").fit(few_heavy_rows)
    assert device.landmarks_.tolist() == dense.landmarks_.tolist()


# Scores and errors


@pytest.mark.parametrize("kind", ["rows", "distances"])
def test_scores_from_all_points_are_exact(rng, kind):
    """With every point as landmark, the approximation is l_i = (G (G + λI)⁻¹)_ii itself."""
    A = rng.standard_normal((40, 5)) * [4, 3, 2, 1, 0.5]
    every = np.arange(40)
    found = FromRows(Factor(A), every) if kind == "rows" else FromDistances(squared(A), every)
    G = gram(A)
    for ridge in (0.1, 1.0, 30.0):
        exact = np.diag(G @ np.linalg.inv(G + ridge * np.eye(40)))
        np.testing.assert_allclose(ridge_leverage(found, ridge), exact, rtol=1e-8)


def test_scores_of_coincident_points_are_equal():
    found = FromRows(Factor(np.ones((9, 2))), np.arange(3))
    assert ridge_leverage(found).tolist() == [1.0] * 9


def test_errors_of_up_to_128_points_are_exact(rng):
    A = rng.standard_normal((128, 20))
    found = FromRows(Factor(A), np.arange(5))
    error = estimate_error(found, choose_probes(found, rng), best=np.zeros((128, 1)))
    assert error.residual == pytest.approx(np.linalg.norm(gram(A) - found.F @ found.F.T))
    assert error.whole == pytest.approx(np.linalg.norm(gram(A))) == pytest.approx(error.best)


def test_squared_errors_are_unbiased():
    A = load_digits().data[:300]
    found = FromRows(Factor(A), np.arange(10))
    true = np.linalg.norm(gram(A) - found.F @ found.F.T) ** 2
    rng = np.random.RandomState(0)
    estimates = [estimate_error(found, choose_probes(found, rng)).residual ** 2 for _ in range(200)]
    assert np.mean(estimates) == pytest.approx(true, rel=0.01)


# eps


@pytest.mark.parametrize("sampling", ["uniform", "leverage"])
@pytest.mark.parametrize("eps", [0.5, 0.05])
@pytest.mark.parametrize("Method", METHODS)
def test_eps_gives_the_promised_error(few_heavy_rows, Method, sampling, eps):
    """The true ‖G − G'‖² is at most (1 + eps) ‖G − G_k‖², up to the error of the estimate."""
    for A in (few_heavy_rows, load_digits().data[:400]):
        fit = Method(eps=eps, sampling=sampling, random_state=0).fit(A)
        G = gram(A)
        best = np.square(np.linalg.eigvalsh(G)[:-2]).sum()
        true = np.linalg.norm(G - fit._gram.times(np.eye(len(A)))) ** 2
        assert fit.low_rank_ratio_ <= 1 + eps and true <= (1 + eps) * 1.1 * best
        assert len(fit.landmarks_) < len(A)
    assert np.isnan(Method(n_landmarks=30, random_state=0).fit(few_heavy_rows).low_rank_ratio_)


def test_eps_warns_at_the_largest_number_of_landmarks(few_heavy_rows):
    with pytest.warns(UserWarning, match=r"12 landmarks is about .* times that of the best approx"):
        eq.PCA(eps=0.01, n_landmarks=12, random_state=0).fit(few_heavy_rows)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampling": "random"}, 'sampling must be "uniform" or "leverage", got \'random\''),
        ({"sampling": 3}, 'sampling must be "uniform" or "leverage", got 3'),
        ({"sampling": "leverage"}, 'sampling="leverage" chooses landmarks; set n_landmarks or eps'),
        ({"eps": 0}, "eps must be a positive number or None, got 0"),
        ({"eps": np.inf}, "eps must be a positive number or None, got inf"),
        ({"eps": "a"}, "eps must be a positive number or None, got 'a'"),
        ({"eps": 0.1, "n_landmarks": 2}, "n_landmarks must be an integer above n_components=2"),
    ],
)
@pytest.mark.parametrize("Method", [*METHODS, eq.Isomap])
def test_invalid_parameters_raise(few_heavy_rows, Method, settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Method(**settings).fit(few_heavy_rows)


# Theorem 3.4 of Draganov & Dohn 2024, and the certificate


def orthonormal(n, k, rng):
    """Return k orthonormal vectors (n, k) that are orthogonal to 1."""
    return np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, k))]))[0][:, 1:]


def test_theorem_3_4_is_false_as_printed(rng):
    """G_X with eigenvalues 1, 0.9, 0.5, 0.01, k = 2, eps = 0, Y = u_3/2: the condition holds, but ⟨∇, ∇'⟩ = −1/4."""
    U, values = orthonormal(7, 4, rng), np.array([1, 0.9, 0.5, 0.01])
    Y = 0.5 * U[:, [2]]
    G, low = (U * values) @ U.T, (U[:, :2] * values[:2]) @ U[:, :2].T
    assert np.linalg.norm(G - Y @ Y.T) ** 2 >= values[0] / values[1] * np.linalg.norm(G - low) ** 2
    gradient, approximate = (GramLoss(as_gram(M)).balance(Y, None, loss=False) for M in (G, low))
    gradients = [-(balance.attraction + balance.repulsion) for balance in (gradient, approximate)]
    product = (gradients[0] * gradients[1]).sum()
    assert product == pytest.approx(-0.25)
    certified = GramLoss(as_gram(low), float(np.linalg.norm(G - low)))
    assert certified.certificate(Y) <= product < 0  # the certificate refuses this step


def as_gram(B):
    """Return the centred Gram matrix B as an operator."""
    diagonal = np.diag(B)
    return Inner(diagonal[:, None] + diagonal - 2 * B)


def test_certificate_is_a_lower_bound(rng):
    for _ in range(200):
        n, m, d = rng.integers(5, 30), rng.integers(1, 5), rng.integers(1, 4)
        U, values = orthonormal(n, n - 1, rng), np.sort(rng.uniform(0, 1, n - 1) ** 3)[::-1]
        G, low = (U * values) @ U.T, (U[:, :m] * values[:m]) @ U[:, :m].T
        Y = rng.standard_normal((n, d)) * rng.choice([0.01, 0.3, 1.0])
        exact, loss = GramLoss(as_gram(G)), GramLoss(as_gram(low), float(np.linalg.norm(G - low)))
        gradients = [f.balance(Y, None, loss=False) for f in (exact, loss)]
        a, b = (-(balance.attraction + balance.repulsion) for balance in gradients)
        assert loss.certificate(Y) <= (a * b).sum() + 1e-12


def test_flow_records_its_certificate(few_heavy_rows):
    A = load_digits().data[:300]
    fit = eq.PCA(n_landmarks=60, sampling="leverage", solver="flow", random_state=0).fit(A)
    assert fit.certificate_[:, 0].tolist() == fit.loss_curve_[: len(fit.certificate_), 0].tolist()
    bounds = fit.certificate_[:, 1]
    assert bounds[0] > 0 > bounds[-1]  # certified far from the minimum, and never at it
    missed = eq.PCA(n_landmarks=20, solver="flow", random_state=0).fit(few_heavy_rows)
    assert (missed.certificate_[:, 1] < 0).all()  # uniform landmarks miss the axes: no step is certified
    for other in (eq.PCA(n_landmarks=60, random_state=0), eq.PCA(solver="flow", random_state=0, tol=0.1)):
        assert other.fit(A).certificate_.shape == (0, 2)


# All eigenvalues


def test_spectrum_of_four_points_that_fit_no_space():
    D = np.ones((4, 4)) - np.eye(4)
    D[2, 3] = D[3, 2] = 2
    fit = eq.ClassicalMDS(metric="precomputed").fit(D)
    np.testing.assert_allclose(fit.spectrum_, [2, 0.5, 0, -0.25], atol=1e-12)
    assert fit.negative_mass_ == pytest.approx(0.25 / 2.75)
    np.testing.assert_allclose(fit.eigenvalues_, fit.spectrum_[:2])


@pytest.mark.parametrize("shape", [(60, 5), (5, 60)])
def test_spectrum_of_points_has_no_negative_part(rng, shape):
    A = rng.standard_normal(shape)
    exact = np.linalg.svd(A - A.mean(axis=0), compute_uv=False) ** 2
    for fit in (eq.PCA().fit(A), eq.ClassicalMDS().fit(A)):
        np.testing.assert_allclose(fit.spectrum_, exact, atol=1e-9)
        assert fit.negative_mass_ < 1e-12


def test_spectrum_of_coincident_points_is_zero_and_needs_a_fit():
    fit = eq.ClassicalMDS().fit(np.ones((5, 3)))
    assert not fit.spectrum_.any() and fit.negative_mass_ == 0
    with pytest.raises(ValueError, match="not fitted"):
        _ = eq.ClassicalMDS().spectrum_
