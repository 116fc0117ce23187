"""Methods that the studio shows when they are finished: same bytes as the library and the command line."""

import threading

import numpy as np
import pytest
from support.browser import until
from support.studio import MODEL, finish, opened_page, running

import equipoise as eq
from equipoise import data
from equipoise.cli import main
from equipoise.studio import Recipe, Run
from equipoise.studio.page.link import LinkedRun, View, from_query, to_query
from equipoise.studio.session.finished_run import FinishedRun
from equipoise.studio.session.parameters import METHODS
from equipoise.studio.session.player import check_memory
from equipoise.studio.session.python_source import python_source

FINISHED = {name: choice.make for name, choice in METHODS.items() if not choice.iterates}
X = data.load("iris").X


def test_methods_without_iterations_are_listed():
    assert set(FINISHED.values()) == {
        eq.PCA, eq.ClassicalMDS, eq.MDS, eq.Isomap, eq.LLE, eq.LaplacianEigenmaps,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "metric"),
    [(method, "euclidean") for method in FINISHED] + [("mds", "mixed"), ("isomap", "mixed"), ("classicalmds", "mixed")],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # that the neighbour graph is not connected
def test_studio_library_command_line_and_copied_code_give_the_same_bytes(tmp_path, monkeypatch, method, metric):
    monkeypatch.chdir(tmp_path)
    run = FinishedRun(X, Recipe(method, seed=3, metric=metric), n_jobs=1)
    chosen = {} if method == "pca" else {"metric": metric}
    model = FINISHED[method](random_state=3, **chosen).fit(X)
    options = [] if method == "pca" else ["--metric", metric]
    assert main(["embed", "iris", "--method", method, "--seed", "3", *options, "--out", "map.npy"]) == 0
    assert run.frame.Y.tobytes() == model.embedding_.tobytes() == np.load("map.npy").tobytes()
    exec(python_source(run, "X = data.load('iris').X", 0), namespace := {})
    assert namespace["Y"].tobytes() == run.frame.Y.tobytes()


def test_changed_parameter_gives_the_map_of_the_library_and_a_link_keeps_it():
    run = FinishedRun(X, Recipe("lle"), n_jobs=1)
    first = run.frame.Y
    assert len(run.warnings) == 1 and run.warnings[0].startswith("the neighbour graph has 2 components, of 100, 50")
    run.change("n_neighbors", 12)
    with pytest.warns(UserWarning, match="components"):
        assert np.array_equal(run.frame.Y, eq.LLE(n_neighbors=12, random_state=0).fit_transform(X))
    with pytest.raises(ValueError, match="reg must be between 1e-08 and 1, got 2"):
        run.change("reg", 2.0)
    assert not np.array_equal(run.frame.Y, first) and run.values["n_neighbors"] == 12
    view = View("named:iris", (LinkedRun(run.recipe),))
    assert from_query(to_query(view)) == view
    assert from_query("method=pca&iteration=50").runs[0].iteration == 0
    with pytest.raises(ValueError, match="pca has no iterations, so that nothing can change during its run"):
        from_query("method=pca&changes=5:rest")


def test_two_pages_fit_at_the_same_time_and_show_their_own_warnings(monkeypatch):
    both_fit = threading.Barrier(2, timeout=60)
    fit = eq.LLE.fit

    def fit_together(self, X, y=None):
        both_fit.wait()
        fit(self, X)
        both_fit.wait()
        return self

    monkeypatch.setattr(eq.LLE, "fit", fit_together)
    tables = {"apart": X, "connected": X[50:]}
    found = {}

    def run(name):
        found[name] = FinishedRun(tables[name], Recipe("lle", first=(("n_neighbors", 12),)), n_jobs=1).warnings

    threads = [threading.Thread(target=run, args=(name,)) for name in tables]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found["connected"] == () and len(found["apart"]) == 1
    assert found["apart"][0].startswith("the neighbour graph has 2 components, of 100, 50")


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match=r"PCA has no iterations; use equipoise\.PCA instead of Run"):
        Run(X, Recipe("pca"))
    gaps = np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X)
    with pytest.raises(
        ValueError, match="PCA needs numbers without gaps; leave out the other columns, or choose class"
    ):
        FinishedRun(gaps, Recipe("pca"))
    assert np.isfinite(FinishedRun(gaps, Recipe("classicalmds")).frame.Y).all()
    with pytest.raises(ValueError, match="need about"):
        check_memory(np.broadcast_to(0.0, (30_000, 5)), [Recipe("isomap")], 2**30)


