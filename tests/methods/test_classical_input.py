"""Classical methods: distances, graphs, sparse tables, degenerate data and invalid input."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from support.classical_cases import LOCAL, SCALING, X, every_method, r2, tie_free_digits, with_neighbors

import equipoise as eq
from equipoise.spaces import PNorm

# Kinds of input


@pytest.mark.parametrize("Method", [eq.ClassicalMDS, eq.Isomap, eq.LLE, eq.LaplacianEigenmaps])
def test_precomputed_distances_give_the_same_map(Method):
    D = squareform(pdist(X))
    np.testing.assert_allclose(
        Method(metric="precomputed").fit_transform(D), Method().fit_transform(X), atol=1e-5, rtol=1e-5
    )


@every_method
def test_sparse_tables_give_the_same_map(Method):
    A = tie_free_digits(250)
    A[A < 0.5] = 0
    dense, thin = (with_neighbors(Method, 25).fit(table) for table in (A, sparse.csr_matrix(A)))
    assert r2(thin.embedding_, dense.embedding_) > 1 - 1e-7
    np.testing.assert_allclose(thin.transform(sparse.csr_matrix(A[:5])), thin.embedding_[:5], atol=1e-6)


def test_classical_mds_accepts_a_metric_space():
    A = load_iris().data
    method = eq.ClassicalMDS().fit(PNorm(A, 1))
    np.testing.assert_allclose(method.embedding_, eq.ClassicalMDS(metric="manhattan").fit_transform(A), atol=1e-9)
    assert eq.ClassicalMDS(n_landmarks=40, random_state=0).fit(PNorm(A, 1)).low_rank_error_ < 0.2
    np.testing.assert_allclose(method.transform(A), method.embedding_, atol=1e-9)


def test_isomap_of_precomputed_graph_matches_isomap_of_table():
    graph = eq.neighbors.nearest_neighbors(X, 8)
    np.testing.assert_allclose(
        eq.Isomap(metric="precomputed").fit_transform(graph), eq.Isomap(n_neighbors=8).fit_transform(X), atol=1e-9
    )


def test_laplacian_eigenmaps_with_precomputed_and_gaussian_affinities():
    W = eq.LaplacianEigenmaps(n_neighbors=8).fit(X).affinities_
    given = eq.LaplacianEigenmaps(affinity="precomputed").fit(W)
    np.testing.assert_allclose(given.embedding_, eq.LaplacianEigenmaps(n_neighbors=8).fit_transform(X), atol=1e-7)
    heat = eq.LaplacianEigenmaps(affinity="gaussian", n_neighbors=8).fit(X).affinities_
    assert (heat.data > np.exp(-1) / 2 - 1e-12).sum() >= heat.nnz / 2 and heat.data.max() <= 1
    assert (abs(heat - heat.T) > 1e-15).nnz == 0


# Degenerate and invalid input


def two_groups():
    return np.vstack([X[:60], X[:40] + 100])


@pytest.mark.parametrize("Method", LOCAL)
def test_local_methods_separate_components_with_a_warning(Method):
    with pytest.warns(UserWarning, match="2 components, of 60, 40 points, and the first axis of"):
        method = Method(n_neighbors=6).fit(two_groups())
    first = method.embedding_[:, 0]
    assert np.ptp(first[:60]) < 1e-6 and np.ptp(first[60:]) < 1e-6 and abs(first[0] - first[60]) > 0.5
    assert method.eigenvalues_[0] == 0 and method.eigenvalues_[1] > 0
    assert np.ptp(method.embedding_[:, 1]) > 0.5


def test_isomap_connects_components_with_a_warning():
    with pytest.warns(UserWarning, match="2 components, of 60, 40 points; they are connected by 1 bridge"):
        Y = eq.Isomap(n_neighbors=6).fit_transform(two_groups())
    assert np.abs(Y[:60].mean(axis=0) - Y[60:].mean(axis=0)).max() > 50


@pytest.mark.parametrize("solver", ["eigen", "flow"])
@every_method
def test_duplicate_rows_and_constant_columns_give_finite_maps(Method, solver):
    A = np.column_stack([np.repeat(X[:50], 3, axis=0), np.full(150, 7.0)])
    extra = {} if Method is eq.PCA else {"metric": "euclidean"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the neighbour graph has")
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        Y = Method(solver=solver, random_state=0, n_iter=500, **extra).fit_transform(A)
    assert np.isfinite(Y).all() and np.abs(Y).max() > 0
    if Method in SCALING:
        np.testing.assert_allclose(Y[::3], Y[1::3], atol=1e-3 * np.abs(Y).max())


@pytest.mark.parametrize("solver", ["eigen", "flow"])
@pytest.mark.parametrize("Method", SCALING)
def test_collinear_points_give_a_one_dimensional_map(Method, solver):
    line = np.linspace(0, 1, 40)[:, None] * [[1.0, 2.0, 3.0]]
    Y = Method(solver=solver, random_state=0).fit_transform(line)
    assert abs(np.corrcoef(Y[:, 0], line[:, 0])[0, 1]) > 1 - 1e-9
    assert np.abs(Y[:, 1]).max() < 0.05 * np.abs(Y[:, 0]).max()


def test_identical_points_give_a_zero_map():
    np.testing.assert_array_equal(eq.PCA().fit_transform(np.ones((20, 4))), 0)
    assert np.abs(eq.PCA(solver="flow", random_state=0).fit_transform(np.ones((20, 4)))).max() < 0.05


@pytest.mark.parametrize(
    ("method", "A", "message"),
    [
        (eq.PCA(solver="svd"), X, 'solver must be "eigen" or "flow", got \'svd\''),
        (eq.PCA(tol=0), X, "tol must be a positive number, got 0"),
        (eq.PCA(0), X, "n_components must be an integer >= 1, got 0"),
        (eq.PCA(4), X, "n_components=4 is too large for n_features=3; use at most 3"),
        (eq.LLE(5), X[:5], "n_components=5 is too large for n_samples=5; use at most 4"),
        (eq.PCA(n_landmarks=2), X, "n_landmarks must be an integer above n_components=2 and at most n_samples=160"),
        (eq.Isomap(n_landmarks=161), X, "n_landmarks must be an integer above"),
        (eq.PCA(n_landmarks=3, random_state=0), np.vstack([np.ones((97, 3)), X[:3]]), "3 landmarks span only"),
        (eq.LLE(n_neighbors=0), X, 'n_neighbors must be an integer >= 1 or "auto", got 0'),
        (eq.LLE(reg=-1), X, "reg must be a positive number, got -1"),
        (eq.LLE(metric="precomputed"), sparse.eye(9, format="csr"), "LLE needs the distances among the neighbours"),
        (eq.ClassicalMDS(metric="precomputed"), sparse.eye(9, format="csr"), "needs the distances of all pairs"),
        (eq.ClassicalMDS(metric="inner_product"), X, "does not define distances between all pairs"),
        (eq.Isomap(metric="inner_product"), X, "does not define path lengths"),
        (eq.ClassicalMDS(metric="dist"), X, "metric must be a callable or one of"),
        (eq.LaplacianEigenmaps(affinity="heat"), X, "unknown affinity 'heat'; choose from"),
        (eq.PCA(), np.where(X > 1, np.nan, X), "X contains NaN at row"),
        (eq.PCA(callbacks=3), X, "callbacks must be a list of functions of"),
        (eq.PCA(n_iter=-1), X, "n_iter must not be negative"),
    ],
)
def test_invalid_input_raises(method, A, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        method.fit(A)


def test_isomap_rejects_disconnected_precomputed_graph():
    parts = [sparse.csr_matrix(squareform(pdist(rows))) for rows in (X[:5], X[5:9])]
    graph = sparse.block_diag(parts, format="csr")
    with pytest.raises(ValueError, match="the graph has 2 components"):
        eq.Isomap(metric="precomputed").fit(graph)


def test_inverse_transform_checks_the_fit_and_the_shape():
    with pytest.raises(NotFittedError):
        eq.PCA().inverse_transform(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"Y has shape \(3, 3\); pass an array \(m, 2\)"):
        eq.PCA().fit(X).inverse_transform(np.ones((3, 3)))


def test_classical_mds_of_a_table_has_at_most_as_many_axes_as_columns():
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match="n_components=3 is too large for n_features=2; use at most 2"):
        eq.ClassicalMDS(n_components=3).fit(X)
    assert eq.ClassicalMDS(n_components=3, metric="cityblock").fit(X).embedding_.shape == (50, 3)


@pytest.mark.parametrize("n_landmarks", [None, 61])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_transform_gives_a_row_the_same_bytes_alone_and_among_others(engine, metric, n_landmarks, rng):
    if engine == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    table, new = rng.normal(size=(150, 50)), rng.normal(size=(70, 50))
    method = eq.ClassicalMDS(metric=metric, n_landmarks=n_landmarks, engine=engine, device="cpu", random_state=0)
    together = method.fit(table).transform(new)
    alone = np.vstack([method.transform(new[i : i + 1]) for i in range(len(new))])
    assert alone.tobytes() == together.tobytes()
