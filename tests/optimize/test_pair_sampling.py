"""Negative sampling of any loss of pairs: mean steps, levels of k_x, and the learned scale of contrastive losses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits

import equipoise as eq
from equipoise.engines import Reference, Sampled
from equipoise.geometry import Flat
from equipoise.kernels import Membership, NonMembership, StudentT
from equipoise.objectives import EffectiveCrossEntropy
from equipoise.objectives.pair_objective import PairObjective
from equipoise.optimize import Momentum
from equipoise.optimize.descent import State
from equipoise.optimize.negative_sampling import PARTS, NegativeSamplingSteps
from equipoise.optimize.pair_sampling import LEVELS, PairSamplingSteps, attraction, levels
from equipoise.optimize.rules import Phase
from equipoise.pair_losses import BinaryCrossEntropy, Contrastive, LogLikelihood, PairLoss, SquaredDifference

X = load_digits().data[:200]
QUARTIC = PairLoss(lambda kx, ky: (kx - ky) ** 4, lambda kx, ky: 4 * (ky - kx) ** 3)
LOSSES = (LogLikelihood(), SquaredDifference(), Contrastive(0.1), BinaryCrossEntropy(), QUARTIC)


def graph(n, weights=(1.0,)):
    """Return a symmetric graph whose edges have these weights in turn."""
    A = sparse.triu(sparse.random(n, n, 0.2, random_state=1), 1).tocsr()
    A.data = np.resize(weights, A.nnz)
    return (A + A.T).tocsr().astype(np.float32)


def lattice(rng, n=42):
    """Return points of which no two are so close that rare large repulsions dominate a mean."""
    return (np.argwhere(np.ones((7, 6)))[:n] + rng.uniform(-0.3, 0.3, (n, 2))).astype(np.float32)


def steps_of(objective, seed=0, rate=1e-3, n_iter=10**9):
    phases = [Phase(n_iter, 1.0, rate, late=True)]
    return PairSamplingSteps(objective, Sampled(1, seed), Flat(), Momentum(), phases)


def mean_move(steps, Y, count):
    """Return the mean move of iterations that all start at Y."""
    state, total = State.start(Y), np.zeros(Y.shape)
    for iteration in range(count):
        state.U, state.iteration = Y.copy(), iteration
        steps.forget()
        steps.prepare(state)
        steps.move(state)
        total += state.U - Y
    return total / count


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_mean_step_is_a_gradient_step_of_the_effective_loss(rng, loss):
    K, Y, rate = graph(42, (0.5, 0.25, 0.125)), lattice(rng), 1e-4
    objective = PairObjective(K, StudentT(), loss, 5.0)
    steps = steps_of(objective, 3, rate)
    steps._longest = 1e9  # no clipping
    balance = objective.balance(Y.astype(np.float64), Reference(), loss=False)
    expected = rate * (balance.attraction + balance.repulsion) / K.data.max()
    mean = mean_move(steps, Y, 8000)
    assert np.linalg.norm(mean - expected) < 0.03 * np.linalg.norm(expected)


def test_one_edge_moves_its_ends_by_the_closed_form():
    Y, rate = np.array([[0, 0], [0.6, 0.8]], np.float32), 1e-3
    K = sparse.csr_matrix(np.array([[0, 1], [1, 0]], np.float32))
    steps = steps_of(PairObjective(K, StudentT(), SquaredDifference(), 0.0), rate=rate)
    state = State.start(Y)
    steps.prepare(state)
    assert state.due is not None
    state.due[:] = 0.25  # both directions are due in the first half of the iteration
    steps.move(state)
    k = 0.5  # at d2 = 1: each end moves by 2 · 2 · 2 k² (y_j − y_i), from the positions before the step
    assert PARTS == 2
    assert_allclose(state.U - Y, rate * 8 * k**2 * np.array([[0.6, 0.8], [-0.6, -0.8]]), rtol=1e-4)


def test_umaps_steps_are_those_of_its_tables(rng):
    K, Y, phases = graph(42, (1.0, 0.3)), lattice(rng), [Phase(10, 1.0, 0.5, late=True)]
    kernel, apart = Membership(), NonMembership(1.0, 1.0, 1e-9)
    umap = NegativeSamplingSteps(EffectiveCrossEntropy(K, kernel, apart, 5), Sampled(1, 7), Flat(), Momentum(), phases)
    pairs = steps_of(PairObjective(K, kernel, LogLikelihood(1.0, 1e-3), 5.0), 7, 0.5, 10)
    pairs._longest = 4.0
    states = State.start(Y), State.start(Y)
    for steps, state in zip((umap, pairs), states, strict=True):
        steps.prepare(state)
        steps.move(state)
    assert np.abs(states[1].U - states[0].U).mean() < 0.01  # UMAP softens the force, and this loss the potential
    assert np.abs(states[0].U - Y).max() > 0.5


def test_attraction_proportional_to_the_affinity_needs_one_level(rng):
    kx = rng.uniform(0.01, 1, 5000)
    K = sparse.csr_matrix(np.array([[0, 1.0], [1.0, 0]]))
    for loss in LOSSES[:4]:
        values, level = levels(PairObjective(K, StudentT(), loss, 5.0), kx)
        assert_array_equal(values, [kx.max()])
        assert not level.any()


def test_levels_are_within_two_percent(rng):
    objective = PairObjective(sparse.csr_matrix(np.array([[0, 1.0], [1.0, 0]])), StudentT(), QUARTIC, 5.0)
    kx = np.geomspace(1e-4, 1, 5000)
    values, level = levels(objective, kx)
    assert len(values) == LEVELS and np.abs(values[level] / kx - 1).max() < 0.02
    values, level = levels(objective, np.geomspace(1e-7, 1, 5000))
    assert_allclose(values[level][:1000], 1e-4)  # smaller values are raised to this fraction of the largest
    few = np.array([0.25, 0.5, 1.0])
    values, level = levels(objective, np.resize(few, 100))
    assert_array_equal(values[level], np.resize(few, 100))
    d2 = np.array([0.5, 2.0])
    k, slope = StudentT().value(d2), StudentT().slope(d2)
    assert_allclose(attraction(objective, 0.5, d2), (4 * (k - 0.5) ** 3 - 4 * k**3) * slope / 0.5)


def test_rate_does_not_depend_on_the_unit_of_the_loss():
    K = graph(30)
    hundred = PairLoss(lambda kx, ky: 100 * (kx - ky) ** 2, lambda kx, ky: 200 * (ky - kx))
    one, other = (steps_of(PairObjective(K, StudentT(), F, 5.0)) for F in (SquaredDifference(), hundred))
    assert_allclose(one.first_rate, 100 * other.first_rate)
    assert_allclose([steps.first_rate * steps._longest for steps in (one, other)], 2 * StudentT().length)


def test_sampling_requires_a_pair_objective_with_negatives():
    with pytest.raises(TypeError, match="requires a PairObjective with negatives, got PairObjective"):
        steps_of(PairObjective(graph(30), StudentT(), SquaredDifference()))


# Learned scale


def nce(**parameters):
    settings = {"affinity": "perplexity", "perplexity": 8, "engine": "negative_sampling", "random_state": 0}
    return eq.PairEmbedding(**{**settings, "loss": Contrastive("learned"), "n_jobs": 1, **parameters})


def kernel_sum(Y):
    d2 = ((Y[:, None].astype(np.float64) - Y) ** 2).sum(axis=2)
    return float((1 / (1 + d2)).sum() - len(Y))


def test_scale_starts_at_the_kernel_sum_and_follows_it():
    problem = nce(negative_sample_rate=50).problem(X)
    assert_allclose(problem.normalizer, kernel_sum(problem.Y0.astype(np.float64)), rtol=1e-5)
    Y = problem.optimize(300)
    assert 0.7 < problem.normalizer / kernel_sum(Y) < 1.4
    n = len(X)
    assert_allclose(problem.objective.loss.scale, 50 * problem.normalizer / n**2)


def test_scale_settles_at_the_kernel_sum_for_many_negatives(rng):
    """The mean of (1 − q) − Σ q' is 0 at s = m Z/n², exactly so for few points and many negatives."""
    n, m = 6, 1e9
    Y = rng.standard_normal((n, 2))
    K = sparse.csr_matrix((1 - np.eye(n)) / (n * (n - 1)))  # every row has the sum 1/n
    objective = PairObjective(K, StudentT(), Contrastive(1.0), m)

    def loss(scale):
        return objective.with_loss(Contrastive(scale)).balance(Y, Reference(), loss=True).loss

    def slope(scale, h=1e-3):  # with respect to log s
        return (loss(scale * np.exp(h)) - loss(scale * np.exp(-h))) / (2 * h)

    Z = kernel_sum(Y)
    assert abs(slope(m * Z / n**2)) < 1e-5
    assert abs(slope(m * Z / (n * (n - 1)))) > 0.1


def test_scale_gradient_is_the_derivative_of_the_loss():
    problem = nce().problem(X)
    Y = problem.optimize(100)
    steps, scale = problem._steps(problem._start(Y), 100), 0.4
    found = np.mean([steps._scale_gradient(Y, Contrastive(scale), step) for step in range(60)])
    objective, h = problem._unscaled, 1e-4

    def loss(factor):
        scaled = objective.with_loss(Contrastive(scale * factor))
        return scaled.balance(Y.astype(np.float64), Reference(), loss=True).loss

    numeric = (loss(1 + h) - loss(1 - h)) / (2 * h) / objective.degrees.sum()
    assert abs(found - numeric) < 0.02


def test_small_scales_repel_more():
    spreads = [
        eq.PairEmbedding(loss=Contrastive(scale), engine="negative_sampling", random_state=0).fit_transform(X).std()
        for scale in (1.0, 0.1, 0.01)
    ]
    assert spreads[0] < spreads[1] < spreads[2]
