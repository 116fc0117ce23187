"""Interrupted runs: each goes on from its checkpoint to the bytes of a run that was never interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from support.methods import iterative

import equipoise as eq
from equipoise.inputs import table
from equipoise.methods import ALL
from equipoise.optimize import gradient_steps
from equipoise.saving import archive
from equipoise.saving import neighbors_cache as kept_neighbors
from equipoise.saving.checkpoint import fingerprint

X, _ = make_blobs(60, 5, centers=4, cluster_std=5.0, random_state=0)
quietly = pytest.mark.filterwarnings("ignore::UserWarning")  # flows that stop early say so


def brief(Method, **parameters):
    """Return an iterative method that reports every ten iterations and does not stop before the last."""
    settings = {"n_iter": 40, "optimizer": eq.Momentum(every=10, min_loss_change=0)}
    settings["tol"] = 0.01 if issubclass(Method, eq.Embedding) else 1e-9
    return iterative(Method, **{**settings, **parameters})


RUNS = {Method.__name__: (lambda Method=Method: brief(Method)) for Method in ALL}
RUNS |= {
    "the mesh": lambda: brief(eq.TSNE, engine="grid", n_iter=130),
    "two kernels on a mesh": lambda: brief(eq.DKPCA, engine="grid"),
    "the mesh under charges": lambda: brief(eq.SNE, engine="grid"),
    "a sample of the pairs": lambda: brief(eq.TSNE, engine="sampled", n_components=4),
    "sampled edges": lambda: brief(eq.UMAP, engine="negative_sampling", optimizer=None, n_iter=120),
    "a metric tensor": lambda: brief(eq.TSNE, g=np.array([[2, 1], [1, 2.0]])),
    "plain descent": lambda: brief(eq.TSNE, optimizer=eq.GradientDescent(every=7)),
    "ordinal stress": lambda: brief(eq.MDS, stress="ordinal"),
    "smacof": lambda: brief(eq.MDS, solver="smacof"),
    "several starts": lambda: brief(eq.MDS, n_init=3, n_iter=12, init="random"),
    "sampled pairs": lambda: brief(eq.MDS, engine="random_pairs"),
}


class Watch:
    """A callback that counts its calls, and presses Ctrl-C at one of them."""

    def __init__(self, last=None):
        self.calls, self.last = 0, last

    def __call__(self, iteration, loss, Y):
        self.calls += 1
        if self.calls == self.last:
            raise KeyboardInterrupt


def same(one, two):
    assert one.embedding_.tobytes() == two.embedding_.tobytes()
    assert one.loss_curve_.tobytes() == two.loss_curve_.tobytes()
    assert one.n_iter_ == two.n_iter_ and one.loss_ == two.loss_


@quietly
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("part, step", [(0.4, 3), (0.7, 4)])
def test_an_interrupted_run_goes_on_to_the_same_bytes(name, part, step, tmp_path):
    path, watch = tmp_path / "run.eqc", Watch()
    whole = RUNS[name]().set_params(callbacks=[watch]).fit(X)
    stop = Watch(1 + int(part * watch.calls))
    with pytest.raises(KeyboardInterrupt):
        RUNS[name]().set_params(callbacks=[eq.Checkpoint(path, every=step), stop]).fit(X)
    resumed = RUNS[name]().set_params(callbacks=[eq.Checkpoint(path, every=step, resume=True), watch])
    same(whole, resumed.fit(X))
    assert [p.name for p in tmp_path.iterdir()] == ["run.eqc"]


def test_a_checkpoint_changes_nothing(tmp_path):
    plain, kept = brief(eq.TSNE).fit(X), brief(eq.TSNE, callbacks=[eq.Checkpoint(tmp_path / "run", every=1)]).fit(X)
    same(plain, kept)


@pytest.mark.parametrize("last", [25, 35])  # in the late phase, which begins at 20
def test_points_put_in_another_order_stay_so(last, tmp_path, monkeypatch):
    monkeypatch.setattr(gradient_steps, "LOCALITY", 10)
    path, settings = tmp_path / "run.eqc", {"engine": "grid", "optimizer": eq.Momentum(every=1, min_loss_change=0)}
    whole = brief(eq.TSNE, **settings).fit(X)
    assert whole._problem._state.order is not None
    with pytest.raises(KeyboardInterrupt):
        brief(eq.TSNE, **settings, callbacks=[eq.Checkpoint(path, every=5), Watch(last)]).fit(X)
    same(whole, brief(eq.TSNE, **settings, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X))


def test_early_exaggeration_that_is_undone(tmp_path):
    data, path = np.random.RandomState(0).standard_normal((24, 4)), tmp_path / "run.eqc"
    whole = eq.TSNE(random_state=0, n_jobs=1).fit(data)
    assert whole._problem.early_undone
    for last in (1, 3, 5):  # at iteration 50, at 150 and at 250, after the late phase has begun at the start
        with pytest.raises(KeyboardInterrupt):
            eq.TSNE(random_state=0, n_jobs=1, callbacks=[eq.Checkpoint(path, every=7), Watch(last + 1)]).fit(data)
        same(whole, eq.TSNE(random_state=0, callbacks=[eq.Checkpoint(path, resume=True)]).fit(data))


def test_the_stopping_rule_remembers(tmp_path):
    path, settings = tmp_path / "run.eqc", {"n_iter": 300, "optimizer": eq.Momentum(every=10, min_loss_change=0.01)}
    watch = Watch()
    whole = brief(eq.TSNE, **settings, callbacks=[watch]).fit(X)
    assert whole._problem.stopped == "min_loss_change"
    with pytest.raises(KeyboardInterrupt):  # at the report that would have ended it
        brief(eq.TSNE, **settings, callbacks=[eq.Checkpoint(path, every=5), Watch(watch.calls)]).fit(X)
    same(whole, brief(eq.TSNE, **settings, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X))


def test_again_and_again(tmp_path):
    path, settings = tmp_path / "run.eqc", {"engine": "grid", "optimizer": eq.Momentum(every=1, min_loss_change=0)}
    whole = brief(eq.UMAP, **settings).fit(X)
    for time in range(5):
        checkpoint = eq.Checkpoint(path, every=2, resume=time > 0)
        with pytest.raises(KeyboardInterrupt):
            brief(eq.UMAP, **settings, callbacks=[checkpoint, Watch(7)]).fit(X)
    same(whole, brief(eq.UMAP, **settings, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X))


CHILD = """
import os, signal, sys
import numpy as np
import equipoise as eq

