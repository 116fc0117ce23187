"""Sparse tables give the same neighbours and maps as dense tables, without being made dense."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier

import equipoise as eq
from equipoise.inputs import sparse_table
from equipoise.linalg import randomized as low_rank
from equipoise.linalg.randomized import Directions
from equipoise.methods import METHODS
from equipoise.neighbors.search import nearest_neighbors
from equipoise.neighbors.sparse import SPARSE_METRICS, SparseSearcher

every_method = pytest.mark.parametrize("Method", METHODS, ids=lambda M: M.__name__)


def bags_of_words(n=240, D=500, classes=4, seed=0):
    """Return documents (n, D) of words, most of them from the class's own part of the vocabulary; every row filled."""
    rng = np.random.RandomState(seed)
    labels = np.arange(n) % classes
    words = rng.poisson(0.01, (n, D)).astype(float)
    part = D // classes
    for i, c in enumerate(labels):
        words[i, c * part + rng.randint(0, part, 20)] += 1
    return sparse.csr_matrix(words), labels


X, LABELS = bags_of_words()
NEW, NEW_LABELS = bags_of_words(40, seed=1)


@pytest.mark.parametrize("metric", SPARSE_METRICS)
def test_neighbors_match_the_dense_table(metric):
    found, truth = nearest_neighbors(X, 12, metric), nearest_neighbors(X.toarray(), 12, metric)
    assert_allclose(np.sort(found.distances), np.sort(truth.distances), atol=1e-7)
    assert found.recall == 1.0 and not (found.indices == np.arange(240)[:, None]).any()
    new, dense = SparseSearcher(X, metric).nearest(NEW, 12), SparseSearcher(sparse.csr_matrix(X.toarray()), metric)
    assert_array_equal(new.indices, dense.nearest(NEW, 12).indices)


@pytest.mark.parametrize("metric", SPARSE_METRICS)
def test_all_distances_match_the_dense_table(metric):
    D = SparseSearcher(X, metric).all()
    if metric == "inner_product":
        S = (X @ X.T).toarray()
        np.fill_diagonal(S, -np.inf)
        truth = np.sqrt(2 * (S.max(axis=1, keepdims=True) - S))
        np.fill_diagonal(truth, 0)
    else:
        truth = pairwise_distances(X.toarray(), metric=metric)
    assert_allclose(D, truth, atol=1e-7)


def test_callable_metric_and_row_blocks(monkeypatch):
    def city(a, b):
        return float(np.abs(a - b).sum())

    monkeypatch.setattr("equipoise.arrays.blocks.rows_per_block", lambda bytes_per_row: 17)
    for metric in (city, "euclidean"):
        named = "manhattan" if metric is city else metric
        graph = SparseSearcher(X[:50], metric).within(5)
        assert_allclose(np.sort(graph.distances), np.sort(nearest_neighbors(X[:50].toarray(), 5, named).distances))


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "sqeuclidean"])
def test_equal_rows_have_distance_zero(metric):
    rng = np.random.RandomState(0)
    rows = sparse.random(30, 200, 0.2, format="csr", random_state=rng)
    graph = SparseSearcher(sparse.vstack([rows] * 4).tocsr(), metric).within(3)
    assert_array_equal(graph.distances, 0)


@every_method
@pytest.mark.parametrize("engine", ["exact", "grid"])
def test_affinities_match_the_dense_table(Method, engine):
    untied = X.copy()  # integers have many ties, and a tie at the last neighbour may be broken either way
    untied.data *= np.random.RandomState(0).uniform(0.5, 2, X.nnz)
    plain, dense = (Method(n_iter=0, engine=engine, perplexity=10).fit(data) for data in (untied, untied.toarray()))
    P, Q = (sparse.csr_matrix(method.affinities_).toarray() for method in (plain, dense))
    assert_allclose(P, Q, rtol=1e-4, atol=1e-8)
    assert plain.n_features_in_ == 500


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan", "inner_product"])
@pytest.mark.parametrize("engine", ["exact", "grid"])
def test_map_and_transform_keep_classes_together(metric, engine):
    method = eq.TSNE(metric=metric, engine=engine, perplexity=20, random_state=0).fit(X)
    near = KNeighborsClassifier(5).fit(method.embedding_, LABELS)
    assert near.score(method.embedding_, LABELS) > 0.95
    placed = method.transform(NEW)
    assert near.score(placed, NEW_LABELS) > 0.9
    assert_array_equal(method.transform(X[:9]), method.embedding_[:9])
    assert_array_equal(method.transform(X[:9].toarray()), method.embedding_[:9])
    alone = np.vstack([method.transform(NEW[i]) for i in range(5)])
    assert alone.tobytes() == placed[:5].tobytes()
    again = pickle.loads(pickle.dumps(method))
    assert_array_equal(again.transform(NEW[:3]), placed[:3])


