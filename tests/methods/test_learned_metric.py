"""Learned metric tensors: exact gradients, informative columns found with and without classes, new points, errors."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from support.cases import differences

import equipoise as eq
from equipoise.methods.learned_metric import WeightedPairs, log_neighbors, row_divergence, same_class

INFORMATIVE = 3
PLANE = eq.geometry.Plane()


def make_table(n, seed=0):
    """Return a table with three informative columns and twenty of noise, all of variance 1, and its classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, INFORMATIVE + 20))
    X[:, :INFORMATIVE] = 3 * np.eye(3)[y] + 0.8 * rng.normal(size=(n, 3))
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.fixture(scope="module")
def table():
    return make_table(300)


def nearest_neighbor_error(Y, y, Y_new, y_new):
    return 1 - KNeighborsClassifier(1).fit(Y, y).score(Y_new, y_new)


@pytest.mark.parametrize("supervised", [True, False])
def test_gradients_match_finite_differences(supervised):
    """The bandwidths of the affinities change with the weights, and the gradient includes this change."""
    X, y = make_table(40)
    X = X[:, :6]
    rng = np.random.default_rng(1)
    log_q = log_neighbors(rng.normal(size=(40, 2)), eq.kernels.StudentT(), PLANE)
    compare = partial(same_class, classes=y) if supervised else partial(row_divergence, log_q=log_q)
    pairs, w = WeightedPairs(X, np.array([8.0])), rng.uniform(0.3, 2.0, 6)
    found = pairs.slope(w, compare).gradient
    expected = differences(lambda w: pairs.slope(w, compare).loss, w, h=1e-3)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
    assert abs(found @ w) < 1e-8 * np.abs(found).max()  # the perplexity absorbs the scale of the weights


def test_losses_match_their_definitions():
    rng = np.random.default_rng(0)
    P, classes = rng.dirichlet(np.ones(5), size=5), np.array([0, 1, 0, 1, 1])
    expected = -np.mean([np.log(sum(P[i, j] for j in range(5) if classes[j] == classes[i])) for i in range(5)])
    assert same_class(P, classes)[0] == pytest.approx(expected)
    Y = rng.normal(size=(6, 2))
    q = np.exp(log_neighbors(Y, eq.kernels.Gaussian(), PLANE)) * (1 - np.eye(6))
    k = np.exp(-((Y[:, None] - Y) ** 2).sum(axis=2)) * (1 - np.eye(6))
    np.testing.assert_allclose(q, k / k.sum(axis=1, keepdims=True), rtol=1e-12)
    off = ~np.eye(6, dtype=bool)
    p = rng.uniform(size=(6, 6)) * off
    p /= p.sum(axis=1, keepdims=True)
    kl = (p[off] * np.log(p[off] / q[off])).sum() / 6
    assert row_divergence(p, log_neighbors(Y, eq.kernels.Gaussian(), PLANE))[0] == pytest.approx(kl)


@pytest.mark.parametrize(
    "geometry",
    [eq.geometry.Torus((1.0, 1.0)), eq.geometry.Hyperbolic(2.0), eq.geometry.Flat(np.diag([4.0, 1.0]))],
    ids=["torus", "hyperbolic", "g"],
)
def test_neighbors_in_the_map_are_those_of_its_geometry(geometry):
    Y = np.random.default_rng(0).uniform(-0.6, 0.6, (6, 2))
    k = eq.kernels.StudentT().value(geometry.distance(Y[:, None], Y[None]) ** 2) * (1 - np.eye(6))
    q = np.exp(log_neighbors(Y, eq.kernels.StudentT(), geometry)) * (1 - np.eye(6))
    np.testing.assert_allclose(q, k / k.sum(axis=1, keepdims=True), rtol=1e-12)
    assert abs(q - np.exp(log_neighbors(Y, eq.kernels.StudentT(), PLANE)) * (1 - np.eye(6))).max() > 0.01


def test_function_g_needs_classes(table):
    pytest.importorskip("torch")
    X, y = table
    method = eq.TSNE(h=eq.LearnedMetric(n_steps=1), g=lambda Y: Y.new_tensor(np.eye(2)), n_iter=2)
    with pytest.raises(ValueError, match="metric tensor g is a function; pass classes y to fit, or a constant"):
        method.fit(X[:40])
    assert method.fit(X[:40], y[:40]).metric_tensor_.shape == (23, 23)


@pytest.mark.parametrize("supervised", [True, False])
def test_informative_columns_get_the_weight_and_errors_fall(table, supervised):
    X, y = table
    method = eq.TSNE(h=eq.LearnedMetric(), random_state=0).fit(X, y if supervised else None)
    weights = method.metric_tensor_.diagonal()
    assert method.metric_tensor_.shape == (23, 23) and weights.mean() == pytest.approx(1) and weights.min() > 0
    assert weights[:INFORMATIVE].min() > 2.5 * weights[INFORMATIVE:].max()
    plain = eq.TSNE(random_state=0).fit(X)
    errors = [nearest_neighbor_error(Y[::2], y[::2], Y[1::2], y[1::2]) for Y in (plain.embedding_, method.embedding_)]
    assert errors[0] > 0.1 and errors[1] < errors[0] / 3


