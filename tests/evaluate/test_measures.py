"""Measures of distances, structure and classes, and losses, against closed forms and scikit-learn."""

import copy
import importlib
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from scipy.stats import ortho_group, spearmanr
from sklearn.metrics import davies_bouldin_score, silhouette_samples, silhouette_score
from sklearn.neighbors import NearestNeighbors

import equipoise as eq
from equipoise.evaluate import distances, sample, structure
from equipoise.neighbors import Graph
from equipoise.spaces import Euclidean, summarize_distortion

ev = importlib.import_module("equipoise.evaluate")  # the package; equipoise.evaluate is the function
X = np.random.default_rng(0).normal(size=(120, 5))
Y = X[:, :2] + 0.3 * np.random.default_rng(1).normal(size=(120, 2))
LABELS = np.array(["a", "b", "c", "d"])[(X[:, 0] > 0) * 2 + (X[:, 1] > 0)]


def test_measured_is_a_float_with_error_and_values():
    values = np.array([0.0, 1.0, 1.0, 0.0])
    some, every = ev.Measured.over(values, np.arange(4), 10), ev.Measured.over(values, np.arange(4), 4)
    assert some == every == 0.5 and f"{some:.1%}" == "50.0%"
    assert every.error == 0 and some.error == pytest.approx(values.std(ddof=1) / 2 * np.sqrt(0.6))
    for twin in (copy.deepcopy(some), pickle.loads(pickle.dumps(some))):
        assert twin == some and twin.error == some.error and (twin.values == values).all() and len(twin.points) == 4


# Distances


def test_stress_of_all_pairs_matches_the_formulas():
    d_x, d_y = pdist(X), pdist(Y)
    found = ev.stress(X, Y)
    assert found.raw == pytest.approx(((d_y - d_x) ** 2).sum())
    assert found.normalised == pytest.approx(np.sqrt(((d_y - d_x) ** 2).sum() / (d_x**2).sum()))
    scales = found.scale * np.array([0.99, 1.0, 1.01])
    stresses = [np.sqrt(((s * d_y - d_x) ** 2).sum() / (d_x**2).sum()) for s in scales]
    assert found.scale_free == pytest.approx(stresses[1]) and stresses[1] < min(stresses[0], stresses[2])
    assert ev.stress(X, found.scale * Y).normalised == pytest.approx(found.scale_free)
    assert found.raw == pytest.approx(ev.loss(eq.MDS(), X, Y), rel=1e-6)
    assert found.raw.error == found.normalised.error == found.scale_free.error == 0


def test_stress_is_zero_for_isometries_and_scale_free_stress_for_similarities():
    moved = X @ ortho_group.rvs(5, random_state=0) + 3
    assert ev.stress(X, moved).normalised < 1e-7 and ev.stress(X, moved).raw < 1e-12
    double = ev.stress(X, 2 * moved)
    assert double.normalised == pytest.approx(1) and double.scale_free < 1e-7 and double.scale == pytest.approx(0.5)


@pytest.mark.parametrize("block", [1, 1000])
def test_stress_does_not_depend_on_block_size(block, monkeypatch):
    monkeypatch.setattr(distances, "FIXED_PAIRS", block)
    assert ev.stress(X, Y).raw == pytest.approx(((pdist(Y) - pdist(X)) ** 2).sum())


def test_sampled_stress_is_within_its_standard_error(monkeypatch):
    whole = ev.stress(X, Y)
    monkeypatch.setattr(distances, "ALL", 100)
    monkeypatch.setattr(distances, "PAIRS", 2000)
    draws = [ev.stress(X, Y, random_state=seed) for seed in range(60)]
    for name in ("raw", "normalised", "scale_free"):
        numbers = np.array([float(getattr(draw, name)) for draw in draws])
        errors = np.array([getattr(draw, name).error for draw in draws])
        assert abs(numbers.mean() - getattr(whole, name)) < 4 * numbers.std() / np.sqrt(60)
        assert np.median(errors) == pytest.approx(numbers.std(), rel=0.3)


