"""Optimiser steps taken by the core in one call: the bytes of single steps, for any number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from support.cases import UserKernel, without_diagonal
from support.core_calls import step_calls

import equipoise as eq
from equipoise import _core
from equipoise.arrays.namespace import centered
from equipoise.engines import Exact, Grid, Reference
from equipoise.engines.base import HasLinearForce, PlannedStep
from equipoise.engines.cpu import FusedSteps
from equipoise.geometry import Flat, Sphere
from equipoise.kernels import Gaussian, Membership, NonMembership, PowerLaw, StudentT
from equipoise.objectives import CrossEntropy, EffectiveCrossEntropy, JointDivergence
from equipoise.optimize.rules import Schedule
from equipoise.problems.forces import ForceProblem

THREADS = 1, 2, 3, 4, 8, 16
RULE = eq.Momentum(min_loss_change=0, min_grad_norm=0)


def name_of(case):
    """Return the name of a case for its test: no addresses of objects, which differ between processes."""
    plain = (int, float, str, bool)
    texts = {key: getattr(value, "__name__", type(value).__name__) for key, value in case.items()}
    return ",".join(f"{key}={value if isinstance(value, plain) else texts[key]}" for key, value in case.items())


def affinities(n, seed=0):
    rng = np.random.default_rng(seed)
    rows, columns = np.repeat(np.arange(n), 5), rng.integers(n, size=5 * n)
    P = sparse.csr_matrix((rng.uniform(0.5, 1.0, 5 * n), (rows, columns)), shape=(n, n))
    P = without_diagonal(P + P.T)
    return (P / P.sum()).astype(np.float32).tocsr()


def joint(n, kernel, s):
    return JointDivergence(affinities(n), kernel, s)


def umap(n, kernel, s):
    """UMAP's effective loss: the field of two charges per point, and another kernel than that of the edges."""
    mu, curve = affinities(n), Membership.fitted(0.1, 1.0)
    return EffectiveCrossEntropy(mu * (0.9 / mu.max()), curve, NonMembership(curve.a, curve.b, 1e-3), 5.0)


def intended(n, kernel, s):
    mu, curve = affinities(n), Membership.fitted(0.1, 1.0)
    return CrossEntropy(mu * (0.9 / mu.max()), curve, NonMembership(curve.a, curve.b, 1e-3))


def problem(n=1500, d=2, extent=20.0, kernel=None, engine=None, geometry=None, **options):
    Y = (np.random.default_rng(1).standard_normal((n, d)) * extent / 4).astype(np.float32)
    objective = options.pop("loss", joint)(n, kernel or StudentT(), options.pop("s", 1.0))
    schedule = Schedule(options.pop("n_iter", 60), options.pop("rate", "auto"), 4.0, 1.0)
    rule = options.pop("rule", RULE)
    return ForceProblem(objective, geometry or Flat(), engine or Grid(2, 0.01), Y, schedule, rule)


@pytest.fixture
def taken(monkeypatch):
    """Counts the steps that the core takes."""
    counts, replay = [], FusedSteps.replay_steps

    def counted(*arguments):
        counts.append(replay(*arguments))
        return counts[-1]

    monkeypatch.setattr(FusedSteps, "replay_steps", counted)
    return counts


def single_steps(monkeypatch):
    monkeypatch.setattr(FusedSteps, "replay_steps", lambda *arguments: 0)


CASES = [
    {"d": 1, "extent": 200.0},
    {"d": 2},
    {"d": 2, "n": 9000, "extent": 200.0},  # a mesh that is spread in strips, and sums of several branches
    {"d": 2, "extent": 1e-3},  # a mesh in float64, for a map smaller than the kernel
    {"d": 3, "extent": 40.0},
    {"d": 2, "kernel": PowerLaw(2.0, 0.01)},  # with a near field
    {"d": 2, "kernel": UserKernel()},
    {"d": 2, "geometry": Flat(np.array([[2.0, 0.5], [0.5, 1.0]]))},
    {"d": 1, "loss": umap, "extent": 100.0},
    {"d": 2, "loss": umap},
    {"d": 2, "loss": umap, "n": 9000, "extent": 100.0},
    {"d": 2, "loss": umap, "extent": 1e-3},
    {"d": 3, "loss": umap, "extent": 10.0},
]


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_steps_of_the_core_have_the_bytes_of_single_steps(case, taken, monkeypatch):
    fused = problem(**case)
    Y = fused.optimize()
    assert sum(taken) > 10 and np.ptp(Y) > 0
    single_steps(monkeypatch)
    single = problem(**case)
    assert_array_equal(single.optimize(), Y)
    assert_array_equal(single.loss_curve, fused.loss_curve)
    assert single.engine.state() == fused.engine.state()
    for name in ("velocity", "gain", "age", "iteration"):
        assert_array_equal(getattr(single._state, name), getattr(fused._state, name))


