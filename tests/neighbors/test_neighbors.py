import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import pairwise_distances
from support.cases import misaligned

import equipoise as eq
from equipoise.arrays import blocks
from equipoise.neighbors import search as neighbors
from equipoise.neighbors.search import Searcher, nearest_in_matrix, nearest_neighbors


def true_distances(X, k, metric):
    D = pairwise_distances(X, metric=metric)
    np.fill_diagonal(D, np.inf)
    return np.sort(D, axis=1)[:, :k]


METRICS = ["euclidean", "l2", "sqeuclidean", "cosine", "correlation", "manhattan", "cityblock", "l1", "chebyshev"]


@pytest.mark.parametrize("metric", [*METRICS, "canberra"])
def test_exact_search_matches_scikit_learn_for_every_metric(rng, metric):
    X = rng.standard_normal((120, 6)) + 1e3 * (metric == "euclidean")
    graph = nearest_neighbors(X, 7, metric)
    assert graph.recall == 1.0 and graph.indices.shape == (120, 7)
    assert not (graph.indices == np.arange(120)[:, None]).any()
    assert_allclose(np.sort(graph.distances, axis=1), true_distances(X, 7, metric), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_inner_product_search_finds_the_largest_products(rng, scale):
    X = scale * (rng.standard_normal((150, 5)) * rng.uniform(0.1, 3, (150, 1)) + 0.5)
    S = X @ X.T
    np.fill_diagonal(S, -np.inf)
    graph = nearest_neighbors(X, 8, "inner_product")
    found = np.take_along_axis(S, graph.indices, axis=1)
    assert_allclose(np.sort(found)[:, ::-1], np.sort(S)[:, :-9:-1], rtol=1e-6, atol=1e-6 * scale**2)
    # Up to a constant per row, d² = −2 x·y; affinities of a row do not depend on that constant.
    d2 = graph.distances**2
    assert_allclose(d2 + 2 * found, np.broadcast_to(2 * found.max(axis=1, keepdims=True), d2.shape), rtol=1e-9)
    assert (graph.distances.min(axis=1) == 0).all()


def test_inner_product_search_excludes_the_point_itself():
    X = np.array([[1.0, 0], [3, 0], [2, 0], [0, 1], [0, 5]])
    graph = nearest_neighbors(X, 1, "inner_product")
    assert graph.indices[:, 0].tolist() == [1, 2, 1, 4, 3]


@pytest.mark.parametrize("metric", [*METRICS, "inner_product", "canberra"])
def test_neighbors_are_identical_for_any_number_of_threads(rng, metric):
    X, new = rng.standard_normal((400, 7)), rng.standard_normal((30, 7))
    X[50:60] = X[50]
    for graphs in (
        [nearest_neighbors(X, 12, metric, n_threads=n) for n in (1, 2, 4)],
        [Searcher(X, metric, n).nearest(new, 12) for n in (1, 2, 4)],
    ):
        assert len({graph.indices.tobytes() + graph.distances.tobytes() for graph in graphs}) == 1


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "chebyshev"])
def test_blocks_and_threads_do_not_change_the_neighbors_of_new_rows(rng, metric, monkeypatch):
    X, new = rng.standard_normal((300, 7)), rng.standard_normal((40, 7))
    whole = Searcher(X, metric, 1).nearest(new, 9)
    monkeypatch.setattr(blocks, "block_bytes", lambda: 8 * 25 * 7 * 3)  # three rows
    for n_threads in (1, 2, 3, 4):
        graph = Searcher(X, metric, n_threads).nearest(new, 9)
        assert graph.indices.tobytes() == whole.indices.tobytes()
        assert graph.distances.tobytes() == whole.distances.tobytes()


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "chebyshev"])
def test_block_size_does_not_change_the_neighbors(rng, metric, monkeypatch):
    X = rng.standard_normal((250, 6))
    whole = nearest_neighbors(X, 9, metric)
    monkeypatch.setattr(neighbors, "FIXED_QUERY_ROWS", 64)
    in_blocks = nearest_neighbors(X, 9, metric)
    assert_array_equal(np.sort(in_blocks.indices), np.sort(whole.indices))
    assert not (in_blocks.indices == np.arange(250)[:, None]).any()


