import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from support.cases import KERNELS, UserKernel

from equipoise.kernels import Gaussian, Kernel, PowerLaw, RegularizedPowerLaw, SphericalExit, StudentT

D2 = np.concatenate([[0.0], np.geomspace(1e-6, 100.0, 60)])
positive = st.floats(0.2, 6.0)
exponents = st.floats(1.0, 6.0)  # below β = 1 the lower bound on d2 at a cusp, 1e-30, affects k(0)
ANY_KERNEL = st.one_of(
    st.just(Gaussian()),
    st.builds(StudentT, positive),
    st.builds(PowerLaw, positive, positive),
    st.builds(RegularizedPowerLaw, exponents, positive),
    st.builds(SphericalExit, st.floats(0.05, 0.99), st.integers(2, 6)),
)


def closed_form(kernel, d2):
    """Evaluate the formulas of docs/math.md at one squared distance, with Python floats."""
    r = math.sqrt(d2)
    match kernel:
        case Gaussian():
            return math.exp(-d2)
        case StudentT(nu):
            return (1 + d2 / nu) ** (-(nu + 1) / 2)
        case PowerLaw(beta, r0):
            return max(r, r0) ** -beta
        case RegularizedPowerLaw(beta, eta):
            return 1 / (eta + r**beta)
        case SphericalExit(rho, d):
            return ((1 - rho) ** 2 + rho * d2) ** (-d / 2)


@given(ANY_KERNEL, st.floats(0.0, 100.0))
def test_value_matches_closed_form(kernel, d2):
    assert_allclose(kernel.value(np.array([d2]))[0], closed_form(kernel, d2), rtol=1e-9)


@given(ANY_KERNEL, st.floats(1e-3, 100.0))
def test_slope_matches_finite_differences(kernel, d2):
    step = 1e-4 * d2 / (1 + d2)
    if isinstance(kernel, PowerLaw) and abs(d2 - kernel.r0**2) <= 2 * step:
        d2 = 2 * d2  # not across the kink
    above, below = kernel.value(np.array([d2 + step, d2 - step]))
    slope = kernel.slope(np.array([d2]))[0]
    assert abs((above - below) / (2 * step) - slope) <= 1e-6 * abs(slope) + 1e-15 * kernel.value(np.zeros(1))[0] / step


@pytest.mark.parametrize("kernel", [*KERNELS, UserKernel()], ids=repr)
def test_log_value_and_log_slope_match_value_and_slope(kernel):
    assert_allclose(kernel.log_value(D2), np.log(kernel.value(D2)), rtol=1e-13, atol=1e-14)
    assert_allclose(kernel.log_slope(D2) * kernel.value(D2), kernel.slope(D2), rtol=1e-14)


@pytest.mark.parametrize("kernel", [*KERNELS, UserKernel()], ids=repr)
def test_kernels_are_positive_and_decreasing(kernel):
    value = kernel.value(D2)
    assert (value > 0).all() and np.isfinite(value).all()
    assert (np.diff(value) <= 0).all() and value[-1] < value[0]
    slope = kernel.slope(D2)
    assert (slope <= 0).all() and np.isfinite(slope).all()


def test_gaussian_log_value_is_finite_where_value_underflows():
    assert_array_equal(Gaussian().log_value(np.array([1e4])), [-1e4])
    assert_array_equal(Gaussian().log_slope(np.array([1e4])), [-1.0])


def test_power_law_has_no_force_inside_the_cutoff():
    kernel = PowerLaw(3.0, 0.5)
    inside = np.array([0.0, 0.1, 0.25])
    assert_array_equal(kernel.value(inside), np.full(3, 0.5**-3.0))
    assert_array_equal(kernel.slope(inside), np.zeros(3))


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.9])
def test_coincident_points_exert_no_force_at_a_cusp(beta):
    slope = RegularizedPowerLaw(beta, 1.0).slope(np.zeros(1))
    assert np.isfinite(slope).all()
    assert (slope * 0.0 == 0).all()


def test_spherical_exit_with_rho_0_is_uniform():
    kernel = SphericalExit(0.0, 3)
    assert_array_equal(kernel.value(D2), np.ones_like(D2))
    assert_array_equal(kernel.slope(D2), np.zeros_like(D2))


def test_student_t_with_one_dof_equals_regularized_power_law_exactly():
    student, power = StudentT(1.0), RegularizedPowerLaw(2.0, 1.0)
    for name in ("value", "slope", "log_value", "log_slope"):
        assert_array_equal(getattr(student, name)(D2), getattr(power, name)(D2))
    assert (student.length, student.spread) == (power.length, power.spread)


