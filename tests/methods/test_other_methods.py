"""Degenerate input and new rows for the methods outside the SNE family; test_odd_input.py tests the SNE family."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs

import equipoise as eq
from equipoise.neighbors.search import Searcher

X, LABELS = make_blobs(60, 4, centers=3, random_state=1)

MAKERS = {
    "UMAP": lambda **p: eq.UMAP(random_state=0, n_neighbors=5, **p),
    "UMAP, sampled": lambda **p: eq.UMAP(random_state=0, n_neighbors=5, engine="negative_sampling", **p),
    "DKLLE": lambda **p: eq.DKLLE(random_state=0, n_neighbors=3, **p),
    "DKPCA": lambda **p: eq.DKPCA(random_state=0, n_neighbors=3, **p),
    "MDS": lambda **p: eq.MDS(random_state=0, **p),
    "PCA": lambda **p: eq.PCA(**p),
    "ClassicalMDS": lambda **p: eq.ClassicalMDS(**p),
    "Isomap": lambda **p: eq.Isomap(n_neighbors=3, **p),
    "LLE": lambda **p: eq.LLE(n_neighbors=3, **p),
    "LaplacianEigenmaps": lambda **p: eq.LaplacianEigenmaps(n_neighbors=4, **p),
}
FORCE_METHODS = ("UMAP", "UMAP, sampled", "DKLLE", "DKPCA")
every_method = pytest.mark.parametrize("name", MAKERS)
ignore_warnings = pytest.mark.filterwarnings("ignore::UserWarning")  # duplicates, components and few points warn


@ignore_warnings
@every_method
@pytest.mark.parametrize("n", [5, 6, 9])
def test_few_points_give_distinct_finite_positions(name, n):
    Y = MAKERS[name]().fit_transform(np.random.RandomState(n).standard_normal((n, 4)))
    assert Y.shape == (n, 2) and np.isfinite(Y).all() and len(np.unique(Y.round(9), axis=0)) == n


@ignore_warnings
@every_method
def test_duplicate_rows_stay_close(name):
    data = np.repeat(X[:30], 2, axis=0)
    Y = MAKERS[name]().fit_transform(data)
    twins = np.linalg.norm(Y[::2] - Y[1::2], axis=1)
    others = np.linalg.norm(Y[:, None] - Y, axis=2)
    assert np.isfinite(Y).all() and np.median(twins) < 0.2 * np.median(others)


@ignore_warnings
@pytest.mark.parametrize("name", FORCE_METHODS)
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_rescaling_the_data_does_not_change_the_map(name, scale):
    plain, scaled = MAKERS[name](n_iter=5).fit(X), MAKERS[name](n_iter=5).fit(scale * X)
    assert_allclose(scaled.affinities_.toarray() if sparse.issparse(scaled.affinities_) else scaled.affinities_,
                    plain.affinities_.toarray() if sparse.issparse(plain.affinities_) else plain.affinities_,
                    rtol=1e-3, atol=1e-6)  # fmt: skip
    assert_allclose(scaled.embedding_, plain.embedding_, atol=1e-2 * np.abs(plain.embedding_).max())


@ignore_warnings
@every_method
def test_transform_of_a_row_does_not_depend_on_the_batch(name):
    method = MAKERS[name]().fit(X[:50])
    together = method.transform(X[50:])
    for i in range(10):
        alone = method.transform(X[50 + i : 51 + i])
        if name in FORCE_METHODS or name == "MDS":
            assert_array_equal(alone[0], together[i])
        else:  # a matrix product rounds with the number of rows
            assert_allclose(alone[0], together[i], rtol=1e-9, atol=1e-9 * np.abs(together).max())


@ignore_warnings
@every_method
@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis"])
def test_transform_under_metrics_estimated_from_the_data(name, metric):
    if name == "PCA":
        pytest.skip("PCA has no metric")
    method = MAKERS[name](metric=metric).fit(X[:50])
    Y = method.transform(X[50:])
    nearest = np.linalg.norm(Y[:, None] - method.embedding_, axis=2).argmin(axis=1)
    assert (LABELS[:50][nearest] == LABELS[50:]).mean() >= 0.7


@ignore_warnings
@pytest.mark.parametrize("metric", ["cosine", "manhattan"])
def test_dklle_transform_of_sparse_rows_matches_dense(metric):
    rows = sparse.csr_matrix(np.abs(X))
    sparse_, dense = (eq.DKLLE(metric=metric, n_iter=20, random_state=0).fit(V[:50]) for V in (rows, rows.toarray()))
    assert_allclose(sparse_.transform(rows[50:]), dense.transform(rows[50:].toarray()), atol=1e-3)


def test_transform_of_exaggerated_map_places_rows_near_fitted_points():
    strong, weak = (eq.TSNE(exaggeration=x, random_state=0).fit(X[:50]) for x in (6, 1))
    for method in (strong, weak):
        near = np.linalg.norm(method.transform(X[50:])[:, None] - method.embedding_, axis=2).min(axis=1)
        own = np.linalg.norm(method.embedding_[:, None] - method.embedding_, axis=2) + 1e9 * np.eye(50)
        assert np.median(near) < 2 * np.median(own.min(axis=1))


def test_searcher_finds_neighbours_of_a_distant_row():
    near = Searcher(X, "euclidean", 1).nearest(np.full((1, 4), 1e30), 5)
    assert near.indices.min() >= 0 and len(np.unique(near.indices)) == 5


def test_landmark_map_is_accurate_far_from_the_origin():
    far = eq.ClassicalMDS(n_landmarks=20, random_state=0).fit(X + 1e7)
    near = eq.ClassicalMDS(n_landmarks=20, random_state=0).fit(X)
    assert_allclose(far.embedding_, near.embedding_, atol=1e-4)


def test_laplacian_eigenmaps_transform_on_a_complete_graph_is_bounded():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method = eq.LaplacianEigenmaps(n_neighbors=8).fit(X[:9])  # eigenvalues above 1
    assert np.abs(method.transform(X[9:12])).max() < 10 * np.abs(method.embedding_).max()


@ignore_warnings
def test_laplacian_eigenmaps_with_an_outlier_are_finite():
    data = np.vstack([1e-6 * X[:20], [[1e3, 0, 0, 0]]])
    assert np.isfinite(eq.LaplacianEigenmaps(n_neighbors=4, affinity="gaussian").fit_transform(data)).all()


def test_isolated_point_in_precomputed_graph_raises():
    D = sparse.csr_matrix(np.array([[0, 1.0, 2, 0], [1, 0, 1, 0], [2, 1, 0, 0], [0, 0, 0, 0]]))
    with pytest.raises(ValueError, match="row 3 of the precomputed graph has no neighbour"):
        eq.LaplacianEigenmaps(metric="precomputed", n_neighbors=2).fit(D)


def distances(data):
    return np.linalg.norm(data[:, None] - data, axis=2)


@ignore_warnings
def test_transform_rejects_incomplete_distances():
    method = eq.LLE(metric="precomputed", n_neighbors=5).fit(distances(X))
    with pytest.raises(
        ValueError, match=r"LLE needs the distances of new points to all \d+ fitted points, but X is sparse"
    ):
        method.transform(sparse.csr_matrix(np.ones((1, 60))))
    graph = eq.Isomap(metric="precomputed", n_neighbors=40).fit(distances(X))
    with pytest.raises(ValueError, match="row 1 of X cannot be placed, because it stores no distance"):
        graph.transform(sparse.csr_matrix(np.vstack([np.ones(60), np.zeros(60)])))


@pytest.mark.parametrize("Method", [eq.ClassicalMDS, eq.LLE, eq.MDS])
def test_triangle_inequality_violation_warns(Method):
    D = distances(X[LABELS == 0])
    D[3, 7] = D[7, 3] = 1e3
    with pytest.warns(UserWarning, match="the dissimilarities are not a metric"):
        assert np.isfinite(Method(metric="precomputed").fit_transform(D)).all()


@dataclass
class UnhashableKernel(eq.kernels.Kernel):
    def value(self, d2):
        return 1 / (1 + d2)

    def slope(self, d2):
        return -1 / (1 + d2) ** 2


def test_unhashable_kernel_raises():
    with pytest.raises(ValueError, match=r"is not hashable; declare its class with @dataclass\(frozen=True\)"):
        eq.SymmetricSNE(kernel=UnhashableKernel()).problem(X)