def test_shepard_diagram_of_all_pairs_has_spearman_correlation():
    found = ev.shepard(X, Y)
    np.testing.assert_allclose(found.d_x, pdist(X))
    np.testing.assert_allclose(found.d_y, pdist(Y))
    assert (found.i < found.j).all() and found.correlation.error == 0
    assert found.correlation == pytest.approx(spearmanr(pdist(X), pdist(Y)).statistic)
    assert ev.shepard(X, np.exp(-1) * X).correlation == pytest.approx(1)


def test_sampled_shepard_correlation_is_within_its_standard_error():
    whole = ev.shepard(X, Y).correlation
    draws = [ev.shepard(X, Y, 1000, random_state=seed) for seed in range(60)]
    numbers = np.array([float(draw.correlation) for draw in draws])
    assert abs(numbers.mean() - whole) < 4 * numbers.std() / np.sqrt(60)
    assert draws[0].correlation.error == pytest.approx(numbers.std(), rel=0.3)
    one = draws[0]
    assert (one.i != one.j).all() and len(one.i) == 1000
    np.testing.assert_allclose(one.d_x, np.linalg.norm(X[one.i] - X[one.j], axis=1))


def test_distortions_match_summarize_distortion(monkeypatch):
    found, truth = ev.distortions(X, Y), summarize_distortion(X, Y)
    assert found == truth
    monkeypatch.setattr(distances, "DISTORTION_POINTS", 40)
    part = ev.distortions(X, Y)
    assert part.pairs == 780 and part.expansion <= truth.expansion
    i, j = part.expanded
    assert np.linalg.norm(Y[i] - Y[j]) / np.linalg.norm(X[i] - X[j]) == pytest.approx(part.expansion)


# Structure


def test_triplet_accuracy_matches_enumeration():
    line = np.arange(4.0)[:, None]
    assert ev.triplet_accuracy(line, 3 * line + 1) == 1
    # Points 2 and 3 change places; a triplet is kept if the order of its two distances (or their tie) is.
    swapped = np.array([[0.0], [1.0], [3.0], [2.0]])
    kept = []
    for i in range(4):
        others = [j for j in range(4) if j != i]
        for a, b in ((0, 1), (0, 2), (1, 2)):
            j, l = others[a], others[b]  # noqa: E741
            orders = [np.sign(abs(V[i] - V[j]) - abs(V[i] - V[l]))[0] for V in (line, swapped)]
            kept.append(orders[0] == orders[1])
    found = ev.triplet_accuracy(line, swapped)
    assert found == pytest.approx(np.mean(kept)) and found.error == 0 and len(found.values) == 4


def test_sampled_triplet_accuracy_is_within_its_standard_error(monkeypatch):
    monkeypatch.setattr(structure, "TRIPLETS", 2000)
    draws = [ev.triplet_accuracy(X, Y, random_state=seed) for seed in range(60)]
    monkeypatch.setattr(structure, "ALL_TRIPLETS", 200)
    whole = ev.triplet_accuracy(X, Y)
    numbers = np.array([float(draw) for draw in draws])
    assert whole.error == 0 and abs(numbers.mean() - whole) < 4 * numbers.std() / np.sqrt(60)
    assert np.median([draw.error for draw in draws]) == pytest.approx(numbers.std(), rel=0.3)


def test_triplet_accuracy_of_sampled_points_is_within_its_standard_error(monkeypatch):
    monkeypatch.setattr(sample, "ALL", 100)
    monkeypatch.setattr(sample, "MIN_SAMPLE", 40)
    monkeypatch.setattr(structure, "TRIPLETS", 400)
    draws = [ev.triplet_accuracy(X, Y, random_state=seed) for seed in range(60)]
    numbers = np.array([float(draw) for draw in draws])
    assert len(draws[0].points) == 83 and len(draws[0].values) == 83
    assert np.median([draw.error for draw in draws]) == pytest.approx(numbers.std(), rel=0.3)


def test_triplet_accuracy_of_a_random_map_is_one_half(rng):
    found = ev.triplet_accuracy(rng.normal(size=(300, 3)), rng.normal(size=(300, 2)))
    assert abs(found - 0.5) < 0.01


