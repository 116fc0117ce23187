import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import pairwise_distances

import equipoise as eq
from equipoise import neighbors
from equipoise.neighbors import Searcher, nearest_in_matrix, nearest_neighbors


def truth(X, k, metric):
    D = pairwise_distances(X, metric=metric)
    np.fill_diagonal(D, np.inf)
    return np.sort(D, axis=1)[:, :k]


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "correlation", "manhattan", "chebyshev"])
def test_exact_search_by_any_metric(rng, metric):
    X = rng.standard_normal((120, 6)) + 1e3 * (metric == "euclidean")
    graph = nearest_neighbors(X, 7, metric)
    assert graph.recall == 1.0 and graph.indices.shape == (120, 7)
    assert not (graph.indices == np.arange(120)[:, None]).any()
    assert_allclose(np.sort(graph.distances, axis=1), truth(X, 7, metric), rtol=1e-6, atol=1e-9)


def test_a_callable_metric(rng):
    X = rng.standard_normal((30, 3))
    graph = nearest_neighbors(X, 4, lambda a, b: float(np.abs(a - b).sum()))
    assert_allclose(np.sort(graph.distances, axis=1), truth(X, 4, "manhattan"))


def test_duplicates_never_list_a_point_itself(rng):
    X = np.repeat(rng.standard_normal((5, 3)), 12, axis=0)
    graph = nearest_neighbors(X, 8)
    assert not (graph.indices == np.arange(60)[:, None]).any()
    assert_array_equal(graph.distances, 0)
    assert all(len(set(row)) == 8 for row in graph.indices.tolist())


def test_large_data_reach_the_recall_asked_for(rng, monkeypatch):
    monkeypatch.setattr(neighbors, "EXACT_WORK", 1e5)
    X = rng.standard_normal((3000, 8))
    for least in (0.8, 0.97):
        graph = nearest_neighbors(X, 10, min_recall=least)
        exact = np.argsort(pairwise_distances(X[:200], X), axis=1)[:, 1:11]
        measured = np.mean([np.isin(a, b).mean() for a, b in zip(exact, graph.indices[:200], strict=True)])
        assert graph.recall >= least and measured >= least - 0.05
    one, two = (nearest_neighbors(X, 10, n_threads=n) for n in (1, 2))
    assert one.indices.tobytes() == two.indices.tobytes() and one.distances.tobytes() == two.distances.tobytes()


def test_from_a_matrix(rng):
    X = rng.standard_normal((40, 3))
    D = pairwise_distances(X)
    graph = nearest_in_matrix(D, 5)
    assert_allclose(np.sort(graph.distances, axis=1), truth(X, 5, "euclidean"))
    assert D[0, 0] == 0  # the caller's matrix is left alone


def test_search_for_new_rows_is_exact_and_row_by_row(rng):
    X, new = rng.standard_normal((300, 5)), rng.standard_normal((40, 5))
    for metric in ("euclidean", "cosine", "manhattan"):
        searcher = Searcher(X, metric, 1)
        graph = searcher.nearest(new, 9)
        assert_allclose(np.sort(graph.distances), np.sort(pairwise_distances(new, X, metric=metric))[:, :9], atol=1e-12)
        alone = searcher.nearest(new[3:4], 9)
        assert_array_equal(alone.indices[0], graph.indices[3])
        assert_array_equal(alone.distances[0], graph.distances[3])


def test_errors(rng):
    X = rng.standard_normal((10, 2))
    with pytest.raises(ValueError, match=r"k must be between 1 and n_samples - 1 = 9, got 10"):
        nearest_neighbors(X, 10)
    X[4] = 0
    with pytest.raises(ValueError, match=r"row 4 has no direction.*'cosine'"):
        nearest_neighbors(X, 3, "cosine")
    with pytest.raises(ValueError, match=r"gives the distance -1.0 between rows 0 and 1"):
        nearest_neighbors(X, 3, lambda a, b: -1.0)


def test_two_components_of_the_graph_make_a_finite_map(rng):
    X = np.vstack([rng.standard_normal((60, 3)), 1e4 + rng.standard_normal((60, 3))])
    Y = eq.TSNE(perplexity=5, engine="grid", random_state=0).fit_transform(X)
    apart = pairwise_distances(Y[:60], Y[60:]).min()
    assert np.isfinite(Y).all() and apart > np.median(pairwise_distances(Y[:60]))
