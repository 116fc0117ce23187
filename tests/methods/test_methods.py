"""The methods in METHODS as scikit-learn estimators: determinism, quality, metrics and metric tensors."""

from __future__ import annotations

import inspect
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs, make_swiss_roll
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

import equipoise as eq
from equipoise.methods import METHODS, SphericalSNE

every_method = pytest.mark.parametrize("Method", METHODS, ids=lambda M: M.__name__)

X, _ = make_blobs(80, 5, centers=4, random_state=0)
X.flags.writeable = False
D = pairwise_distances(X)
np.fill_diagonal(D, 0)


# Parameters


@every_method
def test_parameters_survive_set_params_and_clone(Method):
    names = [name for name in inspect.signature(Method).parameters if name != "self"]
    method = Method()
    assert sorted(names) == sorted(method.get_params())
    changed = {"n_components": 4, "perplexity": [5, 10], "init": "random", "n_jobs": 3, "optimizer": eq.Momentum()}
    method.set_params(**changed)
    copy = clone(method)
    assert copy is not method
    assert {name: copy.get_params()[name] for name in changed} == changed
    assert repr(copy).startswith(Method.__name__)


# Fitted attributes


@every_method
def test_fitted_attributes_are_consistent(Method):
    method = Method(random_state=0, n_iter=300).fit(X)
    n, d = len(X), method.n_components
    assert method.embedding_.shape == (n, d)
    assert method.embedding_.dtype == np.float32
    assert method.affinities_.shape == (n, n)
    assert method.n_features_in_ == X.shape[1]
    assert 0 < method.n_iter_ <= 300
    curve = method.loss_curve_
    assert curve.ndim == 2 and curve.shape[1] == 2 and curve.dtype == np.float64
    assert (np.diff(curve[:, 0]) > 0).all() and curve[-1, 0] == method.n_iter_
    late = curve[curve[:, 0] >= 150, 1]
    assert late[-1] <= late[0]
    assert (np.diff(late[1:]) <= 0.02 * late[1:-1]).all()  # momentum may overshoot a little
    assert method.loss_ == curve[-1, 1]
    assert method.loss_ == pytest.approx(method.problem(X).loss(method.embedding_), rel=1e-4, abs=1e-5)


@every_method
def test_reference_engine_computes_in_float64(Method):
    exact = Method(random_state=0, n_iter=20).fit(X)
    reference = Method(random_state=0, n_iter=20, engine="reference").fit(X)
    assert reference.embedding_.dtype == np.float64
    scale = np.abs(reference.embedding_).max()
    np.testing.assert_allclose(exact.embedding_, reference.embedding_, atol=2e-3 * scale)


def test_verbose_prints_the_loss(capsys):
    eq.TSNE(random_state=0, n_iter=60, verbose=1).fit(X)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "engine exact: 80 points in 2-D, dense P"
    assert [line.split()[:2] for line in lines[:3]] == [["iteration", "0"], ["iteration", "50"], ["iteration", "60"]]
    assert len(lines) == 4 and lines[3].startswith("the loss was still decreasing after 60 iterations")


def test_verbose_describes_engine_and_affinities(capsys):
    eq.TSNE(random_state=0, n_iter=0, verbose=1, engine="grid", perplexity=5).fit(X)
    first = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(r"engine grid: 80 points in 2-D, sparse P with \d\d entries per row, recall 1.00", first)


@every_method
def test_same_seed_gives_same_bytes_for_any_number_of_threads(Method):
    one, again, two = (Method(random_state=1, n_iter=120, n_jobs=n).fit(X) for n in (1, 1, 2))
    assert one.embedding_.tobytes() == again.embedding_.tobytes() == two.embedding_.tobytes()
    assert one.loss_curve_.tobytes() == two.loss_curve_.tobytes()


@every_method
@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_input_is_not_modified(Method, metric):
    data = X.copy() if metric == "euclidean" else D.copy()
    before = data.copy()
    init = np.random.RandomState(0).standard_normal((len(X), Method().n_components))
    init_before = init.copy()
    Method(metric=metric, init=init, n_iter=10).fit(data)
    assert np.array_equal(data, before) and np.array_equal(init, init_before)


@every_method
def test_pickled_method_keeps_map_and_parameters(Method):
    method = Method(random_state=0, n_iter=30, optimizer=eq.GradientDescent()).fit(X)
    copy = pickle.loads(pickle.dumps(method))
    assert copy.embedding_.tobytes() == method.embedding_.tobytes()
    assert repr(copy) == repr(method)
    assert copy.fit(X).embedding_.tobytes() == method.embedding_.tobytes()


# Quality

DIGITS, LABELS = (array[:500] for array in load_digits(return_X_y=True))


def neighbors(A, k=10):
    return NearestNeighbors(n_neighbors=k).fit(A).kneighbors(return_distance=False)


