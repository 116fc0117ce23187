"""Losses F(k_x, k_y): derivatives, closed forms, and checks of user-defined ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import equipoise as eq
from equipoise.kernels import Gaussian, Membership, NonMembership, RegularizedPowerLaw, StudentT
from equipoise.pair_losses import (
    BinaryCrossEntropy,
    Contrastive,
    LogLikelihood,
    PairLoss,
    SquaredDifference,
    check_pair_loss,
)

LOSSES = (
    BinaryCrossEntropy(),
    BinaryCrossEntropy(0.3),
    LogLikelihood(),
    LogLikelihood(7.0, 0.1),
    SquaredDifference(),
    Contrastive(),
    Contrastive(0.02),
)
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES, ids=repr)
KX, KY = np.meshgrid([0.0, 0.01, 0.4, 1.0, 3.0], np.geomspace(1e-4, 0.999, 40))


@EVERY_LOSS
def test_slope_is_the_derivative_of_the_value(loss):
    h = 1e-6 * KY
    numeric = (loss.value(KX, KY + h) - loss.value(KX, KY - h)) / (2 * h)
    assert (np.abs(loss.slope(KX, KY) - numeric) <= 1e-5 * np.abs(numeric) + 1e-6).all()


@EVERY_LOSS
def test_losses_accept_tensors(loss):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tensors = torch.tensor(KX), torch.tensor(KY)
    assert_allclose(loss.value(*tensors).numpy(), loss.value(KX, KY), rtol=1e-12)
    assert_allclose(loss.slope(*tensors).numpy(), loss.slope(KX, KY), rtol=1e-12)


@EVERY_LOSS
def test_forces_of_a_kernel_that_underflows_are_zero(loss):
    zero = np.zeros(3)
    assert_array_equal(loss.slope(np.array([0.0, 0.5, 1.0]), zero) * zero, 0.0)


def test_cross_entropy_softens_the_cauchy_kernel_as_umap_does():
    d2, epsilon = np.array([0.0, 1e-3, 0.5, 40.0]), 0.01
    apart = NonMembership(1.0, 1.0, epsilon)
    assert_allclose(BinaryCrossEntropy(epsilon).value(0 * d2, StudentT().value(d2)), apart.value(d2), rtol=1e-10)
    assert_allclose(LogLikelihood(2.0, epsilon).value(0 * d2, StudentT().value(d2)), 2 * apart.value(d2), rtol=1e-10)


def test_cross_entropy_without_softening_is_that_of_two_coins():
    value = BinaryCrossEntropy(1e-12).value(KX[:, :4], KY[:, :4])
    p, q = KX[:, :4], KY[:, :4]
    assert_allclose(value, -p * np.log(q) - (1 - p) * np.log(1 - q), rtol=1e-8)


def test_contrastive_loss_is_the_log_loss_of_its_probability():
    loss = Contrastive(0.3)
    q = loss.probability(KY)
    assert_allclose(loss.value(KX, KY), -KX * np.log(q) - np.log(1 - q), rtol=1e-10)


def test_contrastive_loss_with_inverse_squares_is_umaps():
    d2 = np.array([0.1, 1.0, 9.0])
    kx = np.array([0.0, 0.5, 1.0])
    umap = LogLikelihood(1.0, 1e-12).value(kx, 1 / (1 + d2))
    assert_allclose(Contrastive(1.0).value(kx, 1 / d2), umap, rtol=1e-9)  # Damrich et al. 2023, section 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BinaryCrossEntropy(0), "epsilon must be a finite number > 0, got 0"),
        (lambda: LogLikelihood(gamma=-1), "gamma must be a finite number > 0, got -1"),
        (lambda: Contrastive("auto"), "scale must be a finite number > 0, got 'auto'"),
        (lambda: Contrastive(np.nan), "scale must be a finite number > 0, got nan"),
    ],
)
def test_invalid_parameters_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# User-defined losses


@dataclass(frozen=True)
class Power(PairLoss):
    """F = |k_x − k_y|^p."""

    p: float = 1.5

    def value(self, kx, ky):
        return np.abs(kx - ky) ** self.p

    def slope(self, kx, ky):
        return self.p * np.abs(ky - kx) ** (self.p - 1) * np.sign(ky - kx)


@pytest.mark.parametrize("kernel", [StudentT(), Gaussian(), Membership(1.6, 0.9)], ids=repr)
@pytest.mark.parametrize("loss", [*LOSSES, Power(), Power(1.0), Power(3)], ids=repr)
def test_valid_losses_pass_the_check(loss, kernel):
    check_pair_loss(loss, kernel)
    check_pair_loss(PairLoss(loss.value, loss.slope), kernel)


def square(kx, ky):
    return (kx - ky) ** 2


def square_slope(kx, ky):
    return 2 * (ky - kx)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (PairLoss(square, lambda kx, ky: ky - kx), r"slope of PairLoss\(square, <lambda>\) at kx = 0, ky = 0\.99.* is"),
        (PairLoss(square, lambda kx, ky: 2 * (kx - ky)), "the derivative of value with respect to ky is"),
        (PairLoss(lambda kx, ky: -np.log(1 - ky), square_slope), r"ky = 1 is inf, but .*; replace ky by ky / \(1 \+"),
        (PairLoss(lambda kx, ky: 1.0, square_slope), r"shape of kx and ky, \(108,\); got float"),
        (PairLoss(lambda kx, ky: ky[:3], square_slope), r"got shape \(3,\) and dtype float64"),
        (PairLoss(lambda kx, ky: ky if ky > 0 else kx, square_slope), "Write it elementwise, with array functions"),
        (PairLoss(lambda kx, ky: kx * ky, lambda kx, ky: kx), "repels no points: at kx = 0 its slope is 0"),
        (PairLoss(lambda kx, ky: ky + kx, lambda kx, ky: 0 * kx + 1), "does not depend on kx, the affinity"),
    ],
)
def test_invalid_losses_raise(loss, message):
    with pytest.raises(ValueError, match=message):
        check_pair_loss(loss, StudentT())


def test_kernel_beyond_1_raises_for_cross_entropies():
    with pytest.raises(ValueError, match=r"ky = 2 is nan, but it must be finite; use a kernel with k\(0\) <= 1"):
        check_pair_loss(BinaryCrossEntropy(), RegularizedPowerLaw(2.0, 0.5))
    check_pair_loss(SquaredDifference(), RegularizedPowerLaw(2.0, 0.5))


def test_loss_without_functions_raises():
    with pytest.raises(TypeError, match=r"PairLoss must define value\(kx, ky\)"):
        check_pair_loss(PairLoss(), StudentT())
    with pytest.raises(TypeError, match=r"PairLoss must define slope\(kx, ky\).*PairLoss\(F, dF\) takes it"):
        check_pair_loss(PairLoss(square), StudentT())


def test_public_names():
    assert eq.PairLoss is PairLoss and repr(PairLoss(square, square_slope)) == "PairLoss(square, square_slope)"
    assert repr(eq.pair_losses.Contrastive("learned")) == "Contrastive(scale='learned')"