def test_search_allocates_little_beyond_the_result(rng, monkeypatch):
    n, D, k = 8000, 16, 60
    monkeypatch.setattr(neighbors, "FIXED_QUERY_ROWS", 500)
    X = rng.standard_normal((n, D))
    nearest_neighbors(X[:100], 5)  # imports
    tracemalloc.start()
    graph = nearest_neighbors(X, k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = graph.indices.nbytes + graph.distances.nbytes
    assert peak < 1.3 * result  # faiss's own result, 12 bytes per neighbour, would double it


@pytest.mark.parametrize("apart", [1e2, 1e4])
@pytest.mark.parametrize("work", [neighbors.EXACT_WORK, 0.0], ids=["scan", "cells"])
def test_recall_is_high_for_distant_clusters(rng, monkeypatch, apart, work):
    monkeypatch.setattr(neighbors, "EXACT_WORK", work)
    X = rng.standard_normal((2000, 20))
    X[1000:] += apart
    found = nearest_neighbors(X, 15)
    exact = nearest_in_matrix(pairwise_distances(X), 15).indices
    recall = np.mean([len(set(a) & set(b)) for a, b in zip(found.indices, exact, strict=True)]) / 15
    assert recall > 0.98 and abs(recall - found.recall) < 0.01


def test_callable_metric(rng):
    X = rng.standard_normal((30, 3))
    graph = nearest_neighbors(X, 4, lambda a, b: float(np.abs(a - b).sum()))
    assert_allclose(np.sort(graph.distances, axis=1), true_distances(X, 4, "manhattan"))


def test_duplicates_do_not_list_a_point_as_its_own_neighbor(rng):
    X = np.repeat(rng.standard_normal((5, 3)), 12, axis=0)
    graph = nearest_neighbors(X, 8)
    assert not (graph.indices == np.arange(60)[:, None]).any()
    assert_array_equal(graph.distances, 0)
    assert all(len(set(row)) == 8 for row in graph.indices.tolist())


def test_approximate_search_reaches_min_recall(rng, monkeypatch):
    monkeypatch.setattr(neighbors, "EXACT_WORK", 1e5)
    X = rng.standard_normal((3000, 8))
    for least in (0.8, 0.97):
        graph = nearest_neighbors(X, 10, min_recall=least)
        exact = np.argsort(pairwise_distances(X[:200], X), axis=1)[:, 1:11]
        measured = np.mean([np.isin(a, b).mean() for a, b in zip(exact, graph.indices[:200], strict=True)])
        assert graph.recall >= least and measured >= least - 0.05
    one, two = (nearest_neighbors(X, 10, n_threads=n) for n in (1, 2))
    assert one.indices.tobytes() == two.indices.tobytes() and one.distances.tobytes() == two.distances.tobytes()


def test_nearest_in_matrix(rng):
    X = rng.standard_normal((40, 3))
    D = pairwise_distances(X)
    graph = nearest_in_matrix(D, 5)
    assert_allclose(np.sort(graph.distances, axis=1), true_distances(X, 5, "euclidean"))
    assert D[0, 0] == 0  # the caller's matrix is not modified


def test_search_for_new_rows_is_exact_and_independent_per_row(rng):
    X, new = rng.standard_normal((300, 5)), rng.standard_normal((40, 5))
    for metric in ("euclidean", "cosine", "manhattan", "chebyshev", "canberra"):
        searcher = Searcher(X, metric, 1)
        graph = searcher.nearest(new, 9)
        assert_allclose(np.sort(graph.distances), np.sort(pairwise_distances(new, X, metric=metric))[:, :9], atol=1e-12)
        alone = searcher.nearest(new[3:4], 9)
        assert_array_equal(alone.indices[0], graph.indices[3])
        assert_array_equal(alone.distances[0], graph.distances[3])


def test_search_for_new_rows_by_inner_product(rng):
    X, new = rng.standard_normal((300, 5)), rng.standard_normal((40, 5))
    searcher = Searcher(X, "inner_product", 1)
    graph = searcher.nearest(new, 9)
    found = np.take_along_axis(new @ X.T, graph.indices, axis=1)
    assert_allclose(np.sort(found)[:, ::-1], np.sort(new @ X.T)[:, :-10:-1], rtol=1e-12)
    alone = searcher.nearest(new[3:4], 9)
    assert_array_equal(alone.distances[0], graph.distances[3])


def test_approximate_inner_product_search_reaches_the_recall(rng, monkeypatch):
    monkeypatch.setattr(neighbors, "EXACT_WORK", 1e5)
    X = rng.standard_normal((3000, 8))
    graph = nearest_neighbors(X, 10, "inner_product")
    S = X[:200] @ X.T
    S[np.arange(200), np.arange(200)] = -np.inf
    exact = np.argsort(-S, axis=1)[:, :10]
    measured = np.mean([np.isin(a, b).mean() for a, b in zip(exact, graph.indices[:200], strict=True)])
    assert graph.recall >= 0.95 and measured >= 0.9


def test_invalid_arguments_raise(rng):
    X = rng.standard_normal((10, 2))
    with pytest.raises(ValueError, match=r"k must be an integer from 1 to n_samples - 1 = 9, got 10"):
        nearest_neighbors(X, 10)
    X[4] = 0
    with pytest.raises(ValueError, match=r"row 4 is zero, so metric='cosine' is not defined"):
        nearest_neighbors(X, 3, "cosine")
    with pytest.raises(ValueError, match=r"gives the distance -1.0 between rows 0 and 1"):
        nearest_neighbors(X, 3, lambda a, b: -1.0)


def test_disconnected_graph_gives_a_finite_map(rng):
    X = np.vstack([rng.standard_normal((60, 3)), 1e4 + rng.standard_normal((60, 3))])
    Y = eq.TSNE(perplexity=5, engine="grid", random_state=0).fit_transform(X)
    apart = pairwise_distances(Y[:60], Y[60:]).min()
    assert np.isfinite(Y).all() and apart > np.median(pairwise_distances(Y[:60]))


def test_repr_of_a_graph_is_one_line(rng):
    assert repr(nearest_neighbors(rng.normal(size=(1200, 3)), 7)) == "<7 neighbours of each of 1,200 points, recall 1>"


def test_search_accepts_what_converts_to_a_table(rng):
    X = rng.normal(size=(30, 7))
    for given in (X.tolist(), X.astype(np.float32).astype(object), np.asfortranarray(X)):
        assert_allclose(nearest_neighbors(given, 3).distances, nearest_neighbors(X, 3).distances, rtol=1e-5)
    for metric in ("euclidean", "cosine", "inner_product", "manhattan", "canberra"):
        expected, table = nearest_neighbors(X, 3, metric), misaligned(X)
        for given in (table, np.ma.masked_array(table)):
            found = nearest_neighbors(given, 3, metric)
            assert_array_equal(found.indices, expected.indices)
            assert_array_equal(found.distances, expected.distances)


@pytest.mark.parametrize(
    ("X", "settings", "message"),
    [
        (None, {}, "Expected 2D array"),
        (np.array([["a"], ["b"], ["c"]]), {}, "X .* is not a table of numbers"),
        (np.array([[0.0], [np.nan], [1.0]]), {}, "X contains NaN at row 1, column 0"),
        (np.array([[0.0], [1e200], [1.0]]), {}, r"X contains 1e\+200 at row 1, column 0; .* rescale"),
        (np.eye(3), {"k": 1.5}, "k must be an integer from 1 to n_samples - 1 = 2, got 1.5"),
        (np.eye(3), {"k": 10**30}, "k must be an integer from 1 to"),
        (np.eye(3), {"n_threads": -1e10}, "n_threads must be an integer from 1 to 1024"),
        (np.eye(3), {"min_recall": 2}, "min_recall must be a finite number between 0 and 1, got 2"),
        (np.empty((3, 0)), {}, "X has no columns"),
        (np.eye(3), {"metric": "precomputed"}, "pass a table and another metric"),
        (
            np.eye(3),
            {"metric": np.ones(2)},
            r"metric must be the name of a metric or a function of two rows, got arr",
        ),
        (sparse.eye(3, format="csr"), {"metric": np.ones(2)}, "metric must be the name of a metric or a function"),
        (np.eye(3), {"metric": None}, "metric must be the name of a metric or a function of two rows, got None"),
        (np.eye(3), {"metric": "haversine"}, "requires two columns, latitude and longitude in radians; X has 3"),
        (
            np.eye(3),
            {"metric": lambda x, y: np.ones(3)},
            "metric must return one number, the distance between two rows; <lambda> returned",
        ),
        (np.eye(3), {"metric": lambda x, y: "a"}, "returned 'a'"),
        (np.eye(3), {"metric": lambda x, y: np.inf}, r"gives the distance inf between rows 0 and 1; .* infinite"),
    ],
)
def test_invalid_arguments_of_a_search_raise(X, settings, message):
    with pytest.raises(ValueError, match=message):
        nearest_neighbors(X, **{"k": 1} | settings)


@pytest.mark.parametrize(
    ("change", "found", "remedy"),
    [
        (lambda X: np.c_[X, np.ones(20)], "column 3 is constant", "remove this column, or reduce"),
        (lambda X: np.c_[X, np.ones(20)][:3], "column 3 is constant", "remove this column, or reduce"),
        (
            lambda X: np.c_[X, 1e9 * X.sum(axis=1)],
            "the covariance of 20 rows of 4 columns has rank 3",
            "remove columns that are linear combinations of others",
        ),
        (lambda X: X[:3], "the covariance of 3 rows of 3 columns has rank 2", "pass more than 3 rows, or reduce"),
    ],
)
@pytest.mark.parametrize("engine", ["exact", "grid"])
def test_mahalanobis_requires_an_invertible_covariance(rng, change, found, remedy, engine):
    X = change(rng.normal(size=(20, 3)))
    message = f'metric="mahalanobis" requires an invertible covariance matrix, but {found}; {remedy}'
    with pytest.raises(ValueError, match=message):
        eq.TSNE(metric="mahalanobis", perplexity=1, engine=engine).fit(X)
    with pytest.raises(ValueError, match=message):
        eq.MDS(metric="mahalanobis").fit(X)


def test_mahalanobis_does_not_depend_on_the_units_of_the_columns(rng):
    X = rng.normal(size=(20, 3))
    near, scaled = (nearest_neighbors(X * unit, 3, "mahalanobis") for unit in (1.0, np.array([1e-9, 1.0, 1e9])))
    assert_allclose(scaled.distances, near.distances, rtol=1e-6)
    one = nearest_neighbors(X[:, :1], 3, "mahalanobis")
    assert_allclose(one.distances, nearest_neighbors(X[:, :1], 3).distances / X[:, 0].std(ddof=1))


@pytest.mark.parametrize("Method", [eq.TSNE, eq.MDS, eq.Isomap])
def test_methods_raise_for_a_metric_that_returns_no_number(rng, Method):
    with pytest.raises(ValueError, match="metric must return one number"):
        Method(metric=lambda x, y: np.ones(3)).fit(rng.normal(size=(30, 4)))


TABLE = np.random.default_rng(0).normal(size=(9, 2))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("value", [np.inf, np.nan, -1.0])
def test_metric_with_invalid_distances_raises(value, kind):
    def odd(a, b):
        return value

    with pytest.raises(ValueError, match=rf"metric=odd gives the distance {value} between rows 0 and 1"):
        nearest_neighbors(kind(TABLE), 3, odd)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("value", [np.inf, np.nan, -1.0])
def test_metric_with_invalid_distances_from_new_rows_raises(value, kind):
    def odd(a, b):
        return value if min(a.min(), b.min()) < -100 else abs(a - b).sum()

    new = TABLE[:4].copy()
    new[2, 1] = -1000
    for Method in (eq.UMAP, eq.Isomap):
        settings = {"n_neighbors": 4, "metric": odd, "random_state": 0, "n_iter": 3}
        fitted = Method(**settings).fit(kind(TABLE))
        with pytest.raises(ValueError, match=rf"metric=odd gives the distance {value} between new row 2 and row 0"):
            fitted.transform(kind(new))


def test_metric_that_returns_no_number_for_sparse_rows_raises():
    X = sparse.csr_matrix(TABLE)
    for result in ("a", np.ones(3)):
        with pytest.raises(ValueError, match="metric must return one number, the distance between two rows"):
            nearest_neighbors(X, 3, lambda x, y, result=result: result)
    with pytest.raises(ValueError, match="metric='haversine' is not available for sparse X"):
        nearest_neighbors(X, 3, "haversine")