def test_sampled_triplets_have_three_distinct_points(rng):
    points = np.arange(7)
    first = sample.draw_partners(points, 7, 500, np.random.RandomState(0))
    second = structure._draw_third(points, first, 7, np.random.RandomState(1))
    assert (first != points[:, None]).all() and (second != points[:, None]).all() and (first != second).all()
    for chosen in (first, second):  # and the others about equally often
        assert np.bincount(chosen[3], minlength=7)[[0, 1, 2, 4, 5, 6]].min() > 50


def test_centroid_correlation_matches_spearman():
    centres = [np.array([V[label == LABELS].mean(axis=0) for label in "abcd"]) for V in (X, Y)]
    truth = spearmanr(pdist(centres[0]), pdist(centres[1])).statistic
    assert ev.centroid_correlation(X, Y, LABELS) == pytest.approx(truth)
    assert ev.centroid_correlation(sparse.csr_matrix(X), Y, LABELS) == pytest.approx(truth)
    assert ev.centroid_correlation(X, 2 * X + 1, LABELS) == pytest.approx(1)


# Classes


def test_silhouette_and_davies_bouldin_match_scikit_learn():
    for labels in (LABELS, np.r_[[7, 8], np.repeat([1, 2], 59)]):  # including single-point classes
        found = ev.silhouette(Y, labels)
        assert found == pytest.approx(silhouette_score(Y, labels), abs=1e-12)
        np.testing.assert_allclose(found.values, silhouette_samples(Y, labels), atol=1e-12)
        assert ev.davies_bouldin(Y, labels) == pytest.approx(davies_bouldin_score(Y, labels), abs=1e-12)


def test_silhouette_matches_hand_computed_values():
    Y = np.array([[0.0], [1.0], [10.0], [11.0]])
    found = ev.silhouette(Y, [0, 0, 1, 1])
    np.testing.assert_allclose(found.values, [9.5 / 10.5, 8.5 / 9.5, 8.5 / 9.5, 9.5 / 10.5])
    assert ev.davies_bouldin(Y, [0, 0, 1, 1]) == pytest.approx((0.5 + 0.5) / 10)


def test_sampled_silhouette_is_within_its_standard_error(monkeypatch):
    whole = ev.silhouette(Y, LABELS)
    monkeypatch.setattr(sample, "ALL", 100)
    monkeypatch.setattr(sample, "MIN_SAMPLE", 10)
    numbers = [ev.silhouette(Y, LABELS, random_state=seed) for seed in range(60)]
    assert (numbers[0].values == whole.values[numbers[0].points]).all()
    assert numbers[0].error == pytest.approx(np.std([float(v) for v in numbers]), rel=0.3)


def test_davies_bouldin_of_coincident_centroids_is_infinite():
    Y = np.array([[-1.0], [1.0], [-2.0], [2.0]])
    assert ev.davies_bouldin(Y, [0, 0, 1, 1]) == np.inf


def test_davies_bouldin_curve_is_lowest_at_the_true_number_of_clusters(rng):
    centres = 10 * np.array([[np.cos(a), np.sin(a)] for a in 2 * np.pi * np.arange(7) / 7])
    Y = np.repeat(centres, 30, axis=0) + 0.3 * rng.normal(size=(210, 2))
    curve = ev.davies_bouldin_curve(Y, range(2, 12))
    assert curve.best == 7 and len(curve.index) == 10
    assert curve.index[5] == pytest.approx(ev.davies_bouldin(Y, np.repeat(np.arange(7), 30)))


def test_knn_accuracy_with_k_1_is_one_minus_one_nn_error(rng):
    labels = rng.integers(0, 3, size=120)
    assert ev.knn_accuracy(Y, labels, k=1) == pytest.approx(1 - ev.one_nn_error(Y, labels))
    apart = Y + 100 * np.c_[labels, labels]
    assert ev.knn_accuracy(apart, labels, k=10) == 1


# Losses


