"""Motion with mass and friction: closed forms, conservation of energy, every method and curved maps."""

import numpy as np
import pytest
from support.cases import unequal_digits

import equipoise as eq
from equipoise.optimize import gradient_steps
from equipoise.optimize.descent import State

X = unequal_digits(120)
METHODS = [eq.SNE, eq.SymmetricSNE, eq.TSNE, eq.PowerSNE, eq.GSNE, eq.SphericalSNE, eq.UMAP, eq.DKLLE, eq.DKPCA]


def oscillate(rule, h, steps, stiffness):
    """Return position, and energies, of two points in the potential E = stiffness/2 Σ ‖y‖², at rest at first."""
    state = State.start(np.array([[1.0, 0.0], [0.0, -2.0]]))
    energy = []
    for _ in range(steps):
        gradient = stiffness * state.U
        energy.append(rule.kinetic_energy(state, gradient, h) + stiffness / 2 * float((state.U**2).sum()))
        state.U = state.U + rule.step(state, gradient, h, True, 1.0)
    return state.U, np.array(energy)


@pytest.mark.parametrize(("mass", "friction"), [(1.0, 0.0), (0.3, 0.0), (1.0, 0.4), (2.0, 1.5)])
def test_harmonic_oscillator_matches_its_closed_form(mass, friction):
    """M a = −n c y − γ v: y = e^{−γt/2M} (cos ωt + γ/(2Mω) sin ωt), ω² = nc/M − γ²/4M²; errors are of order h²."""
    c, n, t = 0.7, 2, 3.0
    decay = friction / (2 * mass)
    omega = np.sqrt(n * c / mass - decay**2)
    exact = np.exp(-decay * t) * (np.cos(omega * t) + decay / omega * np.sin(omega * t))
    rule = eq.Dynamics(mass=mass, friction=friction)
    errors = [abs(oscillate(rule, t / steps, steps, c)[0][0, 0] - exact) for steps in (300, 600)]
    assert errors[1] < 2e-5 and errors[0] / errors[1] == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize(("mass", "friction"), [(1.0, 0.0), (2.0, 1.5)])
def test_n3_step_is_written_out(mass, friction):
    """Eq. (N3) of docs/math.md, with a gradient that is not linear in Y."""
    rng = np.random.default_rng(0)
    Y, h, n = rng.standard_normal((5, 2)), 0.3, 5
    rule, state = eq.Dynamics(mass=mass, friction=friction), State.start(Y.copy())
    v, decay = np.zeros_like(Y), np.exp(-friction * h / mass)
    for _ in range(6):
        np.testing.assert_allclose(state.U, Y, atol=1e-13)
        kinetic = mass / (2 * n) * np.square(v).sum()
        assert rule.kinetic_energy(state, np.sin(state.U), h) == pytest.approx(kinetic, abs=1e-13)
        state.U = state.U + rule.step(state, np.sin(state.U), h, True, 1.0)
        v = v - h * n / (2 * mass) * np.sin(Y)
        Y = Y + h / 2 * (1 + decay) * v
        v = decay * v
        v = v - h * n / (2 * mass) * np.sin(Y)


def test_n2_friction_takes_its_power():
    """d(T + V)/dt = −(γ/n) Σ ‖v‖² = −(2γ/M) T, by differences of the energies of a run with short steps."""
    mass, friction, h = 1.3, 0.4, 1e-4
    rule, state = eq.Dynamics(mass=mass, friction=friction), State.start(np.array([[1.0, 0.0], [0.0, -2.0]]))
    kinetic, total = [], []
    for _ in range(9000):
        gradient = np.sin(state.U)
        kinetic.append(rule.kinetic_energy(state, gradient, h))
        total.append(kinetic[-1] + float((1 - np.cos(state.U)).sum()))
        state.U = state.U + rule.step(state, gradient, h, True, 1.0)
    power, at = np.gradient(total, h), slice(500, 8500, 500)
    np.testing.assert_allclose(power[at], -2 * friction / mass * np.array(kinetic)[at], rtol=1e-4)


def test_leapfrog_has_its_known_frequency():
    """Without friction a step turns the phase by θ with cos θ = 1 − (ωh)²/2, however long the step (below 2/ω)."""
    omega, h = np.sqrt(2 * 0.7), 1.1
    theta = np.arccos(1 - (omega * h) ** 2 / 2)
    Y, energy = oscillate(eq.Dynamics(friction=0), h, 200, 0.7)
    assert Y[0, 0] == pytest.approx(np.cos(200 * theta), abs=1e-9)
    assert energy.max() < 1.8 * energy.min()  # it oscillates and does not grow


