"""Stability over runs: variation, preserved neighbours, text and figure."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, squareform
from sklearn.base import BaseEstimator
from sklearn.decomposition import KernelPCA

import equipoise as eq
from equipoise import data, spaces
from equipoise.data import toys
from equipoise.evaluate import neighbor_recall
from equipoise.evaluate.stability import neighbors_kept
from equipoise.evaluate.variants import Variants
from equipoise.procrustes import disagreement

IRIS = data.load("iris")


class Fixed(BaseEstimator):
    """Return the first two columns of X, so that only changes of the data move the map."""

    def fit_transform(self, X, y=None):
        return np.asarray(X)[:, :2]


class RandomMap(BaseEstimator):
    """Return random positions, independent of X."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit_transform(self, X, y=None):
        return np.random.RandomState(self.random_state).standard_normal((len(X), 2))


def test_pca_is_stable_and_random_maps_are_not(rng):
    X = rng.normal(size=(400, 5)) * [5, 3, 1, 1, 1]
    still, random = eq.stability(eq.PCA(), X, runs=3), eq.stability(RandomMap(), X, runs=6)
    assert still.variation.max() < 1e-6 and still.kept.min() == 1
    assert still.sentences == ["Positions are reliable: half of the points stay within a tenth of the map's radius."]
    assert 0.9 < np.sqrt((random.variation**2).mean()) <= 1
    np.testing.assert_allclose(random.kept.mean(), 10 / 399, atol=0.01)  # chance
    assert random.sentences[0].startswith("A single map is not reliable")


def test_variation_equals_the_noise_level(rng):
    X = rng.normal(size=(800, 2)) * [1, 7]
    found = eq.stability(Fixed(), X, runs=5, noise=0.05)
    # The map is the table: radius √(1 + 49), noise 0.05 of it; alignment absorbs only 4 of 1600 numbers.
    np.testing.assert_allclose(np.sqrt((found.variation**2).mean()), 0.05, rtol=0.03)
    assert found.causes == "noise of 0.05"
    assert np.isnan(found.losses).all() and "loss" not in str(found)


def test_subsampled_runs_leave_missing_positions(rng):
    X = rng.normal(size=(200, 4))
    found = eq.stability(Fixed(), X, runs=4, subsample=0.7)
    present = ~np.isnan(found.maps[:, :, 0])
    np.testing.assert_array_equal(present.sum(axis=1), 140)
    assert len({row.tobytes() for row in present}) == 4  # a different sample in each run
    compared = present.sum(axis=0) > 1
    np.testing.assert_array_equal(np.isfinite(found.variation), compared)
    assert found.variation[compared].max() < 1e-9
    assert found.kept[np.isfinite(found.kept)].min() == 1
    assert f"{(~compared).sum()} points in fewer than two runs" in str(found)
    assert found.causes == "70% of the points"


