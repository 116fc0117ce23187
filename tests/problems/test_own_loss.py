"""User-defined losses: known minima, the stress of MDS, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from support.cases import differences

import equipoise as eq
from equipoise.arrays import namespace as arrays

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def stress_of(X):
    D = torch.tensor(cdist(X, X))

    def stress(Y):
        off = ~torch.eye(len(D), dtype=torch.bool)
        return (((Y[:, None] - Y)[off].norm(dim=1) - D[off]) ** 2).sum() / 2

    return stress


def quadratic(n, d, rng):
    A = rng.standard_normal((n, n))
    A = A @ A.T / n + 0.1 * np.eye(n)
    B = rng.standard_normal((n, d))
    A_tensor, b = torch.tensor(A), torch.tensor(B)
    return lambda Y: (Y * (A_tensor @ Y)).sum() / 2 - (b * Y).sum(), np.linalg.solve(A, B), A


@pytest.mark.parametrize("optimizer", [None, eq.GradientDescent(min_loss_change=0), eq.Momentum(min_loss_change=0)])
def test_quadratic_loss_reaches_its_minimum(optimizer, rng):
    loss, truth, _ = quadratic(8, 2, rng)
    problem = eq.LossProblem(loss, np.zeros((8, 2)), n_iter=3000, optimizer=optimizer)
    found = problem.optimize()
    assert_allclose(found, truth, atol=1e-4 * np.abs(truth).max())
    assert_array_equal(found, problem.Y)
    assert problem.stopped in ("min_grad_norm", "n_iter") and problem.loss_curve[-1, 0] == problem.n_iter


def test_curvature_is_estimated_at_the_start_and_updated(rng):
    from equipoise.objectives.autograd.user_loss import OwnLoss, watched

    loss, _, A = quadratic(8, 2, rng)
    seen = watched(OwnLoss(loss, "cpu"))
    seen.balance(np.zeros((8, 2)), None, loss=True)
    largest = np.linalg.eigvalsh(A)[-1]
    assert 0.9 * largest < seen.curvature < 1.0001 * largest
    quartic = watched(OwnLoss(lambda Y: (Y**4).sum(), "cpu"))
    for y in (1e-3, 1.0):
        stiffness = quartic.balance(np.full((1, 1), y), None, loss=True).stiffness
    assert_allclose(stiffness, 4 * (1 - 1e-9) / (1 - 1e-3) / 4)


def test_user_defined_stress_matches_mds(rng):
    X = rng.standard_normal((30, 4))
    start, mds = X[:, :2], eq.MDS(random_state=0).problem(X)
    problem = eq.LossProblem(stress_of(X), start)
    assert_allclose(problem.loss(start), mds.loss(start), rtol=1e-6)  # MDS stores δ in float32
    assert_allclose(problem.gradient(start), mds.gradient(start), rtol=1e-4, atol=1e-4)
    assert_allclose(problem.loss(problem.optimize()), mds.loss(mds.optimize(Y0=start)), rtol=1e-3)


def test_loss_problem_has_the_problem_interface(rng):
    loss, _, _ = quadratic(6, 2, rng)
    Y0, seen = rng.standard_normal((6, 2)), []
    problem = eq.LossProblem(loss, torch.tensor(Y0), learning_rate=0.01, optimizer=eq.GradientDescent(every=1))
    assert isinstance(problem, eq.Problem)
    assert_allclose(problem.gradient(Y0), differences(problem.loss, Y0), atol=1e-6)
    assert_array_equal(problem.optimize(n_iter=0), Y0)
    assert_allclose(problem.optimize(n_iter=1), Y0 - 0.01 * problem.gradient(Y0), rtol=1e-12)
    problem.optimize(callbacks=[lambda i, value, Y: seen.append((i, value)) or i == 3])
    assert problem.stopped == "callback" and problem.n_iter == 3 and [i for i, _ in seen] == [0, 1, 2, 3]
    assert_allclose(seen[0][1], problem.loss(Y0))
    first, second = (eq.LossProblem(loss, Y0, n_iter=50).optimize() for _ in range(2))
    assert_array_equal(first, second)


def test_unsupported_uses_of_a_user_loss_raise(tmp_path):
    problem = eq.LossProblem(lambda Y: (Y**2).sum(), np.ones((3, 2)))
    for force in (problem.attraction, problem.repulsion):
        with pytest.raises(TypeError, match=r"not split into attraction and repulsion; use gradient"):
            force(np.ones((3, 2)))
    with pytest.raises(TypeError, match="has no affinities"):
        _ = problem.affinities
    with pytest.raises(ValueError, match="Checkpoint cannot save a function such as a user-defined loss"):
        problem.optimize(callbacks=[eq.Checkpoint(tmp_path / "run.eqc")])
    with pytest.raises(ValueError, match=r"expected \(n_samples, n_components\) = \(3, 2\)"):
        problem.loss(np.ones((4, 2)))
    with pytest.raises(ValueError, match="has curvature 0 at the initial map; set learning_rate to a number"):
        eq.LossProblem(lambda Y: Y.sum(), np.ones((3, 2))).optimize()
    with pytest.raises(FloatingPointError, match="the learning rate is too large"):
        eq.LossProblem(lambda Y: (Y**4).sum(), np.ones((3, 2)), learning_rate=1e3).optimize()


@pytest.mark.parametrize(
    ("loss", "options", "error", "message"),
    [
        (3.0, {}, TypeError, "loss must be a function of the map, got float"),
        (lambda Y: 1.0, {}, TypeError, "one number, as a PyTorch tensor computed from Y; got float"),
        (lambda Y: Y[999].sum(), {}, TypeError, "must accept a PyTorch tensor of shape"),
        (lambda Y: 10**30 * Y.sum(), {}, TypeError, "must accept a PyTorch tensor of shape .* int too big"),
        (lambda Y: 1j * Y.sum(), {}, TypeError, "must return a real number, but it returned a complex one"),
        (lambda Y: Y.sum(dim=1), {}, TypeError, r"got a tensor of shape \(3,\)"),
        (lambda Y: Y.detach().sum(), {}, ValueError, r"do not use detach\(\), item\(\) or NumPy"),
        (lambda Y: torch.ones(1, requires_grad=True).sum(), {}, ValueError, "loss does not depend on Y; compute it"),
        (lambda Y: Y.sum(), {"learning_rate": -1.0}, ValueError, "learning_rate must be a positive number"),
        (lambda Y: Y.sum(), {"learning_rate": "fast"}, ValueError, "learning_rate must be a positive number"),
        (lambda Y: Y.sum(), {"learning_rate": None}, ValueError, "learning_rate must be a positive number"),
        (lambda Y: Y.sum(), {"optimizer": "adam"}, ValueError, r"optimizer must be Accelerated\(\)"),
        (lambda Y: Y.sum(), {"optimizer": eq.Momentum}, ValueError, r"use Momentum\(\.\.\.\) with parentheses"),
        (lambda Y: Y.sum(), {"n_iter": -1}, ValueError, "n_iter must not be negative"),
        (lambda Y: Y.sum(), {"device": "tpu"}, ValueError, "device must be one of"),
    ],
)
def test_invalid_losses_and_options_raise(loss, options, error, message):
    with pytest.raises(error, match=message):
        eq.LossProblem(loss, np.ones((3, 2)), **options)


@pytest.mark.parametrize(
    ("Y0", "message"),
    [
        (np.ones(3), r"Y0 must be a non-empty numeric array \(n, d\), got shape \(3,\)"),
        (np.array([["a"]]), "Y0 must be a non-empty numeric array"),
        (np.ones((0, 2)), r"Y0 must be a non-empty numeric array .* got shape \(0, 2\)"),
        (torch.ones(3, 0), r"Y0 must be a non-empty numeric array .* got shape \(3, 0\)"),
        ([[np.nan]], "Y0 contains NaN"),
    ],
)
def test_invalid_Y0_raises(Y0, message):
    with pytest.raises(ValueError, match=message):
        eq.LossProblem(lambda Y: Y.sum(), Y0)


@pytest.mark.parametrize("rate", ["auto", 0.1])
def test_non_finite_loss_at_Y0_raises(rate):
    ones = np.ones((3, 2))
    for loss, message in (
        (lambda Y: Y.sum().log() * torch.nan, "the loss is nan at Y0"),
        (lambda Y: 1 / (Y - 1).pow(2).sum(), "the loss is inf at Y0"),
        (
            lambda Y: (Y[0] - Y).pow(2).sum(dim=1).sqrt().sum(),
            "the gradient of the loss is nan at Y0, row 0, column 0",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            eq.LossProblem(loss, ones, learning_rate=rate)
    problem = eq.LossProblem(lambda Y: (Y.log() ** 2).sum(), ones, learning_rate=rate)
    with pytest.raises(ValueError, match="the loss is inf at Y0"):
        problem.optimize(Y0=0 * ones)


def test_tensor_Y0_gives_a_tensor_map(rng):
    loss, _, _ = quadratic(6, 2, rng)
    Y0 = torch.tensor(rng.standard_normal((6, 2)))
    problem, arrays_only = eq.LossProblem(loss, Y0, n_iter=20), eq.LossProblem(loss, Y0.numpy(), n_iter=20)
    assert arrays.is_tensor(problem.Y) and torch.equal(problem.Y, Y0)
    found = problem.optimize()
    assert arrays.is_tensor(found) and found.device == Y0.device and torch.equal(found, problem.Y)
    assert_array_equal(found.numpy(), arrays_only.optimize())
    assert isinstance(arrays_only.Y, np.ndarray)


def test_learning_rate_of_extended_precision_gives_the_same_map():
    maps = [
        eq.LossProblem(lambda Y: (Y**2).sum(), np.ones((3, 2)), learning_rate=kind(0.1), n_iter=5).optimize()
        for kind in (float, np.longdouble)
    ]
    assert_array_equal(*maps)