@pytest.mark.parametrize(
    "method", [eq.TSNE(perplexity=10), eq.GSNE(perplexity=10), eq.DKLLE(), eq.UMAP(), eq.MDS(), eq.PCA(), eq.Isomap()]
)
def test_loss_matches_the_problem(method):
    assert ev.loss(method, X, Y) == pytest.approx(method.problem(X).loss(Y), rel=1e-6)
    assert not hasattr(method, "embedding_")


def test_loss_is_lower_for_the_map_of_the_method(rng):
    method = eq.TSNE(perplexity=10, random_state=0)
    own = method.fit_transform(X)
    assert ev.loss(method, X, own) == pytest.approx(method.loss_, rel=1e-5)
    assert ev.loss(method, X, own) < ev.loss(method, X, eq.PCA().fit_transform(X))


@pytest.mark.parametrize("as_graph", [True, False])
def test_loss_accepts_neighbour_lists(as_graph):
    indices, distances = NearestNeighbors(n_neighbors=30).fit(X).kneighbors()[::-1]
    neighbors = Graph(indices, distances) if as_graph else (indices, distances)
    method = eq.TSNE(perplexity=10, metric="precomputed")
    assert ev.loss(method, neighbors, Y) == pytest.approx(method.problem(neighbors).loss(Y), rel=1e-6)


# Invalid input


MEASURES = {
    "trustworthiness": ev.trustworthiness,
    "continuity": ev.continuity,
    "neighbor_recall": ev.neighbor_recall,
    "recall_curve": ev.recall_curve,
    "preservation_ratio": lambda X, Y: ev.preservation_ratio(X, Y, 2, 5),
    "stress": ev.stress,
    "shepard": ev.shepard,
    "distortions": ev.distortions,
    "triplet_accuracy": ev.triplet_accuracy,
    "centroid_correlation": lambda X, Y: ev.centroid_correlation(X, Y, np.arange(np.shape(Y)[0]) % 3),
    "loss": lambda X, Y: ev.loss(eq.TSNE(perplexity=5), X, Y),
}
ON_MAPS = {
    "one_nn_error": ev.one_nn_error,
    "knn_accuracy": ev.knn_accuracy,
    "silhouette": ev.silhouette,
    "davies_bouldin": ev.davies_bouldin,
    "davies_bouldin_curve": lambda Y, labels: ev.davies_bouldin_curve(Y),
}


def corrupted(V, value):
    V = V.copy()
    V[3, 1] = value
    return V


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_invalid_data_and_maps_raise(measure):
    for data, embedding, match in (
        (X, Y[1:], "X has 120 points and Y has 119; they must be the same points"),
        (X, corrupted(Y, np.nan), "Y contains NaN at row 3, column 1"),
        (X, corrupted(Y, np.inf), "Y contains inf at row 3, column 1"),
        (corrupted(X, np.nan), Y, "X contains NaN at row 3, column 1; drop such rows, or replace the values"),
        (X, np.ones_like(Y), "all 120 points of Y are at the same position"),
        (X, Y[:, 0], r"Y must be a map of shape \(n, d\) with one row per point, got shape \(120,\); for a map in one"),
        (X[:2], Y[:2], "at least 3 are needed"),
        (X, np.full(Y.shape, "a"), r"Y must be a numeric map of shape"),
    ):
        with pytest.raises(ValueError, match=match):
            measure(data, embedding)


@pytest.mark.parametrize("measure", ON_MAPS.values(), ids=ON_MAPS)
def test_class_measures_accept_a_fitted_method(measure):
    method = eq.PCA().fit(X)
    assert repr(measure(method, LABELS)) == repr(measure(method.embedding_, LABELS))


@pytest.mark.parametrize("measure", ON_MAPS.values(), ids=ON_MAPS)
def test_invalid_maps_raise_in_class_measures(measure):
    for embedding, match in (
        (corrupted(Y, np.nan), "Y contains NaN at row 3, column 1"),
        (np.ones_like(Y), "same position"),
    ):
        with pytest.raises(ValueError, match=match):
            measure(embedding, LABELS)


