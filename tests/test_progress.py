"""Progress is shown on request in terminals and notebooks, and does not change results."""

from __future__ import annotations

import io
import re
import sys
import types
from contextlib import redirect_stderr

import numpy as np
import pytest
from scipy import sparse

import equipoise as eq
from equipoise import progress
from equipoise.methods import ALL, CLASSICAL
from equipoise.neighbors import search as neighbors

X = np.random.RandomState(0).standard_normal((90, 6))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal():
    """Redirect stderr to a fake terminal; pytest replaces stderr in every test."""
    return redirect_stderr(Terminal())


def stages(screen):
    """Return the names of the stages in the order in which they were shown."""
    names = re.findall(r"[\r\n]([a-z][a-z ]*?) +(?:\d+%\||\d\d:\d\d)", "\n" + screen.getvalue())
    return [name for name, before in zip(names, [None, *names], strict=False) if name != before]


def test_fit_shows_its_stages_and_loss(capsys):
    with on_terminal() as terminal:
        method = eq.TSNE(random_state=0, n_iter=60, n_jobs=1, engine="grid", perplexity=8, verbose=1).fit(X)
    assert stages(terminal) == ["initial map", "neighbours", "affinities", "optimise"]
    text = terminal.getvalue()
    assert "90/90 [" in text and re.search(r"60/60 \[\d\d:\d\d<\d\d:\d\d, +[\d.]+ iterations/s, loss \d\.\d{4}\]", text)
    assert re.findall(r"loss (\d\.\d{4})", text)[-1] == progress.format_loss(method.loss_)  # not all are displayed
    printed = capsys.readouterr().out
    assert re.fullmatch(r"engine grid: 90 points in 2-D, .*\n(the loss was still decreasing .*\n)?", printed)


@pytest.mark.parametrize("verbose", [0, 1])
def test_no_progress_without_a_terminal(verbose, capsys):
    with progress.shown() as seen:
        eq.TSNE(random_state=0, n_iter=60, verbose=verbose).fit(X)
    out, err = capsys.readouterr()
    assert not seen and err == "" and ("iteration    60   loss" in out) == bool(verbose)


def test_no_progress_by_default():
    with on_terminal() as terminal:
        eq.TSNE(random_state=0, n_iter=10).fit(X)
        eq.MDS(random_state=0, n_iter=10).fit(X)
    assert terminal.getvalue() == ""


@pytest.mark.filterwarnings("ignore::UserWarning")  # flows warn when they do not converge
@pytest.mark.parametrize("Method", ALL, ids=lambda M: M.__name__)
def test_every_method_shows_progress(Method):
    names = Method().get_params()
    settings = {"random_state": 0, "n_iter": 20, "n_jobs": 1, **({"solver": "flow"} if Method in CLASSICAL else {})}
    method = Method(**{name: value for name, value in settings.items() if name in names})
    with on_terminal() as terminal, progress.shown() as seen:
        Y = method.fit_transform(X)
    assert seen and stages(terminal)[-1] == "optimise" and "/20 [" in terminal.getvalue()
    assert Y.tobytes() == method.fit_transform(X).tobytes()


@pytest.mark.parametrize("Method", CLASSICAL, ids=lambda M: M.__name__)
def test_closed_forms_show_the_eigenvector_stage(Method):
    with on_terminal() as terminal, progress.shown():
        Method().fit(X)
    assert stages(terminal)[-1] == "eigenvectors"


SEARCHES = {
    "tree": (X[:, :3], "euclidean"),
    "scan": (X, "euclidean"),
    "cells": (X, "euclidean"),
    "any metric": (X, "braycurtis"),
    "sparse": (sparse.csr_matrix(np.maximum(X, 0.1)), "cosine"),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_every_neighbor_search_reaches_100_percent(name, monkeypatch):
    if name == "cells":
        monkeypatch.setattr(neighbors, "EXACT_WORK", 0)
    table, metric = SEARCHES[name]
    with on_terminal() as terminal, progress.shown():
        neighbors.nearest_neighbors(table, 5, metric, n_threads=2)
    assert stages(terminal) == ["neighbours"] and "100%" in terminal.getvalue() and "90/90" in terminal.getvalue()


def test_resumed_run_starts_at_its_iteration(tmp_path):
    path = tmp_path / "run.eqc"
    settings = {"random_state": 0, "n_iter": 60, "n_jobs": 1}
    eq.TSNE(**settings, callbacks=[eq.Checkpoint(path, every=50)]).fit(X)
    with on_terminal() as terminal:
        eq.TSNE(**settings, callbacks=[eq.Checkpoint(path, resume=True)], verbose=1).fit(X)
    assert re.findall(r"(\d+)/60", terminal.getvalue())[0] == "50"


def test_progress_is_closed_after_an_error():
    with on_terminal() as terminal:
        with pytest.raises(RuntimeError), progress.shown(), progress.shown() as inner:
            assert inner
            progress.stage("neighbours", 10)
            raise RuntimeError
        before = terminal.getvalue()
        progress.stage("affinities")
    assert terminal.getvalue() == before and before.endswith("\n")


def test_notebooks_count_as_terminals(monkeypatch):
    kernel = types.ModuleType("ipykernel.kernelapp")
    kernel.IPKernelApp = types.SimpleNamespace(initialized=lambda: running)
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", kernel)
    for running in (False, True):  # imported by a widget, or the kernel of a notebook
        assert progress.can_show() == running


def test_format_loss():
    assert [progress.format_loss(loss) for loss in (1.23456, 12345.6, 1.2e-5, 0.0)] == [
        "1.2346",
        "1.2346e+04",
        "1.2000e-05",
        "0.0000",
    ]