def killed(iteration, loss, Y):
    if iteration == 30:
        os.kill(os.getpid(), signal.SIGKILL)

X = np.load(sys.argv[1])
callbacks = [eq.Checkpoint(sys.argv[2], every=7), killed]
eq.TSNE(random_state=0, n_iter=40, n_jobs=1, engine="grid", perplexity=6,
        optimizer=eq.Momentum(every=10, min_loss_change=0), callbacks=callbacks).fit(X)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_kill_9(tmp_path):
    np.save(tmp_path / "X.npy", X)
    path = tmp_path / "run.eqc"
    child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "X.npy"), str(path)])
    assert child.returncode == -signal.SIGKILL and path.exists()
    whole = brief(eq.TSNE, engine="grid").fit(X)
    same(whole, brief(eq.TSNE, engine="grid", n_jobs=2, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X))


@pytest.fixture
def searches(monkeypatch):
    """The sizes of the tables that are searched for neighbours; they are kept of any number of points."""
    sizes, search = [], table.nearest_neighbors
    monkeypatch.setattr(kept_neighbors, "MIN_POINTS", 0)
    monkeypatch.setattr(table, "nearest_neighbors", lambda X, *a, **b: sizes.append(len(X)) or search(X, *a, **b))
    return sizes


NEIGHBORS = {
    "TSNE": lambda: brief(eq.TSNE, engine="grid"),
    "UMAP": lambda: brief(eq.UMAP),
    "DKLLE": lambda: brief(eq.DKLLE),
    "a metric tensor": lambda: brief(eq.TSNE, engine="grid", h=np.diag([1.0, 2, 3, 4, 5])),
}


