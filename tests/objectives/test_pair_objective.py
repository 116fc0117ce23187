"""The loss Σ F(k_x, k_y): dense sums, finite differences, identities with other losses, and engines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from support.cases import differences, relative_error, without_diagonal

import equipoise as eq
from equipoise.engines import Exact, Grid, Reference, Sampled
from equipoise.kernels import Gaussian, Membership, NonMembership, RegularizedPowerLaw, StudentT
from equipoise.objectives import CrossEntropy, EffectiveCrossEntropy, joint_objective
from equipoise.objectives.pair_objective import PairObjective, ZeroAffinity
from equipoise.pair_losses import BinaryCrossEntropy, Contrastive, LogLikelihood, PairLoss, SquaredDifference

N = 18
QUARTIC = PairLoss(lambda kx, ky: (kx - ky) ** 4, lambda kx, ky: 4 * (ky - kx) ** 3)
LOSSES = (BinaryCrossEntropy(), LogLikelihood(2.0), SquaredDifference(), Contrastive(0.2), QUARTIC)
KERNELS = (StudentT(), Gaussian(), RegularizedPowerLaw(3.0, 1.0))
NEGATIVES = pytest.mark.parametrize("negatives", [None, 3.0])


@pytest.fixture
def K():
    A = without_diagonal(sparse.random(N, N, 0.3, format="csr", random_state=0))
    return A.maximum(A.T).tocsr()


@pytest.fixture
def Y(rng):
    return rng.standard_normal((N, 2))


def stated(K, kernel, loss, negatives, Y):
    """Return the loss by the definition, in a dense sum."""
    K = K.toarray() if sparse.issparse(K) else K
    k = kernel.value(((Y[:, None] - Y) ** 2).sum(axis=2))
    off, zero = ~np.eye(len(Y), dtype=bool), loss.value(0 * k, k)
    weight = 1.0
    if negatives is not None:
        s = K.sum(axis=1)
        weight = (s[:, None] + s) * negatives / (2 * len(Y))
    return (loss.value(K, k) - zero + weight * zero)[off].sum()


@NEGATIVES
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("dense", [False, True])
def test_loss_is_the_stated_sum_and_gradient_its_derivative(K, Y, loss, kernel, negatives, dense):
    K = K.toarray() if dense else K
    objective = PairObjective(K, kernel, loss, negatives)
    balance = objective.balance(Y, Reference(), loss=True)
    assert_allclose(balance.loss, stated(K, kernel, loss, negatives, Y), rtol=1e-10)
    numeric = differences(lambda Z: stated(K, kernel, loss, negatives, Z), Y)
    assert relative_error(-(balance.attraction + balance.repulsion), numeric) < 1e-6


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_stiffness_is_the_largest_slope_of_each_pair(K, Y, loss, kernel):
    d2, kx = kernel.length**2 * np.array([0.05, 0.25, 1, 4]), K.data[:, None]
    k = kernel.value(d2)[None] + 0 * kx
    slopes = (loss.slope(kx + 0 * k, k) - loss.slope(0 * k, k)) * kernel.slope(d2)
    objective, stated = PairObjective(K, kernel, loss), kernel.length**2 * np.abs(slopes).max(axis=1).sum()
    assert_allclose(objective.mass, stated)
    assert_allclose(objective.balance(Y, Reference(), loss=False, exaggeration=3.0).stiffness, 3 * stated)


@NEGATIVES
@pytest.mark.parametrize("engine", [Exact(1), Grid(1, 1e-3), Sampled(1, 0)], ids=lambda e: e.traits.name)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_engines_agree_with_reference(rng, engine, loss, negatives):
    n = 300
    K = without_diagonal(sparse.random(n, n, 0.05, format="csr", dtype=np.float32, random_state=1))
    K = K.maximum(K.T).tocsr()
    Y = (8 * rng.random((n, 2))).astype(np.float32)
    objective = PairObjective(K, StudentT(), loss, negatives)
    truth = objective.balance(Y.astype(np.float64), Reference(), loss=True)
    found = objective.balance(Y, engine, loss=True)
    scale = np.sqrt((truth.repulsion**2).mean())
    assert np.sqrt(((found.repulsion - truth.repulsion) ** 2).mean()) < 2e-3 * scale
    assert relative_error(found.attraction, truth.attraction) < 1e-5
    assert_allclose(found.loss, truth.loss, rtol=1e-3)


def test_torch_engine_agrees_with_reference(rng):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    X = rng.standard_normal((200, 5))
    settings = {"loss": LogLikelihood(), "negative_sample_rate": 5, "n_neighbors": 8, "random_state": 0}
    truth = eq.PairEmbedding(engine="reference", **settings).problem(X)
    other = eq.PairEmbedding(engine="torch", device="cpu", **settings)
    Y = truth.Y0.astype(np.float32)
    wrong = other.problem(X).gradient(Y) - truth.gradient(truth.Y0)
    assert np.sqrt((wrong**2).mean()) < 0.02 * np.sqrt((truth.repulsion(truth.Y0) ** 2).mean())
    fitted = other.set_params(n_iter=20).fit(X)
    assert fitted.loss_ < fitted._problem.loss(fitted._problem.Y0)


# Identities


@dataclass(frozen=True)
class Intended(PairLoss):
    """UMAP's loss as a function of two kernels: d2 = ((1/k − 1)/a)^(1/b), and the repulsion is at d2 + ε."""

    apart: NonMembership

    def _d2(self, ky):
        return ((1 / ky - 1) / self.apart.a) ** (1 / self.apart.b)

    def value(self, kx, ky):
        return -kx * np.log(ky) + (1 - kx) * self.apart.value(self._d2(ky))

    def slope(self, kx, ky):
        a, b = self.apart.a, self.apart.b
        d2 = self._d2(ky)
        by_d2 = -((1 / ky - 1) ** (1 / b - 1)) / (b * a ** (1 / b) * ky**2)  # d(d2)/dk
        return -kx / ky + (1 - kx) * self.apart.slope(d2) * by_d2