@pytest.mark.parametrize(
    "measure",
    [
        *(measure for name, measure in ON_MAPS.items() if name != "davies_bouldin_curve"),
        lambda Y, labels: ev.centroid_correlation(X, Y, labels),
    ],
)
def test_invalid_labels_raise(measure):
    missing = LABELS.astype(object)
    missing[5] = None
    mixed = LABELS.astype(object)
    mixed[5] = 3
    for labels, match in (
        (None, "labels are missing"),
        ("kind", r"labels='kind' is text; pass 120 labels, one per point"),
        (LABELS[1:], r"labels have shape \(119,\), but there are 120 points"),
        (missing, "the label of row 5 is None"),
        (np.where(LABELS == "d", pd.NA, LABELS), "the label of row .* is <NA>; leave out points without a label"),
        (np.r_[np.zeros(119), np.nan], "the label of row 119 is nan"),
        (mixed, "labels of different types cannot be sorted"),
        (np.zeros(120), "all labels are .*0.0.*; pass labels of at least two classes"),
    ):
        with pytest.raises(ValueError, match=match):
            measure(Y, labels)


def test_invalid_arguments_raise():
    D = squareform(pdist(X))
    for call, match in (
        (lambda: ev.stress(np.ones((9, 2)), Y[:9]), "all 9 rows of X are equal"),
        (lambda: ev.stress(sparse.csr_matrix(D * (D < 2)), Y, metric="precomputed"), "only some of the distances"),
        (lambda: ev.stress(X, Y, metric="no such"), "metric must be"),
        (lambda: ev.shepard(X, Y, 3), "pairs=3 is not an integer of at least 4"),
        (lambda: ev.shepard(D * 0, Y, metric="precomputed"), "distances of all 7,140 compared pairs in X equal 0"),
        (lambda: ev.stress(D * 0, Y, metric="precomputed"), "all distances in X are 0"),
        (lambda: ev.centroid_correlation(X, Y, X[:, 0] > 0), "needs three or more classes, but labels has 2"),
        (lambda: ev.centroid_correlation(Euclidean(X), Y, LABELS), "needs a table X .*, got a metric space"),
        (lambda: ev.silhouette(Y, np.arange(120)), "all labels are different; the silhouette needs"),
        (lambda: ev.davies_bouldin(Y, np.arange(120)), "all labels are different; the Davies-Bouldin index needs"),
        (lambda: ev.davies_bouldin_curve(Y, [1, 2]), "`clusters` must be between 2 and 119.* smallest value is 1"),
        (lambda: ev.davies_bouldin_curve(Y, []), "`clusters` must be a non-empty sequence of integers"),
        (lambda: ev.davies_bouldin_curve(Y, 5), "`clusters` must be a non-empty sequence of integers, .*, got 5"),
        (lambda: ev.knn_accuracy(Y, LABELS, k=120), "k must be between 1 and the number of training points = 108"),
        (lambda: ev.one_nn_error(Y, np.arange(120)), "all labels are different; a classifier needs"),
        (lambda: ev.loss(eq.TSNE(), X, X[:, :3]), r"Y has 3 columns but TSNE has n_components=2; set n_components=3"),
    ):
        with pytest.raises(ValueError, match=match):
            call()
    for method in (eq.TSNE, "t-SNE"):
        with pytest.raises(TypeError, match=r"method must be an estimator of equipoise, such as eq.TSNE\(\)"):
            ev.loss(method, X, Y)


def test_measures_accept_distances_spaces_and_sparse_tables():
    D = squareform(pdist(X))
    truth = ev.stress(X, Y), ev.shepard(X, Y).correlation, ev.distortions(X, Y).dilation.mean
    for data, metric in ((D, "precomputed"), (Euclidean(X), "euclidean"), (sparse.csr_matrix(X), "euclidean")):
        assert ev.stress(data, Y, metric=metric).raw == pytest.approx(truth[0].raw)
        assert ev.shepard(data, Y, metric=metric).correlation == pytest.approx(truth[1])
        assert ev.distortions(data, Y, metric=metric).dilation.mean == pytest.approx(truth[2])
        assert ev.triplet_accuracy(data, Y, metric=metric) == ev.triplet_accuracy(X, Y)
