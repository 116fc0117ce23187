"""Eigenvectors (Lanczos, shift-invert, dense) and shortest paths against SciPy's dense results."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

from equipoise.linalg import definite, eigen
from equipoise.neighbors.search import nearest_neighbors
from equipoise.spaces import GraphGeodesic


def symmetric_matrix(n, rng):
    A = rng.standard_normal((n, n))
    return A + A.T


@pytest.mark.parametrize("n", [6, 200, 500])
def test_top_matches_numpy(n, rng):
    A = symmetric_matrix(n, rng)
    values, V = eigen.top(A, 3)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A)[:-4:-1])
    np.testing.assert_allclose(A @ V, V * values, atol=1e-8)
    assert (V[np.abs(V).argmax(axis=0), range(3)] > 0).all()
    assert eigen.norm(lambda v: A @ v, n) == pytest.approx(np.linalg.norm(A, 2), rel=0.02)


def laplacian(n, rng):
    i, j = rng.integers(0, n, (2, 6 * n))
    W = sparse.coo_matrix((rng.uniform(0.1, 1, 6 * n), (i, j)), shape=(n, n)).tocsr()
    return csgraph.laplacian(W + W.T).tocsr()


@pytest.mark.parametrize("n", [7, 200, 900])
def test_bottom_matches_numpy_beyond_the_null_space(n, rng):
    A = laplacian(n, rng)
    values, V = eigen.bottom(A, np.full((n, 1), n**-0.5), 2)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A.toarray())[1:3], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(A @ V, V * values, atol=1e-8)
    np.testing.assert_allclose(V.sum(axis=0), 0, atol=1e-9)


def test_dense_decomposition_replaces_unconverged_lanczos(rng, monkeypatch):
    monkeypatch.setattr(eigen, "RESTARTS", 1)
    A, L = symmetric_matrix(400, rng), laplacian(400, rng)
    np.testing.assert_allclose(eigen.top(A, 3)[0], np.linalg.eigvalsh(A)[:-4:-1])
    null = np.full((400, 1), 400**-0.5)
    np.testing.assert_allclose(eigen.bottom(L, null, 3)[0], np.linalg.eigvalsh(L.toarray())[1:4], rtol=1e-6)
    monkeypatch.setattr(eigen, "DENSE", 399)
    with pytest.raises(RuntimeError, match="the eigenvectors of a matrix with 400 rows did not converge in 1 restart "):
        eigen.top(A, 3)


def test_wide_graph_is_factorised_as_dense_if_lanczos_without_factors_does_not_converge(rng, monkeypatch):
    L, null = laplacian(400, rng), np.full((400, 1), 400**-0.5)
    expected = eigen.bottom(L, null, 2)
    monkeypatch.setattr(eigen, "WIDEST", 0)

    def fail(A, null, d):
        raise eigen._not_converged(A.shape[0], Exception("test"))

    monkeypatch.setattr(eigen, "_bottom_without_factors", fail)
    monkeypatch.setattr(eigen, "factor", None)
    for found, value in zip(eigen.bottom(L, null, 2), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(eigen, "DENSE_FACTOR", 399)
    with pytest.raises(RuntimeError, match=r'did not converge .*: use solver="flow"'):
        eigen.bottom(L, null, 2)
    monkeypatch.setattr(eigen, "DENSE_FACTOR", 400)
    monkeypatch.setattr(eigen, "available_memory", lambda: 8.0 * 400**2 - 1)
    with pytest.raises(RuntimeError, match=r'did not converge .*: use solver="flow"'):
        eigen.bottom(L, null, 2)


def test_widest_level_is_of_all_components():
    star = sparse.csr_matrix((np.ones(50), (np.zeros(50, int), np.arange(1, 51))), shape=(51, 51))
    pair = sparse.csr_matrix(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert definite.widest_level(sparse.block_diag([pair, star + star.T], format="csr")) == 50
    assert definite.widest_level(sparse.block_diag([pair] * 30, format="csr")) == 1


def test_wide_graph_is_not_factorised(rng, monkeypatch):
    L = laplacian(400, rng)
    monkeypatch.setattr(eigen, "WIDEST", 50)
    monkeypatch.setattr(eigen, "factor", None)
    values, V = eigen.bottom(L, np.full((400, 1), 400**-0.5), 2)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(L.toarray())[1:3], rtol=1e-5)
    np.testing.assert_allclose(L @ V, V * values, atol=1e-5)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_shortest_paths_match_scipy(n_threads, rng):
    X = rng.standard_normal((150, 3))
    X[40:50] = X[0]  # steps of length 0
    space = GraphGeodesic(nearest_neighbors(X, 12), n_threads=n_threads)
    dense = np.full((150, 150), np.inf)
    rows = np.repeat(np.arange(150), 12)
    dense[rows, space.graph.indices] = space.graph.data
    dense = np.minimum(dense, dense.T)
    truth = csgraph.floyd_warshall(csgraph.csgraph_from_dense(dense, null_value=np.inf))
    np.testing.assert_allclose(space.matrix(), truth, rtol=1e-12)
    np.testing.assert_array_equal(space.distances([3, 77]), space.matrix()[[3, 77]])