def test_umaps_intended_loss_is_a_loss_of_two_kernels(rng):
    umap = eq.UMAP(loss="intended", n_neighbors=6, engine="reference", random_state=0).problem(rng.random((40, 4)))
    objective = umap.objective
    pairs = PairObjective(objective.affinities, objective.kernel, Intended(objective.apart))
    Y = 3 * rng.standard_normal(umap.Y0.shape)
    balance = pairs.balance(Y, Reference(), loss=True)
    assert_allclose(balance.loss, umap.loss(Y), rtol=1e-8)
    assert relative_error(-(balance.attraction + balance.repulsion), umap.gradient(Y)) < 1e-8


def test_built_in_losses_are_those_of_umap_with_the_cauchy_kernel(K, Y):
    kernel, apart = Membership(1.0, 1.0), NonMembership(1.0, 1.0, 0.01)
    for ours, theirs in (
        (PairObjective(K, kernel, BinaryCrossEntropy(0.01)), CrossEntropy(K, kernel, apart)),
        (PairObjective(K, kernel, LogLikelihood(1.0, 0.01), 5), EffectiveCrossEntropy(K, kernel, apart, 5)),
    ):
        a, b = (objective.balance(Y, Reference(), loss=True) for objective in (ours, theirs))
        assert_allclose(a.loss, b.loss, rtol=1e-10)
        assert_allclose(a.attraction + a.repulsion, b.attraction + b.repulsion, rtol=1e-8, atol=1e-8)


def test_largevis_and_force_atlas_2_have_the_forces_of_their_papers(K, Y):
    """LargeVis (Tang et al. 2016) with weight γ, ForceAtlas2 (Jacomy et al. 2014) with distances and their inverse."""
    difference = Y[:, None] - Y
    d2, W = (difference**2).sum(axis=2), K.toarray()

    def sums(weights):
        return (weights[..., None] * difference).sum(axis=1)

    gamma, epsilon = 7.0, 0.1
    found = PairObjective(K, StudentT(), LogLikelihood(gamma, epsilon)).balance(Y, Reference(), loss=False)
    repulsion = gamma / (d2 + epsilon) / (1 + d2 + epsilon)
    assert_allclose(found.attraction + found.repulsion, 4 * sums(repulsion - W / (1 + d2)), rtol=1e-6, atol=1e-9)

    c, core = 0.01, 0.01  # the energies k_x d²/2 and −c log d of docs/pair_losses.md, finite at d = 0
    loss = PairLoss(
        lambda kx, ky: kx * (1 / ky - 1) / 2 - c / 2 * np.log(1 / ky - 1 + core),
        lambda kx, ky: (-kx / 2 + c / 2 / (1 / ky - 1 + core)) / ky**2,
    )
    found = PairObjective(K, StudentT(), loss).balance(Y, Reference(), loss=False)
    assert_allclose(found.attraction + found.repulsion, 2 * sums(c / (d2 + core) - W), rtol=1e-6, atol=1e-9)


