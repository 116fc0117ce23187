"""Quality of maps over ranks, measured on a sample with exact neighbours."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from support.thread_ranks import run_ranks

import equipoise as eq
from equipoise.distributed import fit
from equipoise.distributed.sampled_quality import MapQuality

pytestmark = pytest.mark.ranks
N = 2600
METHOD = eq.TSNE(n_iter=20, random_state=0, perplexity=10)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    classes = rng.integers(4, size=N)
    return 2 * rng.normal(size=(4, 6))[classes] + rng.normal(size=(N, 6)), np.array(["a", "b", "c", "d"])[classes]


def test_quality_of_a_sample_is_the_same_for_any_number_of_ranks(table):
    X, labels = table

    def work(group):
        result = fit(METHOD, X, group=group)
        return result.evaluate(labels, k=7, n_sample=500), result.evaluate(n_sample=10**6), result.gather()

    sampled, every, Y = run_ranks(1, work)[0]
    for size in (2, 3, 4):
        assert run_ranks(size, work)[size - 1][:2] == (sampled, every)
    near = [NearestNeighbors(n_neighbors=10).fit(Z).kneighbors(return_distance=False) for Z in (X, Y)]
    common = np.mean([len(np.intersect1d(*rows)) / 10 for rows in zip(*near, strict=True)])
    assert every == MapQuality(N, N, 10, every.recall, every.recall_error)
    assert every.recall == pytest.approx(common, abs=1e-9)
    assert (sampled.n_sample, sampled.k) == (500, 7)
    seven = np.mean([len(np.intersect1d(a[:7], b[:7])) / 7 for a, b in zip(*near, strict=True)])
    assert abs(sampled.recall - seven) < 4 * sampled.recall_error
    for found, rows in ((sampled.accuracy, near[1]), (sampled.data_accuracy, near[0])):
        truth = (labels[rows[:, 0]] == labels).mean()
        assert abs(found - truth) < 4 * (truth * (1 - truth) / 500) ** 0.5


def test_quality_prints_a_small_table():
    quality = MapQuality(1_300_000, 1000, 10, 0.4123, 0.0081, 0.95, 0.97)
    assert str(quality).splitlines() == [
        "1,000 of 1,300,000 points, exact neighbours",
        "recall of 10 neighbours    0.412 ± 0.008",
        "1-NN accuracy in the map   0.950",
        "1-NN accuracy in the data  0.970",
    ]
    assert len(str(MapQuality(10, 5, 3, 0.5, 0.1)).splitlines()) == 2


def test_invalid_arguments_are_refused(table):
    X, labels = table
    cases = [
        ({"labels": labels[:5]}, r"labels has shape \(5,\); pass one label for each of the 2,600 rows"),
        ({"k": 2600}, r"k must be an integer from 1 to n_samples - 1 = 2599, got 2600"),
        ({"n_sample": 0}, r"n_sample must be a positive integer, got 0"),
        ({"random_state": None}, r"random_state must be a nonnegative integer, so that all ranks draw the same sample"),
    ]

    def work(group):
        result = fit(eq.TSNE(n_iter=1, random_state=0, perplexity=10), X, group=group)
        for arguments, message in cases:
            with pytest.raises(ValueError, match=message):
                result.evaluate(**arguments)

    run_ranks(1, work)
