"""DK-PCA from several starts: the lowest loss is kept, and interrupted runs resume to the same bytes."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn import datasets
from support.checkpoints import Interrupt, X, assert_same, brief

import equipoise as eq
from equipoise.initialize import wide
from equipoise.inputs import make_input
from equipoise.problems.several_starts import CLOSE, SeveralStarts

N = 500
SETS = {
    "Swiss roll": lambda: datasets.make_swiss_roll(N, random_state=0)[0],
    "digits": lambda: datasets.load_digits().data[:N],
    "random digits": lambda: np.random.RandomState(0).permutation(datasets.load_digits().data)[:N],
    "iris": lambda: datasets.load_iris().data,
}


def method(**settings):
    return eq.DKPCA(**{"engine": "exact", "random_state": 0, "n_jobs": 1, **settings})


def other_starts(data):
    """Return eigenmaps of two graphs, which `DKPCA` does not start from."""
    maps = [eq.LaplacianEigenmaps(n_neighbors=k).fit_transform(data) for k in (10, 15)]
    return [10 * Y / np.abs(Y).max() for Y in maps]


@pytest.mark.filterwarnings("ignore:the neighbour graph")
@pytest.mark.parametrize("name", SETS)
def test_default_reaches_the_lowest_loss_of_all_starts(name):
    data = SETS[name]()
    problem = method().problem(data)

    def final_loss(Y0):
        problem.optimize(Y0=Y0)
        return problem.loss_curve[-1, 1]

    losses = [final_loss(Y0) for Y0 in problem._starts()]
    others = [final_loss(Y0) for Y0 in other_starts(data)]
    fit = method().fit(data)
    assert fit.loss_ <= 1.005 * min(losses[0], *others)
    assert fit.loss_ <= 1.02 * min(losses)


@pytest.mark.parametrize("make", [datasets.make_swiss_roll, datasets.make_s_curve])
def test_small_start_ends_at_kernel_pca_and_the_default_does_not(make):
    problem = method(n_iter=150).problem(make(N, random_state=0)[0])
    problem.optimize(Y0=problem.Y0)
    trapped = problem.loss_curve[-1, 1]
    problem.optimize()
    assert problem.loss_curve[-1, 1] < 0.2 * trapped  # measured: 0.12 and 0.09


def test_first_start_is_that_of_a_single_one():
    several, single = brief(eq.DKPCA).problem(X), brief(eq.DKPCA, n_init=1).problem(X)
    assert several.Y0.tobytes() == single.Y0.tobytes()
    assert len(several.further_starts) == 3 and len(single.further_starts) == 0
    assert len(brief(eq.DKPCA, n_init=2).problem(X).further_starts) == 1


def test_any_other_init_is_the_only_start(rng):
    Y0 = rng.standard_normal((len(X), 2))
    for init in (Y0, "random", "pca", "auto"):
        assert not brief(eq.DKPCA, init=init).problem(X).further_starts
    calls = Interrupt()
    fit = brief(eq.DKPCA, callbacks=[calls]).fit(X, init=Y0)
    assert calls.calls == len(fit.loss_curve_)


def test_neighbours_alone_have_no_principal_components():
    D = cdist(X, X)
    assert len(brief(eq.DKPCA, metric="precomputed").problem(D).further_starts) == 3
    order = np.argsort(D, axis=1)[:, 1:31]
    pairs = order, np.take_along_axis(D, order, axis=1)
    assert len(brief(eq.DKPCA, metric="precomputed").problem(pairs).further_starts) == 2


def test_second_start_is_the_map_of_umap_with_the_kernel_of_dkpca():
    problem = eq.DKPCA(n_neighbors=10, random_state=0, n_jobs=1).problem(X)
    Y, eigenmap, _ = problem.further_starts
    umap = eq.UMAP(n_neighbors=11, a=1.0, b=1.0, init=eigenmap, n_iter=200, random_state=5, n_jobs=1)
    assert_allclose(Y, umap.fit_transform(X), atol=1e-3)


def reports_and_losses(close):
    """Return the iterations reported by a fit, the losses of all starts at iteration 20, and the fit."""
    seen = []
    problem = brief(eq.DKPCA, callbacks=[lambda iteration, loss, Y: seen.append(iteration)]).problem(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("equipoise.problems.several_starts.CLOSE", close)
        fit = brief(eq.DKPCA, callbacks=[lambda iteration, loss, Y: seen.append(iteration)]).fit(X)
    losses = []
    for Y0 in problem._starts():
        problem.optimize(Y0=Y0)
        losses.append(dict(problem.loss_curve))
    return seen, losses, fit


def test_early_phase_runs_from_every_start_and_the_best_continues():
    seen, losses, fit = reports_and_losses(close=1.0)
    assert seen == [0, 10, 0, 10, 0, 10, 0, 10, 20, 30, 40]  # 40 iterations, of which 20 are early
    assert fit.n_iter_ == 40 and fit.loss_curve_[:, 0].tolist() == [0, 10, 20, 30, 40]
    best = min(losses, key=lambda curve: curve[20])
    assert fit.loss_ == best[40]


def test_two_best_starts_continue_if_their_losses_are_close():
    seen, losses, fit = reports_and_losses(close=np.inf)
    assert seen == [0, 10, 0, 10, 0, 10, 0, 10, 20, 20, 30, 40]  # the second round ends at iteration 30
    best = sorted(losses, key=lambda curve: curve[20])[:2]
    assert fit.loss_ == min(best, key=lambda curve: curve[30])[40]


def test_start_that_is_far_from_the_best_does_not_continue():
    problem = method(n_iter=100).problem(SETS["Swiss roll"]())
    losses = []
    for Y0 in problem._starts():
        problem.optimize(Y0=Y0, n_iter=100)
        losses.append(dict(problem.loss_curve)[50])
    second = sorted(losses)[1]
    assert second > CLOSE * min(losses)
    calls = Interrupt()
    problem.optimize(callbacks=[calls])
    assert calls.calls == 6  # at 0 from each of four starts, then at 50 and 100


def test_callback_that_stops_the_first_run_skips_the_other_starts():
    seen = []

    def stop(iteration, loss, Y):
        seen.append(iteration)
        return iteration == 10

    fit = brief(eq.DKPCA, callbacks=[stop]).fit(X)
    assert seen == [0, 10] and fit.n_iter_ == 10 and fit._problem.stopped == "callback"


@pytest.mark.parametrize("last", range(2, 10))
@pytest.mark.parametrize("engine", ["exact", "grid"])
@pytest.mark.parametrize("close", [1.0, np.inf])
def test_runs_interrupted_at_any_report_resume_to_the_same_bytes(last, engine, close, tmp_path, monkeypatch):
    monkeypatch.setattr("equipoise.problems.several_starts.CLOSE", close)
    path = tmp_path / "run.eqc"
    whole = brief(eq.DKPCA, engine=engine).fit(X)
    with pytest.raises(KeyboardInterrupt):
        brief(eq.DKPCA, engine=engine, callbacks=[eq.Checkpoint(path, every=4), Interrupt(last)]).fit(X)
    resumed = brief(eq.DKPCA, engine=engine, callbacks=[eq.Checkpoint(path, resume=True)])
    assert_same(whole, resumed.fit(X))


def test_checkpoint_of_other_starts_raises(tmp_path):
    path = tmp_path / "run.eqc"
    brief(eq.DKPCA, callbacks=[eq.Checkpoint(path, every=4)]).fit(X)
    with pytest.raises(ValueError, match="it differs in initial map"):
        brief(eq.DKPCA, n_init=2, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X)


@pytest.mark.parametrize(
    "kept, tried, number", [([0, 1], 3, 0), ([1, 2], 1, 0), ([0, 4], 0, 1), ([0, 0], 0, 1), ([0, 1], 0, 3)]
)
def test_saved_runs_that_do_not_match_the_starts_raise(kept, tried, number):
    problem = brief(eq.DKPCA).problem(X)
    state = problem._start(problem.Y0).plain()
    saved = {"runs": [state, state], "kept": np.array(kept), "tried": np.ones(tried), "round": number, "engine": []}
    message = f"contains 2 runs from the starts {kept} and the losses of {tried}, but there are 4 initial maps"
    with pytest.raises(ValueError, match=re.escape(message)):
        problem._restore_state(saved, problem._starts())


def test_interrupted_run_returns_the_best_map_so_far():
    problem = brief(eq.DKPCA).problem(X)
    with pytest.raises(KeyboardInterrupt):
        problem.optimize(callbacks=[Interrupt(5)])
    assert isinstance(problem, SeveralStarts) and len(problem._runs) == 3
    assert problem.loss_curve[-1, 1] == min(run.loss for run in problem._runs)
    problem.optimize()  # a new run starts from the beginning
    assert_same(brief(eq.DKPCA).fit(X), _as_fitted(problem))


def _as_fitted(problem):
    class Fitted:
        embedding_, loss_curve_, n_iter_ = problem.Y, problem.loss_curve, problem.n_iter
        loss_ = problem.loss_curve[-1, 1]

    return Fitted


def test_wide_maps_have_the_stated_extent_and_no_noise():
    data = make_input(X, "euclidean", None)
    D2, _ = data.neighbors(10, 1)
    for Y, extent in ((wide.wide_eigenmap(D2, 2, 0.5), 5.0), (wide.wide_principal(data, 2, 0.5), 1.5)):
        assert_allclose(np.abs(Y).max(), extent)
    scores = eq.PCA().fit_transform(X)
    assert_allclose(np.abs(wide.wide_principal(data, 2, 1.0)), np.abs(3 * scores / np.abs(scores).max()), atol=1e-9)


def test_wide_maps_of_coincident_points_are_zero():
    data = make_input(np.ones((12, 3)), "euclidean", None)
    assert not wide.wide_principal(data, 2, 1.0).any()


def test_identical_points_can_be_fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Y = brief(eq.DKPCA).fit_transform(np.ones((12, 3)))
    assert np.isfinite(Y).all()


@pytest.mark.parametrize("n_init", [0, 5, 1.5, "3", None, True])
def test_invalid_n_init_raises(n_init):
    with pytest.raises(ValueError, match=re.escape(f"n_init must be 1, 2, 3 or 4, got {n_init!r}")):
        brief(eq.DKPCA, n_init=n_init).problem(X)