@pytest.mark.parametrize("name", NEIGHBORS)
def test_neighbors_are_not_searched_again(name, tmp_path, searches):
    path, new = tmp_path / "run.eqc", X[:5] + 0.1
    whole = NEIGHBORS[name]().fit(X)
    with pytest.raises(KeyboardInterrupt):
        NEIGHBORS[name]().set_params(callbacks=[eq.Checkpoint(path, every=3), Watch(3)]).fit(X)
    assert searches == [60, 60] and sorted(p.name for p in tmp_path.iterdir()) == ["run.eqc", "run.eqc.neighbors"]
    resumed = NEIGHBORS[name]().set_params(callbacks=[eq.Checkpoint(path, resume=True)]).fit(X)
    assert searches == [60, 60]
    same(whole, resumed)
    assert whole.transform(new).tobytes() == resumed.transform(new).tobytes()
    assert resumed.knn_recall_ == whole.knn_recall_


def test_neighbors_of_another_table_are_left_alone(tmp_path, searches):
    path = tmp_path / "run.eqc"
    run = brief(eq.TSNE, engine="grid", callbacks=[eq.Checkpoint(path, every=3)])
    run.fit(X)
    kept = (tmp_path / "run.eqc.neighbors").read_bytes()
    again = brief(eq.TSNE, engine="grid", callbacks=[eq.Checkpoint(path, resume=True)])
    with pytest.raises(ValueError, match="a checkpoint of another run"):
        again.fit(X[::-1])
    assert (tmp_path / "run.eqc.neighbors").read_bytes() == kept and len(searches) == 2
    run.fit(X[::-1])  # a new run takes its place
    assert (tmp_path / "run.eqc.neighbors").read_bytes() != kept
    path.unlink()
    with pytest.warns(UserWarning, match="there is no checkpoint"):
        same(again.fit(X), brief(eq.TSNE, engine="grid").fit(X))
    assert (tmp_path / "run.eqc.neighbors").read_bytes() == kept


def test_a_metric_of_ones_own_is_searched_again(tmp_path, searches):
    run = brief(eq.TSNE, engine="grid", metric=lambda a, b: np.abs(a - b).sum())
    run.set_params(callbacks=[eq.Checkpoint(tmp_path / "run.eqc", every=10)]).fit(X)
    assert [p.name for p in tmp_path.iterdir()] == ["run.eqc"] and searches == [60]


def test_damaged_neighbors_are_refused(tmp_path, searches):
    path, file = tmp_path / "run.eqc", tmp_path / "run.eqc.neighbors"
    brief(eq.TSNE, engine="grid", callbacks=[eq.Checkpoint(path)]).fit(X)
    resumed = brief(eq.TSNE, engine="grid", callbacks=[eq.Checkpoint(path, resume=True)])
    about = {}
    indices, distances, recall = archive.read(file, lambda path, said: about.update(said))
    del about["content"]
    archive.write(file, about, [indices + 1, distances, recall])
    with pytest.raises(
        ValueError, match=r"run\.eqc\.neighbors is damaged: .* delete it to repeat the neighbour search"
    ):
        resumed.fit(X)
    for wrong in ("high", 1.5, float("nan"), None):
        archive.write(file, about, [indices, distances, wrong])
        with pytest.raises(ValueError, match=r"run\.eqc\.neighbors is damaged: .* delete it to"):
            resumed.fit(X)
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(ValueError, match=r"run\.eqc\.neighbors is damaged, or is no file .*; delete it to search"):
        resumed.fit(X)
    file.unlink()
    with pytest.warns(UserWarning, match="there is no checkpoint"):
        resumed.fit(X)


def test_a_problem_takes_checkpoints_too(tmp_path):
    path = tmp_path / "run.eqc"
    whole = brief(eq.TSNE).problem(X).optimize(n_iter=33)
    with pytest.raises(KeyboardInterrupt):
        brief(eq.TSNE).problem(X).optimize(n_iter=33, callbacks=[eq.Checkpoint(path, every=4), Watch(1)])
    assert not path.exists()  # stopped before the first iteration
    problem = brief(eq.TSNE).problem(X)
    problem.optimize(n_iter=33, callbacks=[eq.Checkpoint(path, every=4)])
    again = brief(eq.TSNE).problem(X).optimize(n_iter=33, callbacks=[eq.Checkpoint(path, resume=True)])
    assert again.tobytes() == whole.tobytes()


# What is refused


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "run.eqc"
    brief(eq.TSNE, callbacks=[eq.Checkpoint(path, every=10)]).fit(X)
    return path


