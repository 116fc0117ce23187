"""Live runs of the studio without a browser or server: recipes, links, exported Python and data sources."""

import numpy as np
import pytest
from support.studio import SECONDS, opened_page

from equipoise import data
from equipoise.cli import main
from equipoise.studio.data_sources import DataSources
from equipoise.studio.limits import Limits
from equipoise.studio.page.link import LinkedRun, View, from_query, to_query
from equipoise.studio.session import history as history_module
from equipoise.studio.session.history import Frame, History
from equipoise.studio.session.parameters import METHODS, PARAMETERS, check_value, defaults
from equipoise.studio.session.python_source import python_source
from equipoise.studio.session.recipe import RESET_MOMENTUM, Event, Recipe
from equipoise.studio.session.run import Run
from equipoise.studio.session.worker import Worker

N = 120
DIGITS = "X = data.load('digits').X"


@pytest.fixture(scope="module")
def X():
    return data.load("digits").X[:N]


def run_source(source, n=N):
    namespace = {}
    exec(source.replace(".X\n", f".X[:{n}]\n"), namespace)
    return namespace["Y"]


@pytest.mark.parametrize("method", [name for name, choice in METHODS.items() if choice.iterates])
def test_run_without_changes_matches_the_estimator(X, method):
    run = Run(X, Recipe(method, seed=3), n_jobs=1)
    assert run.frame.iteration == 0 and run.curve == [(0, run.frame.loss)]
    run.step(150)
    frame = run.step(60)
    assert frame.loss < run.curve[0][1]
    assert [t for t, _ in run.curve] == [0, 150, 210]
    assert run.problem.loss_curve[:, 0].tolist() == list(range(0, 210, 50))  # as in the estimator, at its reports only
    assert run.problem.loss_curve[0, 1] == run.curve[0][1]
    source = python_source(run, DIGITS, 210)
    assert "fit_transform" in source and source.count("run.") == 0
    assert ("optimizer" in source) == (run.settled is not None)
    assert np.array_equal(run_source(source), frame.Y)


def test_run_with_reordered_points_matches_the_estimator(monkeypatch):
    monkeypatch.setattr("equipoise.optimize.gradient_steps.LOCALITY", 1000)
    run = Run(data.load("digits").X[:1050])
    frame = run.step(205)
    assert run.problem.engine.traits.gains_from_locality and run._state.order is not None
    assert np.array_equal(run_source(python_source(run, DIGITS, 205), 1050), frame.Y)
    here = run.problem.gradient(frame.Y)
    for i in (0, 7):
        attraction, repulsion = run.forces(frame, i)  # on a mesh planned for this map alone
        atol = 2 * run.problem.engine.tol * np.abs(repulsion).max()
        assert np.allclose(attraction + repulsion, -here[i], atol=atol)
    run.rewind(205)
    assert np.array_equal(run.frame.Y, frame.Y)
    run.step(5)
    run.change("perplexity", 20.0)
    last = run.step(60)
    assert np.array_equal(Run(run.X, run.recipe).step(270).Y, last.Y)  # computing forces has no side effects


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("tsne", "perplexity", 8.0),
        ("tsne", "dof", 3.0),
        ("tsne", "exaggeration", 4.0),
        ("tsne", "learning_rate", 500.0),
        ("gsne", "alpha", -0.9),
        ("gsne", "beta", 2.0),
        ("gsne", "eta", 1.0),
        ("sphericalsne", "rho", 0.6),
        ("umap", "n_neighbors", 8),
        ("umap", "min_dist", 0.5),
    ],
)
def test_parameter_change_affects_the_run_and_is_replayed_by_the_recipe(X, method, name, value):
    run = Run(X, Recipe(method), n_jobs=1)
    run.step(110)
    before = run.frame
    affinities = run.problem.affinities
    run.change(name, value)
    assert np.array_equal(run.frame.Y, before.Y)  # the points stay in place
    assert (run.problem.affinities is not affinities) == PARAMETERS[name].rebuilds
    after = run.step(30)
    assert not np.array_equal(after.Y, before.Y)
    again = Run(X, run.recipe, n_jobs=1)
    assert np.array_equal(again.step(140).Y, after.Y)
    plain = Run(X, Recipe(method), n_jobs=1)
    assert not np.array_equal(plain.step(140).Y, after.Y)
    assert np.array_equal(run_source(python_source(run, DIGITS, 140)), after.Y)