@pytest.mark.parametrize(
    ("method", "metric", "bytes_per_pair"),
    [
        ("isomap", "auto", 32), ("isomap", "mixed", 32), ("classicalmds", "cosine", 32), ("lle", "mixed", 16),
        ("classicalmds", "auto", 0), ("lle", "cosine", 0), ("laplacianeigenmaps", "mixed", 0), ("pca", "auto", 0),
        ("mds", "auto", 0),
    ],
)  # fmt: skip
def test_memory_limit_counts_the_pairs_that_a_method_stores(method, metric, bytes_per_pair):
    n, GB = 30_000, 2**30
    table, recipe = np.broadcast_to(0.0, (n, 5)), Recipe(method, metric=metric)
    pairs = bytes_per_pair * n**2
    check_memory(table, [recipe], pairs + 2 * GB)
    if pairs:
        with pytest.raises(ValueError, match="need about"):
            check_memory(table, [recipe], pairs)
        with pytest.raises(ValueError, match="need about"):
            check_memory(table, [Recipe("pca"), recipe], pairs)


def draw(page):
    """Wait for the commands of a page without a browser, and let it draw the last shot."""
    finish(page)
    page._flow.begin()
    page._tick()


def test_page_changes_between_methods_with_and_without_iterations(tmp_path):
    pytest.importorskip("bokeh")
    with opened_page(tmp_path) as page:
        draw(page)
        page._method_chosen("mds")
        draw(page)
        widgets = page.layout
        shown = (
            widgets.transport,
            widgets.loss,
            widgets.optimizer,
            widgets.sliders.auto,
            widgets.sliders.sliders["dof"],
        )
        assert not any(widget.visible for widget in shown) and widgets.sliders.sliders["n_iter"].visible
        assert widgets.maps.panels[0].title.text.startswith("MDS · stress-1 0.")
        page._clicked([3])
        draw(page)
        assert "This map is computed at once, without forces" in widgets.forces.text
        page._play()
        draw(page)
        assert not page._player.play_requested and widgets.play.label == "Play"
        page._compare(True)
        draw(page)
        page._player.step(lambda: None)
        draw(page)
        assert page._picture.shot.iteration == 1 and widgets.transport.visible and widgets.metric.visible
        content, name, _ = page._picture.export("csv", 0)
        assert name == "circle-mds.csv" and len(content.splitlines()) == 101
        page._active = 0
        page._method_chosen("pca")
        draw(page)
        assert not widgets.metric.visible and page._picture.title(0).startswith("1 · PCA · variance kept 100")


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """Yield a studio whose folder has a table with a gap."""
    pytest.importorskip("bokeh")
    folder = tmp_path_factory.mktemp("studio")
    rows = "\n".join(f"{i % 7 if i != 9 else ''},{i * i % 11},{i}.5" for i in range(40))
    (folder / "gaps.csv").write_text(f"a,b,c\n{rows}\n")
    with running("circle", folder=folder) as studio:
        yield studio


def test_failed_change_of_method_returns_the_menus(studio, visit):
    tab = visit(studio.url + "?data=file:gaps.csv&table.missing=%22distance%22")
    tab.evaluate(f"{MODEL.format(name='method')}.value = 'pca'")
    until(tab, f"{MODEL.format(name='message')}.text !== '' && {MODEL.format(name='method')}.value === 'tsne'")
    tab.evaluate(f"{MODEL.format(name='method')}.value = 'classicalmds'")
    until(tab, f"{MODEL.format(name='title a')}.text.startsWith('classical MDS · Gram matrix kept')")
    until(tab, f"!{MODEL.format(name='transport')}.visible")
    tab.locator(".map").first.focus()
    tab.keyboard.press("Space")  # has nothing to play
    assert not tab.locator("#transport button").first.is_visible()