def test_the_tolerance_is_checked_as_often_as_with_single_steps(taken, monkeypatch):
    checked, meet = [], Grid._meet_tolerance

    def counted(engine, *arguments):
        checked.append(engine)
        return meet(engine, *arguments)

    monkeypatch.setattr(Grid, "_meet_tolerance", counted)
    fused = problem(n_iter=170, n=9000, extent=100.0, rule=eq.Momentum(min_loss_change=0, min_grad_norm=0, every=60))
    fused.optimize()
    assert sum(taken) >= 165 and len(checked) >= 3  # of 170 steps, only those after a report are taken by the optimiser
    single_steps(monkeypatch)
    single = problem(n_iter=170, n=9000, extent=100.0, rule=eq.Momentum(min_loss_change=0, min_grad_norm=0, every=60))
    single.optimize()
    assert checked.count(single.engine) == checked.count(fused.engine)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_any_number_of_threads_gives_the_same_bytes(case):
    maps = [problem(engine=Grid(threads, 0.01), n_iter=40, **case).optimize().tobytes() for threads in THREADS]
    assert len(set(maps)) == 1


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("n", [1, 7, 130, 8191, 8192, 20011])
def test_sums_have_the_same_bytes_for_any_number_of_threads(rng, n, threads):
    x, U = rng.standard_normal(n), (100 + rng.standard_normal((n, 2))).astype(np.float32)
    assert _core.total(x, threads) == _core.total(x, 1)
    assert_allclose(_core.total(x, threads), x.sum(), rtol=1e-12)
    _core.center(U, out := np.empty_like(U), threads)
    assert_array_equal(out, centered(U))
    assert_allclose(out, U - U.mean(axis=0, dtype=np.float64), atol=1e-5)
    _core.center(U, U, threads)  # in place
    assert_array_equal(U, out)


def plain_step(U, velocity, gain, gradient, rate, momentum, rule, length):
    """Momentum with gains as in the docstring of `Momentum`, in NumPy and float64."""
    push = rate / 4 * gradient
    turn = push * velocity
    up = np.where(turn <= 0, gain + rule.gain_up, gain)
    gain = np.where((turn > 0) & (gain * turn > rule.turned * velocity**2), gain * rule.gain_down, up)
    gain = np.maximum(gain, rule.min_gain)
    velocity = momentum * velocity - gain * push
    norm = np.linalg.norm(velocity, axis=1, keepdims=True)
    velocity = np.where(norm > rule.max_step * length, velocity * rule.max_step * length / norm, velocity)
    U = U + velocity
    return U - U.mean(axis=0), velocity, gain


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kernel", [StudentT(), Gaussian()], ids=repr)
def test_steps_match_plain_numpy_in_float64(d, kernel, taken):
    fused = problem(n=400, d=d, extent=6.0, kernel=kernel, engine=Grid(3, 1e-4), rate=2.0)
    descent = fused.descent()
    descent.run(2)
    state, objective, steps = descent.state, fused.objective, 5
    U, velocity, gain = (getattr(state, name).astype(np.float64) for name in ("U", "velocity", "gain"))
    before, age = sum(taken), state.age
    descent.run(2 + steps)
    assert sum(taken) - before >= 3
    for t in range(steps):
        balance = objective.balance(U, Reference(), loss=False, exaggeration=4.0)
        momentum = min((age + t) / (age + t + RULE.friction), RULE.momentum[0])
        gradient = -(balance.attraction + balance.repulsion)
        U, velocity, gain = plain_step(U, velocity, gain, gradient, 2.0, momentum, RULE, kernel.length)
    assert_allclose(state.gain, gain, rtol=1e-5)
    assert_allclose(state.velocity, velocity, atol=2e-3 * np.abs(velocity).max())
    assert_allclose(state.U, U, atol=1e-3 * np.abs(velocity).max())


class OtherStep(eq.Momentum):
    def step(self, state, gradient, rate, late, length):
        return super().step(state, gradient, rate, late, length) / 2


@pytest.mark.parametrize(
    "case",
    [
        {"rule": OtherStep(min_loss_change=0)},
        {"rule": eq.GradientDescent()},
        {"s": 0.5},
        {"loss": intended},
        {"geometry": Sphere(10.0), "d": 3},
        {"engine": Exact(1)},
    ],
    ids=name_of,
)
def test_other_steps_are_left_to_the_optimiser(case, taken):
    problem(n=300, n_iter=20, **case).optimize()
    assert not sum(taken)


def test_protocols_of_planned_steps():
    one = problem(n=300)
    descent = one.descent()
    descent.step()
    assert isinstance(one.objective, HasLinearForce) and one.objective.linear_force(3.0).pull == 12.0
    assert JointDivergence(affinities(300), StudentT(), 0.5).linear_force(1.0) is None
    steps = []
    descent.steps.forces.replay = lambda step, *others: steps.append(step)
    descent.run(4)
    assert isinstance(steps[0], PlannedStep)
    plan = steps[0].plan(descent.state, 7)
    assert len(plan.momentum) == 7 and plan.force.A is one.objective.weights


