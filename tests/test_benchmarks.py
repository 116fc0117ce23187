"""The scores used by the benchmarks are correct, and the results pages are rendered from the raw numbers alone."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from support.source_tree import ROOT, needs

from equipoise.kernels import RegularizedPowerLaw, StudentT

BENCHMARKS = ROOT / "benchmarks"
pytestmark = needs("benchmarks")


@pytest.fixture(autouse=True)
def benchmarks_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_kl_and_recall_match_plain_numpy():
    from score import Truth, plain_kl

    X = load_digits().data[:400]
    truth = Truth(X, 1)
    Y = 10 * np.random.RandomState(0).standard_normal((400, 2))
    assert truth.P.sum() == pytest.approx(1)
    assert truth.kl(Y) == pytest.approx(plain_kl(truth.P, Y), rel=1e-10)
    near = NearestNeighbors(n_neighbors=10).fit(X).kneighbors(return_distance=False)
    assert truth.recall(near) > 0.999  # ties among integer pixels
    assert truth.recall(near[:, ::-1]) == truth.recall(near)


def test_identity_map_keeps_every_neighbor():
    from score import Truth, one_nn_error

    X = np.random.RandomState(0).standard_normal((300, 2))
    assert Truth(X, 1).kept(X) == 1
    pairs = np.repeat(np.arange(150), 2)
    assert one_nn_error(np.column_stack([pairs, np.tile([0, 0.1], 150)]), pairs, 1) == 0
    assert one_nn_error(np.zeros((4, 2)), np.zeros(4), 1) == 0  # all in one place


def test_timed_restores_the_function():
    from common import timed

    class Tool:
        def work(self, x):
            return 2 * x

    before = Tool.work
    with timed(Tool, "work") as seconds, timed(Tool, "no such") as none:
        assert Tool().work(4) == 8
    assert len(seconds) == 1 and none == [] and Tool.work is before


def test_crossing_of_two_power_laws():
    from crossover import crossing

    sizes = [300, 1000, 3000]
    assert crossing(sizes, [(n / 700) ** 0.8 for n in sizes]) == pytest.approx(700)
    assert crossing(sizes, [1.2, 0.9, 1.1]) == pytest.approx(1000 * 3 ** (np.log(0.9) / np.log(0.9 / 1.1)))
    assert crossing(sizes, [2, 3, 4]) is None and crossing(sizes, [0.2, 0.3, 0.4]) is None


def test_costs_per_node_and_per_near_pair_are_positive():
    from crossover import costs

    Y = np.random.RandomState(0).uniform(0, 50, (2000, 2)).astype(np.float32)
    smooth, cusped = (costs(Y, kernel, 0.01, 2) for kernel in (StudentT(), RegularizedPowerLaw(1.0, 1.0)))
    assert smooth["nodes"] > 2000 and smooth["node_ns"] > 0
    assert cusped["clump"] == pytest.approx(1, rel=0.2) and cusped["pair_ns"] > 0  # a uniform map


def test_results_page_is_rendered_from_raw_numbers():
    from peers import render

    def record(method, run, total, later=None):
        return {
            "method": method, "run": run, "neighbors_s": 1.0, "build_s": 2.0, "optimise_s": total - 2, "total_s": total,
            "later_s": later, "import_s": 1.0, "peak_mb": 300.0, "before_mb": 100.0, "search": "faiss", "kl": 2.5,
            "one_nn_error": 0.2, "kept": 0.3, "recall": 0.97, "k": 90,
        }  # fmt: skip

    records = [record("umap-learn", -1, 90.0), *(record("equipoise", run, 10.0 + run) for run in range(3))]
    records += [record("umap-learn", run, 33.0, 22.0) for run in range(3)]
    records.append({"method": "PaCMAP", "run": 0, "failed": "MemoryError"})
    machine = dict.fromkeys(["cpu", "cores", "memory", "system", "python", "commit", "date", "threads", "load"], "?")
    result = {"title": "digits", "skipped": ["openTSNE is not installed."], "records": records}
    report = {"command": "c", "machine": {**machine, "versions": {"numpy": "2"}}, "results": [result]}
    page = "\n".join(render(json.loads(json.dumps(report))))
    assert "11.00 (10.00–12.00) | 1.00 |" in page
    assert "33.00 (33.00–33.00) | 3.00 (later 2.00) | 22.00 | 90.00 + 1.0 import |" in page
    assert "300 (200) | 2.5000 | 20.00% | 30.0% | 0.9700 at k = 90" in page
    assert "- openTSNE is not installed." in page and "- PaCMAP failed: MemoryError" in page


def test_large_csv_is_reproducible_without_duplicate_rows(tmp_path):
    from large_csv import make

    from equipoise import data

    for name in ("one.csv", "two.csv"):
        make(tmp_path / name, 500)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    found = data.read(tmp_path / "one.csv", label="kind")
    assert found.X.shape == (500, 50) and len(np.unique(found.X, axis=0)) == 500
    assert found.classes == tuple(f"k{c}" for c in range(10))
