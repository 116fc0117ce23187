"""Descent: single steps equal a run; stops, checkpoints and interruptions for every kind of steps."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.methods import X

import equipoise as eq
from equipoise.optimize.descent import State, Steps
from equipoise.optimize.gradient_steps import EngineForces, GradientSteps
from equipoise.studio.session.run import Run

torch = pytest.importorskip("torch")

RULE = eq.Momentum(every=10, min_loss_change=0, min_grad_norm=0)
PROBLEMS = {
    "t-SNE": lambda: eq.TSNE(perplexity=6, optimizer=RULE, random_state=0, n_jobs=1),
    "t-SNE on a grid": lambda: eq.TSNE(perplexity=6, optimizer=RULE, engine="grid", random_state=0, n_jobs=1),
    "s-SNE": lambda: eq.SphericalSNE(perplexity=6, optimizer=RULE, random_state=0, n_jobs=1),
    "negative sampling": lambda: eq.UMAP(engine="negative_sampling", n_neighbors=6, random_state=0, n_jobs=1),
    "flow": lambda: eq.PCA(solver="flow", random_state=0),
    "stress": lambda: eq.MDS(random_state=0, tol=0, n_jobs=1),
    "majorisation": lambda: eq.MDS(solver="smacof", random_state=0, tol=0, n_jobs=1),
}
every_problem = pytest.mark.parametrize("name", PROBLEMS)


def test_accelerated_steps_restart_where_they_go_uphill(rng):
    """The loss need not rise there, nor fall elsewhere: only ⟨∇E, Δ⟩ counts."""
    rule, state = eq.Accelerated(), State.start(rng.normal(size=(5, 2)))
    for _ in range(12):
        gradient, before, age = rng.normal(size=(5, 2)), state.velocity, state.age
        step = before - 0.3 * gradient
        moved = rule.step(state, gradient, 0.3, True, 1.0)
        assert state.age == (0 if (gradient * step).sum() > 0 else age + 1)
        assert_allclose(state.velocity, state.age / (state.age + 3) * step)
        assert_allclose(moved, state.velocity - 0.3 * gradient)
    assert eq.Accelerated().every == eq.Dynamics().every == 10
    assert eq.Accelerated().min_loss_change == eq.Dynamics().min_loss_change == 0


def start(name, n_iter=24, callbacks=(), saver=None):
    problem = PROBLEMS[name]().problem(X)
    descent = problem.descent(n_iter, callbacks=callbacks)
    descent.saver = saver
    return problem, descent


@every_problem
def test_single_steps_equal_a_run(name):
    runs = [start(name) for _ in range(3)]
    (_, by_hand), (_, at_once), (_, in_parts) = runs
    while by_hand.step():
        pass
    at_once.run()
    for until in (1, 7, 20):
        assert in_parts.run(until).iteration == until and not in_parts.finished
    in_parts.run()
    whole = PROBLEMS[name]().problem(X)
    expected = whole.optimize(n_iter=24).tobytes()
    for problem, descent in runs:
        assert descent.finished and not descent.step() and descent.state.iteration == 24
        assert problem.Y.tobytes() == expected
        assert np.array(descent.state.curve).tobytes() == whole.loss_curve.tobytes()


@every_problem
def test_extra_evaluations_do_not_change_the_run(name):
    problem, descent = start(name)
    while descent.state.iteration < 20:
        descent.evaluate()
        descent.step()
    other, at_once = start(name)
    at_once.run(20)
    assert problem.Y.tobytes() == other.Y.tobytes()


@every_problem
def test_report_evaluates_a_loss_that_was_left_out(name):
    _, descent = start(name)
    descent.evaluate(loss=False)
    descent.run()
    assert np.array(descent.state.curve).tobytes() == np.array(start(name)[1].run().curve).tobytes()


@every_problem
def test_callback_stops_the_descent(name):
    _, descent = start(name, 60, callbacks=[lambda iteration, loss, Y: iteration >= 15])
    state = descent.run()
    assert descent.finished and (state.stopped, state.curve[-1][0]) == ("callback", state.iteration)
    assert 15 <= state.iteration <= 50  # negative sampling reports every 50 iterations


class Saver:
    """A saver that records the iterations at which a state is saved."""

    def __init__(self, every):
        self.every, self.saved = every, []

    def next_due(self, iteration):
        return -(-iteration // self.every) * self.every

    def save_if_due(self, iteration):
        if iteration % self.every == 0:
            self.saved.append(iteration)


@every_problem
def test_checkpoints_are_saved_every_k_iterations(name):
    saver = Saver(7)
    start(name, saver=saver)[1].run()
    assert saver.saved == [7, 14, 21]


@every_problem
def test_interrupted_step_keeps_the_last_state(name):
    problem, descent = start(name)
    descent.run(12)
    before, steps = problem.Y.tobytes(), descent.steps

    class Interrupted(type(steps)):
        def move(self, state):
            raise KeyboardInterrupt

    steps.__class__ = Interrupted
    with pytest.raises(KeyboardInterrupt):
        descent.run()
    assert descent.state.iteration == 12 and problem.Y.tobytes() == before


@every_problem
def test_ctrl_c_keeps_the_last_state_of_a_problem(name):
    def interrupt(iteration, loss, Y):
        if iteration >= 20:
            raise KeyboardInterrupt

    problem = PROBLEMS[name]().problem(X)
    with pytest.raises(KeyboardInterrupt):
        problem.optimize(n_iter=60, callbacks=[interrupt])
    assert 20 <= problem.n_iter < 60 and np.isfinite(problem.Y).all()
    assert problem.loss_curve[-1, 0] == problem.n_iter


def test_ctrl_c_keeps_the_last_epoch_of_an_encoder():
    def interrupt(epoch, loss, Y):
        if epoch == 2:
            raise KeyboardInterrupt

    method = eq.Parametric(eq.TSNE(perplexity=6), epochs=5, random_state=0, device="cpu", callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        method.fit(X)
    assert method.n_epochs_ == 2 and len(method.loss_curve_) == 2 and np.isfinite(method.embedding_).all()


def test_ctrl_c_keeps_the_best_of_several_starts():
    calls = []

    def interrupt(iteration, loss, Y):
        calls.append(iteration)
        if calls.count(0) == 3 and iteration == 5:
            raise KeyboardInterrupt

    problem = eq.MDS(n_init=4, n_iter=20, tol=0, init="random", random_state=0).problem(X)
    with pytest.raises(KeyboardInterrupt):
        problem.optimize(callbacks=[interrupt])
    assert len(problem._runs) == 3 and problem.loss_curve[-1, 1] == min(run.loss for run in problem._runs)


def test_replace_steps_continues_from_the_same_state():
    problem, descent = start("t-SNE")
    descent.run(20)
    forces = EngineForces(problem.objective, problem.engine, descent.state.order)
    other = GradientSteps(forces, problem.geometry, eq.GradientDescent(), problem.schedule.phases(24))
    before, phase = descent.state.U.copy(), problem.schedule.phases(24)[1]
    balance = problem.objective.balance(before, problem.engine, loss=False, exaggeration=phase.exaggeration)
    rate = other.rule.auto_rate(len(X), balance.stiffness, problem.objective.kernel.length)
    expected = before + rate * (balance.attraction + balance.repulsion)  # before − rate · ∇E
    descent.replace_steps(other)
    descent.step()
    assert descent.state.iteration == 21
    assert_allclose(descent.state.U, expected - expected.mean(axis=0), rtol=1e-5, atol=1e-7)
    assert np.abs(descent.state.U - before).max() > 1e-3


class Careful(eq.Momentum):
    """A user's rule that inherits from a built-in one."""