def test_callbacks_keep_their_maps(taken):
    seen = []
    one = problem(n=600, n_iter=150)
    one.optimize(callbacks=[lambda iteration, loss, Y: seen.append((Y, Y.copy())) and None])
    assert sum(taken) > 50 and len(seen) == 4
    for given, copied in seen:
        assert_array_equal(given, copied)


def test_interrupted_steps_leave_a_complete_state(monkeypatch):
    truth = problem(n=600)
    truth.optimize(n_iter=30)
    one, original = problem(n=600), _core.mesh_steps

    def interrupted(*arguments):
        original(*arguments)
        raise KeyboardInterrupt

    descent = one.descent()
    descent.run(3)
    before = {name: np.copy(getattr(descent.state, name)) for name in ("U", "velocity", "gain", "age", "iteration")}
    with monkeypatch.context() as patch:
        patch.setattr(_core, "mesh_steps", interrupted)
        with pytest.raises(KeyboardInterrupt):
            descent.steps.skip_ahead(descent.state, 30)
    for name, value in before.items():
        assert_array_equal(getattr(descent.state, name), value)


def test_slices_of_time_do_not_change_the_map(monkeypatch, taken):
    Y = problem(n=600).optimize()
    monkeypatch.setattr(FusedSteps, "SLICE", 0.0)  # each call takes one step
    assert_array_equal(problem(n=600).optimize(), Y)


def test_a_map_that_diverges_is_reported():
    with pytest.raises(FloatingPointError, match="learning_rate"):
        problem(n=300, rate=1e300, rule=eq.Momentum(max_step=1e300)).optimize()


def a_call(**changes):
    frequencies = np.ones((2, 16, 8), np.float32)
    arguments = dict(step_calls(np.random.RandomState(0), np.float32, (8, 9), frequencies))["mesh_steps"]
    return {**arguments, **changes}


def test_steps_end_where_the_mesh_does_not_fit():
    assert _core.mesh_steps(**a_call()) == 3
    for changes in (
        {"lower": np.array([0.0, 50.0])},
        {"upper": np.array([100.0, 0.1])},
        {"narrow": 60.0},
        {"U": np.full((12, 2), np.nan, np.float32)},
        {"U": np.array([[np.inf, 0]] + 11 * [[0, 0]], np.float32)},
    ):
        call = a_call(**changes)
        before = call["U"].copy()
        assert _core.mesh_steps(**call) == 0
        assert_array_equal(call["U"], before)
    assert _core.mesh_steps(**a_call(seconds=0.0)) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"velocity": np.ones((11, 2), np.float32)}, "velocity and gain must have the shape of U"),
        ({"U": np.ones((12, 3), np.float32)}, "one column per axis of the mesh"),
        ({"lower": np.zeros(3)}, "lower and upper must have one element per column of U"),
        ({"upper": np.array([1.0, np.inf])}, "lower must be at least 0, and upper finite"),
        ({"upper": np.array([1e9, 1e9])}, r"the near field must have at most 2\^28 cells"),
        ({"values": np.ones(5, np.float32)}, "values must have one element per entry of A"),
        ({"charges": np.ones((12, 1))}, r"charges must have no rows, or shape \(n, 2\)"),
        (
            {"A": _core.Csr(np.zeros(5, np.int64), np.zeros(0, np.int32), 4), "values": np.zeros(0, np.float32)},
            r"A must",
        ),
    ],
)
def test_errors_of_mesh_steps(changes, message):
    with pytest.raises(ValueError, match=message):
        _core.mesh_steps(**a_call(**changes))


def test_errors_of_shared_memory_and_kernels():
    call = a_call()
    with pytest.raises(ValueError, match="U, velocity and gain must not share memory"):
        _core.mesh_steps(**{**call, "velocity": call["U"]})
    kernel = dict(step_calls(np.random.RandomState(0), np.float32, (8, 9), np.ones((2, 16, 8), np.float32)))[
        "MeshKernel32"
    ]
    for changes, message in (
        ({"radius": -1.0}, "radius must be 0 or positive, and finite"),
        ({"size": np.zeros(0, np.int64)}, "size must have 1 to 3 elements"),
        ({"size": np.array([8, 20])}, "frequencies must have shape"),
        ({"size": np.array([5, 9])}, "a mesh must have from MESH_ORDER"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.MeshKernel32(**{**kernel, **changes})
    with pytest.raises(ValueError, match="out must have the shape of U"):
        _core.center(np.ones((3, 2), np.float32), np.ones((2, 2), np.float32), 1)