def test_new_points_are_placed_by_the_learned_metric(table):
    X, y = table
    new, y_new = make_table(200, seed=5)
    method = eq.TSNE(h=eq.LearnedMetric(), random_state=0).fit(X, y)
    plain = eq.TSNE(random_state=0).fit(X)
    errors = [nearest_neighbor_error(m.embedding_, y, m.transform(new), y_new) for m in (plain, method)]
    assert errors[1] < errors[0] / 3
    given = eq.TSNE(h=method.metric_tensor_, random_state=0).fit(X)
    assert given.embedding_.tobytes() == method.embedding_.tobytes()
    assert given.transform(new).tobytes() == method.transform(new).tobytes()


@pytest.mark.parametrize("supervised", [True, False])
def test_same_bytes_for_any_number_of_threads(table, supervised):
    X, y = table
    one, two = (
        eq.SymmetricSNE(h=eq.LearnedMetric(rounds=2), random_state=0, n_iter=60, n_jobs=jobs).fit(
            X, y if supervised else None
        )
        for jobs in (1, 2)
    )
    assert one.metric_tensor_.tobytes() == two.metric_tensor_.tobytes()
    assert one.embedding_.tobytes() == two.embedding_.tobytes()


def test_penalty_spreads_the_weights(table):
    X, y = table
    entropies = []
    for penalty in (0.0, 0.1, 100.0):
        method = eq.TSNE(h=eq.LearnedMetric(penalty=penalty))
        method.problem(X, y)
        weights = method.metric_tensor_.diagonal() / 23
        entropies.append(-(weights * np.log(weights)).sum())
    assert entropies == sorted(entropies) and entropies[2] == pytest.approx(np.log(23), abs=1e-3)


def test_large_tables_are_sampled(table):
    X, y = table
    method = eq.TSNE(h=eq.LearnedMetric(max_points=100), n_iter=20, random_state=0).fit(X, y)
    assert method.metric_tensor_.diagonal()[:INFORMATIVE].min() > 2


def test_method_can_be_cloned_saved_and_fitted_again(table, tmp_path):
    X, y = table
    method = eq.TSNE(h=eq.LearnedMetric(n_steps=5), n_iter=40, random_state=0).fit(X, y)
    assert clone(method).h == method.h
    eq.save(method, tmp_path / "method.eq")
    loaded = eq.load(tmp_path / "method.eq")
    assert loaded.h == method.h and loaded.transform(X[:5]).tobytes() == method.transform(X[:5]).tobytes()
    np.testing.assert_array_equal(loaded.metric_tensor_, method.metric_tensor_)
    assert not hasattr(method.set_params(h=None).fit(X), "metric_tensor_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": -1}, "penalty=-1 is invalid; use a number >= 0"),
        ({"n_steps": 0}, "n_steps=0 is invalid; use an integer >= 1"),
        ({"rounds": 1.5}, "rounds=1.5 is invalid"),
        ({"max_points": 5}, "max_points=5 is invalid; use an integer >= 10"),
    ],
)
def test_invalid_parameters_raise(options, message):
    with pytest.raises(ValueError, match=message):
        eq.LearnedMetric(**options)


@pytest.mark.parametrize(
    ("options", "X", "y", "message"),
    [
        ({"metric": "cosine"}, np.eye(20), None, 'LearnedMetric needs a dense table .*metric="euclidean"'),
        ({}, sparse.csr_matrix(np.eye(20)), None, "LearnedMetric needs a dense table"),
        ({"affinity": "uniform"}, np.eye(20), None, 'affinity="gaussian"'),
        ({}, np.eye(20), np.zeros(19), "y has 19 labels, but X has 20 rows"),
        ({}, np.eye(20), np.zeros(20), "y contains 1 class of at most 20 rows"),
        ({}, np.eye(20), [0.0, np.nan] * 10, r"y\[1\] = nan is not a class; leave out rows without a class"),
        ({}, np.eye(20), ["a", "b", None, "b"] * 5, r"y\[2\] = None is not a class"),
        ({"perplexity": [2, 5]}, np.eye(20), None, "LearnedMetric needs a single perplexity"),
        ({"perplexity": 0.5}, np.eye(20), None, "perplexity must be at least 1"),
    ],
)
def test_unsuitable_data_raise(options, X, y, message):
    with pytest.raises(ValueError, match=message):
        eq.TSNE(h=eq.LearnedMetric(), **options).fit(X, y)


def test_a_class_in_place_of_an_object_is_named():
    with pytest.raises(ValueError, match=r"h=LearnedMetric is a class; pass an object, h=LearnedMetric\(\)"):
        eq.TSNE(h=eq.LearnedMetric).fit(np.eye(12))
