"""Invalid input raises before any computation, with a message that names the problem and its position."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors, kneighbors_graph
from support.cases import changed
from support.methods import every_method

import equipoise as eq
from equipoise import _core
from equipoise.data import load
from equipoise.methods import METHODS

X = np.random.RandomState(0).standard_normal((20, 4))
D = pairwise_distances(X)
np.fill_diagonal(D, 0)
GRAPH = kneighbors_graph(X, 8, mode="distance")


@pytest.fixture(autouse=True)
def forbid_computation(monkeypatch):
    """Fail if the expensive computation starts before the input is checked."""

    def fail_on_call(*args, **kwargs):
        raise AssertionError("computation started before the input was checked")

    for name in ("conditional_points", "conditional_dense", "conditional_sparse"):
        monkeypatch.setattr(_core, name, fail_on_call)
    monkeypatch.setattr("equipoise.inputs.table.principal_components", fail_on_call)
    monkeypatch.setattr("equipoise.inputs.base.principal_coordinates", fail_on_call)


def fit_raises(method, data, match, error=ValueError):
    with pytest.raises(error, match=match):
        method.fit(data)


# The table


@every_method
def test_every_method_rejects_nan(Method):
    fit_raises(Method(), changed(X, 3, 2, np.nan), r"X contains NaN at row 3, column 2\b")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (changed(X, 3, 2, np.nan), r"X contains NaN at row 3, column 2\b"),
        (changed(X, 19, 0, np.inf), r"X contains inf at row 19, column 0\b"),
        (changed(X, 0, 3, -np.inf), r"X contains -?inf at row 0, column 3\b"),
        (changed(changed(X, 5, 1, np.nan), 7, 1, np.nan), r"NaN at row 5, column 1, and 1 more"),
        (pd.DataFrame(changed(X, 3, 2, np.nan), columns=list("abcd")), r"NaN at row 3, column 2 \('c'\)"),
        (changed(X.astype(object), 4, 1, "red"), r"'red' at row 4, column 1\b"),
        (pd.DataFrame({"size": [1.0, 2, 3], "colour": ["red", "blue", "red"]}), r"row 0, column 1 \('colour'\)"),
        (np.empty((0, 4)), "0 sample"),
        ([], "2D array, got 1D array"),
        (np.empty((20, 0)), "0 feature"),
        (X[:1], r"^X has 1 sample \(row\); pass at least 2$"),
        (X[0], r"^X must be a 2D array, got 1D array of shape \(4,\)\. Reshape your data with X\.reshape"),
        (X[None], "dim 3"),
        (X + 1j, "Complex data not supported"),
        ([[1, 2], [3]], "inhomogeneous|sequence"),
    ],
)
def test_invalid_table_raises(data, words):
    fit_raises(eq.TSNE(), data, words)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_invalid_sparse_table_raises(container):
    fit_raises(eq.TSNE(), container(changed(X, 3, 2, np.nan)), r"X contains NaN at row 3, column 2\b.*drop such rows")
    two = changed(changed(X, 0, 3, -np.inf), 7, 1, np.nan)
    fit_raises(eq.TSNE(), container(two), "inf at row 0, column 3, and 1 more")
    fit_raises(eq.TSNE(), container(X[:1]), "1 sample")
    fit_raises(eq.TSNE(metric="chebyshev"), container(X), "metric='chebyshev' is not available for sparse X.*toarray")
    fit_raises(eq.TSNE(h=np.eye(4)), container(X), "h requires a dense table.*toarray")
    fit_raises(eq.TSNE(n_components=5), container(X), "n_components=5 is too large for n_features=4")


def test_zero_sparse_row_with_cosine_metric_raises():
    fit_raises(eq.TSNE(metric="cosine"), sparse.csr_matrix(changed(X, 4, slice(None), 0)), "row 4 is zero")


# Distances


@pytest.mark.parametrize(
    ("distances", "words"),
    [
        (changed(D, 1, 3, -1.0, both=True), r"D\[1, 3\] = -1 is negative"),
        (changed(D, 1, 3, np.nan, both=True), r"D\[1, 3\] = nan is not a number"),
        (changed(D, 1, 3, np.inf, both=True), r"D\[1, 3\] = inf is infinite"),
        (changed(D, 1, 3, 9.0), r"not symmetric: D\[1, 3\] = 9 but D\[3, 1\] = "),
        (changed(D, 2, 2, 1.0), r"zero diagonal, but D\[2, 2\] = 1"),
        (D[:, :5], r"square, got shape \(20, 5\)"),
        (GRAPH[:, :7], r"square, got shape \(20, 7\)"),
        (changed(GRAPH.tolil(), 2, 5, -1.0).tocsr(), r"D\[2, 5\] = -1 is negative"),
        (changed(GRAPH.tolil(), 2, 5, np.nan).tocsr(), r"D\[2, 5\] = nan is not a number"),
    ],
)
def test_invalid_distances_raise(distances, words):
    fit_raises(eq.TSNE(metric="precomputed", init="random", perplexity=5), distances, words)


def test_graph_with_too_few_neighbors_raises():
    graph = kneighbors_graph(X, 6, mode="distance").tolil()
    graph[7] = 0
    graph[7, :3] = 1.0
    fit_raises(
        eq.TSNE(metric="precomputed", init="random", perplexity=5),
        graph.tocsr(),
        "row 7 of the precomputed graph stores 3 neighbours, fewer than the perplexity 5",
    )


# Lists of neighbours

DISTANCES, INDICES = NearestNeighbors(n_neighbors=9).fit(X).kneighbors(X)


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ((INDICES, DISTANCES[:, :5]), r"of the same shape \(n, k\), got shapes \(20, 9\) and \(20, 5\)"),
        ((INDICES[:, :0], DISTANCES[:, :0]), r"nonempty arrays of the same shape .* got shapes \(20, 0\)"),
        ((DISTANCES, INDICES), "indices must be integers, got float64; .* returns \\(distances, indices\\)"),
        ((INDICES, DISTANCES.astype(str)), "distances must be numbers"),
        ((changed(INDICES, 4, 2, -1), DISTANCES), "row 4 of indices has -1 at column 2, .* request fewer"),
        (
            (changed(INDICES, 4, 2, 20), DISTANCES),
            "row 4 of indices contains 20, but point indices run from 0 to 19",
        ),
        ((changed(INDICES, 4, 2, -7), DISTANCES), "row 4 of indices contains -7, but point indices run from 0 to 19"),
        ((changed(INDICES, 4, 2, INDICES[4, 6]), DISTANCES), r"row 4 of indices contains the neighbour \d+ twice"),
        ((INDICES, changed(DISTANCES, 4, 2, -1.0)), r"distances\[4, 2\] = -1 is negative"),
        ((INDICES, changed(DISTANCES, 4, 2, np.nan)), r"distances\[4, 2\] = nan is not a number"),
        ((INDICES, changed(DISTANCES, 4, 2, np.inf)), r"distances\[4, 2\] = inf is infinite"),
        (eq.neighbors.Graph(changed(INDICES, 4, 2, -1), DISTANCES), "row 4 of indices has -1"),
        ((INDICES[:, :5], DISTANCES[:, :5]), "row 0 .* stores 4 neighbours, fewer than the perplexity 5; .*3 × perpl"),
    ],
)
def test_invalid_neighbor_lists_raise(pair, words):
    fit_raises(eq.TSNE(metric="precomputed", perplexity=5), pair, words)


# Affinities


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize(
    ("P", "words"),
    [
        (changed(D, 1, 3, -1.0), r"P\[1, 3\] = -1 is negative"),
        (changed(D, 1, 3, np.nan), r"P\[1, 3\] = nan is not a number"),
        (changed(D, 1, 3, np.inf), r"P\[1, 3\] = inf is infinite"),
        (changed(D, 6, slice(None), 0), r"row 6 .*no positive entry off the diagonal; add a neighbour"),
        (changed(changed(D, 6, slice(None), 0), 6, 6, 1.0), r"row 6 .*no positive entry off the diagonal"),
        (D[:, :7], r"affinities must be square; got shape \(20, 7\)"),
    ],
)
def test_invalid_affinities_raise(container, P, words):
    fit_raises(eq.TSNE(affinity="precomputed"), container(P), words)


def test_unsupported_affinity_raises():
    fit_raises(
        eq.TSNE(affinity="cauchy"), X, "unknown affinity 'cauchy'; choose from 'gaussian', 'uniform', 'precomputed'"
    )
    fit_raises(eq.GSNE(alpha=2.0, affinity="uniform"), X, "needs P > 0.*P is sparse")


@pytest.mark.parametrize("init", ["pca", "random"])
def test_fit_rejects_init_by_name(init):
    with pytest.raises(ValueError, match=rf"fit\(init=...\) requires a map \(n, d\); use TSNE\(init='{init}'\)"):
        eq.TSNE().fit(X, init=init)


@pytest.mark.parametrize(
    "method", [eq.GSNE(alpha=1.0), eq.GSNE(alpha=2.0), eq.SymmetricSNE(divergence=eq.divergences.ChiSquare())]
)
def test_divergence_over_all_pairs_rejects_a_graph(method):
    fit_raises(method.set_params(metric="precomputed", init="random", perplexity=5), GRAPH, "needs P > 0.*P is sparse")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (lambda a, b: np.nan, r"D\[0, 0\] = nan"),
        (lambda a, b: -1.0, r"D\[0, 0\] = -1 is negative"),
        ("correlation", r"D\[0, 3\] = nan"),  # row 3 is constant: its correlations are 0/0
    ],
    ids=["NaN", "negative", "correlation"],
)
def test_metric_with_invalid_values_raises(metric, words):
    data = X.copy()
    data[3] = 1.0
    fit_raises(eq.TSNE(metric=metric, init="random"), data, words)


# Parameters

ASYMMETRIC = np.array([[2.0, 0.5], [0.0, 2.0]])


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (eq.TSNE(perplexity=20), "perplexity=20 is too large for n_samples=20"),
        (eq.TSNE(perplexity=[5, 30]), "perplexity=30 is too large for n_samples=20"),
        (eq.TSNE(perplexity=0.5), "perplexity must be at least 1, got 0.5"),
        (eq.TSNE(perplexity=np.nan), "perplexity must be at least 1, got nan"),
        (eq.TSNE(perplexity="high"), "perplexity must be .*got 'high'"),
        (eq.TSNE(perplexity=[]), r"perplexity must be .*got \[\]"),
        (eq.TSNE(perplexity=[[5.0]]), r"perplexity must be .*got \[\[5.0\]\]"),
        (eq.TSNE(n_components=5), "n_components=5 is too large for n_features=4; use at most 4"),
        (eq.TSNE(n_components=0), "n_components must be .*got 0"),
        (eq.TSNE(n_components=-1), "n_components must be .*got -1"),
        (eq.SphericalSNE(n_components=6), "n_components=6 is too large for n_features=4; use at most 5"),
        (eq.TSNE(init=np.zeros((19, 2))), r"init has shape \(19, 2\).*\(20, 2\)"),
        (eq.TSNE(init=np.zeros((20, 3))), r"init has shape \(20, 3\).*\(20, 2\)"),
        (eq.TSNE(init=changed(np.zeros((20, 2)), 4, 1, np.nan)), "init contains NaN at row 4, column 1"),
        (eq.SphericalSNE(init=changed(np.ones((20, 3)), 4, slice(None), 0.0)), "init: row 4 of the map is all zeros"),
        (eq.TSNE(init="spectrum"), "unknown init 'spectrum'; did you mean spectral?"),
        (eq.TSNE(dof=0), "dof must be a finite number > 0, got 0"),
        (eq.TSNE(dof="x"), "dof must be a finite number > 0, got 'x'"),
        (eq.GSNE(alpha="x"), "alpha must be a finite number, got 'x'"),
        (eq.GSNE(eta="x"), "eta must be a finite number > 0, got 'x'"),
        (eq.SphericalSNE(rho="x"), r"rho must be a finite number in \[0, 1\), got 'x'"),
        (eq.TSNE(g="x"), "g must be a matrix of numbers .* got 'x'"),
        (eq.TSNE(g=[[1], [2, 3]]), "g must be a matrix of numbers"),
        (eq.TSNE(dof=np.inf), "dof must be .*got inf"),
        (eq.PowerSNE(beta=0), "beta must be a finite number > 0, got 0"),
        (eq.PowerSNE(r0=0), "r0 must be a finite number > 0, got 0"),
        (eq.GSNE(beta=-1), "beta must be a finite number > 0, got -1"),
        (eq.GSNE(eta=0), "eta must be a finite number > 0, got 0"),
        (eq.GSNE(eta=np.inf), "eta must be .*got inf"),
        (eq.GSNE(alpha=np.nan), "alpha must be a finite number, got nan"),
        (eq.SphericalSNE(rho=1.0), r"rho must be a finite number in \[0, 1\), got 1.0"),
        (eq.SphericalSNE(rho=-0.1), r"rho must be a finite number in \[0, 1\), got -0.1"),
        (eq.TSNE(engine="gpu"), "unknown engine 'gpu'; choose from 'auto'"),
        (eq.TSNE(metric="euclid"), "metric.*'euclid'"),
        (eq.TSNE(learning_rate=0), 'learning_rate must be a positive number or "auto", got 0'),
        (eq.TSNE(learning_rate="fast"), "learning_rate must be .*got 'fast'"),
        (eq.TSNE(learning_rate=np.inf), "learning_rate must be .*got inf"),
        (eq.TSNE(early_exaggeration=0), "early_exaggeration must be a positive number, got 0"),
        (eq.TSNE(exaggeration=-2), "^exaggeration must be a positive number, got -2"),
        (eq.TSNE(exaggeration=np.inf), "^exaggeration must be .*got inf"),
        (eq.TSNE(n_iter=-1), "n_iter must not be negative, got -1"),
        (eq.TSNE(n_jobs=0), "n_jobs must be .*got 0"),
        (eq.TSNE(n_jobs=-2), "n_jobs must be .*got -2"),
        (eq.TSNE(h=np.eye(3)), r"tensor h must be of shape \(4, 4\), got shape \(3, 3\)"),
        (eq.TSNE(h=np.ones(4)), r"tensor h must be of shape \(4, 4\), got shape \(4,\)"),
        (
            eq.TSNE(h=changed(np.eye(4), 0, 1, 0.3)),
            r"h must be symmetric, but h\[0, 1\] = 0.3 and h\[1, 0\] = 0",
        ),
        (eq.TSNE(h=1e-12 * changed(np.eye(4), 0, 1, 0.3)), r"h must be symmetric, but h\[0, 1\]"),
        (eq.TSNE(h=np.diag([1.0, 1, 1, -2])), "tensor h must be positive definite; its smallest eigenvalue is -2"),
        (eq.TSNE(h=np.diag([1.0, 1, 1, 0])), "tensor h must be positive definite; its smallest eigenvalue is 0"),
        (eq.TSNE(h=np.full((4, 4), np.nan)), r"tensor h must be finite, but h\[0, 0\] is nan"),
        (eq.TSNE(g=np.eye(3)), r"tensor g must be of shape \(2, 2\), got shape \(3, 3\)"),
        (eq.TSNE(g=ASYMMETRIC), r"tensor g must be symmetric, but g\[0, 1\] = .* and g\[1, 0\] = "),
        (eq.TSNE(g=-np.eye(2)), "tensor g must be positive definite; its smallest eigenvalue is -1"),
        (eq.SphericalSNE(g=np.eye(3)), "SphericalSNE uses the metric of the sphere and does not support g"),
    ],
)
def test_invalid_parameter_values_raise(method, words):
    fit_raises(method, X, words)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (eq.TSNE(n_components=2.5), "n_components must be .*2.5"),
        (eq.TSNE(n_components="2"), "n_components must be .*'2'"),
        (eq.TSNE(n_components=None), "n_components must be .*None"),
        (eq.SphericalSNE(n_components=2.5), "n_components must be .*2.5"),
        (eq.TSNE(n_iter=2.5), "n_iter must be .*2.5"),
        (eq.TSNE(optimizer="adam"), "optimizer must be .*'adam'"),
        (eq.TSNE(optimizer=eq.Momentum), r"optimizer must be .*got <class .*; use Momentum\(\.\.\.\) with parentheses"),
        (eq.TSNE(callbacks=print), "callbacks must be "),
        (eq.SymmetricSNE(kernel="student"), "kernel must be .*'student'"),
        (eq.SymmetricSNE(divergence="kl"), "divergence must be .*'kl'"),
    ],
)
def test_invalid_parameter_types_raise(method, words):
    fit_raises(method, X, words, (TypeError, ValueError))


@pytest.mark.parametrize("Method", METHODS, ids=lambda M: M.__name__)
def test_more_components_than_samples_raise(Method):
    fit_raises(
        Method(n_components=10), np.random.RandomState(0).standard_normal((5, 30)), "n_components=10 .*n_samples=5"
    )
    fit_raises(Method(n_components=30, metric="precomputed"), D, "n_components=30 .*n_samples=20")


def test_incompatible_parameters_raise():
    fit_raises(eq.TSNE(h=np.eye(20), metric="precomputed"), D, "h requires metric=.euclidean., got 'precomputed'")
    for data, parameters in ((GRAPH, {"metric": "precomputed"}), (D, {"affinity": "precomputed"})):
        fit_raises(eq.TSNE(init="pca", perplexity=5, **parameters), data, 'init="pca" needs coordinates.*"spectral"')
    for parameters in ({"metric": "cosine"}, {"h": np.eye(4)}):
        fit_raises(eq.TSNE(affinity="precomputed", **parameters), D, "X contains affinities")


@pytest.mark.parametrize("Optimizer", [eq.Momentum, eq.GradientDescent])
def test_zero_report_interval_raises(Optimizer):
    with pytest.raises(ValueError, match="every=0 is invalid; use an integer >= 1"):
        eq.TSNE(optimizer=Optimizer(every=0)).fit(X)


PROBLEM = eq.TSNE(init="random", random_state=0).problem(X)


@pytest.mark.parametrize("use", ["loss", "gradient", "attraction", "repulsion", "optimize"])
def test_problem_rejects_maps_of_wrong_shape_or_with_nan(use):
    def call(Y):
        return PROBLEM.optimize(n_iter=5, Y0=Y) if use == "optimize" else getattr(PROBLEM, use)(Y)

    with pytest.raises(ValueError, match=r"Y has shape \(3, 2\); .*\(20, 2\)"):
        call(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"Y.* contains NaN at row 6, column 1"):
        call(changed(np.zeros((20, 2)), 6, 1, np.nan))


def test_problem_rejects_negative_n_iter():
    with pytest.raises(ValueError, match="n_iter must not be negative, got -1"):
        PROBLEM.optimize(n_iter=-1)


def test_unknown_data_set_raises():
    with pytest.raises(ValueError, match="unknown data set 'mnist'; choose from digits, "):
        load("mnist")


@pytest.mark.parametrize("tol", [0, -1, 1, float("nan"), "a"])
def test_invalid_tolerance_raises(tol):
    fit_raises(eq.TSNE(tol=tol), X, "tol must be a number above 0 and below 1")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"momentum": 0.8}, "momentum must be a tuple of two numbers"),
        ({"momentum": (0.5, 1.0)}, "momentum must be a tuple of two numbers"),
        ({"friction": -1}, "friction=-1 is negative; use a number >= 0"),
        ({"gain_up": -0.1}, "gain_up=-0.1 is negative"),
        ({"turned": -0.1}, "turned=-0.1 is negative"),
        ({"gain_down": 0}, "gain_down=0 is not positive; use a number > 0"),
        ({"max_step": -1}, "max_step=-1 is not positive"),
    ],
)
def test_invalid_momentum_parameters_raise(settings, match):
    with pytest.raises(ValueError, match=match):
        eq.Momentum(**settings)


def test_unknown_metric_raises():
    fit_raises(eq.TSNE(metric="eucledian"), X, "^unknown metric 'eucledian'; did you mean euclidean\\?$")
    fit_raises(eq.TSNE(metric="far"), X, "^unknown metric 'far'; metric must be a callable or one of braycurtis, ")


def test_array_as_metric_raises():
    fit_raises(eq.TSNE(metric=np.ones((3, 3))), X, "metric must be a callable or one of")


def test_neighbor_lists_without_metric_precomputed_raise():
    fit_raises(eq.TSNE(), NearestNeighbors(n_neighbors=8).fit(X).kneighbors()[::-1], 'pass metric="precomputed"')
    fit_raises(
        eq.PCA(),
        NearestNeighbors(n_neighbors=8).fit(X).kneighbors()[::-1],
        r"PCA needs a table of coordinates \(n, D\), but X is a pair .*; use Isomap",
    )
