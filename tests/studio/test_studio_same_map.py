"""The studio, the library, the command line, the widget and the copied code give the same map for the same settings."""

from importlib.util import find_spec

import numpy as np
import pytest

import equipoise as eq
from equipoise import data
from equipoise.cli import main
from equipoise.studio import Recipe, Run
from equipoise.studio.data_sources import DataSources, GivenData
from equipoise.studio.limits import Limits
from equipoise.studio.session.player import make_run
from equipoise.studio.session.python_source import python_source

MAKE = {"tsne": eq.TSNE, "umap": eq.UMAP, "sne": eq.SNE, "mds": eq.MDS}


@pytest.mark.parametrize(
    ("name", "method", "metric"),
    [
        ("iris", "sne", "euclidean"), ("iris", "umap", "mixed"), ("digits", "tsne", "euclidean"),
        ("digits", "umap", "cosine"), ("iris", "mds", "mixed"),
    ],
)  # fmt: skip
def test_studio_library_command_line_and_widget_give_the_same_bytes(tmp_path, monkeypatch, name, method, metric):
    monkeypatch.chdir(tmp_path)
    X = data.load(name).X  # digits: 1,797 rows, more than the 1,000 from which forces are computed on a mesh
    run = make_run(X, Recipe(method, seed=3, first=(("n_iter", 200),) if method == "mds" else (), metric=metric), None)
    for _ in range(20):
        run.step()
    run.step(5)
    run.step(175)
    model = MAKE[method](n_iter=200, random_state=3, metric=metric).fit(X)
    options = ["--method", method, "--n-iter", "200", "--seed", "3", "--metric", metric, "--out", "map.npy"]
    assert main(["embed", name, *options]) == 0
    embedded = np.load(tmp_path / "map.npy")
    assert run.frame.Y.tobytes() == model.embedding_.tobytes() == embedded.tobytes()
    assert run.frame.Y.dtype == embedded.dtype
    if find_spec("anywidget") is not None:  # extra `notebook`
        assert eq.widget(model).get_state()["_positions"] == run.frame.Y.astype(np.float32).tobytes()


@pytest.mark.parametrize(
    ("method", "optimizer", "iteration"),
    [("tsne", "momentum", 200), ("tsne", "momentum", 37), ("umap", "momentum", 50), ("tsne", "dynamics", 64)],
)
def test_copied_code_gives_the_bytes_of_the_studio(method, optimizer, iteration):
    run = Run(data.load("digits").X, Recipe(method, seed=3, optimizer=optimizer))
    for _ in range(3):
        run.step(10)
    run.step(iteration - 30)
    source = python_source(run, "X = data.load('digits').X", iteration)
    exec(source, namespace := {})
    assert namespace["Y"].tobytes() == run.frame.Y.tobytes()
    assert "studio" not in source and ("optimizer=eq.Dynamics()" in source) == (optimizer == "dynamics")


def test_copied_code_reads_an_uploaded_file_by_its_own_name(tmp_path, monkeypatch):
    rows = np.random.default_rng(0).normal(size=(1100, 3))
    lines = "\n".join(f"{a:.6f},{b:.6f},{c:.6f},{'xy'[i % 2]}" for i, (a, b, c) in enumerate(rows))
    content = f"a,b,c,kind\n{lines}\n".encode()
    sources = DataSources(tmp_path / "uploads", Limits())
    name = sources.store("C:\\my data\\some table.csv", content)
    run = Run(sources.load(name).X, Recipe("umap", seed=1))
    run.step(60)
    source = python_source(run, sources.code(name), 60)
    assert "some table.csv" in source and "uploads" not in source
    (tmp_path / "some table.csv").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    exec(source, namespace := {})
    assert namespace["Y"].tobytes() == run.frame.Y.tobytes()


def test_python_turns_off_early_stopping_only_where_the_estimator_would_have_stopped():
    X = data.load("iris").X
    run = Run(X, n_jobs=1)
    while run.settled is None:
        run.step(50)
    estimator = eq.TSNE(random_state=0, n_jobs=1, n_iter=5000).fit(X)
    assert estimator.n_iter_ == run.settled == run.iteration - 50
    assert np.array_equal(estimator.embedding_, run.history.at(run.settled).Y)
    assert "optimizer" not in python_source(run, "X = data.load('iris').X", run.settled)
    source = python_source(run, "X = data.load('iris').X", run.iteration)
    assert "optimizer=eq.Momentum(min_grad_norm=0, min_loss_change=0),  # do not stop early" in source
    exec(source, namespace := {})
    assert np.array_equal(namespace["Y"], run.frame.Y)


def test_python_reads_the_data_under_their_own_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my table.csv").write_bytes(b"1,2\n3,4\n")
    folder = tmp_path / "uploads"
    folder.mkdir()
    tables = DataSources(folder, Limits(), GivenData(data.load("iris"), "X = data.load('iris').X"))
    stored = tables.store("C:\\data\\my table.csv", b"1,2\n3,4\n")
    for name, shape in ((stored, (2, 2)), ("named:digits", (1797, 64)), ("given:", (150, 4))):
        namespace = {"data": data}
        exec(tables.code(name), namespace)
        assert namespace["X"].shape == shape
    assert tables.code(stored) == "X = data.read('my table.csv').X"
    assert DataSources(folder, Limits(), GivenData(data.load("iris"))).code("given:").startswith("# X is the table")
