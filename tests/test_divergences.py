from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris

from equipoise.divergences import KL, Alpha, Beta, ChiSquare, Divergence, Hellinger, NeRV, deformed_log

T = np.geomspace(0.01, 100.0, 40)  # excludes t = 1, where f = 0 and relative errors are meaningless
ALPHAS = (-5.0, -2.0, -1.0, -0.5, 0.0, 0.6, 1.0, 1.5, 3.0, 5.0)
NEAR_LIMITS = tuple(limit + side * gap for limit in (-1, 1) for side in (-1, 1) for gap in (1e-3, 1e-6, 1e-12))
alphas = st.one_of(st.sampled_from([*ALPHAS, *NEAR_LIMITS]), st.floats(-6.0, 6.0))


def equation_14(alpha, t):
    """Return Lin et al. 2024, eq. (14), as printed, with 60 digits to avoid cancellation."""
    with localcontext() as context:
        context.prec = 60
        a, t = Decimal(alpha), Decimal(t)
        return float(4 / (1 - a**2) * ((1 - a) / 2 + (1 + a) / 2 * t - t ** ((1 + a) / 2)))


@pytest.mark.parametrize("alpha", [*(a for a in ALPHAS if abs(a) != 1), *NEAR_LIMITS])
def test_alpha_matches_equation_14(alpha):
    assert_allclose(Alpha(alpha).value(T), [equation_14(alpha, t) for t in T], rtol=1e-11)


@given(alphas)
def test_alpha_value_and_slope_are_zero_at_one(alpha):
    one = np.ones(1)
    assert_array_equal(Alpha(alpha).value(one), [0.0])
    assert_array_equal(Alpha(alpha).slope(one), [0.0])


@given(alphas)
def test_alpha_has_unit_curvature_at_one(alpha):
    gap = 1e-6
    assert_allclose(Alpha(alpha).slope(np.array([1 + gap, 1 - gap])), [gap, -gap], rtol=1e-5)


@given(alphas, st.floats(0.05, 20.0))
def test_slope_matches_finite_differences(alpha, t):
    f, step = Alpha(alpha), 1e-5 * t
    above, below = f.value(np.array([t + step, t - step]))
    slope = f.slope(np.array([t]))[0]
    assert abs((above - below) / (2 * step) - slope) <= 1e-7 * (1 + abs(slope)) + 1e-10 * abs(above) / t


@given(alphas, st.floats(0.05, 20.0))
def test_second_derivative_of_alpha_is_that_of_the_paper(alpha, t):
    """f″ = t^((α−3)/2); with f(1) = f′(1) = 0 it determines f: α = −1 is KL, α = 0 four times the squared Hellinger."""
    step = 1e-5 * t
    above, below = Alpha(alpha).slope(np.array([t + step, t - step]))
    size = 1e-10 * (1 + abs(above)) / t  # rounding of the slopes
    assert abs((above - below) / (2 * step) - t ** ((alpha - 3) / 2)) <= 1e-7 * t ** ((alpha - 3) / 2) + size
    assert_allclose(KL().value(T), -np.log(T) + T - 1, rtol=1e-12)
    assert_allclose(Hellinger().value(T), 2 * (1 - np.sqrt(T)) ** 2, rtol=1e-12)


@given(alphas, st.floats(0.01, 100.0), st.floats(0.01, 100.0), st.floats(0.0, 1.0))
def test_alpha_is_convex_and_nonnegative(alpha, t, u, share):
    f = Alpha(alpha)
    mixed, left, right = f.value(np.array([share * t + (1 - share) * u, t, u]))
    assert mixed <= share * left + (1 - share) * right + 1e-11 * (1 + left + right)
    assert min(left, right) >= 0
    low, high = f.slope(np.array([min(t, u), max(t, u)]))
    assert low <= high


def test_alpha_at_plus_and_minus_one_is_kullback_leibler():
    assert_allclose(Alpha(-1.0).value(T), -np.log(T) + T - 1, rtol=1e-12)
    assert_allclose(Alpha(1.0).value(T), T * np.log(T) - T + 1, rtol=1e-12)
    assert_allclose(Alpha(-1.0).slope(T), 1 - 1 / T, rtol=1e-12)
    assert_allclose(Alpha(1.0).slope(T), np.log(T), rtol=1e-12)


@pytest.mark.parametrize("gap", [1e-6, -1e-6])
def test_alpha_is_continuous_at_its_limits(gap):
    assert_allclose(Alpha(-1 + gap).value(T), -np.log(T) + T - 1, rtol=1e-5)
    assert_allclose(Alpha(1 + gap).value(T), T * np.log(T) - T + 1, rtol=1e-5)
    assert_allclose(Alpha(-1 + gap).slope(T), 1 - 1 / T, rtol=1e-5)
    assert_allclose(Alpha(1 + gap).slope(T), np.log(T), rtol=1e-5)