def test_squared_difference_is_the_distance_of_two_kernel_matrices(K, Y):
    k = StudentT().value(((Y[:, None] - Y) ** 2).sum(axis=2))
    np.fill_diagonal(k, 0)
    loss = PairObjective(K, StudentT(), SquaredDifference()).balance(Y, Reference(), loss=True).loss
    assert_allclose(loss, np.linalg.norm(K.toarray() - k) ** 2, rtol=1e-10)


def test_contrastive_loss_becomes_t_sne_with_many_negatives(rng):
    n, m = 30, 1e7
    ring = sparse.csr_matrix(np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), 2, axis=1))
    P = ((ring + ring.T) / (4 * n)).tocsr()  # every row has the sum 1/n
    Y = rng.standard_normal((n, 2))
    tsne = joint_objective(P, StudentT(), eq.divergences.KL()).balance(Y, Reference(), loss=True)
    Z = 2 * StudentT().value(((Y[:, None] - Y) ** 2).sum(axis=2)[np.triu_indices(n, 1)]).sum()
    nce = PairObjective(P, StudentT(), Contrastive(m * Z / n**2), m).balance(Y, Reference(), loss=True)
    assert relative_error(nce.attraction, tsne.attraction) < 1e-4
    assert relative_error(nce.repulsion, tsne.repulsion) < 1e-4


def test_multiplying_the_loss_multiplies_the_mass(K):
    double = PairLoss(lambda kx, ky: 2 * (kx - ky) ** 2, lambda kx, ky: 4 * (ky - kx))
    one, two = (PairObjective(K, StudentT(), loss).mass for loss in (SquaredDifference(), double))
    assert_allclose(two, 2 * one)


def test_mass_of_a_likelihood_is_close_to_the_sum_of_affinities(K):
    assert_allclose(PairObjective(K, StudentT(), LogLikelihood()).mass, K.sum() / 1.05)  # |k'/k| at d2 = 0.05


def test_zero_affinity_is_a_kernel():
    kernel = ZeroAffinity(LogLikelihood(), StudentT())
    d2, h = np.geomspace(1e-3, 100, 30), 1e-6
    numeric = (kernel.value(d2 * (1 + h)) - kernel.value(d2 * (1 - h))) / (2 * h * d2)
    assert_allclose(kernel.slope(d2), numeric, rtol=1e-5)
    assert kernel.length == StudentT().length and kernel == ZeroAffinity(LogLikelihood(), StudentT())


@NEGATIVES
def test_force_on_a_new_point_is_that_of_a_fitted_one(K, Y, negatives):
    objective = PairObjective(K, StudentT(), LogLikelihood(), negatives)
    rest = np.arange(1, N)
    K_rest = K[rest][:, rest].tocsr()
    frozen = PairObjective(K_rest, StudentT(), LogLikelihood(), negatives).freeze(Y[rest], Reference())
    force = frozen(Y[:1], K[[0]][:, rest].tocsr(), Y[rest])
    if negatives is None:  # with negatives, the fit also changes n and the degrees of the others
        balance = objective.balance(Y, Reference(), loss=False)
        assert_allclose(force[0], (balance.attraction + balance.repulsion)[0], rtol=1e-8)
    else:
        i, j = K[[0]].nonzero()[1], rest
        diff, degrees = Y[0] - Y[rest], np.asarray(K_rest.sum(axis=1)).ravel()
        d2 = (diff**2).sum(axis=1)
        push = ZeroAffinity(LogLikelihood(), StudentT()).slope(d2) * (K[0].sum() + degrees) * 2 * negatives / len(j)
        pull = 4 * K[0].toarray()[0, rest] * -StudentT().log_slope(d2)
        assert len(i) and relative_error(force[0], -(diff * (pull + push)[:, None]).sum(axis=0)) < 1e-8


def test_pair_forces_are_those_of_two_points():
    K, r = np.array([[0, 0.7], [0.7, 0]]), np.array([0.5, 2.0])
    for negatives, Z in ((None, 1.0), (5.0, 100.0)):
        objective = PairObjective(K, StudentT(), SquaredDifference(), negatives)
        attraction, repulsion = objective.pair_forces(r, 0.7, Z)
        slope = np.abs(StudentT().slope(r**2)) * r
        assert_allclose(attraction, 8 * 0.7 * slope)
        assert_allclose(repulsion, 8 * StudentT().value(r**2) * slope * (1 if negatives is None else 5 / 100))
