"""The optimisation loop: steps, phases, stopping rules, callbacks and interruptions."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

import equipoise as eq
from equipoise.methods import METHODS, SphericalSNE
from equipoise.optimize import gradient_steps
from equipoise.optimize.descent import State

FLAT = [Method for Method in METHODS if Method is not SphericalSNE]
every_method = pytest.mark.parametrize("Method", METHODS, ids=lambda M: M.__name__)
every_flat_method = pytest.mark.parametrize("Method", FLAT, ids=lambda M: M.__name__)

X, _ = make_blobs(60, 5, centers=3, random_state=0)
N = len(X)


def start(d=2, seed=0):
    Y = np.random.RandomState(seed).standard_normal((N, d))
    return Y - Y.mean(axis=0)


def reference(Method, **parameters):
    return Method(engine="reference", random_state=0, **parameters).problem(X)


class Recorder:
    """A callback that records its arguments."""

    def __init__(self):
        self.iterations, self.losses, self.maps = [], [], []

    def __call__(self, iteration, loss, Y):
        self.iterations.append(iteration)
        self.losses.append(loss)
        self.maps.append(Y)


# Steps


@every_flat_method
def test_plain_descent_matches_its_formula(Method):
    problem = reference(Method, optimizer=eq.GradientDescent(), learning_rate=0.1, early_exaggeration=1)
    Y = start()
    for steps in (1, 2, 3):
        expected = Y.copy()
        for _ in range(steps):
            expected = expected - 0.1 * problem.gradient(expected)
        np.testing.assert_allclose(problem.optimize(n_iter=steps, Y0=Y), expected, rtol=1e-10, atol=1e-12)


def test_plain_descent_on_the_sphere_matches_its_formula():
    problem = reference(eq.SphericalSNE, optimizer=eq.GradientDescent(), learning_rate=0.01, early_exaggeration=1)
    Y = start(3)
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    step = Y - 0.01 * problem.gradient(Y)
    step /= np.linalg.norm(step, axis=1, keepdims=True)
    np.testing.assert_allclose(problem.optimize(n_iter=1, Y0=Y), step, atol=1e-12)


def test_plain_descent_with_a_metric_tensor_is_the_natural_gradient():
    g = np.array([[2.0, 0.5], [0.5, 1.0]])
    problem = reference(eq.TSNE, g=g, optimizer=eq.GradientDescent(), learning_rate=2.0, early_exaggeration=1)
    Y = start()
    expected = Y - 2.0 * np.linalg.solve(g, problem.gradient(Y).T).T
    np.testing.assert_allclose(problem.optimize(n_iter=1, Y0=Y), expected, atol=1e-12)


def test_momentum_matches_its_formula():
    rule = eq.Momentum(momentum=(0.15, 0.95), friction=5, max_step=1e9)
    problem = reference(eq.TSNE, optimizer=rule, learning_rate=8.0, early_exaggeration=1)
    Y0 = start()
    Y, v, gain = Y0.copy(), np.zeros_like(Y0), np.ones_like(Y0)
    for step in range(6):
        if step == 3:  # the late phase starts with zero velocity
            v, gain = np.zeros_like(Y0), np.ones_like(Y0)
        gradient = problem.gradient(Y)
        turned = 8.0 / 4 * gain * np.abs(gradient) > rule.turned * np.abs(v)
        change = np.where(turned, gain * rule.gain_down, gain)
        gain = np.where(gradient * v > 0, change, gain + rule.gain_up).clip(min=0.01)
        t = step % 3
        v = min(0.15 if step < 3 else 0.95, t / (t + 5)) * v - 8.0 / 4 * gain * gradient
        Y = Y + v - v.mean(axis=0)  # gains differ between points: without centring the map would drift
    np.testing.assert_allclose(problem.optimize(n_iter=6, Y0=Y0), Y, rtol=1e-10, atol=1e-12)


def test_momentum_without_friction_is_constant():
    rule = eq.Momentum(momentum=(0.5, 0.8), friction=0, gain_up=0.0)
    state = State.start(np.zeros((1, 1)))
    steps = [float(rule.step(state, np.full((1, 1), -1.0), 4.0, late, 1.0)[0, 0]) for late in (False, False, True)]
    assert steps == pytest.approx([1.0, 1.5, 2.2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_are_capped(dtype):
    gradient = np.array([[3.0, 4.0], [3e-3, 4e-3], [0.0, 0.0], [3e-30, 4e-30]], dtype=dtype)
    step = eq.Momentum(max_step=0.5).step(State.start(np.zeros((4, 2), dtype)), gradient, 4.0, False, 2.0)
    assert step.dtype == dtype
    np.testing.assert_allclose(step[0], [-0.6, -0.8], rtol=1e-6)  # half of two kernel lengths
    np.testing.assert_allclose(step[1], [-3.6e-3, -4.8e-3], rtol=1e-5)  # the gain is 1.2 in the first step
    assert not step[2].any()
    np.testing.assert_allclose(step[3], [-3.6e-30, -4.8e-30], rtol=1e-5)
    assert not eq.Momentum().step(State.start(np.zeros((4, 2), dtype)), 0 * gradient, 4.0, False, 2.0).any()


# Learning rate and phases


@pytest.mark.parametrize(("rule", "rate"), [(eq.Momentum(), N), (eq.GradientDescent(), N / 4)])
def test_automatic_learning_rate_matches_its_formula(rule, rate):
    problem = eq.TSNE(optimizer=rule).problem(X)
    assert [phase.rate for phase in problem.schedule.phases(100)] == [None, None]
    for exaggeration in (12, 2):
        balance = problem.objective.balance(problem.Y, problem.engine, loss=False, exaggeration=exaggeration)
        assert rule.auto_rate(N, balance.stiffness, 1.0) == pytest.approx(rate / exaggeration)
    automatic, given = (
        eq.TSNE(optimizer=rule, random_state=0, early_exaggeration=1, n_iter=20, learning_rate=value).fit_transform(X)
        for value in ("auto", rate)
    )
    assert automatic.tobytes() == given.tobytes()


@pytest.mark.parametrize(("n_iter", "early"), [(0, 0), (1, 0), (7, 3), (100, 50), (200, 100), (1000, 100)])
def test_early_phase_is_at_most_half_of_n_iter(n_iter, early):
    problem = eq.TSNE(early_exaggeration=5, exaggeration=2, learning_rate=30.0).problem(X)
    phases = problem.schedule.phases(n_iter)
    expected = [(early, 5, 30.0, False), (n_iter - early, 2, 30.0, True)]
    assert [(p.n_iter, p.exaggeration, p.rate, p.late) for p in phases] == expected


@every_flat_method
def test_exaggeration_changes_with_the_phase(Method):
    rule = eq.GradientDescent()
    problem = reference(Method, optimizer=rule, learning_rate=0.01, early_exaggeration=12, exaggeration=3)
    factor = (lambda rho: rho**0.75) if Method is eq.GSNE else (lambda rho: rho)  # α = −0.5: A = P^s, s = 3/4
    Y = start()
    expected = Y + 0.01 * (factor(12) * problem.attraction(Y) + problem.repulsion(Y))
    expected += 0.01 * (factor(3) * problem.attraction(expected) + problem.repulsion(expected))
    np.testing.assert_allclose(problem.optimize(n_iter=2, Y0=Y), expected, rtol=1e-10, atol=1e-12)


# Stopping


@pytest.mark.parametrize("Rule", [eq.Momentum, eq.GradientDescent])
@pytest.mark.parametrize(
    ("options", "reason", "n_iter"),
    [
        ({"min_grad_norm": 1e9, "min_loss_change": 0}, "min_grad_norm", 50),  # stopping rules wait for the late phase
        ({"min_grad_norm": 0, "min_loss_change": 1e9}, "min_loss_change", 60),  # a change needs two reports
        ({"min_grad_norm": 0, "min_loss_change": 0}, "n_iter", 100),
    ],
)
def test_stopping_rules_stop_in_the_late_phase(Rule, options, reason, n_iter):
    problem = eq.TSNE(optimizer=Rule(every=10, **options), random_state=0, n_iter=100).problem(X)
    problem.optimize()
    assert (problem.stopped, problem.n_iter) == (reason, n_iter)
    assert problem.loss_curve[-1, 0] == n_iter


def test_callback_stops_the_run():
    problem = eq.TSNE(optimizer=eq.Momentum(every=10), random_state=0, n_iter=100).problem(X)
    seen = Recorder()
    problem.optimize(callbacks=[lambda i, loss, Y: i >= 20, seen])
    assert (problem.stopped, problem.n_iter) == ("callback", 20)
    assert seen.iterations == [0, 10, 20]  # the other callbacks are also called
    problem.optimize()
    assert (problem.stopped, problem.n_iter) == ("n_iter", 100)


# Callbacks and the loss curve


@every_method
@pytest.mark.parametrize(("every", "n_iter", "expected"), [(50, 120, [0, 50, 100, 120]), (20, 40, [0, 20, 40])])
def test_callbacks_receive_iteration_loss_and_map(Method, every, n_iter, expected):
    seen = Recorder()
    method = Method(optimizer=eq.Momentum(every=every), n_iter=n_iter, random_state=0, callbacks=[seen]).fit(X)
    assert seen.iterations == expected == method.loss_curve_[:, 0].tolist()
    assert seen.losses == method.loss_curve_[:, 1].tolist()
    assert seen.maps[-1].tobytes() == method.embedding_.tobytes()
    problem = method.problem(X)
    for loss, Y in zip(seen.losses, seen.maps, strict=True):  # never the exaggerated loss
        assert loss == pytest.approx(problem.loss(Y), rel=1e-4, abs=1e-5)


def test_zero_iterations_give_the_initial_map():
    method = eq.TSNE(init=start(), n_iter=0).fit(X)
    np.testing.assert_allclose(method.embedding_, start(), atol=1e-6)
    assert method.loss_curve_.shape == (1, 2) and method.n_iter_ == 0


# Divergence and interruption


def test_diverged_map_raises():
    method = eq.TSNE(optimizer=eq.GradientDescent(every=5), learning_rate=1e30, n_iter=100, random_state=0)
    with pytest.raises(FloatingPointError, match="the embedding has diverged"):
        method.fit(X)


@pytest.mark.parametrize(("iteration", "cause"), [(0, "initial map is out of"), (5, "learning rate is too large")])
def test_nan_loss_raises(iteration, cause):
    problem = eq.TSNE(optimizer=eq.GradientDescent(every=5), random_state=0).problem(X)
    balance = problem.objective.balance

    def broken(Y, engine, *, loss, exaggeration=1.0):
        result = balance(Y, engine, loss=loss, exaggeration=exaggeration)
        return result._replace(loss=np.nan) if loss and problem.n_iter == iteration else result

    problem.objective.balance = broken
    with pytest.raises(FloatingPointError, match=f"loss is nan at iteration {iteration}: the {cause}"):
        problem.optimize(n_iter=20)


@pytest.mark.parametrize("rule", [eq.GradientDescent(every=5), eq.Momentum(every=5)])
def test_shrinking_map_without_exaggeration_is_not_undone(rule):
    method = eq.SymmetricSNE(optimizer=rule, early_exaggeration=1, init=10 * start(), random_state=0, n_iter=100)
    problem = method.problem(X)
    problem.optimize()
    assert not problem.early_undone
    assert (np.diff(problem.loss_curve[:, 1]) < 0.05 * problem.loss_curve[0, 1]).all()


def test_contracting_early_phase_is_undone():
    problem = eq.TSNE(random_state=0).problem(np.random.RandomState(0).standard_normal((24, 4)))
    problem.optimize()
    assert problem.early_undone


@every_method
def test_interruption_keeps_the_last_map(Method):
    def interrupt(iteration, loss, Y):
        if iteration == 40:
            raise KeyboardInterrupt

    rule = eq.Momentum(every=20, min_loss_change=0, min_grad_norm=0)
    method = Method(optimizer=rule, n_iter=100, random_state=0, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        method.fit(X)
    assert method.n_iter_ == 40 and method.loss_curve_[:, 0].tolist() == [0, 20, 40]
    assert np.isfinite(method.embedding_).all()
    assert method.loss_ == pytest.approx(method.problem(X).loss(method.embedding_), rel=1e-4, abs=1e-5)
    method.set_params(callbacks=[]).fit(X)
    fresh = Method(optimizer=rule, n_iter=100, random_state=0).fit(X)
    assert method.embedding_.tobytes() == fresh.embedding_.tobytes()


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_in_a_process_keeps_the_map():
    code = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # even if the shell ignores SIGINT
import numpy as np, equipoise as eq
X = np.random.RandomState(0).standard_normal((1500, 5))
rule = eq.Momentum(min_loss_change=0, min_grad_norm=0, every=5)
method = eq.TSNE(n_iter=100_000, random_state=0, optimizer=rule, callbacks=[lambda i, l, Y: print(i, flush=True)])
try:
    method.fit(X)
except KeyboardInterrupt:
    assert method.embedding_.shape == (1500, 2) and np.isfinite(method.embedding_).all()
    assert 0 < method.n_iter_ < 100_000 and np.isfinite(method.loss_)
    eq.TSNE(n_iter=20).fit(X[:100])
    print("OK", flush=True)
"""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True) as run:
        for line in run.stdout:
            if int(line) >= 5:
                break
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert out.splitlines()[-1] == "OK"


