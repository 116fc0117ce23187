"""Interrupted runs resume from their checkpoint to the same bytes as uninterrupted runs."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
from support.checkpoints import Interrupt, X, assert_same, brief

import equipoise as eq
from equipoise.methods import ALL
from equipoise.optimize import gradient_steps
from equipoise.saving import archive

ignore_warnings = pytest.mark.filterwarnings("ignore::UserWarning")  # flows warn when they do not converge


RUNS = {Method.__name__: (lambda Method=Method: brief(Method)) for Method in ALL}
RUNS |= {
    "mesh": lambda: brief(eq.TSNE, engine="grid", n_iter=130),
    "two kernels on the mesh": lambda: brief(eq.DKPCA, engine="grid"),
    "mesh with charges": lambda: brief(eq.SNE, engine="grid"),
    "sampled field": lambda: brief(eq.TSNE, engine="sampled", n_components=4),
    "sampled edges": lambda: brief(eq.UMAP, engine="negative_sampling", optimizer=None, n_iter=120),
    "sampled pairs": lambda: brief(eq.PairEmbedding, engine="negative_sampling", optimizer=None, n_iter=120),
    "a learned normaliser": lambda: brief(eq.TSNE, engine="negative_sampling", optimizer=None, n_iter=120),
    "a metric tensor": lambda: brief(eq.TSNE, g=np.array([[2, 1], [1, 2.0]])),
    "plain descent": lambda: brief(eq.TSNE, optimizer=eq.GradientDescent(every=7)),
    "ordinal stress": lambda: brief(eq.MDS, stress="ordinal"),
    "smacof": lambda: brief(eq.MDS, solver="smacof"),
    "several starts": lambda: brief(eq.MDS, n_init=3, n_iter=12, init="random"),
    "MDS with sampled pairs": lambda: brief(eq.MDS, engine="random_pairs"),
}


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


def test_neighbors_of_other_points_are_named_as_a_cause(tmp_path, searches):
    path, file = tmp_path / "run.eqc", tmp_path / "run.eqc.neighbors"
    brief(eq.TSNE, engine="grid", callbacks=[eq.Checkpoint(path, every=10)]).fit(X)
    about = {}
    indices, distances, recall = archive.read(file, lambda path, said: about.update(said))
    del about["content"]
    archive.write(file, about, [indices, 1.5 * distances[::-1], recall])
    with pytest.raises(ValueError, match=r"differs in affinities.*, or delete .*run\.eqc\.neighbors if it is damaged"):
        brief(eq.TSNE, engine="grid", callbacks=[eq.Checkpoint(path, resume=True)]).fit(X)


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
    for value in (np.nan, np.inf, -1.0):
        damaged = distances.copy()
        damaged[3, 1] = value
        archive.write(file, about, [indices, damaged, recall])
        with pytest.raises(ValueError, match=r"run\.eqc\.neighbors is damaged: .* delete it to"):
            resumed.fit(X)
    for content in (None, [], {}, "text", [1, 2.0, 1.0], [indices, distances], [indices, None, recall]):
        archive.write(file, about, content)
        with pytest.raises(ValueError, match=r"run\.eqc\.neighbors is damaged: .* delete it to"):
            resumed.fit(X)
    archive.write(file, about, [indices, distances, recall])
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(
        ValueError, match=r"run\.eqc\.neighbors is damaged or is not an equipoise file.*, or delete it to repeat"
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
