"""Precomputed input: neighbour lists and affinities; also uniform affinities."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors, kneighbors_graph
from support.cases import to_dense

import equipoise as eq
from equipoise.affinities.perplexity import conditional, uniform
from equipoise.methods import METHODS
from equipoise.neighbors.search import Graph, nearest_neighbors

every_method = pytest.mark.parametrize("Method", METHODS, ids=lambda M: M.__name__)
every_engine = pytest.mark.parametrize("engine", ["exact", "grid"])

ALL, LABELS = make_blobs(200, 5, centers=4, random_state=0)
X, NEW = ALL[:160], ALL[160:]
SEARCH = NearestNeighbors(n_neighbors=31).fit(X)
DISTANCES, INDICES = SEARCH.kneighbors(X)  # the first neighbour of each point is itself


# Neighbour lists


@every_method
@every_engine
def test_neighbor_lists_equal_the_sparse_matrix(Method, engine):
    parameters = {"metric": "precomputed", "perplexity": 10, "engine": engine, "random_state": 0, "n_iter": 30}
    matrix = Method(**parameters).fit(kneighbors_graph(X, 30, mode="distance"))
    for pair in (
        (INDICES, DISTANCES),
        [INDICES[:, 1:], DISTANCES[:, 1:]],
        (INDICES.astype(np.uint16)[:, ::-1], DISTANCES[:, ::-1]),
        Graph(INDICES.astype(np.int32), DISTANCES),
    ):
        lists = Method(**parameters).fit(pair)
        assert lists.embedding_.tobytes() == matrix.embedding_.tobytes()
        assert lists.n_features_in_ == matrix.n_features_in_ == 160


def test_precomputed_search_equals_the_internal_search():
    graph = nearest_neighbors(X, 30)
    table = eq.TSNE(perplexity=10, engine="grid", n_iter=0).fit(X)
    given = eq.TSNE(perplexity=10, engine="grid", n_iter=0, metric="precomputed").fit(graph)
    assert_allclose(to_dense(given.affinities_), to_dense(table.affinities_), rtol=1e-5, atol=1e-10)


def test_recall_of_a_graph_is_reported():
    for engine in ("exact", "grid"):
        graph = Graph(INDICES, DISTANCES, recall=0.9)
        assert eq.TSNE(metric="precomputed", perplexity=9, engine=engine, n_iter=0).fit(graph).knn_recall_ == 0.9


def test_neighbor_lists_need_not_include_the_point():
    crowd = np.vstack([np.zeros((40, 5)), X])  # kneighbors lists some of the duplicates, not always the point itself
    distances, indices = NearestNeighbors(n_neighbors=16).fit(crowd).kneighbors(crowd)
    assert not (indices == np.arange(200)[:, None]).any(axis=1).all()
    with pytest.warns(UserWarning, match="40 rows"):
        method = eq.TSNE(metric="precomputed", perplexity=5, n_iter=30).fit((indices, distances))
    assert np.isfinite(method.embedding_).all() and method.affinities_.diagonal().max() == 0


@pytest.mark.parametrize("k", [10, 15, 30])
def test_any_number_of_neighbors_reaches_the_perplexity(k):
    pair = INDICES[:, : k + 1], DISTANCES[:, : k + 1]
    P = eq.SNE(metric="precomputed", perplexity=10, n_iter=0).fit(pair).affinities_
    assert P.nnz == 160 * k
    entropy = -(P.data.astype(float) * np.log(np.maximum(P.data, 1e-30))).reshape(160, k).sum(axis=1)
    assert_allclose(entropy, np.log(10), atol=1e-5)


def test_neighbor_lists_are_not_modified():
    indices, distances = INDICES.copy(), DISTANCES.copy()
    for array in (indices, distances):
        array.flags.writeable = False
    method = eq.TSNE(metric="precomputed", perplexity=10, n_iter=5).fit((indices, distances))
    method.transform((indices[:, 1:], distances[:, 1:]))
    assert_array_equal(indices, INDICES)
    assert_array_equal(distances, DISTANCES)


def test_two_row_distance_matrix_is_not_neighbor_lists():
    Y = eq.TSNE(metric="precomputed", n_iter=5).fit_transform([[0, 1], [1, 0]])
    assert Y.shape == (2, 2)


@every_method
@every_engine
def test_transform_from_neighbor_lists(Method, engine):
    distances, indices = SEARCH.kneighbors(NEW, 30)
    init = Method(random_state=0, engine=engine).fit_transform(X)
    table = Method(init=init, n_iter=0, engine=engine, perplexity=10).fit(X)
    given = Method(init=init, n_iter=0, engine=engine, perplexity=10, metric="precomputed").fit((INDICES, DISTANCES))
    placed = given.transform((indices, distances))
    assert_allclose(placed, table.transform(NEW), rtol=1e-3, atol=1e-2 * np.abs(init).max())
    graph = sparse.csr_matrix((distances.ravel(), indices.ravel(), np.arange(0, 1201, 30)), shape=(40, 160))
    for same in (graph, Graph(indices, distances)):
        assert given.transform(same).tobytes() == placed.tobytes()
    assert_array_equal(given.transform((INDICES[:5, :20], DISTANCES[:5, :20])), given.embedding_[:5])
    assert given.transform((indices[3:4], distances[3:4])).tobytes() == placed[3:4].tobytes()


def test_invalid_new_rows_raise():
    method = eq.TSNE(metric="precomputed", perplexity=10, n_iter=5).fit((INDICES, DISTANCES))
    distances, indices = SEARCH.kneighbors(NEW, 20)
    with pytest.raises(ValueError, match="row 0 of indices contains 160, but point indices run from 0 to 159"):
        method.transform((np.where(indices == indices[0, 0], 160, indices), distances))
    with pytest.raises(ValueError, match="stores 5 neighbours, fewer than the perplexity 10"):
        method.transform((indices[:, :5], distances[:, :5]))
    with pytest.raises(ValueError, match="expecting 160 features"):
        method.transform(np.zeros((2, 7)))
    with pytest.raises(ValueError, match=r"distances must be finite and nonnegative: X\[1, 3\] = -1 is negative"):
        method.transform(np.where(np.arange(480).reshape(3, 160) == 163, -1.0, 1.0))
    table = eq.TSNE(n_iter=5).fit(X)
    with pytest.raises(ValueError, match=r"dim 3|inhomogeneous"):
        table.transform((indices, distances))


# Uniform affinities


@every_method
@every_engine
def test_uniform_affinities_are_one_over_k(Method, engine):
    method = Method(affinity="uniform", perplexity=7.4, engine=engine, n_iter=60, random_state=0).fit(X)
    rows = np.zeros((160, 160))
    np.put_along_axis(rows, INDICES[:, 1:8], 1 / 7, axis=1)
    P = method.affinities_
    truth = rows if Method is eq.SNE else (rows + rows.T) / 320
    assert sparse.issparse(P)
    assert_allclose(P.toarray(), truth, rtol=1e-6)
    assert np.isfinite(method.embedding_).all() and method.loss_ < method.loss_curve_[0, 1]


def test_uniform_affinities_are_equal_for_all_inputs():
    graph = kneighbors_graph(X, 30, mode="distance")
    D = pairwise_distances(X)
    np.fill_diagonal(D, 0)
    table = eq.TSNE(affinity="uniform", perplexity=7, n_iter=0).fit(X).affinities_.toarray()
    for data in (graph, D, (INDICES, DISTANCES)):
        given = eq.TSNE(affinity="uniform", perplexity=7, n_iter=0, metric="precomputed").fit(data)
        assert_allclose(given.affinities_.toarray(), table, rtol=1e-6)
    with pytest.raises(ValueError, match="stores 30 neighbours, fewer than the rounded perplexity 31"):
        eq.TSNE(affinity="uniform", perplexity=31, metric="precomputed").fit(graph)


def test_uniform_affinities_of_several_perplexities_are_their_mean():
    graph = kneighbors_graph(X, 30, mode="distance")
    both = uniform(graph, np.array([4.0, 20.0]), np.float64).toarray()
    mean = sum(uniform(graph, np.array([k]), np.float64).toarray() for k in (4.0, 20.0)) / 2
    assert_allclose(both, mean, rtol=1e-12)
    assert_allclose(both.sum(axis=1), 1)


def test_transform_with_uniform_affinities():
    method = eq.TSNE(affinity="uniform", perplexity=10, random_state=0).fit(X)
    near = KNeighborsClassifier(5).fit(method.embedding_, LABELS[:160])
    own = near.score(method.embedding_, LABELS[:160])
    assert near.score(method.transform(NEW), LABELS[160:]) > own - 0.1
    assert_array_equal(method.transform(X[:5]), method.embedding_[:5])


def test_sparse_multiscale_equals_dense_multiscale(rng):
    D2 = pairwise_distances(rng.standard_normal((50, 4)), metric="sqeuclidean")
    np.fill_diagonal(D2, 0)
    scales = np.array([3.0, 9.0, 25.0])
    off = ~np.eye(50, dtype=bool)
    graph = sparse.csr_matrix((D2[off], np.nonzero(off)[1], np.arange(51) * 49), shape=(50, 50))
    dense, stored = (conditional(D, scales, np.float64, 1) for D in (D2, graph))
    assert_array_equal(stored.toarray(), dense)
    table = eq.TSNE(perplexity=[3, 9, 17], engine="grid", n_iter=0).fit(X[:50])  # 3 · 17 > 49: every pair is stored
    exact = eq.TSNE(perplexity=[3, 9, 17], engine="exact", n_iter=0).fit(X[:50])
    assert_allclose(table.affinities_.toarray(), exact.affinities_, rtol=1e-4, atol=1e-10)


# Precomputed affinities


def user_affinities():
    rng = np.random.RandomState(0)
    P = np.exp(-pairwise_distances(X, metric="sqeuclidean")) * rng.uniform(0.5, 2, (160, 160))
    P[P < 1e-3] = 0
    P[np.arange(160), INDICES[:, 1]] += 0.1
    np.fill_diagonal(P, 5.0)  # ignored
    return P


@every_method
@every_engine
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.coo_array], ids=["dense", "csr", "coo"])
def test_precomputed_affinities_are_normalised(Method, engine, convert):
    given = user_affinities()
    P = given.copy()
    np.fill_diagonal(P, 0)
    truth = P / P.sum(axis=1, keepdims=True) if Method is eq.SNE else (P + P.T) / (2 * P.sum())
    data = convert(given)
    method = Method(affinity="precomputed", engine=engine, random_state=0, n_iter=60).fit(data)
    assert_allclose(to_dense(method.affinities_), truth, rtol=1e-5, atol=1e-12)
    assert_array_equal(to_dense(data), given)
    assert np.isfinite(method.embedding_).all() and method.n_features_in_ == 160
    again = Method(affinity="precomputed", engine=engine, random_state=0, n_iter=60).fit(1e200 * given)
    assert_allclose(to_dense(again.affinities_), truth, rtol=1e-5, atol=1e-12)
    assert pickle.loads(pickle.dumps(method)).embedding_.tobytes() == method.embedding_.tobytes()


@every_method
def test_affinities_of_a_fit_can_be_passed_back(Method):
    first = Method(engine="grid", perplexity=10, n_iter=0).fit(X)
    again = Method(engine="grid", affinity="precomputed", n_iter=0).fit(first.affinities_)
    assert_allclose(to_dense(again.affinities_), to_dense(first.affinities_), rtol=1e-5)


@every_method
@every_engine
def test_transform_from_precomputed_affinities(Method, engine):
    method = Method(affinity="precomputed", engine=engine, random_state=0).fit(user_affinities())
    rows = np.exp(-pairwise_distances(NEW, X, metric="sqeuclidean") / 4)
    Y = method.transform(rows)
    near = KNeighborsClassifier(5).fit(method.embedding_, LABELS[:160])
    own = near.score(method.embedding_, LABELS[:160])
    assert near.score(Y, LABELS[160:]) > own - 0.1
    assert_allclose(method.transform(7 * sparse.csr_matrix(rows)), Y, atol=1e-4 * np.abs(Y).max())
    with pytest.raises(ValueError, match="row 2 of the precomputed affinities has no positive entry;"):
        method.transform(np.where(np.arange(40)[:, None] == 2, 0, rows))
    with pytest.raises(ValueError, match=r"P\[2, 0\] = -1 is negative"):
        method.transform(np.where(np.arange(40)[:, None] == 2, -1, rows))


def test_precomputed_affinities_over_all_pairs():
    P = np.exp(-pairwise_distances(X) / 2)
    dense = eq.GSNE(alpha=1.5, affinity="precomputed", n_iter=20, random_state=0).fit(P)
    assert dense.affinities_.dtype == np.float64 and dense.loss_ < dense.loss_curve_[0, 1]
    with pytest.raises(ValueError, match=r"needs P > 0.*P is sparse"):
        eq.GSNE(alpha=1.5, affinity="precomputed").fit(sparse.csr_matrix(P))


# Continuing from a finished map


@every_method
@every_engine
def test_fit_with_init_refines_a_finished_map(Method, engine):
    method = Method(random_state=0, engine=engine, n_iter=400).fit(X)
    Y, loss = method.embedding_.copy(), method.problem(X).loss(method.embedding_)
    refined = clone(method).set_params(n_iter=150).fit(X, init=Y)
    curve = refined.loss_curve_[:, 1]
    assert curve[0] == pytest.approx(loss, rel=1e-4)
    assert (np.diff(curve) <= 1e-3 * np.abs(curve[:-1])).all()  # momentum may raise the loss slightly
    assert curve[-1] <= (1 + 1e-4) * curve[0]
    moved = np.linalg.norm(refined.embedding_ - Y, axis=1)
    assert np.median(moved) < 0.1 * pairwise_distances(Y).max()
    assert refined.init == "auto"  # the parameter is unchanged
    cold = clone(method).set_params(n_iter=150, init=Y).fit(X)
    assert cold.loss_curve_[1, 1] > refined.loss_curve_[1, 1]  # as a parameter, init is followed by early exaggeration
    again = clone(method).set_params(n_iter=150).fit_transform(X, init=Y)
    assert again.tobytes() == refined.embedding_.tobytes()