def test_transform_sparse_rows_after_fitting_a_dense_table():
    method = eq.TSNE(n_iter=50, random_state=0).fit(X.toarray())
    assert_array_equal(method.transform(NEW), method.transform(NEW.toarray()))


@pytest.mark.parametrize("convert", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_matrix])
def test_container_and_order_do_not_matter(convert):
    plain, other = (eq.TSNE(n_iter=30, random_state=0).fit(data).embedding_ for data in (X, convert(X)))
    assert plain.tobytes() == other.tobytes()


def test_input_is_not_modified():
    given = X.copy()
    for a, b in zip(given.indptr[:-1], given.indptr[1:], strict=True):
        given.indices[a:b], given.data[a:b] = given.indices[a:b][::-1].copy(), given.data[a:b][::-1].copy()
    given.has_sorted_indices = given.has_canonical_format = False
    before = given.indices.copy(), given.data.copy()
    Y = eq.TSNE(n_iter=30, random_state=0).fit_transform(given)
    assert_array_equal(given.indices, before[0])
    assert_array_equal(given.data, before[1])
    assert Y.tobytes() == eq.TSNE(n_iter=30, random_state=0).fit_transform(X).tobytes()


# Initial map and reduction


@pytest.mark.parametrize(("n", "D", "small"), [(300, 40, 1000), (300, 200, 50), (60, 2000, 50), (30, 8, 50)])
def test_directions_match_principal_components(n, D, small, monkeypatch):
    monkeypatch.setattr(low_rank, "SMALL", small)
    rng = np.random.RandomState(0)
    S = sparse.random(n, D, 0.2, format="csr", random_state=rng)
    S = sparse.csr_matrix(S.multiply(0.8 ** np.arange(D)))  # a decaying spectrum
    scores, truth = Directions(S, 3, centered=True).scores(S), PCA(3, svd_solver="full").fit_transform(S.toarray())
    signs = np.sign((scores * truth).sum(axis=0))
    assert_allclose(signs * scores, truth, atol=1e-6 * np.abs(truth).max())
    loose = Directions(S, 3, centered=False)
    assert_allclose(np.abs(loose.V.T @ np.linalg.svd(S.toarray())[2][:3].T), np.eye(3), atol=1e-6)


def test_initial_map_matches_the_dense_table():
    plain, dense = (eq.TSNE(random_state=0).problem(data).Y0 for data in (X, X.toarray()))
    assert min(abs(np.corrcoef(a, b)[0, 1]) for a, b in zip(plain.T, dense.T, strict=True)) > 0.99


def fit_reduced(monkeypatch, metric, data=X, **parameters):
    monkeypatch.setattr(sparse_table, "SEARCH_WORK", 10.0)
    monkeypatch.setattr(sparse_table, "RANK", 30)
    with pytest.warns(
        UserWarning, match=r"in the space of the 30 leading singular vectors.*for exact neighbours pass them"
    ):
        return eq.TSNE(metric=metric, engine="grid", random_state=0, **parameters).fit(data)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "inner_product"])
def test_large_tables_are_reduced_with_a_warning(metric, monkeypatch):
    method = fit_reduced(monkeypatch, metric, perplexity=20)
    near = KNeighborsClassifier(5).fit(method.embedding_, LABELS)
    assert near.score(method.embedding_, LABELS) > 0.95
    assert near.score(method.transform(NEW), NEW_LABELS) > 0.9
    assert_array_equal(method.transform(X[:7]), method.embedding_[:7])
    one, two = (fit_reduced(monkeypatch, metric, perplexity=20, n_iter=5, n_jobs=n).embedding_ for n in (1, 2))
    assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_reduction_is_exact_for_low_rank_tables(metric, monkeypatch):
    rng = np.random.RandomState(0)
    topics = sparse.random(5, 400, 0.1, random_state=rng).toarray()
    low = sparse.csr_matrix(np.abs(rng.standard_normal((200, 5))) @ topics)
    method = fit_reduced(monkeypatch, metric, low, n_iter=0, perplexity=10)
    exact = eq.TSNE(metric=metric, engine="grid", n_iter=0, perplexity=10).fit(low.toarray())
    assert_allclose(method.affinities_.toarray(), exact.affinities_.toarray(), atol=1e-6)


def test_large_tables_with_manhattan_metric_raise(monkeypatch):
    monkeypatch.setattr(sparse_table, "SEARCH_WORK", 10.0)
    with pytest.raises(ValueError, match=r"240 sparse rows are too many .*'manhattan'; use metric=.euc.*precomputed"):
        eq.TSNE(metric="manhattan", engine="grid").fit(X)


@pytest.mark.slow
def test_sparse_table_is_never_made_dense():
    n, D = 2000, 20_000  # the dense table would need 320 MB, all distances 32 MB
    wide = sparse.random(n, D, 1e-3, format="csr", random_state=0)
    eq.TSNE(n_iter=0).fit(X)  # imports
    tracemalloc.start()
    eq.TSNE(n_iter=0, random_state=0).fit(wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6
