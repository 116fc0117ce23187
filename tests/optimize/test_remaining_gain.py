"""The remaining gain: exact for a loss that falls as 1/t, told by methods, and the rule by which n_iter="auto" ends."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_equal
from support.cases import unequal_digits

import equipoise as eq
from equipoise.methods import estimator
from equipoise.optimize.rules import GAP, MAX_ITER, remaining_gain

X = unequal_digits(250)
FORCES = [eq.SNE, eq.SymmetricSNE, eq.TSNE, eq.PowerSNE, eq.GSNE, eq.SphericalSNE, eq.UMAP, eq.DKLLE, eq.DKPCA]


@pytest.mark.parametrize("start", [0, 100])
def test_gain_of_a_hyperbola_is_exact(start):
    """E = 2 + 30/t has the limit 2, whatever came before `start`."""
    curve = [(start + t, 2 + 30 / t) for t in range(10, 410, 10)]
    early = [(t, 50.0) for t in range(0, start, 10)]
    assert remaining_gain(early + curve, start) == pytest.approx((curve[-1][1] - 2) / curve[-1][1], rel=1e-12)


@pytest.mark.parametrize("power", [1.5, 2, 3])
def test_gain_is_an_upper_bound_for_losses_that_fall_faster(power):
    curve = [(t, 1 + 10 / t**power) for t in range(10, 410, 10)]
    assert remaining_gain(curve) > (curve[-1][1] - 1) / curve[-1][1]
    fast = [(t, 1 + np.exp(-t / 20)) for t in range(10, 410, 10)]
    assert 0 < remaining_gain(fast) < 1e-5


def test_gain_does_not_depend_on_the_unit_of_the_loss():
    curve = [(t, 3 + 1 / t) for t in range(10, 210, 10)]
    scaled = [(t, -1000 * loss) for t, loss in curve]  # falls in the opposite direction
    assert remaining_gain([(t, 7 * loss) for t, loss in curve]) == pytest.approx(remaining_gain(curve), rel=1e-12)
    assert remaining_gain(scaled) == 0.0


def test_gain_of_a_loss_that_vanishes_is_finite():
    curve = [(t, 10.0 ** (2 - t)) for t in range(1, 60)] + [(60, 0.0)]
    assert 0 <= remaining_gain(curve) < 1e-9


@pytest.mark.parametrize("curve", [[], [(0, 1.0)], [(0, 5.0), (100, 1.0)]])
def test_gain_without_reports_is_nan(curve):
    assert np.isnan(remaining_gain(curve, 100))


@pytest.mark.parametrize("curve", [[(110, 3.0)], [(100, 4.0), (110, 3.0)], [(140, 3.0), (150, 2.0)]])
def test_gain_of_too_few_reports_is_infinite(curve):
    assert remaining_gain(curve, 100) == np.inf


@pytest.mark.parametrize("Method", FORCES)
def test_auto_runs_until_the_gain_is_small(Method):
    """The end is the first at which two reports in a row are below the gap; until then, bytes are those of a number."""
    method = Method(random_state=0, n_iter="auto", n_jobs=1, callbacks=[lambda i, loss, Y: i >= 1200]).fit(X)
    curve, stopped = [tuple(row) for row in method.loss_curve_], method._problem.stopped
    small = [remaining_gain(curve[:i], 100) < GAP for i in range(1, len(curve) + 1)]
    ends = [j for j in range(1, len(small)) if small[j] and small[j - 1]]
    assert stopped in ("remaining_gain", "min_loss_change", "callback")
    if stopped == "remaining_gain":
        assert ends[0] == len(curve) - 1 and 200 < method.n_iter_ < 1200 and method.remaining_gain_ < GAP
    else:
        assert ends in ([], [len(curve) - 1])
    fixed = Method(random_state=0, n_iter=method.n_iter_, n_jobs=1, optimizer=eq.Momentum(min_loss_change=0)).fit(X)
    assert fixed.embedding_.tobytes() == method.embedding_.tobytes()


def test_auto_of_tsne_ends_by_the_gain_and_has_a_maximum():
    method = eq.TSNE(random_state=0, n_iter="auto").fit(X)
    assert method._problem.stopped == "remaining_gain"
    assert method.problem(X).schedule.n_iter == MAX_ITER == 5000
    longer = eq.TSNE(random_state=0, n_iter=1500, optimizer=eq.Momentum(min_loss_change=0)).fit(X)
    assert (method.loss_ - longer.loss_) / method.loss_ < GAP


def test_auto_of_negative_sampling_is_its_number_of_epochs():
    method = eq.UMAP(n_iter="auto", engine="negative_sampling", random_state=0)
    assert method.problem(X).schedule == eq.UMAP(engine="negative_sampling").problem(X).schedule
    fitted = method.set_params(n_iter=100, callbacks=[lambda *report: None]).fit(X)
    assert len(fitted.loss_curve_) > 2 and np.isnan(fitted.remaining_gain_)


def test_auto_of_other_methods_by_negative_sampling_is_the_default():
    method = eq.TSNE(n_iter="auto", engine="negative_sampling", random_state=0)
    assert method.resolve_n_iter(100) == 300 and method.set_params(engine="grid").resolve_n_iter(100) == "auto"


def test_gain_of_pair_losses_ignores_early_exaggeration():
    method = eq.PairEmbedding(n_iter=200, random_state=0).fit(X)
    assert method.remaining_gain_ == remaining_gain([tuple(row) for row in method.loss_curve_], 100)


def test_auto_of_mds_ends_by_tol():
    method = eq.MDS(n_iter="auto", solver="smacof", init="random", tol=0, random_state=0).fit(X[:80])
    assert 300 < method.n_iter_ < MAX_ITER and 0 <= method.remaining_gain_ < GAP
    assert eq.MDS(solver="smacof", init="random", n_iter=30, random_state=0).fit(X[:80]).remaining_gain_ > 0.01


def test_default_number_of_iterations_depends_on_n():
    assert [eq.TSNE().resolve_n_iter(n) for n in (100, 10_000, 10_001)] == [300, 300, 500]
    assert [eq.UMAP().resolve_n_iter(n) for n in (10_000, 10_001)] == [300, 200]
    assert eq.TSNE(n_iter=77).resolve_n_iter(10**6) == 77
    assert "500 above 10,000" in " ".join(eq.TSNE.__doc__.split())


@pytest.mark.parametrize(("Method", "value"), [(eq.TSNE, "long"), (eq.UMAP, 1.5), (eq.MDS, "all")])
def test_invalid_n_iter_raises(Method, value):
    with pytest.raises(ValueError, match='n_iter must be an integer or "auto", got'):
        Method(n_iter=value).fit(X)


def test_verbose_fit_says_what_is_left(capsys):
    method = eq.TSNE(n_iter=200, random_state=0, verbose=1).fit(X)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("the loss was still decreasing after 200 iterations: further ones would lower it by up to")
    assert f"{method.remaining_gain_:.0%}" in last and 'use n_iter="auto"' in last
    eq.TSNE(n_iter=1000, random_state=0, verbose=1).fit(X)
    assert "still decreasing" not in capsys.readouterr().out


@pytest.mark.parametrize("n_iter", [20, 100])
def test_short_fit_says_that_it_is_too_early_to_tell(n_iter, capsys, monkeypatch, tmp_path):
    method = eq.TSNE(n_iter=n_iter, random_state=0, verbose=1).fit(X)
    assert method.remaining_gain_ == np.inf
    assert f"after {n_iter} iterations it is too early to tell by how much" in capsys.readouterr().out.splitlines()[-1]
    assert "lower the loss by an unknown amount" in " ".join(str(eq.evaluate(X, method)).split())
    eq.save(method, tmp_path / "map.eqz")
    assert eq.load(tmp_path / "map.eqz").remaining_gain_ == np.inf
    monkeypatch.setattr(estimator, "FEW_POINTS", 200)
    with pytest.warns(eq.UnfinishedWarning, match="too early to tell"):
        method.set_params(verbose=0).fit(X)


def test_large_gain_of_many_points_warns(monkeypatch):
    method = eq.TSNE(n_iter=200, random_state=0)
    assert method.fit(X).remaining_gain_ > estimator.LARGE_GAIN  # silent: few points
    monkeypatch.setattr(estimator, "FEW_POINTS", 200)
    with pytest.warns(eq.UnfinishedWarning, match=r"after 200 iterations: .* by up to about \d+%; use n_iter="):
        method.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method.set_params(n_iter=None).fit(X)  # the default warns from twice the gain on
        method.set_params(n_iter=200, callbacks=[lambda i, loss, Y: i >= 150]).fit(X)  # the user stopped it


def test_gain_is_saved_with_the_method(tmp_path):
    method = eq.TSNE(random_state=0).fit(X)
    eq.save(method, tmp_path / "method.eq")
    loaded = eq.load(tmp_path / "method.eq")
    assert loaded.remaining_gain_ == method.remaining_gain_ > 0 and loaded.n_iter is None


def test_auto_resumes_from_a_checkpoint(tmp_path):
    def fit(*callbacks):
        return eq.TSNE(random_state=0, n_iter="auto", n_jobs=1, callbacks=callbacks).fit(X)

    def interrupt(iteration, loss, Y):
        if iteration == 250:
            raise KeyboardInterrupt

    file = tmp_path / "run.eqc"
    with pytest.raises(KeyboardInterrupt):
        fit(eq.Checkpoint(file, every=60), interrupt)
    resumed = fit(eq.Checkpoint(file, every=60, resume=True))
    assert resumed.embedding_.tobytes() == fit().embedding_.tobytes()


@pytest.mark.parametrize(("n_iter", "gain"), [(0, np.nan), (1, np.inf)])
def test_gain_is_unknown_after_too_few_iterations(n_iter, gain):
    for method in (eq.MDS(init="random", random_state=0), eq.TSNE(random_state=0)):
        assert_equal(method.set_params(n_iter=n_iter).fit(X[:80]).remaining_gain_, gain)
