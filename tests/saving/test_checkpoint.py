"""Interrupted runs resume from their checkpoint to the same bytes as uninterrupted runs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from support.methods import iterative

import equipoise as eq
from equipoise import _file_locks
from equipoise.inputs import table
from equipoise.methods import ALL
from equipoise.optimize import gradient_steps
from equipoise.saving import archive, neighbors_cache
from equipoise.saving.checkpoint import fingerprint

X, _ = make_blobs(60, 5, centers=4, cluster_std=5.0, random_state=0)
ignore_warnings = pytest.mark.filterwarnings("ignore::UserWarning")  # flows warn when they do not converge


def brief(Method, **parameters):
    """Return an iterative method that reports every ten iterations and does not stop before the last."""
    settings = {"n_iter": 40, "optimizer": eq.Momentum(every=10, min_loss_change=0)}
    settings["tol"] = 0.01 if issubclass(Method, eq.Embedding) else 1e-9
    return iterative(Method, **{**settings, **parameters})


RUNS = {Method.__name__: (lambda Method=Method: brief(Method)) for Method in ALL}
RUNS |= {
    "mesh": lambda: brief(eq.TSNE, engine="grid", n_iter=130),
    "two kernels on the mesh": lambda: brief(eq.DKPCA, engine="grid"),
    "mesh with charges": lambda: brief(eq.SNE, engine="grid"),
    "sampled field": lambda: brief(eq.TSNE, engine="sampled", n_components=4),
    "sampled edges": lambda: brief(eq.UMAP, engine="negative_sampling", optimizer=None, n_iter=120),
    "a metric tensor": lambda: brief(eq.TSNE, g=np.array([[2, 1], [1, 2.0]])),
    "plain descent": lambda: brief(eq.TSNE, optimizer=eq.GradientDescent(every=7)),
    "ordinal stress": lambda: brief(eq.MDS, stress="ordinal"),
    "smacof": lambda: brief(eq.MDS, solver="smacof"),
    "several starts": lambda: brief(eq.MDS, n_init=3, n_iter=12, init="random"),
    "MDS with sampled pairs": lambda: brief(eq.MDS, engine="random_pairs"),
}


class Interrupt:
    """A callback that counts its calls and raises KeyboardInterrupt at call `last`."""

    def __init__(self, last=None):
        self.calls, self.last = 0, last

    def __call__(self, iteration, loss, Y):
        self.calls += 1
        if self.calls == self.last:
            raise KeyboardInterrupt


def assert_same(one, two):
    assert one.embedding_.tobytes() == two.embedding_.tobytes()
    assert one.loss_curve_.tobytes() == two.loss_curve_.tobytes()
    assert one.n_iter_ == two.n_iter_ and one.loss_ == two.loss_


@ignore_warnings
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("part, step", [(0.4, 3), (0.7, 4)])
def test_interrupted_run_resumes_to_the_same_bytes(name, part, step, tmp_path):
    path, watch = tmp_path / "run.eqc", Interrupt()
    whole = RUNS[name]().set_params(callbacks=[watch]).fit(X)
    stop = Interrupt(1 + int(part * watch.calls))
    with pytest.raises(KeyboardInterrupt):
        RUNS[name]().set_params(callbacks=[eq.Checkpoint(path, every=step), stop]).fit(X)
    resumed = RUNS[name]().set_params(callbacks=[eq.Checkpoint(path, every=step, resume=True), watch])
    assert_same(whole, resumed.fit(X))
    assert [p.name for p in tmp_path.iterdir()] == ["run.eqc"]


def test_checkpoints_do_not_change_the_result(tmp_path):
    plain, saved = brief(eq.TSNE).fit(X), brief(eq.TSNE, callbacks=[eq.Checkpoint(tmp_path / "run", every=1)]).fit(X)
    assert_same(plain, saved)


@pytest.mark.parametrize("last", [25, 35])  # in the late phase, which starts at 20
def test_resumed_run_keeps_the_point_order(last, tmp_path, monkeypatch):
    monkeypatch.setattr(gradient_steps, "LOCALITY", 10)
    path, settings = tmp_path / "run.eqc", {"engine": "grid", "optimizer": eq.Momentum(every=1, min_loss_change=0)}
    whole = brief(eq.TSNE, **settings).fit(X)
    assert whole._problem._state.order is not None
    with pytest.raises(KeyboardInterrupt):
        brief(eq.TSNE, **settings, callbacks=[eq.Checkpoint(path, every=5), Interrupt(last)]).fit(X)
    assert_same(whole, brief(eq.TSNE, **settings, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X))


def test_resume_after_early_exaggeration_is_undone(tmp_path):
    data, path = np.random.RandomState(0).standard_normal((24, 4)), tmp_path / "run.eqc"
    whole = eq.TSNE(random_state=0, n_jobs=1).fit(data)
    assert whole._problem.early_undone
    for last in (1, 3, 5):  # at iterations 50, 150 and 250; the late phase has restarted from the initial map at 250
        with pytest.raises(KeyboardInterrupt):
            eq.TSNE(random_state=0, n_jobs=1, callbacks=[eq.Checkpoint(path, every=7), Interrupt(last + 1)]).fit(data)
        assert_same(whole, eq.TSNE(random_state=0, callbacks=[eq.Checkpoint(path, resume=True)]).fit(data))


def test_resumed_run_keeps_the_state_of_the_stopping_rule(tmp_path):
    path, settings = tmp_path / "run.eqc", {"n_iter": 300, "optimizer": eq.Momentum(every=10, min_loss_change=0.01)}
    watch = Interrupt()
    whole = brief(eq.TSNE, **settings, callbacks=[watch]).fit(X)
    assert whole._problem.stopped == "min_loss_change"
    with pytest.raises(KeyboardInterrupt):  # at the report that would have stopped the run
        brief(eq.TSNE, **settings, callbacks=[eq.Checkpoint(path, every=5), Interrupt(watch.calls)]).fit(X)
    assert_same(whole, brief(eq.TSNE, **settings, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X))


def test_repeated_interruptions_give_the_same_bytes(tmp_path):
    path, settings = tmp_path / "run.eqc", {"engine": "grid", "optimizer": eq.Momentum(every=1, min_loss_change=0)}
    whole = brief(eq.UMAP, **settings).fit(X)
    for time in range(5):
        checkpoint = eq.Checkpoint(path, every=2, resume=time > 0)
        with pytest.raises(KeyboardInterrupt):
            brief(eq.UMAP, **settings, callbacks=[checkpoint, Interrupt(7)]).fit(X)
    assert_same(whole, brief(eq.UMAP, **settings, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X))


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


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL is not available")
def test_killed_process_resumes_to_the_same_bytes(tmp_path):
    np.save(tmp_path / "X.npy", X)
    path = tmp_path / "run.eqc"
    child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "X.npy"), str(path)])
    assert child.returncode == -signal.SIGKILL and path.exists()
    whole = brief(eq.TSNE, engine="grid").fit(X)
    assert_same(whole, brief(eq.TSNE, engine="grid", n_jobs=2, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X))


@pytest.fixture
def searches(monkeypatch):
    """Return a list that records the sizes of searched tables; neighbours are saved for any number of points."""
    sizes, search = [], table.nearest_neighbors
    monkeypatch.setattr(neighbors_cache, "MIN_POINTS", 0)
    monkeypatch.setattr(table, "nearest_neighbors", lambda X, *a, **b: sizes.append(len(X)) or search(X, *a, **b))
    return sizes


NEIGHBORS = {
    "TSNE": lambda: brief(eq.TSNE, engine="grid"),
    "UMAP": lambda: brief(eq.UMAP),
    "DKLLE": lambda: brief(eq.DKLLE),
    "a metric tensor": lambda: brief(eq.TSNE, engine="grid", h=np.diag([1.0, 2, 3, 4, 5])),
}


@pytest.mark.parametrize("name", NEIGHBORS)
def test_resumed_run_reuses_saved_neighbors(name, tmp_path, searches):
    path, new = tmp_path / "run.eqc", X[:5] + 0.1
    whole = NEIGHBORS[name]().fit(X)
    with pytest.raises(KeyboardInterrupt):
        NEIGHBORS[name]().set_params(callbacks=[eq.Checkpoint(path, every=3), Interrupt(3)]).fit(X)
    assert searches == [60, 60] and sorted(p.name for p in tmp_path.iterdir()) == ["run.eqc", "run.eqc.neighbors"]
    resumed = NEIGHBORS[name]().set_params(callbacks=[eq.Checkpoint(path, resume=True)]).fit(X)
    assert searches == [60, 60]
    assert_same(whole, resumed)
    assert whole.transform(new).tobytes() == resumed.transform(new).tobytes()
    assert resumed.knn_recall_ == whole.knn_recall_


def test_saved_neighbors_of_another_table_are_not_overwritten_on_resume(tmp_path, searches):
    path = tmp_path / "run.eqc"
    run = brief(eq.TSNE, engine="grid", callbacks=[eq.Checkpoint(path, every=3)])
    run.fit(X)
    saved = (tmp_path / "run.eqc.neighbors").read_bytes()
    again = brief(eq.TSNE, engine="grid", callbacks=[eq.Checkpoint(path, resume=True)])
    with pytest.raises(ValueError, match="a checkpoint of another run"):
        again.fit(X[::-1])
    assert (tmp_path / "run.eqc.neighbors").read_bytes() == saved and len(searches) == 2
    run.fit(X[::-1])  # a new run replaces the file
    assert (tmp_path / "run.eqc.neighbors").read_bytes() != saved
    path.unlink()
    with pytest.warns(UserWarning, match="there is no checkpoint"):
        assert_same(again.fit(X), brief(eq.TSNE, engine="grid").fit(X))
    assert (tmp_path / "run.eqc.neighbors").read_bytes() == saved


def test_neighbors_of_a_callable_metric_are_not_saved(tmp_path, searches):
    run = brief(eq.TSNE, engine="grid", metric=lambda a, b: np.abs(a - b).sum())
    run.set_params(callbacks=[eq.Checkpoint(tmp_path / "run.eqc", every=10)]).fit(X)
    assert [p.name for p in tmp_path.iterdir()] == ["run.eqc"] and searches == [60]


def test_damaged_neighbors_raise(tmp_path, searches):
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
    with pytest.raises(
        ValueError, match=r"run\.eqc\.neighbors is damaged or is not an equipoise file.*; delete it to repeat"
    ):
        resumed.fit(X)
    file.unlink()
    with pytest.warns(UserWarning, match="there is no checkpoint"):
        resumed.fit(X)


def test_problem_optimize_accepts_checkpoints(tmp_path):
    path = tmp_path / "run.eqc"
    whole = brief(eq.TSNE).problem(X).optimize(n_iter=33)
    with pytest.raises(KeyboardInterrupt):
        brief(eq.TSNE).problem(X).optimize(n_iter=33, callbacks=[eq.Checkpoint(path, every=4), Interrupt(1)])
    assert not path.exists()  # stopped before the first iteration
    problem = brief(eq.TSNE).problem(X)
    problem.optimize(n_iter=33, callbacks=[eq.Checkpoint(path, every=4)])
    again = brief(eq.TSNE).problem(X).optimize(n_iter=33, callbacks=[eq.Checkpoint(path, resume=True)])
    assert again.tobytes() == whole.tobytes()


# Invalid checkpoints


@pytest.fixture(scope="module")
def checkpoint_path(tmp_path_factory):
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
def test_checkpoint_of_another_run_raises(checkpoint_path, method, data, what):
    method.set_params(callbacks=[eq.Checkpoint(checkpoint_path, resume=True)])
    with pytest.raises(ValueError, match=f"a checkpoint of another run: .*{what}.* differs?; use the data"):
        method.fit(data)


def rewrite(source, path, change):
    """Copy a checkpoint; `change` receives its content.json as a dict and alters it in place."""
    with zipfile.ZipFile(source) as file, zipfile.ZipFile(path, "w") as other:
        for name in file.namelist():
            content = file.read(name)
            if name == "content.json":
                about = json.loads(content)
                change(about)
                content = json.dumps(about)
            other.writestr(name, content)


def test_checkpoint_of_another_format_raises(checkpoint_path, tmp_path):
    path = tmp_path / "run.eqc"
    rewrite(checkpoint_path, path, lambda about: about.update(equipoise="0.0.1", format=0))
    message = r"run\.eqc is a checkpoint of equipoise 0\.0\.1 in format 0, .* resumes format 1; install that version"
    with pytest.raises(ValueError, match=message):
        brief(eq.TSNE, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X)


def test_checkpoint_of_another_version_in_the_same_format_resumes(tmp_path, searches):
    path, whole = tmp_path / "run.eqc", brief(eq.TSNE, engine="grid").fit(X)
    with pytest.raises(KeyboardInterrupt):
        brief(eq.TSNE, engine="grid", callbacks=[eq.Checkpoint(path, every=3), Interrupt(3)]).fit(X)
    for file in (path, tmp_path / "run.eqc.neighbors"):
        rewrite(file, tmp_path / "copy", lambda about: about.update(equipoise="9.0.0"))
        (tmp_path / "copy").replace(file)
    watch = Interrupt()
    assert_same(whole, brief(eq.TSNE, engine="grid", callbacks=[eq.Checkpoint(path, resume=True), watch]).fit(X))
    assert watch.calls == 3 and searches == [60, 60]  # continued from iteration 18, with the saved neighbours


def change_state(name, value):
    def change(about):
        about["content"]["dict"]["state"]["dict"][name] = value

    return change


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda about: about.update(content=None), "damaged: "),
        (change_state("phase", 7), "damaged: the schedule has no phase 7"),
        (change_state("iteration", "10"), "damaged: iteration has the wrong type, str"),
        (change_state("settling", None), "damaged: settling has the wrong type, NoneType"),
        (change_state("order", {"array": 0}), "damaged: the order of the points is not a permutation of 60"),
        (change_state("velocity", {"float": "nan"}), "damaged: "),
        (change_state("command", 1), "damaged: values are missing or unknown"),
    ],
    ids=["no state", "phase", "iteration", "settling", "order", "velocity", "unknown value"],
)
def test_damaged_state_raises_with_the_name_of_the_file(checkpoint_path, tmp_path, change, message):
    path = tmp_path / "run.eqc"
    rewrite(checkpoint_path, path, change)
    with pytest.raises(ValueError, match=rf"run\.eqc is {message}"):
        brief(eq.TSNE, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X)


def test_damaged_tolerance_record_of_the_mesh_raises(tmp_path):
    path, copy = tmp_path / "run.eqc", tmp_path / "copy.eqc"
    method = brief(eq.TSNE, engine="grid", n_iter=10)
    method.set_params(callbacks=[eq.Checkpoint(path, every=5)]).fit(X)

    def change(about):
        about["content"]["dict"]["engine"][0]["dict"]["rungs"] = {"tuple": ["1", "2"]}

    rewrite(path, copy, change)
    with pytest.raises(ValueError, match=r"copy\.eqc is damaged: the tolerance record of the mesh has the wrong form"):
        method.set_params(callbacks=[eq.Checkpoint(copy, resume=True)]).fit(X)


def test_damaged_state_of_sampled_edges_or_of_several_starts_raises(tmp_path):
    path, copy = tmp_path / "run.eqc", tmp_path / "copy.eqc"
    method = brief(eq.UMAP, engine="negative_sampling", optimizer=None, n_iter=10)
    method.set_params(callbacks=[eq.Checkpoint(path, every=5)]).fit(X)
    rewrite(path, copy, change_state("due", {"array": 0}))
    with pytest.raises(ValueError, match=r"copy\.eqc is damaged: it has the next update of 60 edges"):
        method.set_params(callbacks=[eq.Checkpoint(copy, resume=True)]).fit(X)
    method = brief(eq.MDS, n_iter=3).set_params(callbacks=[eq.Checkpoint(path, every=2)]).fit(X)
    rewrite(path, copy, lambda about: about.update(content=about["content"] * 2))
    with pytest.raises(ValueError, match=r"copy\.eqc is damaged: it contains 2 runs, but there are 1 initial maps"):
        method.set_params(callbacks=[eq.Checkpoint(copy, resume=True)]).fit(X)


@pytest.mark.parametrize("Method", [eq.TSNE, eq.MDS, eq.PCA], ids=lambda Method: Method.__name__)
@ignore_warnings
def test_two_runs_on_one_checkpoint_raise(Method, tmp_path):
    path = tmp_path / "run.eqc"
    errors = []

    def start_second(iteration, loss, Y):
        assert path.with_name("run.eqc.lock").exists()
        thread = threading.Thread(target=fit_again)
        thread.start()
        thread.join()
        return True

    def fit_again():
        try:
            brief(Method, callbacks=[eq.Checkpoint(path)]).fit("before the data is looked at")
        except RuntimeError as error:
            errors.append(str(error))

    brief(Method, callbacks=[eq.Checkpoint(path), start_second]).fit(X)
    assert len(errors) == 1
    assert re.fullmatch(
        rf"the checkpoint '.*run\.eqc' is in use by process {os.getpid()} on .*; wait for .*", errors[0]
    )
    brief(Method, callbacks=[eq.Checkpoint(path, every=5)]).fit(X)
    assert [p.name for p in tmp_path.iterdir()] == ["run.eqc"]


def test_file_system_without_locks_warns(tmp_path, monkeypatch):
    monkeypatch.setattr(_file_locks, "try_lock", lambda file: None)
    with pytest.warns(UserWarning, match=r"the file system of '.*run\.eqc' has no locks; make sure"):
        brief(eq.TSNE, callbacks=[eq.Checkpoint(tmp_path / "run.eqc", every=20)]).fit(X)
    assert [p.name for p in tmp_path.iterdir()] == ["run.eqc"]


def test_invalid_checkpoint_files_raise(checkpoint_path, tmp_path):
    path = tmp_path / "method.eqz"
    eq.save(brief(eq.TSNE).fit(X), path)
    with pytest.raises(ValueError, match="is not a checkpoint"):
        brief(eq.TSNE, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X)
    with pytest.raises(ValueError, match="does not contain a fitted method"):
        eq.load(checkpoint_path)
    path.write_bytes(checkpoint_path.read_bytes()[:3000])
    for Method in (eq.TSNE, eq.MDS, eq.PCA):
        with pytest.raises(ValueError, match="damaged or is not an equipoise file"):
            brief(Method, callbacks=[eq.Checkpoint(path, resume=True)]).fit("before the data is looked at")


def test_missing_checkpoint_warns_and_starts_over(tmp_path):
    with pytest.warns(UserWarning, match="there is no checkpoint .* yet; starting from the beginning"):
        method = brief(eq.TSNE, callbacks=[eq.Checkpoint(tmp_path / "run.eqc", resume=True)]).fit(X)
    assert_same(method, brief(eq.TSNE).fit(X))


def test_invalid_checkpoint_arguments_raise(tmp_path):
    with pytest.raises(ValueError, match="every must be an integer >= 1, got 0"):
        eq.Checkpoint(tmp_path / "run.eqc", every=0)
    with pytest.raises(ValueError, match=r"the checkpoint's folder .* does not exist; create it first"):
        eq.Checkpoint(tmp_path / "nowhere" / "run.eqc")


def test_fingerprints_of_different_values_differ():
    A = sparse.csr_matrix(np.eye(3))
    B = A.copy()
    B.data[1] = 2.0
    values = [1, 1.0, "1", True, None, np.ones(2), np.ones(2, np.float32), np.ones((2, 1)), A, B, [1], (1,), [[1], []],
              [[], [1]], eq.kernels.StudentT(1.0), eq.kernels.StudentT(2.0), eq.kernels.Gaussian()]  # fmt: skip
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(eq.kernels.StudentT(2.0)) == fingerprint(eq.kernels.StudentT(2.0))


def test_fingerprints_of_functions_and_dicts():
    assert fingerprint(len) != fingerprint(max) and fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})


@pytest.mark.parametrize("method", [eq.TSNE, eq.MDS, eq.UMAP], ids=lambda method: method.__name__)
def test_checkpoint_without_integer_random_state_raises(method, tmp_path):
    checkpoint = eq.Checkpoint(tmp_path / "run.eqc")
    with pytest.raises(ValueError, match="Checkpoint requires an integer random_state, got None"):
        method(callbacks=[checkpoint]).fit(np.eye(9))