def run(Method, n_iter, time_step, friction=0.0, **options):
    rule = eq.Dynamics(friction=friction, time_step=time_step, every=1, min_grad_norm=0)
    options = {"engine": "reference", "early_exaggeration": 1, "random_state": 0, "optimizer": rule, **options}
    problem = Method(**options).problem(X)
    problem.optimize(n_iter)
    return problem


@pytest.mark.parametrize(("Method", "h"), [(eq.TSNE, 0.1), (eq.GSNE, 0.02), (eq.SphericalSNE, 0.002), (eq.UMAP, 0.002)])
def test_energy_is_conserved_without_friction(Method, h):
    problem = run(Method, 500, h)
    iteration, kinetic, potential, total = problem.energy_curve.T
    assert iteration.tolist() == list(range(501))
    assert kinetic[0] == 0 and kinetic.max() > 0.05 * potential[0]
    assert np.abs(total - total[0]).max() < 1e-3 * total[0]
    np.testing.assert_array_equal(potential, problem.loss_curve[:, 1])


@pytest.mark.skipif("geometry" not in eq.TSNE().get_params(), reason="maps are flat in this version")
@pytest.mark.parametrize("geometry", ["sphere", "torus", "hyperbolic"])
def test_energy_is_conserved_in_every_geometry(geometry):
    total = run(eq.TSNE, 150, 0.1, geometry=geometry).energy_curve[:, 3]
    assert np.abs(total - total[0]).max() < 1e-3 * total[0]


@pytest.mark.parametrize("Method", [eq.TSNE, eq.SphericalSNE])
def test_energy_error_is_of_second_order(Method):
    h = {eq.TSNE: 0.1, eq.SphericalSNE: 0.008}[Method]
    drift = []
    for scale in (1, 2):
        total = run(Method, 100 * scale, h / scale).energy_curve[:, 3]
        drift.append(np.abs(total - total[0]).max())
    assert 3 < drift[0] / drift[1] < 5


@pytest.mark.parametrize("Method", METHODS)
def test_energy_decreases_with_friction(Method):
    rule = eq.Dynamics(every=1)
    method = Method(random_state=0, early_exaggeration=1, engine="exact", n_iter=300, optimizer=rule).fit(X)
    kinetic, potential, total = method.energy_curve_.T[1:]
    assert np.diff(total).max() < 1e-3 * (total[0] - total[-1])
    assert potential[-1] < potential[0] and kinetic[-1] < kinetic.max() / 5


@pytest.mark.parametrize("Method", METHODS)
def test_every_method_settles_at_a_low_loss(Method):
    found = Method(random_state=0, n_iter=800, optimizer=eq.Dynamics()).fit(X)
    usual = Method(random_state=0).fit(X)
    first = usual.loss_curve_[0, 1]
    assert found.loss_ < usual.loss_ + 0.25 * (first - usual.loss_)
    assert found.loss_curve_[-1, 0] == found.energy_curve_[-1, 0] == found.n_iter_


def test_mass_only_changes_the_unit_of_time():
    """With γ and h scaled by √M, the maps are the same and so are the energies."""
    one, four = (
        eq.TSNE(
            random_state=0, engine="reference", n_iter=60, optimizer=eq.Dynamics(m, 0.2 * m**0.5, 0.1 * m**0.5)
        ).fit(X)
        for m in (1.0, 4.0)
    )
    np.testing.assert_allclose(four.embedding_, one.embedding_, rtol=1e-9)
    np.testing.assert_allclose(four.energy_curve_, one.energy_curve_, rtol=1e-9)


def test_automatic_step_is_half_of_the_stable_one():
    """The attraction of t-SNE has the curvature 8 s/n at most: ω = √(8 s/M), and a step is stable below 2/ω."""
    rule = eq.Dynamics(mass=3.0)
    assert rule.auto_rate(100, 2.0, 1.5) == pytest.approx(0.5 * 2 / np.sqrt(8 * 2.0 / 3.0) * 1.5)
    assert eq.Dynamics(time_step=0.25).auto_rate(100, 2.0, 1.5) == 0.25
    given = eq.TSNE(random_state=0, n_iter=30, learning_rate=0.07, optimizer=eq.Dynamics()).fit(X)
    same = eq.TSNE(random_state=0, n_iter=30, optimizer=eq.Dynamics(time_step=0.07)).fit(X)
    assert given.embedding_.tobytes() == same.embedding_.tobytes()


