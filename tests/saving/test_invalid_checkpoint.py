"""Checkpoints that are damaged, locked, or of another run raise, and the error names the file."""

from __future__ import annotations

import json
import os
import re
import threading
import zipfile

import numpy as np
import pytest
from scipy import sparse
from support.checkpoints import Interrupt, X, assert_same, brief

import equipoise as eq
from equipoise import _file_locks
from equipoise.saving.checkpoint import fingerprint

ignore_warnings = pytest.mark.filterwarnings("ignore::UserWarning")  # flows warn when they do not converge


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
    with pytest.raises(ValueError, match=f"a checkpoint of another run: it differs in .*{what}.*; use the data"):
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
    message = (
        r"run\.eqc is a checkpoint of equipoise 0\.0\.1 in format 0, .* resumes format 1; install equipoise 0\.0\.1, or"
    )
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
        (change_state("phase", 7), "damaged: the saved phase has index 7, but the schedule has 2 phases"),
        (change_state("iteration", "10"), "damaged: the saved value of iteration has the wrong type, str"),
        (change_state("settling", None), "damaged: the saved value of settling has the wrong type, NoneType"),
        (change_state("order", {"array": 0}), "damaged: the saved order of the points is not a permutation of 0 to 59"),
        (change_state("velocity", {"float": "nan"}), "damaged: "),
        (change_state("velocity", {"array": 99}), "damaged or is not an equipoise file: the file has no 99.npy"),
        (change_state("command", 1), "damaged: the saved state has missing or unknown values: command"),
    ],
    ids=["no state", "phase", "iteration", "settling", "order", "velocity", "missing array", "unknown value"],
)
def test_damaged_state_raises_with_the_name_of_the_file(checkpoint_path, tmp_path, change, message):
    path = tmp_path / "run.eqc"
    rewrite(checkpoint_path, path, change)
    with pytest.raises(ValueError, match=rf"run\.eqc is {message}"):
        brief(eq.TSNE, callbacks=[eq.Checkpoint(path, resume=True)]).fit(X)


@pytest.mark.parametrize(("name", "value"), [("rungs", {"tuple": ["1", "2"]}), ("rungs", 3), ("size", 3)])
def test_damaged_tolerance_record_of_the_mesh_raises(tmp_path, name, value):
    path, copy = tmp_path / "run.eqc", tmp_path / "copy.eqc"
    method = brief(eq.TSNE, engine="grid", n_iter=10)
    method.set_params(callbacks=[eq.Checkpoint(path, every=5)]).fit(X)

    def change(about):
        about["content"]["dict"]["engine"][0]["dict"][name] = value

    rewrite(path, copy, change)
    with pytest.raises(ValueError, match=r"copy\.eqc is damaged: the tolerance record of the mesh has the wrong form"):
        method.set_params(callbacks=[eq.Checkpoint(copy, resume=True)]).fit(X)


def test_damaged_state_of_sampled_edges_or_of_several_starts_raises(tmp_path):
    path, copy = tmp_path / "run.eqc", tmp_path / "copy.eqc"
    method = brief(eq.UMAP, engine="negative_sampling", optimizer=None, n_iter=10)
    method.set_params(callbacks=[eq.Checkpoint(path, every=5)]).fit(X)
    rewrite(path, copy, change_state("due", {"array": 0}))
    with pytest.raises(
        ValueError, match=r"copy\.eqc is damaged: the saved array `due`, .* must have shape .* got \(60,"
    ):
        method.set_params(callbacks=[eq.Checkpoint(copy, resume=True)]).fit(X)
    method = brief(eq.MDS, n_iter=3).set_params(callbacks=[eq.Checkpoint(path, every=2)]).fit(X)
    rewrite(path, copy, lambda about: about.update(content=about["content"] * 2))
    message = r"copy\.eqc is damaged: the file contains 2 runs, but the number of initial maps is 1"
    with pytest.raises(ValueError, match=message):
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
    with pytest.warns(UserWarning, match=r"the file system of '.*run\.eqc' does not support locks; make sure"):
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
    with pytest.raises(ValueError, match="every=0 is not an integer >= 1"):
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