@pytest.mark.parametrize(
    "method, data, what",
    [
        (brief(eq.TSNE), X + np.arange(5) * X, "affinities"),
        (brief(eq.TSNE, perplexity=7), X, "affinities"),
        (brief(eq.TSNE, dof=2.0), X, "loss"),
        (brief(eq.TSNE, n_iter=50), X, "n_iter"),
        (brief(eq.TSNE, init="random"), X, "initial map"),
        (brief(eq.TSNE, random_state=1), X, "initial map"),
        (brief(eq.TSNE, learning_rate=10), X, "learning rate or exaggeration"),
        (brief(eq.TSNE, optimizer=eq.Momentum(friction=3)), X, "optimizer"),
        (brief(eq.TSNE, engine="reference"), X, "engine"),
        (brief(eq.MDS), X, "dissimilarities or weights"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_run_is_refused(kept, method, data, what):
    method.set_params(callbacks=[eq.Checkpoint(kept, resume=True)])
    with pytest.raises(ValueError, match=f"a checkpoint of another run: .*{what}.* differs?; use the data"):
        method.fit(data)


def test_another_version_is_refused(kept, tmp_path):
    path = tmp_path / "run.eqc"
    with zipfile.ZipFile(kept) as file, zipfile.ZipFile(path, "w") as other:
        for name in file.namelist():
            content = file.read(name)
            if name == "content.json":
                content = json.dumps({**json.loads(content), "equipoise": "0.0.1"})
            other.writestr(name, content)
    with pytest.raises(ValueError, match=r"a checkpoint of equipoise 0\.0\.1, but this is .* install that one"):
        brief(eq.TSNE, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X)


def test_other_files_are_refused(kept, tmp_path):
    path = tmp_path / "method.eqz"
    eq.save(brief(eq.TSNE).fit(X), path)
    with pytest.raises(ValueError, match="is not a checkpoint"):
        brief(eq.TSNE, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X)
    with pytest.raises(ValueError, match="does not contain a fitted method"):
        eq.load(kept)
    path.write_bytes(kept.read_bytes()[:3000])
    for Method in (eq.TSNE, eq.MDS, eq.PCA):
        with pytest.raises(ValueError, match="damaged or is not an equipoise file"):
            brief(Method, callbacks=[eq.Checkpoint(path, resume=True)]).fit("before the data is looked at")


def test_nothing_to_resume_is_told(tmp_path):
    with pytest.warns(UserWarning, match="there is no checkpoint .* yet; starting from the beginning"):
        method = brief(eq.TSNE, callbacks=[eq.Checkpoint(tmp_path / "run.eqc", resume=True)]).fit(X)
    same(method, brief(eq.TSNE).fit(X))


def test_checkpoints_are_checked_when_made(tmp_path):
    with pytest.raises(ValueError, match="every must be an integer >= 1, got 0"):
        eq.Checkpoint(tmp_path / "run.eqc", every=0)
    with pytest.raises(ValueError, match=r"the checkpoint's folder .* does not exist; create it first"):
        eq.Checkpoint(tmp_path / "nowhere" / "run.eqc")


def test_a_fingerprint_sees_every_part():
    A = sparse.csr_matrix(np.eye(3))
    B = A.copy()
    B.data[1] = 2.0
    values = [1, 1.0, "1", True, None, np.ones(2), np.ones(2, np.float32), np.ones((2, 1)), A, B, [1], (1,), [[1], []],
              [[], [1]], eq.kernels.StudentT(1.0), eq.kernels.StudentT(2.0), eq.kernels.Gaussian()]  # fmt: skip
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(eq.kernels.StudentT(2.0)) == fingerprint(eq.kernels.StudentT(2.0))


def test_fingerprints_tell_functions_and_dicts_apart():
    assert fingerprint(len) != fingerprint(max) and fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})


@pytest.mark.parametrize("method", [eq.TSNE, eq.MDS, eq.UMAP], ids=lambda method: method.__name__)
def test_a_run_that_cannot_be_repeated_is_not_kept(method, tmp_path):
    kept = eq.Checkpoint(tmp_path / "run.eqc")
    with pytest.raises(ValueError, match="Checkpoint requires an integer random_state, got None"):
        method(callbacks=[kept]).fit(np.eye(9))