def test_named_divergences_match_their_formulas():
    assert KL() == Alpha(-1.0)
    assert_allclose(Hellinger().value(T), 2 * (1 - np.sqrt(T)) ** 2, rtol=1e-12)
    assert_allclose(ChiSquare().value(T), (T - 1) ** 2, rtol=1e-15)
    assert_allclose(ChiSquare().slope(T), 2 * (T - 1), rtol=1e-15)


def test_chi_square_is_twice_alpha_3():
    assert_allclose(ChiSquare().value(T), 2 * Alpha(3.0).value(T), rtol=1e-12)
    assert_allclose(ChiSquare().slope(T), 2 * Alpha(3.0).slope(T), rtol=1e-12)


@given(alphas)
def test_swapping_P_and_Q_negates_alpha(alpha):
    # t f_α(1/t) = f_−α(t): D_α(P ‖ Q) = D_−α(Q ‖ P)
    assert_allclose(T * Alpha(alpha).value(1 / T), Alpha(-alpha).value(T), rtol=1e-10)


def test_s_is_defined_only_for_divergences_over_stored_pairs():
    assert Alpha(-1.0).s == 1.0
    assert Alpha(0.0).s == 0.5
    assert Alpha(1.0).s is None and Alpha(3.0).s is None and ChiSquare().s is None and Divergence().s is None


def test_loss_decreases_with_alpha():
    # Lin et al. 2024, Table 3: p = exp(−r²/30), q = 1/(1 + r²). The order is not a theorem; it holds for these r.
    r = np.linspace(0.0, 5.0, 101)
    p, q = np.exp(-(r**2) / 30), 1 / (1 + r**2)
    p, q = p / p.sum(), q / q.sum()
    losses = [float((p * Alpha(alpha).value(q / p)).sum()) for alpha in (-2, -1.5, -1, -0.5, 0, 0.5)]
    assert all(np.diff(losses) < 0)
    assert_allclose(losses[2], (p * np.log(p / q)).sum(), rtol=1e-12)
    assert_allclose(losses[4], 2 * ((np.sqrt(p) - np.sqrt(q)) ** 2).sum(), rtol=1e-12)


def test_deformed_log_matches_formula_and_limit():
    log_t = np.log(T)
    assert_array_equal(deformed_log(log_t, 0.0), log_t)
    assert_allclose(deformed_log(log_t, 1.0), T - 1, rtol=1e-13)
    assert_allclose(deformed_log(log_t, -1.0), 1 - 1 / T, rtol=1e-13)
    for e in (1e-3, -1e-3, 1e-8, -1e-8, 1e-15):
        assert_allclose(deformed_log(log_t, e), log_t * (1 + e * log_t / 2 + (e * log_t) ** 2 / 6), rtol=1e-8)


@pytest.mark.parametrize("alpha", [np.nan, np.inf, -np.inf])
def test_non_finite_alpha_raises(alpha):
    with pytest.raises(ValueError, match="alpha must be a finite number, got"):
        Alpha(alpha)


def test_divergence_without_formulas_raises():
    class Empty(Divergence):
        pass

    with pytest.raises(TypeError, match=r"Empty must define value\(t\)"):
        Empty().value(T)
    with pytest.raises(TypeError, match=r"Empty must define slope\(t\)"):
        Empty().slope(T)


@pytest.mark.parametrize("divergence", [KL(), Beta(1.5), NeRV(0.5), NeRV(0.0)], ids=repr)
def test_between_accepts_sparse_matrices_and_names_wrong_shapes(divergence, rng):
    P, Q = (M / (M.sum() - M.trace()) for M in rng.uniform(0.1, 1, (2, 5, 5)))
    assert divergence.between(sparse.csr_matrix(P), Q) == divergence.between(P, Q) > 0
    with pytest.raises(ValueError, match=r"two matrices \(n, n\) of the same points, got shapes \(.*\) and \(.*\)"):
        divergence.between(P, Q[:4, :4])


def test_positive_alpha_depends_on_affinities_that_rounding_loses():
    """Lin et al. 2024, section V.C.3: α ≤ 0 is more viable.

    With s = (1−α)/2, Σ P^s Q^(1−s) changes by O(ε^s) if the affinities below ε times the largest are lost, as in
    float32.
    """
    X = load_iris().data
    d2 = ((X[:, None] - X) ** 2).sum(axis=2)
    off = 1 - np.eye(len(X))
    P, Q = np.exp(-2 * d2) * off, off / (1 + d2)
    epsilon = float(np.finfo(np.float32).eps)
    kept = np.where(P / P.max() > epsilon, P, 0.0)
    P, kept, Q = P / P.sum(), kept / kept.sum(), Q / Q.sum()

    def change(alpha):
        exact = Alpha(alpha).between(P, Q)
        return abs(Alpha(alpha).between(kept, Q) - exact) / exact

    changes = [change(alpha) for alpha in (-3, -2, -1, -0.5, 0, 0.25, 0.5, 0.75, 0.9)]
    assert np.all(np.diff(changes) > 0)
    assert changes[4] < np.sqrt(epsilon) and changes[2] < 20 * epsilon  # α = 0 and −1
    assert changes[-1] > 0.2  # α = 0.9
    assert change(1) == change(3) == np.inf