@given(exponents, st.floats(1e-3, 1e3), st.floats(1e-6, 1e3))
def test_eta_is_a_unit_of_length(beta, eta, d2):
    # k_η(η^(2/β) d2) = k_1(d2)/η, with η^(1/β) = length
    kernel = RegularizedPowerLaw(beta, eta)
    scaled = kernel.value(np.array([d2 * kernel.length**2]))
    assert_allclose(scaled, RegularizedPowerLaw(beta, 1.0).value(np.array([d2])) / eta, rtol=1e-11)


@given(positive, st.floats(0.01, 100.0), st.floats(1e-3, 1e3))
def test_cutoff_is_a_unit_of_length(beta, r0, d2):
    kernel = PowerLaw(beta, r0)
    scaled = kernel.value(np.array([d2 * r0**2]))
    assert_allclose(scaled, PowerLaw(beta, 1.0).value(np.array([d2])) * r0**-beta, rtol=1e-11)
    assert_allclose(kernel.length, r0 * PowerLaw(beta, 1.0).length, rtol=1e-12)


@pytest.mark.parametrize("kernel", [StudentT(0.5), StudentT(4.0), SphericalExit(0.95, 3), SphericalExit(0.9, 4)])
def test_length_of_smooth_kernels_is_their_plateau_width(kernel):
    assert_allclose(kernel.length, 1 / np.sqrt(-kernel.log_slope(np.zeros(1)))[0], rtol=1e-12)
    assert SphericalExit(0.0, 3).length == 1.0


def test_user_kernel_needs_only_value_and_slope():
    kernel = UserKernel()
    assert_allclose(kernel.log_value(D2), -1.5 * np.log1p(D2), rtol=1e-13, atol=1e-15)
    assert_allclose(kernel.log_slope(D2), -1.5 / (1 + D2), rtol=1e-14)
    assert kernel.native() is None
    assert kernel.length == 1.0


@pytest.mark.parametrize("method", ["value", "slope", "log_value", "log_slope"])
def test_kernel_without_formulas_raises(method):
    class Empty(Kernel):
        pass

    missing = method.removeprefix("log_")
    with pytest.raises(TypeError, match=rf"Empty must define {missing}\(d2\)"):
        getattr(Empty(), method)(D2)


def test_kernel_without_slope_raises_on_log_slope():
    class Half(Kernel):
        def value(self, d2):
            return np.exp(-d2)

    assert_array_equal(Half().log_value(np.zeros(2)), np.zeros(2))
    with pytest.raises(TypeError, match=r"Half must define slope\(d2\)"):
        Half().log_slope(D2)


NOT_FINITE = (np.nan, np.inf, "x", None, [1.0])


@pytest.mark.parametrize(
    ("kernel", "parameters", "message"),
    [
        *[(StudentT, {"dof": x}, "dof must be a finite number > 0") for x in (0, -1.0, *NOT_FINITE)],
        *[(PowerLaw, {"beta": x}, "beta must be a finite number > 0") for x in (0, -2.0, *NOT_FINITE)],
        *[(PowerLaw, {"r0": x}, "r0 must be a finite number > 0") for x in (0, -1.0, *NOT_FINITE)],
        *[(RegularizedPowerLaw, {"beta": x}, "beta must be a finite number > 0") for x in (0, -2.0, *NOT_FINITE)],
        *[(RegularizedPowerLaw, {"eta": x}, "eta must be a finite number > 0") for x in (0, -1.0, *NOT_FINITE)],
        *[(SphericalExit, {"rho": x}, r"rho must be a finite number in \[0, 1\)") for x in (-0.1, 1.0, 2.0, np.nan)],
        (SphericalExit, {"dimension": 0}, "dimension must be a finite number >= 1, got 0"),
    ],
)
def test_invalid_parameters_raise(kernel, parameters, message):
    with pytest.raises(ValueError, match=message):
        kernel(**parameters)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RegularizedPowerLaw(beta=5e-171, eta=43),
        lambda: StudentT(5e-324),
        lambda: PowerLaw(r0=1e-300),
    ],
)
def test_kernels_with_a_length_out_of_range_raise(make):
    with pytest.raises(
        ValueError, match=r"the length scale of .* is not between 1e-100 and 1e100; use less extreme parameters"
    ):
        make()