def test_loss_and_forces_follow_changed_parameters(X):
    run = Run(X, Recipe("gsne"), n_jobs=1)
    run.step(120)
    run.change("beta", 2.0)
    run.change("alpha", -1.0)
    frame = run.frame
    expected = METHODS["gsne"].make(**run.values, random_state=0, n_jobs=1).problem(X)
    assert frame.loss == pytest.approx(expected.loss(frame.Y), rel=1e-6)
    assert np.allclose(sum(run.forces(frame, 5)), -expected.gradient(frame.Y)[5], atol=1e-6)


def test_early_exaggeration_scales_the_attraction(X):
    run = Run(X, Recipe("tsne", (("early_exaggeration", 4.0),)), n_jobs=1)
    frame = run.step(5)
    attraction, repulsion = run.forces(frame, 3)
    assert np.allclose(attraction, 4 * run.problem.attraction(frame.Y)[3], rtol=1e-5)
    assert np.allclose(repulsion, run.problem.repulsion(frame.Y)[3], rtol=1e-5)


def test_pulls_are_the_largest_affinities(X):
    run = Run(X, n_jobs=1)
    near, weights = run.pulls(4, 6)
    row = np.asarray(run.problem.affinities[[4]]).ravel()
    assert len(near) == 6 and 4 not in near
    assert np.array_equal(np.sort(row)[::-1][:6], weights)


@pytest.mark.parametrize("back", [40, 100, 130])
def test_rewind_is_replayed_by_the_recipe(X, back):
    run = Run(X, n_jobs=1)
    for _ in range(16):
        run.step(10)
    run.change("perplexity", 6.0)
    run.step(10)
    frame = run.rewind(back + 3)
    assert frame.iteration == back == run.iteration
    assert run.values["perplexity"] != 6.0 and run.curve[-1][0] == back
    run.step(10)
    run.change("exaggeration", 2.0)
    last = run.step(20)
    assert [event.name for event in run.recipe.events] == [RESET_MOMENTUM, "exaggeration"]
    assert np.array_equal(Run(X, run.recipe, n_jobs=1).step(last.iteration).Y, last.Y)
    assert np.array_equal(run_source(python_source(run, DIGITS, last.iteration)), last.Y)


def test_reset_keeps_parameter_values_and_restarts(X):
    run = Run(X, n_jobs=1)
    run.step(20)
    run.change("perplexity", 6.0)
    start = run.reset()
    assert start.iteration == 0 and run.values["perplexity"] == 6.0 and not run.recipe.events
    assert np.array_equal(start.Y, Run(X, run.recipe, n_jobs=1).frame.Y)


def test_diverged_run_rewinds_and_raises(X):
    run = Run(X, n_jobs=1)
    last_map = run.step(30)
    with np.errstate(all="ignore"):
        run._state.velocity[:] = np.inf
    with pytest.raises(
        FloatingPointError, match=r"iteration 31: .*lower the learning rate \(returned to iteration 30\)"
    ):
        run.step(5)
    assert np.array_equal(run.frame.Y, last_map.Y) and np.isfinite(run.step().loss)


def test_invalid_values_raise_and_leave_the_run_unchanged(X):
    run = Run(X, n_jobs=1)
    run.step(5)
    for name, value, message in (
        ("perplexity", 400.0, "perplexity"),
        ("perplexity", float("nan"), "must be a finite number"),
        ("perplexity", "many", "must be a finite number"),
        ("exaggeration", 1e9, "between 0.25 and 32"),
        ("alpha", 0.0, "tsne has no parameter 'alpha'"),
    ):
        with pytest.raises(ValueError, match=message):
            run.change(name, value)
    assert run.recipe == Recipe() and run.values == defaults("tsne", N)
    with pytest.raises(ValueError, match="unknown method 'nonesuch'"):
        check_value("nonesuch", "perplexity", 3.0)
    with pytest.raises(ValueError, match="must be sorted by iteration"):
        Recipe(events=(Event(9, RESET_MOMENTUM), Event(3, RESET_MOMENTUM)))


def test_history_is_thinned_and_keeps_the_first_frame(monkeypatch):
    monkeypatch.setattr(history_module, "FRAMES", 10)
    frames = [Frame(t, 0.0, np.zeros((4, 2), np.float32), t) for t in range(100)]
    history = History(frames[0])
    for frame in frames[1:]:
        history.add(frame)
    found = [frame.iteration for frame in history.frames]
    assert found[0] == 0 and len(found) <= 10 and len(set(np.diff(found))) == 1 and found[-1] >= 80
    assert history.at(found[3] + 1).iteration == found[3] and history.at(-5).iteration == 0
    history.cut(found[3])
    assert history.frames[-1].iteration == found[3]