# Continuing from a map, and constraints on maps


def test_plain_descent_continues_where_it_stopped():
    problem = reference(eq.TSNE, optimizer=eq.GradientDescent(), learning_rate=1.0, early_exaggeration=1)
    once = problem.optimize(n_iter=10)
    problem.optimize(n_iter=4)
    twice = problem.optimize(n_iter=6, Y0=problem.Y)
    np.testing.assert_allclose(twice, once, rtol=1e-10, atol=1e-15)


@every_method
def test_optimize_continues_from_a_map(Method):
    problem = Method(random_state=0, early_exaggeration=1).problem(X)
    first = problem.optimize(n_iter=100)
    before = first.copy()
    loss = problem.loss_curve[-1, 1]
    problem.optimize(n_iter=200, Y0=first)
    assert np.array_equal(first, before)
    assert problem.loss_curve[0].tolist() == pytest.approx([0, loss], rel=1e-4, abs=1e-5)
    assert problem.loss_curve[-1, 1] <= loss + 1e-5


@pytest.mark.parametrize("Rule", [eq.Momentum, eq.GradientDescent])
def test_points_stay_on_the_sphere(Rule):
    seen = Recorder()
    init = 7 * start(3) + 1
    eq.SphericalSNE(init=init, optimizer=Rule(every=1), n_iter=60, callbacks=[seen]).fit(X)
    np.testing.assert_allclose(np.linalg.norm(seen.maps, axis=2), 1, atol=1e-6)
    np.testing.assert_allclose(seen.maps[0], init / np.linalg.norm(init, axis=1, keepdims=True), atol=1e-6)