@pytest.mark.parametrize(("rule", "replays"), [(RULE, True), (Careful(every=10), True), (eq.Accelerated(), False)])
def test_only_replayable_rules_are_replayed(rule, replays):
    problem = eq.TSNE(perplexity=6, optimizer=rule, random_state=0, n_jobs=1).problem(X)
    descent, counts = problem.descent(24), []
    descent.steps.forces.replay = lambda step, phase, state, count, width: counts.append(count)
    descent.run(5)
    assert bool(counts) == replays


def test_negative_sampling_copies_the_map_of_a_replaced_state():
    _, descent = start("negative sampling")
    descent.run(5)
    kept = deepcopy(descent.state)
    U = kept.U.copy()
    descent.set_state(kept)
    given = kept.U
    descent.run(10)
    assert given.tobytes() == U.tobytes()


def test_set_state_repeats_the_same_steps():
    _, descent = start("t-SNE")
    descent.run(10)
    kept = deepcopy(descent.state)
    first = descent.run().in_order().copy()
    descent.set_state(kept)
    assert not descent.finished and descent.run().in_order().tobytes() == first.tobytes()


@pytest.mark.parametrize("seed", [0, 3])
def test_studio_run_equals_a_fit(seed):
    from equipoise.studio.session.recipe import Recipe

    run = Run(np.array(X), Recipe("tsne", seed=seed), n_jobs=1)
    run.step(90)
    frame = run.step(120)
    rule = eq.Momentum(every=1, min_loss_change=0, min_grad_norm=0)
    method = eq.TSNE(random_state=seed, n_iter=210, optimizer=rule, n_jobs=1).fit(np.array(X))
    assert frame.Y.tobytes() == method.embedding_.tobytes()


def test_steps_without_move_or_current_map_raise():
    class WithoutMap(Steps):
        def move(self, state):
            return True

    with pytest.raises(TypeError, match=r"abstract class Steps .*current_map'?, '?move"):
        Steps()
    with pytest.raises(TypeError, match=r"abstract class WithoutMap .*current_map"):
        WithoutMap()