def test_trust_of_a_frame_matches_scikit_learn(X):
    from sklearn.manifold import trustworthiness

    run = Run(X, n_jobs=1)
    frame = run.step(120)
    trust = run.trust(frame)
    assert trust.values.shape == (N,)
    assert float(trust) == pytest.approx(trustworthiness(X, frame.Y, n_neighbors=15), abs=1e-4)  # ties


def test_links_round_trip():
    first = Recipe(
        "gsne", (("perplexity", 12.5), ("learning_rate", "auto")), 7, (Event(20, "eta", 0.3), Event(40, RESET_MOMENTUM))
    )
    second = Recipe("umap", (("n_neighbors", 9),), 1, (Event(4, "min_dist", 0.25),))
    view = View("file:a b&c.csv", (LinkedRun(first, 60), LinkedRun(second, 55)), "trust", 17, 1)
    assert from_query(to_query(view)) == view
    assert from_query("") == View()
    later = View(runs=(LinkedRun(Recipe(events=(Event(20, RESET_MOMENTUM), Event(50, RESET_MOMENTUM))), 30),))
    assert from_query(to_query(later)).runs[0].recipe.events == (Event(20, RESET_MOMENTUM),)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("method=nonesuch", "unknown method 'nonesuch'"),
        ("seed=-1", "seed in the link must be a non-negative integer"),
        ("iteration=1e9", "iteration in the link"),
        ("iteration=99999999", "must be at most 20,000, got 99,999,999"),
        ("perplexity=ten", "perplexity in the link must be a number"),
        ("perplexity=nan", "perplexity must be a finite number"),
        ("rho=0.5", "tsne has no parameter 'rho'"),
        ("changes=5", "iteration:name:value"),
        ("changes=5:perplexity:3:4", "iteration:name:value"),
        ("changes=x:perplexity:3", "the iteration of a change in the link must be a non-negative integer"),
        ("changes=9:rest_3:rest", "must be sorted by iteration"),
        ("optimizer=adam", "unknown optimizer 'adam'; choose from momentum, dynamics, frictionless"),
        ("color=mood", "unknown color 'mood' in the link"),
        ("seed=1&seed=2", "the link sets 'seed' twice"),
        ("x" * 20_000, "longer than 16000 characters"),
        ("&".join(f"a{i}=1" for i in range(80)), "the link is not valid"),
    ],
)
def test_invalid_links_raise(query, message):
    with pytest.raises(ValueError, match=message):
        from_query(query)


def test_link_of_too_many_changes_raises():
    recipe = Recipe(events=tuple(Event(t, "perplexity", 10.123456) for t in range(1, 600)))
    with pytest.raises(ValueError, match="copy the Python"):
        to_query(View(runs=(LinkedRun(recipe, 700),)))


def test_link_of_too_many_iterations_raises():
    longest = View(runs=(LinkedRun(iteration=20_000), LinkedRun(iteration=10)))
    assert from_query(to_query(longest)) == longest
    with pytest.raises(ValueError, match="at most 20,000 iterations, but the run is at iteration 20,001; reset it"):
        to_query(View(runs=(LinkedRun(iteration=10), LinkedRun(iteration=20_001))))