@every_flat_method
@pytest.mark.parametrize("g", [None, np.array([[3.0, 1.0], [1.0, 2.0]])], ids=["plain", "tensor"])
def test_flat_map_is_centred(Method, g):
    seen = Recorder()
    Method(init=start() + 1000, g=g, optimizer=eq.Momentum(every=5), n_iter=60, callbacks=[seen]).fit(X)
    for Y in seen.maps:
        assert np.abs(Y.mean(axis=0)).max() < 1e-4 * np.abs(Y).max()


@pytest.mark.parametrize(
    "rule", [eq.Momentum(), eq.Momentum(friction=0), eq.GradientDescent(), eq.Accelerated()], ids=repr
)
def test_rules_take_the_same_steps_for_tensors_as_for_arrays(rule, rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    Y, gradients = rng.standard_normal((20, 2)), rng.standard_normal((4, 20, 2))
    states = [State.start(Y.copy()), State.start(torch.from_numpy(Y.copy()))]
    for late, gradient in zip((False, False, True, True), gradients, strict=True):
        moves = [
            rule.step(state, g, 0.3, late, 1.0)
            for state, g in zip(states, (gradient, torch.from_numpy(gradient)), strict=True)
        ]
        assert isinstance(moves[0], np.ndarray) and isinstance(moves[1], torch.Tensor)
        np.testing.assert_allclose(moves[1].numpy(), moves[0], rtol=1e-12, atol=1e-14)


def test_momentum_of_a_tensor_age_is_capped(rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    Y, gradient = (torch.from_numpy(rng.standard_normal((5, 2))) for _ in range(2))
    counted, recorded = State.start(Y.clone()), State.start(Y.clone())
    recorded.age = torch.zeros((), dtype=torch.float64)  # as in recorded steps
    for _ in range(60):  # μ = t/(t + 10) passes its cap of 0.8 at t = 40
        moves = [eq.Momentum().step(state, gradient, 0.3, False, 1.0).clone() for state in (counted, recorded)]
        torch.testing.assert_close(moves[1], moves[0], rtol=1e-14, atol=0)


@pytest.mark.parametrize("Method", [eq.TSNE, eq.GSNE, eq.SNE], ids=lambda m: m.__name__)
def test_permuted_objective_has_permuted_forces(rng, Method):
    X, Y, order = rng.standard_normal((60, 4)), rng.standard_normal((60, 2)), rng.permutation(60)
    problem = Method(perplexity=5, engine="grid").problem(X)
    engine, other = problem.engine, problem.objective.permuted(order)
    original = problem.objective.balance(Y, engine, loss=True)
    permuted_balance = other.balance(Y[order], engine, loss=True)
    assert_allclose(permuted_balance.attraction, original.attraction[order], rtol=1e-6, atol=1e-9)
    assert_allclose(permuted_balance.repulsion, original.repulsion[order], rtol=1e-6, atol=1e-9)
    assert permuted_balance.loss == pytest.approx(original.loss, rel=1e-9)
    assert_array_equal(other.affinities.toarray(), problem.affinities.toarray()[np.ix_(order, order)])


def test_map_and_callbacks_keep_the_row_order_of_the_data(monkeypatch):
    X = eq.data.load("digits").X[:400]
    seen = []
    settings = {"random_state": 0, "engine": "grid", "n_iter": 150, "perplexity": 10}
    plain = eq.TSNE(**settings).fit_transform(X)
    monkeypatch.setattr(gradient_steps, "LOCALITY", 10)
    method = eq.TSNE(**settings, callbacks=[lambda i, loss, Y: seen.append(np.array(Y))])
    ordered = method.fit_transform(X)
    # Sums are taken in another order, so the runs diverge slowly; mixed-up rows would differ at once.
    assert np.corrcoef(plain[:, 0], ordered[:, 0])[0, 1] > 0.99
    assert_array_equal(seen[-1], ordered)
    assert_array_equal(method.affinities_.toarray(), eq.TSNE(**settings).problem(X).affinities.toarray())


def test_sampled_engine_does_not_reorder_points(monkeypatch):
    X = eq.data.load("digits").X[:300]
    settings = {"n_components": 4, "random_state": 0, "engine": "sampled", "n_iter": 30, "perplexity": 10}
    plain = eq.TSNE(**settings).fit_transform(X)
    monkeypatch.setattr(gradient_steps, "LOCALITY", 10)
    assert eq.TSNE(**settings).fit_transform(X).tobytes() == plain.tobytes()