@every_method
def test_digits_map_preserves_classes_and_neighbours(Method):
    # 5-NN accuracy is 0.948 on 64 pixels and 0.68 on two principal components (recall 0.30). Over three seeds
    # the Gaussian methods reach 0.91 and 0.61, the heavy-tailed ones 0.93-0.96 and 0.69-0.73.
    gaussian = Method in (eq.SNE, eq.SymmetricSNE)
    Y = Method(random_state=0).fit_transform(DIGITS)
    accuracy = cross_val_score(KNeighborsClassifier(5), Y, LABELS, cv=5).mean()
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(neighbors(DIGITS), neighbors(Y), strict=True)])
    assert accuracy > (0.89 if gaussian else 0.92)
    assert recall > (0.58 if gaussian else 0.67)


ROLL, _ = make_swiss_roll(150, random_state=0)


@every_method
@pytest.mark.parametrize("data", [ROLL, DIGITS[:60], DIGITS[:150]], ids=["roll", "60 digits", "150 digits"])
def test_small_data_sets_do_not_collapse(Method, data):
    # With few points early exaggeration outweighs all repulsion; the map must recover from it.
    method = Method(random_state=0)
    problem = method.problem(data)
    collapsed = problem.loss(np.ones_like(problem.Y0))
    recall = np.mean(
        [np.isin(a, b).mean() for a, b in zip(neighbors(data), neighbors(method.fit_transform(data)), strict=True)]
    )
    assert method.loss_ < 0.5 * collapsed
    assert recall > 0.6


# Metrics


@pytest.mark.parametrize("metric", ["cosine", "manhattan", "sqeuclidean", "chebyshev", "correlation"])
def test_metric_gives_same_affinities_as_precomputed_distances(metric):
    distances = pairwise_distances(X, metric=metric)
    distances = (distances + distances.T) / 2
    np.fill_diagonal(distances, 0)
    method = eq.TSNE(metric=metric, random_state=0, n_iter=60).fit(X)
    given = eq.TSNE(metric="precomputed", init="random", n_iter=0).fit(distances)
    np.testing.assert_allclose(method.affinities_, given.affinities_, rtol=1e-4, atol=1e-9)
    assert np.isfinite(method.embedding_).all() and method.loss_ < method.loss_curve_[0, 1]


def test_callable_metric_matches_named_metric():
    def city(a, b):
        return np.abs(a - b).sum()

    called, named = (eq.TSNE(metric=metric, n_iter=0).fit(X).affinities_ for metric in (city, "manhattan"))
    np.testing.assert_allclose(called, named, rtol=1e-4, atol=1e-9)


@every_method
def test_precomputed_euclidean_distances_give_the_same_affinities(Method):
    points, distances = Method(n_iter=0).fit(X), Method(n_iter=0, metric="precomputed").fit(D)
    np.testing.assert_allclose(points.affinities_, distances.affinities_, rtol=1e-5, atol=1e-9)


def tensor(d, seed=0):
    A = np.random.RandomState(seed).standard_normal((d, d))
    return A @ A.T + np.eye(d)


@every_method
def test_h_is_equivalent_to_a_linear_map_of_the_data(Method):
    h = tensor(5)
    A = np.linalg.cholesky(h).T
    tensored, mapped = Method(h=h, random_state=0, n_iter=30).fit(X), Method(random_state=0, n_iter=30).fit(X @ A.T)
    np.testing.assert_allclose(tensored.affinities_, mapped.affinities_, rtol=1e-5, atol=1e-9)
    scale = np.abs(mapped.embedding_).max()
    np.testing.assert_allclose(tensored.embedding_, mapped.embedding_, atol=1e-3 * scale)


@pytest.mark.parametrize("Method", [M for M in METHODS if M is not SphericalSNE], ids=lambda M: M.__name__)
def test_g_is_equivalent_to_a_linear_map_of_the_embedding(Method):
    g = tensor(2)
    A = np.linalg.cholesky(g).T
    Y = 5 * np.random.RandomState(0).standard_normal((len(X), 2))
    curved, flat = Method(g=g, random_state=0), Method(random_state=0)
    assert curved.problem(X).loss(Y) == pytest.approx(flat.problem(X).loss(Y @ A.T), rel=1e-6)
    np.testing.assert_allclose(
        curved.problem(X).gradient(Y), flat.problem(X).gradient(Y @ A.T) @ A, rtol=1e-5, atol=1e-7
    )
    curved, flat = (method.set_params(n_iter=20).fit(X) for method in (curved, flat))
    scale = np.abs(flat.embedding_).max()
    np.testing.assert_allclose(curved.embedding_ @ A.T, flat.embedding_, atol=1e-3 * scale)


def test_import_loads_no_optional_packages():
    heavy = ["matplotlib", "torch", "faiss", "bokeh", "pandas"]  # scikit-learn imports pandas if installed
    code = (
        "import sys, sklearn.metrics; before = set(sys.modules); import equipoise;"
        f"print([name for name in {heavy} if name in sys.modules and name not in before])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert out.stdout.strip() == "[]"


def test_threads_follow_n_jobs_and_omp_num_threads(monkeypatch):
    from equipoise.methods.estimator import threads

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    all_cores = threads(None)
    assert threads(-1) == all_cores and threads(3) == 3
    for value in ("1000", "", "many", "0"):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert threads(None) == all_cores
    for value, expected in {"1": 1, "1,2": 1}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert threads(None) == expected and threads(-1) == all_cores
    with pytest.raises(ValueError, match="n_jobs must be a positive integer, -1 for all cores, or None"):
        threads(0)