def test_files_outside_the_folder_are_rejected(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.csv").write_text("1,2\n3,4\n")
    (inside / "way.csv").symlink_to(tmp_path / "secret.csv")
    (inside / "own.csv").write_text("a,b,kind\n1,2,x\n3,4,y\n5,6,x\n")
    tables = DataSources(inside, Limits(upload=1000))
    found = tables.load("file:own.csv")
    assert (
        found.X.tolist() == [[1, 2], [3, 4], [5, 6]]
        and found.classes == ("x", "y")
        and found.labels.tolist() == [0, 1, 0]
    )
    for name, message in (
        ("file:../secret.csv", "outside the studio's folder"),
        ("file:way.csv", "outside the studio's folder"),
        (f"file:{tmp_path / 'secret.csv'}", "is not a file name"),
        ("file:..\\secret.csv", "is not a file name"),
        ("file:a\0.csv", "is not a file name"),
        ("file:", "is not a file name"),
        ("file:none.csv", "the file 'none.csv' does not exist"),
        ("file:own.pickle", "unknown format '.pickle'; upload a .csv, .tsv or .npy file"),
        ("named:nonesuch", "unknown data set"),
        ("given:", "started without data"),
        ("ftp:x", "unknown data set 'ftp:x'"),
    ):
        with pytest.raises(ValueError, match=message):
            tables.load(name)
    (inside / "big.csv").write_text("1,2\n" * 1000)
    with pytest.raises(ValueError, match=r"exceeds the limit of 1 kB"):
        tables.load("file:big.csv")


def test_uploads_are_checked_and_get_a_safe_name(tmp_path):
    tables = DataSources(tmp_path, Limits(upload=1000))
    name = tables.store("../../étoile & co.CSV", b"1,2\n3,4\n")
    assert name.startswith("file:étoile_co-") and name.endswith(".csv")
    assert tables.load(name).X.shape == (2, 2) and (name, "étoile & co.CSV") in tables.names([name])["Files"]
    for given, content, message in (
        ("a.csv", b"x" * 1001, "exceeds the limit"),
        ("a.csv", b"1,2\n3\n", r"^a\.csv, line 2: expected 2 cells as in the first row, got 1"),
        ("a.csv", b"\xff\xfe\x00", "save the file as UTF-8"),
        ("a.csv", b"x,y\n", "a header but no rows"),
        ("a.npy", b"junk", "cannot be read as NPY"),
        ("a.exe", b"1", "unknown format"),
        ("", b"1", "unknown format"),
        ("folder/my table", b"1", "unknown format 'my table'; upload a .csv, .tsv or .npy file"),
    ):
        with pytest.raises(ValueError, match=message):
            tables.store(given, content)
    assert [path.name for path in tmp_path.iterdir()] == [name[5:]]


def test_worker_waits_for_the_page_and_reports_errors(X):
    messages = []
    worker = Worker(messages.append, lambda: None)
    try:
        worker.runs = (Run(X, n_jobs=1),)
        worker.playing = True
        worker.submit("", lambda: None)
        assert [worker.frames.get(timeout=SECONDS).frames[0].iteration for _ in range(3)] == [1, 2, 3]
        worker.playing = False

        def fail():
            raise ValueError("no such thing")

        worker.submit("Trying", fail)
        worker.point = 4
        worker.submit("", worker.publish)
        worker.stop()
        worker.join(SECONDS)
        shot = worker.frames.get_nowait()
        assert messages == ["no such thing"] and shot.forces[0].attraction.shape == (2,)
        assert worker.runs[0].iteration <= 5
    finally:
        worker.stop()


@pytest.mark.parametrize(("method", "name", "value"), [("tsne", "perplexity", 12.0), ("umap", "n_neighbors", 7)])
def test_change_before_the_first_step_sets_the_initial_value(X, method, name, value):
    run = Run(X, Recipe(method), n_jobs=1)
    run.change(name, value)
    np.testing.assert_array_equal(run.frame.Y, Run(X, run.recipe, n_jobs=1).frame.Y)
    assert run.curve[0][1] == run.frame.loss and run.recipe.events == ()


def test_page_schedules_no_callback_before_its_first_tick(tmp_path):
    pytest.importorskip("bokeh", reason="Bokeh is not installed")
    with opened_page(tmp_path) as page:
        page._wake()
        assert len(page._document.session_callbacks) == 1  # the clock
        page._tick()
        page._wake()
        assert len(page._document.session_callbacks) == 2


@pytest.mark.parametrize("iteration", [1, 30, 130, 199])
def test_python_of_a_short_run_fits_the_estimator(X, iteration):
    run = Run(X, Recipe("umap", seed=1), n_jobs=1)
    frame = run.step(iteration)
    source = python_source(run, DIGITS, iteration)
    assert "method = eq.UMAP(" in source and "studio" not in source
    assert np.array_equal(run_source(source), frame.Y)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], "X = data.read('t.csv').X"),
        (["--label", "kind", "--columns", "a,b"], "X = data.read('t.csv', columns=['a', 'b'], label='kind').X"),
        (
            ["--standardize", "--pca", "2"],
            "dataset = data.read('t.csv')\nX = data.preparation(dataset, standardize=True, pca=2).apply(dataset).X",
        ),
    ],
)
def test_command_line_gives_the_studio_python_that_reads_the_data(tmp_path, monkeypatch, options, code):
    pytest.importorskip("bokeh")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b,c,kind\n1,2,3,x\n3,4,9,y\n5,7,6,x\n8,6,1,y\n")
    served = []
    monkeypatch.setattr("equipoise.studio.server.serve.serve", lambda data, **options: served.append(data))
    assert main(["studio", "t.csv", *options, "--no-browser"]) == 0
    exec(served[0].code, namespace := {"data": data})
    assert served[0].code == code and np.array_equal(namespace["X"], served[0].dataset.X)
