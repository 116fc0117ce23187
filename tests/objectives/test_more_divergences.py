"""Rényi, β, γ, Jensen-Shannon, NeRV and symmetric KL: losses, forces, limits and engines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from support.cases import differences, relative_error
from support.methods import NEW as NEW_ROWS
from support.methods import X, brief

import equipoise as eq
from equipoise.divergences import (
    KL,
    Alpha,
    Beta,
    ChiSquare,
    Divergence,
    Gamma,
    JensenShannon,
    NeRV,
    Renyi,
    SymmetricKL,
)
from equipoise.engines import Reference, make_engine
from equipoise.kernels import Gaussian, Power, StudentT
from equipoise.objectives import BetaDivergence, GammaDivergence, JointDivergence, TwoWayKL, joint_objective
from equipoise.objectives.two_way import Entropy

N = 24
NEW = [
    *(Renyi(order) for order in (0.5, 1.0, 1.01, 2.0)),
    *(Beta(beta) for beta in (0.5, 1.0, 1.03, 2.0)),
    *(Gamma(gamma) for gamma in (-0.5, 0.0, 0.02, 1.0)),
    *(NeRV(lam) for lam in (0.0, 0.5, 0.9)),
    NeRV(0.3, epsilon=1e-3),
    SymmetricKL(),
    JensenShannon(),
]
KERNELS = [StudentT(), eq.kernels.RegularizedPowerLaw(3.0, 0.1)]
every_divergence = pytest.mark.parametrize("divergence", NEW, ids=repr)
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


@dataclass(frozen=True)
class Triangular(Divergence):
    """A user-defined divergence with a limit: Σ (P − Q)²/(P + Q), f(t) = (1 − t)²/(1 + t)."""

    limit = 1.0

    def value(self, t):
        return (1 - t) ** 2 / (1 + t)

    def slope(self, t):
        return 1 - 4 / (1 + t) ** 2


@pytest.fixture
def P(rng):
    """Return sparse joint affinities of 24 points with a fifth of the pairs."""
    return affinities(rng, N, 0.3)


def affinities(rng, n, share):
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < share), 1)
    return sparse.csr_matrix((A + A.T) / (2 * A.sum()))


def similarities(kernel, Y):
    K = kernel.value(((Y[:, None] - Y) ** 2).sum(axis=2))
    np.fill_diagonal(K, 0)
    return K / K.sum()


def gradient(objective, Y, engine=None, **options):
    balance = objective.balance(Y, engine or Reference(), loss=False, **options)
    return -(balance.attraction + balance.repulsion)


def loss(objective, Y, engine=None):
    return objective.balance(Y, engine or Reference(), loss=True).loss


@every_divergence
@pytest.mark.parametrize(("kernel", "stored"), [(KERNELS[0], True), (KERNELS[1], True), (Gaussian(), False)], ids=str)
def test_loss_is_the_plain_formula_and_forces_its_gradient(P, rng, kernel, divergence, stored):
    P = P if stored else P.toarray()
    objective, Y = joint_objective(P, kernel, divergence), 1.2 * rng.standard_normal((N, 2))
    dense = P.toarray() if stored else P
    assert_allclose(loss(objective, Y), divergence.between(dense, similarities(kernel, Y)), rtol=1e-11)
    found = gradient(objective, Y)
    difference = differences(lambda Y: loss(objective, Y), Y)
    assert np.linalg.norm(found - difference) <= 1e-6 * np.linalg.norm(found)


@pytest.mark.parametrize(
    "divergence", [*NEW, *(Alpha(a) for a in (-1.0, -0.5, 2.0)), ChiSquare(), Triangular()], ids=repr
)
@every_kernel
def test_divergence_is_zero_only_where_the_affinities_agree(rng, kernel, divergence):
    Y = rng.standard_normal((N, 2))
    Q = similarities(kernel, Y)
    objective = joint_objective(Q, kernel, divergence)
    mixed = divergence.epsilon if isinstance(divergence, NeRV | SymmetricKL) else 0.0
    if not mixed:
        assert abs(loss(objective, Y)) < 1e-12
        assert np.abs(gradient(objective, Y)).max() < 1e-12
    assert loss(objective, rng.standard_normal((N, 2))) > 0


def test_attraction_contracts_and_repulsion_expands(P, rng):
    Y = rng.standard_normal((N, 2))
    for divergence in (d for d in NEW if not isinstance(d, Beta)):
        balance = joint_objective(P, StudentT(), divergence).balance(Y, Reference(), loss=False)
        assert (balance.attraction * Y).sum() < 0 < (balance.repulsion * Y).sum()


LIMITS = {
    "Rényi, order 1": (Renyi(1.0), 1.0),
    "β = 1": (Beta(1.0), 1.0),
    "γ = 0": (Gamma(0.0), 1.0),
    "near order 1": (Renyi(1 + 1e-7), 1.0),
    "β near 1": (Beta(1 + 1e-7), 1.0),
    "γ near 0": (Gamma(-1e-7), 1.0),
    "λ = 1": (NeRV(1.0), 1.0),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_kl(P, rng, name):
    divergence, factor = LIMITS[name]
    Y = rng.standard_normal((N, 2))
    kl = joint_objective(P, StudentT(), KL())
    limit = joint_objective(P, StudentT(), divergence)
    assert_allclose(loss(limit, Y), factor * loss(kl, Y), rtol=1e-5)
    assert relative_error(gradient(limit, Y), factor * gradient(kl, Y)) < 1e-5


def test_nerv_at_1_is_tsne_with_the_same_bytes():
    one = eq.SymmetricSNE(kernel=StudentT(), divergence=NeRV(1.0), random_state=0, n_iter=50).fit(X)
    assert one.embedding_.tobytes() == eq.TSNE(random_state=0, n_iter=50).fit(X).embedding_.tobytes()


def test_two_way_kl_without_its_backward_part_is_kl(P, rng):
    Y = rng.standard_normal((N, 2))
    forward, kl = TwoWayKL(P, StudentT(), (1.0, 0.0), 0.1), JointDivergence(P, StudentT(), 1.0)
    assert_allclose(loss(forward, Y), loss(kl, Y), rtol=1e-13)
    assert relative_error(gradient(forward, Y), gradient(kl, Y)) < 1e-13


def test_symmetric_kl_is_twice_nerv_at_one_half(P, rng):
    Y = rng.standard_normal((N, 2))
    symmetric, half = (joint_objective(P, StudentT(), d) for d in (SymmetricKL(), NeRV(0.5)))
    assert_allclose(loss(symmetric, Y), 2 * loss(half, Y), rtol=1e-14)
    assert relative_error(gradient(symmetric, Y), 2 * gradient(half, Y)) < 1e-14


def test_backward_kl_without_mixing_is_the_dense_alpha_1(rng):
    Y, Q = rng.standard_normal((N, 2)), similarities(StudentT(), rng.standard_normal((N, 2)))
    backward, dense = TwoWayKL(Q, StudentT(), (0.0, 1.0), 1e-9), joint_objective(Q, StudentT(), Alpha(1.0))
    assert_allclose(loss(backward, Y), loss(dense, Y), rtol=1e-5)
    assert relative_error(gradient(backward, Y), gradient(dense, Y)) < 1e-5


def test_quadratic_beta_and_cosine_gamma(P, rng):
    Y = rng.standard_normal((N, 2))
    Q, dense = similarities(StudentT(), Y), P.toarray()
    assert_allclose(loss(BetaDivergence(P, StudentT(), 2.0), Y), ((dense - Q) ** 2).sum() / 2, rtol=1e-11)
    cosine = (dense * Q).sum() / np.sqrt((dense**2).sum() * (Q**2).sum())
    assert_allclose(loss(GammaDivergence(P, StudentT(), 1.0), Y), -np.log(cosine), rtol=1e-11)


def test_renyi_is_a_function_of_alpha(P, rng):
    Y = rng.standard_normal((N, 2))
    renyi, alpha = (joint_objective(P, StudentT(), d) for d in (Renyi(0.75), Alpha(-0.5)))
    T = 1 - 0.75 * 0.25 * loss(alpha, Y)
    assert_allclose(loss(renyi, Y), -np.log(T) / 0.25, rtol=1e-12)
    assert relative_error(gradient(renyi, Y), 0.75 / T * gradient(alpha, Y)) < 1e-13


@pytest.mark.parametrize("divergence", [Triangular(), JensenShannon()], ids=repr)
def test_divergence_with_a_limit_equals_its_dense_form(rng, divergence):
    Q, Y = similarities(StudentT(), rng.standard_normal((N, 2))), rng.standard_normal((N, 2))

    class Dense(type(divergence)):
        limit = np.inf

    stored, dense = joint_objective(Q, StudentT(), divergence), joint_objective(Q, StudentT(), Dense())
    assert not divergence.all_pairs and Dense().all_pairs
    assert_allclose(loss(stored, Y), loss(dense, Y), rtol=1e-12)
    assert relative_error(gradient(stored, Y), gradient(dense, Y)) < 1e-12


@pytest.mark.parametrize("divergence", [Renyi(0.5), Beta(1.5), Gamma(0.5), NeRV(0.4), JensenShannon()], ids=repr)
def test_exaggeration_multiplies_P_in_the_attraction(P, rng, divergence):
    Y, x = rng.standard_normal((N, 2)), 4.0
    objective = joint_objective(P, StudentT(), divergence)
    plain, more = (objective.balance(Y, Reference(), loss=True, exaggeration=e) for e in (1.0, x))
    assert more.loss == plain.loss
    assert_array_equal(more.repulsion, plain.repulsion)
    Q, dense = similarities(StudentT(), Y), P.toarray()
    diff, slope = Y[:, None] - Y, StudentT().log_slope(((Y[:, None] - Y) ** 2).sum(axis=2))
    off = np.where(np.eye(N), 1.0, Q)
    weights = {
        Renyi: lambda p: (p * Q) ** 0.5 / ((dense * Q) ** 0.5).sum(),
        Beta: lambda p: p * Q**0.5,
        Gamma: lambda p: p * Q**0.5 / (dense * Q**0.5).sum(),
        NeRV: lambda p: x * (0.4 * dense + 0.6 * Q * np.log1p(0.9 * dense / (0.1 / (N * (N - 1))))),
        JensenShannon: lambda p: Q * np.log1p(p / off) / 2,
    }[type(divergence)](x * dense)
    expected = 4 * np.einsum("ij,ijd->id", weights * slope, diff)
    if isinstance(divergence, NeRV):  # the entropy of Q attracts too, without exaggeration
        Z = StudentT().value(((Y[:, None] - Y) ** 2).sum(axis=2)).sum() - N
        expected -= 2 * 0.6 / Z * Reference().field(Y, Entropy(StudentT())).gradient
    assert relative_error(more.attraction, expected) < 1e-12


F = {  # an antiderivative of ∂E/∂Q at fixed sums, for p, q and all P, Q of the map
    Renyi(0.5): lambda p, q, P, Q: -2 * np.sqrt(p * q) / np.sqrt(P * Q).sum(),
    Beta(1.5): lambda p, q, P, Q: q**1.5 / 1.5 - p * q**0.5 / 0.5,
    Gamma(0.5): lambda p, q, P, Q: q**1.5 / 1.5 / (Q**1.5).sum() - p * q**0.5 / 0.5 / (P * Q**0.5).sum(),
    NeRV(0.4): lambda p, q, P, Q: -0.4 * p * np.log(q) + 0.6 * q * np.log(q / (0.9 * p + 0.1 / (N * (N - 1)))),
    JensenShannon(): lambda p, q, P, Q: q / 2 * np.log(2 * q / (p + q)) - p / 2 * np.log((p + q) / 2),
}


@pytest.mark.parametrize("divergence", F, ids=repr)
def test_forces_on_new_points_match_finite_differences(P, rng, divergence):
    kernel, f = StudentT(), F[divergence]
    Y, new = rng.standard_normal((N, 2)), rng.standard_normal((3, 2))
    rows = sparse.random(3, N, 0.4, format="csr", random_state=0)
    p, Q, dense, h = rows.toarray() / N, similarities(kernel, Y), P.toarray(), 1e-6
    Z = kernel.value(((Y[:, None] - Y) ** 2).sum(axis=2)).sum() - N
    off = ~np.eye(N, dtype=bool)
    above, below = (f(dense[off], Q[off] * (1 + e), dense, Q) for e in (h, -h))
    mean = (above - below).sum() / (2 * h)  # Σ Q ∂E/∂Q

    def potential(targets):
        q = kernel.value(((targets[:, None] - Y) ** 2).sum(axis=2)) / Z
        return 2 * (f(p, q, dense, Q) - mean * q).sum()

    force = joint_objective(P, kernel, divergence).freeze(Y, Reference())(new, rows, Y)
    assert relative_error(-force, differences(potential, new)) < 1e-5


@pytest.mark.parametrize("name", ["exact", "grid", "sampled", "torch"])
@pytest.mark.parametrize(
    "divergence", [Renyi(2.0), Beta(0.5), Beta(2.0), Gamma(1.0), NeRV(0.0), SymmetricKL(), JensenShannon()], ids=repr
)
def test_engines_agree_with_the_reference(rng, name, divergence):
    if name == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    n = 400
    P, Y = affinities(rng, n, 0.05).astype(np.float32), 5 * rng.standard_normal((n, 2)).astype(np.float32)
    objective = joint_objective(P, StudentT(), divergence)
    truth = objective.balance(Y.astype(np.float64), Reference(), loss=True)
    engine = make_engine(name, 1, 0.01)
    placed = objective.to(engine.placement)
    found = placed.balance(engine.placement.to_device(Y), engine, loss=True)
    tolerance = 0.02 if name in ("grid", "torch") else 1e-5
    for part, expected in ((found.attraction, truth.attraction), (found.repulsion, truth.repulsion)):
        assert np.linalg.norm(np.asarray(part) - expected) <= tolerance * np.linalg.norm(expected)
    assert_allclose(float(found.loss), truth.loss, rtol=2e-3 if name in ("grid", "torch") else 1e-5)
    order = rng.permutation(n)
    moved = objective.permuted(order).balance(Y[order].astype(np.float64), Reference(), loss=True)
    assert_allclose(moved.loss, truth.loss, rtol=1e-10)
    assert relative_error(moved.attraction, truth.attraction[order]) < 1e-10


@pytest.mark.parametrize("kernel", [StudentT(), StudentT(3.0), Gaussian(), eq.kernels.PowerLaw(3.0, 0.5)], ids=repr)
def test_powers_and_entropies_of_kernels(kernel):
    d2 = np.geomspace(1e-3, 1e2, 40) * kernel.length**2
    zero = kernel.value(np.zeros(1))[0]
    for exponent in (0.5, 1.0, 2.5):
        power = Power(kernel, exponent)
        assert_allclose(power.value(d2), kernel.value(d2) ** exponent, rtol=1e-13)
        assert_allclose(power.slope(d2), exponent * power.value(d2) * kernel.log_slope(d2), rtol=1e-11, atol=1e-300)
        native = power.native()
        assert (native is not None) == isinstance(kernel, StudentT)
    entropy = Entropy(kernel)
    k = kernel.value(d2)
    assert_allclose(entropy.value(d2), k * np.log(k / zero) - k, rtol=1e-12, atol=1e-25)
    assert_allclose(entropy.slope(d2), kernel.slope(d2) * np.log(k / zero), rtol=1e-12, atol=1e-25)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Renyi(0.0), "order must be a positive number, got 0.0"),
        (lambda: Beta(-1), "beta must be a positive number, got -1"),
        (lambda: Gamma(-1.0), "gamma must be a number above -1, got -1.0"),
        (lambda: NeRV(1.5), "lam must be between 0 and 1, got 1.5"),
        (lambda: NeRV(0.5, 0.0), "epsilon must be a number above 0 and at most 1, got 0.0"),
        (lambda: SymmetricKL(2.0), "epsilon must be a number above 0 and at most 1, got 2.0"),
    ],
)
def test_invalid_parameters_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_function_g_supports_only_f_divergences(rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    data, Y = rng.standard_normal((15, 3)), rng.standard_normal((15, 2))

    def method(divergence, g):
        return eq.SymmetricSNE(kernel=StudentT(), divergence=divergence, g=g, perplexity=4, engine="exact")

    def g(Y):
        return torch.eye(2, dtype=torch.float64) * (1 + (Y**2).sum() / 10)

    for divergence in (Renyi(0.6), JensenShannon()):
        problem = method(divergence, g).problem(data)
        assert relative_error(problem.gradient(Y), differences(problem.loss, Y)) < 1e-7
    with pytest.raises(ValueError, match=r"a function g\(Y\) does not support the divergences Beta, Gamma, NeRV and"):
        method(Beta(2.0), g).problem(data)


def test_encoder_is_trained_by_renyi_and_not_by_beta():
    pytest.importorskip("torch", reason="PyTorch is not installed")

    def parametric(divergence):
        method = eq.SymmetricSNE(kernel=StudentT(), divergence=divergence, perplexity=6, n_jobs=1)
        return brief(eq.Parametric, method=method)

    fitted = parametric(Renyi(0.6)).fit(X)
    assert fitted.loss_ < fitted.loss_curve_[0, 1]
    with pytest.raises(ValueError, match=r"(?s)the loss of SymmetricSNE.* cannot be estimated from batches"):
        parametric(Beta(2.0)).fit(X)


FITS = [Renyi(0.5), Beta(1.3), Gamma(0.3), NeRV(0.3), SymmetricKL(), JensenShannon(), Triangular()]


@pytest.mark.parametrize(
    ("divergence", "engine"), [*((d, "grid") for d in FITS), (Gamma(0.3), "exact"), (JensenShannon(), "exact")], ids=str
)
def test_fit_separates_classes_and_places_new_points(divergence, engine):
    data, y = digits()
    method = eq.SymmetricSNE(kernel=StudentT(), divergence=divergence, engine=engine, random_state=0, n_iter=150)
    again = clone(method).set_params(n_jobs=2).fit(data[:300])
    method.set_params(n_jobs=1).fit(data[:300])
    assert method.embedding_.tobytes() == again.embedding_.tobytes()
    assert method.loss_ < 0.7 * method.loss_curve_[0, 1]
    near = ((method.embedding_[:, None] - method.embedding_) ** 2).sum(axis=2) + 1e9 * np.eye(300)
    assert (y[near.argmin(axis=1)] == y[:300]).mean() > 0.93
    placed = method.transform(data[300:350])
    nearest = ((placed[:, None] - method.embedding_) ** 2).sum(axis=2).argmin(axis=1)
    assert (y[nearest] == y[300:350]).mean() > 0.85


@pytest.mark.parametrize("engine", ["exact", "grid", "sampled"])
@pytest.mark.parametrize("divergence", FITS[:-1], ids=repr)
def test_saved_divergence_loads_with_the_same_bytes(divergence, engine, tmp_path):
    method = brief(eq.SymmetricSNE, kernel=StudentT(), divergence=divergence, engine=engine).fit(X)
    eq.save(method, tmp_path / "method.eqz")
    loaded = eq.load(tmp_path / "method.eqz")
    assert loaded.divergence == divergence
    assert loaded.transform(NEW_ROWS).tobytes() == method.transform(NEW_ROWS).tobytes()


def test_checkpoint_resumes_with_the_same_bytes(tmp_path):
    method = brief(eq.SymmetricSNE, kernel=StudentT(), divergence=NeRV(0.3), engine="grid")
    whole, checkpoint = clone(method).fit(X), eq.Checkpoint(tmp_path / "run.eqz", every=10)
    clone(method).set_params(callbacks=[checkpoint, lambda iteration, loss, Y: True]).fit(X)
    assert clone(method).set_params(callbacks=[checkpoint]).fit(X).embedding_.tobytes() == whole.embedding_.tobytes()


def digits():
    X, y = load_digits(n_class=6, return_X_y=True)
    return X[:350], y[:350]
