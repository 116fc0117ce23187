"""The estimate of the recall that the searches on the CPU and on GPUs share."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.namespaces import every_library

from equipoise.neighbors import search as cpu_search
from equipoise.neighbors.cells import Cells
from equipoise.neighbors.recall import estimate_recall, reach_for_recall, sample_rows


def test_sampled_rows_are_sorted_distinct_and_always_the_same():
    rows = sample_rows(10_000)
    assert rows.shape == (500,) and (np.diff(rows) > 0).all() and rows[-1] < 10_000
    assert_array_equal(sample_rows(10_000), rows)
    assert_array_equal(sample_rows(20), np.arange(20))


@every_library
def test_recall_counts_neighbors_up_to_the_true_kth(library):
    d2 = np.array([[1.0, 2.0, 3.0], [1.0, 4.0, 9.0]])
    assert estimate_recall(library(d2), library(np.array([3.0, 4.0]))) == 5 / 6
    assert estimate_recall(library(d2 * (1 + 1e-7)), library(np.array([3.0, 9.0]))) == 1.0  # rounding
    assert estimate_recall(library(0 * d2), library(np.zeros(2))) == 1.0  # duplicates: any of them counts


@every_library
@pytest.mark.parametrize(("min_recall", "expected"), [(0.0, 1), (0.5, 2), (0.51, 4), (1.0, 8)])
def test_reach_covers_the_fraction_of_true_neighbors(library, min_recall, expected):
    assert reach_for_recall(library(np.array([[0, 3], [7, 1]])), min_recall) == expected


def test_both_searches_estimate_the_recall(rng, monkeypatch):
    torch = pytest.importorskip("torch")
    from equipoise.neighbors import gpu as gpu_search
    from equipoise.neighbors.gpu_blocks import Blocks

    X = rng.standard_normal((3000, 8))
    monkeypatch.setattr(cpu_search, "EXACT_WORK", 0)
    monkeypatch.setattr(gpu_search, "MANY", 1000)
    exact = np.argsort(((X[:, None] - X) ** 2).sum(axis=2), axis=1)[:, 1:11]

    def recall(found, rows):
        return np.mean([np.isin(exact[i], found[i]).mean() for i in rows])

    on_cpu = cpu_search.nearest_neighbors(X, 10, min_recall=0.8)
    assert on_cpu.recall == pytest.approx(recall(on_cpu.indices, sample_rows(3000)), abs=1e-3)  # ties in float32
    searched = []
    nearest = Blocks.nearest
    monkeypatch.setattr(Blocks, "nearest", lambda self, k, width, _: searched.append(width) or nearest(self, k, width))
    on_device = gpu_search.search(torch.from_numpy(X).float(), 10, 0.8)
    assert searched
    assert on_device.recall == pytest.approx(recall(on_device.indices.numpy(), range(3000)), abs=0.02)


def test_duplicates_do_not_lower_the_recall(rng):
    X = np.repeat(rng.standard_normal((200, 6)), 20, axis=0).astype(np.float32)  # each row 20 times
    assert Cells(X, X, 1).search_with_recall(10, 0.99)[1] == 1.0