def test_ambiguous_point_has_the_largest_variation():
    """A point midway between two clouds belongs to neither."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 3)), np.zeros((1, 3))])
    X[:40, 0] -= 12
    X[40:80, 0] += 12
    found = eq.stability(eq.TSNE(perplexity=10), X, runs=6, noise=0.1)
    assert found.variation[80] == found.variation.max() > 3 * np.median(found.variation)


def test_random_init_varies_more_than_pca_init(rng):
    X = rng.normal(size=(160, 10)) + 30 * np.repeat(rng.normal(size=(8, 10)), 20, axis=0)
    pca = eq.stability(eq.TSNE(perplexity=10, n_jobs=1), X, runs=4)
    random = eq.stability(eq.TSNE(perplexity=10, init="random", n_jobs=1), X, runs=4)
    assert np.median(pca.variation) < 0.5 * np.median(random.variation)
    assert random.kept.mean() > 2 / 3
    assert random.sentences[0].startswith("Read groups and neighbours, not positions")
    assert pca.losses.shape == (4,) and (pca.losses > 0).all()


def test_same_seed_gives_the_same_bytes():
    X = IRIS.X[::3]
    runs = [
        eq.stability(eq.TSNE(n_iter=30, n_jobs=jobs), X, runs=3, subsample=0.9, noise=0.01, random_state=seed)
        for jobs, seed in ((1, 5), (2, 5), (1, 6))
    ]
    np.testing.assert_array_equal(runs[0].maps, runs[1].maps)
    np.testing.assert_array_equal(runs[0].variation, runs[1].variation)
    assert not np.array_equal(runs[0].variation, runs[2].variation)


def test_method_and_data_are_not_modified():
    method, X = eq.TSNE(n_iter=5, random_state=7), IRIS.X.copy()
    eq.stability(method, X, runs=2, noise=0.1)
    assert method.random_state == 7 and not hasattr(method, "embedding_")
    np.testing.assert_array_equal(X, IRIS.X)


@pytest.mark.parametrize(
    ("method", "X"),
    [
        (eq.TSNE(n_iter=5), sparse.csr_matrix(IRIS.X)),
        (eq.TSNE(n_iter=5, metric="precomputed"), cdist(IRIS.X, IRIS.X)),
        (eq.TSNE(n_iter=5, affinity="precomputed"), sparse.csr_matrix(np.exp(-cdist(IRIS.X, IRIS.X)) - np.eye(150))),
        (eq.TSNE(n_iter=5), pd.DataFrame(IRIS.X, columns=list("abcd"))),
        (eq.MDS(n_iter=5), spaces.Euclidean(IRIS.X)),
        (KernelPCA(2, random_state=0), IRIS.X.tolist()),
    ],
    ids=["sparse", "distances", "affinities", "data frame", "metric space", "scikit-learn method, list"],
)
def test_stability_accepts_every_input_type(method, X):
    found = eq.stability(method, X, runs=3, subsample=0.8)
    assert found.maps.shape == (3, 150, 2)
    np.testing.assert_array_equal((~np.isnan(found.maps[:, :, 0])).sum(axis=1), 120)


def test_subsample_of_distances_selects_rows_and_columns():
    D = squareform(np.arange(1.0, 16))
    rows, draws = np.array([1, 4, 5]), np.random.RandomState(0)
    part = Variants(eq.TSNE(metric="precomputed"), D, subsample=0.5).make(rows, draws)
    np.testing.assert_array_equal(part, D[np.ix_(rows, rows)])
    space = Variants(eq.MDS(), spaces.Euclidean(IRIS.X), subsample=0.5).make(rows, draws)
    np.testing.assert_allclose(space.distances([0], [1]), cdist(IRIS.X[[1]], IRIS.X[[4]]))


def test_neighbors_kept_is_the_mean_pairwise_recall(rng):
    maps = rng.normal(size=(2, 50, 2))
    np.testing.assert_allclose(neighbors_kept(maps, 5), neighbor_recall(*maps, 5).values)
    three = np.stack([maps[0], maps[0], maps[1]])  # one pair equal, two different
    kept = (1 + neighbor_recall(*maps, 5) + neighbor_recall(*maps[::-1], 5)) / 3
    np.testing.assert_allclose(neighbors_kept(three, 5).mean(), kept)


def test_text_and_figure_describe_the_runs(rng):
    found = eq.stability(eq.TSNE(n_iter=50, perplexity=10), IRIS.X, runs=4, noise=0.05)
    lines = str(found).splitlines()
    assert lines[0].startswith("TSNE(") and "4 runs with different seeds and noise of 0.05, 150 points" in lines[0]
    assert f"median {np.median(found.variation):.3f}" in lines[1]
    assert lines[3].startswith("loss")
    for labels in (None, IRIS.labels):
        figure = found.figure(labels)
        titles = [axes.get_title() for axes in figure.axes]
        assert titles[:1] == ["mean of 4 runs"] and {"run 1", "run 2", "run 3"} <= set(titles)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=50)
    assert buffer.tell() > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"runs": 1}, "runs=1 is not an integer from 2 to 100000"),
        ({"runs": 2**63}, "runs=9223372036854775808 is not an integer from 2 to 100000"),
        ({"X": IRIS.X[:1], "subsample": 0.5}, "X has 1 point; at least 2 are needed"),
        ({"subsample": 0}, "subsample must be a fraction above 0 and at most 1, got 0"),
        ({"subsample": 1.2}, "subsample must be a fraction above 0 and at most 1, got 1.2"),
        ({"noise": -1}, "noise must be finite and not negative, got -1"),
        ({"k": 0}, "k must be between 1 and n_samples - 1 = 149, got 0"),
        ({"method": Fixed()}, r"Fixed\(\) has no random_state, so all runs would be equal; set subsample below 1 or"),
        ({"X": sparse.csr_matrix(IRIS.X), "noise": 0.1}, "noise requires a dense table X; use noise=0 for other data"),
        (
            {"subsample": 0.1},
            r"with subsample=0.1 two runs have only \d points? in common, too few to compare 10 neighbours",
        ),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    given = {"method": eq.PCA(), "X": IRIS.X, "runs": 2, **arguments}
    with pytest.raises(ValueError, match=message):
        eq.stability(given.pop("method"), given.pop("X"), **given)


def test_neighbour_lists_cannot_be_subsampled():
    graph = eq.neighbors.nearest_neighbors(IRIS.X, 30)
    with pytest.raises(ValueError, match="X contains neighbour lists"):
        eq.stability(eq.TSNE(metric="precomputed"), graph, subsample=0.5)
    found = eq.stability(eq.TSNE(perplexity=10, metric="precomputed", n_iter=5), graph, runs=2)
    assert found.maps.shape == (2, 150, 2)


def test_closed_forms_follow_changes_of_the_data():
    """Draganov & Dohn 2024, Fig. 1: closed-form maps move only where the data change."""
    rolls, planes = (toys.swiss_roll(), toys.swiss_roll(added=20)), (toys.plane(), toys.plane_and_line())
    for method in (eq.PCA(), eq.Isomap()):
        moved = [disagreement(*(method.fit_transform(shape.X)[:1000] for shape in pair)) for pair in (rolls, planes)]
        assert moved[0] < 0.1 and moved[1] > 0.4