def test_velocities_follow_their_points_when_points_are_sorted(monkeypatch):
    plain = run(eq.TSNE, 220, 0.05, engine="grid")
    monkeypatch.setattr(gradient_steps, "LOCALITY", 10)
    ordered = run(eq.TSNE, 220, 0.05, engine="grid")
    assert ordered._state.order is not None and plain._state.order is None
    np.testing.assert_allclose(ordered.energy_curve, plain.energy_curve, rtol=1e-2, atol=1e-3)


def test_end_of_exaggeration_stops_all_points():
    problem = run(eq.TSNE, 220, 0.2, early_exaggeration=1.5)
    kinetic = dict(problem.energy_curve[:, :2])
    assert kinetic[99] > 0.01 and kinetic[100] == 0 and kinetic[120] > 0


def test_same_bytes_for_any_number_of_threads_and_after_an_interruption(tmp_path):
    def fit(n_jobs, *callbacks):
        rule = eq.Dynamics(every=5)
        return eq.TSNE(random_state=0, n_iter=150, n_jobs=n_jobs, optimizer=rule, callbacks=callbacks).fit(X)

    def interrupt(iteration, loss, Y):
        if iteration == 120:
            raise KeyboardInterrupt

    whole = fit(1)
    assert fit(2).embedding_.tobytes() == whole.embedding_.tobytes()
    with pytest.raises(KeyboardInterrupt):
        fit(1, eq.Checkpoint(tmp_path / "run.eqc", every=50), interrupt)
    resumed = fit(1, eq.Checkpoint(tmp_path / "run.eqc", every=50, resume=True))
    assert resumed.embedding_.tobytes() == whole.embedding_.tobytes()
    np.testing.assert_array_equal(resumed.energy_curve_, whole.energy_curve_)
    eq.save(whole, tmp_path / "whole.eq")
    loaded = eq.load(tmp_path / "whole.eq")
    np.testing.assert_array_equal(loaded.energy_curve_, whole.energy_curve_)
    assert loaded.optimizer == whole.optimizer


def test_only_dynamics_has_energies():
    method = eq.TSNE(random_state=0, n_iter=20, optimizer=eq.Dynamics()).fit(X)
    assert method.energy_curve_.shape == (3, 4)
    assert not hasattr(method.set_params(optimizer=None).fit(X), "energy_curve_")
    assert method._problem.energy_curve.shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mass": 0}, "mass=0 is invalid; use a positive number"),
        ({"mass": "heavy"}, "mass='heavy' is invalid"),
        ({"friction": -1}, 'friction=-1 is invalid; use a number >= 0 or "auto"'),
        ({"friction": np.inf}, "friction=inf is invalid"),
        ({"time_step": 0}, 'time_step=0 is invalid; use a positive number or "auto"'),
        ({"every": 0}, "every=0 is invalid"),
    ],
)
def test_invalid_parameters_raise(options, message):
    with pytest.raises(ValueError, match=message):
        eq.Dynamics(**options)


def test_too_long_a_step_says_so():
    with pytest.raises(FloatingPointError, match="a smaller learning_rate"):
        eq.UMAP(random_state=0, n_iter=200, optimizer=eq.Dynamics(time_step=1e30)).fit(X)


def test_steps_that_raise_the_loss_are_warned_about():
    X = unequal_digits(60)
    options = {"n_iter": 60, "random_state": 0, "n_jobs": 1}
    with pytest.warns(UserWarning, match=r'the loss rose from .*: time_step=10000 is too large; use time_step="auto"'):
        eq.TSNE(optimizer=eq.Dynamics(time_step=1e4), **options).fit(X)
    with pytest.warns(UserWarning, match=r"the loss rose .*: learning_rate=1e\+06 is too large; use lear"):
        eq.TSNE(optimizer=eq.GradientDescent(), learning_rate=1e6, **options).fit(X)


def test_nothing_is_extrapolated_without_friction():
    X = unequal_digits(60)
    with pytest.raises(ValueError, match=r'n_iter="auto" needs friction, .*; use a number of iterations, or Dyn'):
        eq.TSNE(optimizer=eq.Dynamics(friction=0), n_iter="auto").fit(X)
    method = eq.TSNE(optimizer=eq.Dynamics(friction=0), n_iter=60, random_state=0, n_jobs=1).fit(X)
    assert np.isnan(method.remaining_gain_) and np.isfinite(method.loss_)
