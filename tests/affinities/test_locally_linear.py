"""Locally linear weights and the LLE matrix."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.manifold._locally_linear import barycenter_kneighbors_graph

from equipoise.affinities.locally_linear import lle_matrix, lle_weights, lle_weights_from_distances
from equipoise.kernels import Gaussian
from equipoise.neighbors.search import nearest_neighbors
from equipoise.objectives.closed_form import Linear

X = np.random.default_rng(0).standard_normal((90, 4))
NEIGHBORS = nearest_neighbors(X, 7).indices


def test_weights_match_scikit_learn():
    theirs = barycenter_kneighbors_graph(X, 7, reg=1e-3).toarray()
    np.testing.assert_allclose(lle_weights(X, NEIGHBORS).toarray(), theirs, atol=1e-9)


def test_rows_sum_to_one_over_the_neighbors():
    W = lle_weights(X, NEIGHBORS)
    np.testing.assert_allclose(W.sum(axis=1), 1)
    assert W.has_sorted_indices and (np.sort(NEIGHBORS, axis=1).ravel() == W.indices).all()


def test_weights_minimise_the_reconstruction_error(rng):
    W = lle_weights(X, NEIGHBORS, reg=1e-10).toarray()
    best = np.linalg.norm(X - W @ X)
    for _ in range(20):
        change = np.where(W != 0, rng.standard_normal(W.shape), 0) * 0.05
        change -= (change.sum(axis=1) / 7)[:, None] * (W != 0)
        assert np.linalg.norm(X - (W + change) @ X) > best


def test_more_neighbors_than_columns_reconstruct_exactly():
    assert np.abs(X - lle_weights(X, NEIGHBORS, reg=1e-12) @ X).max() < 1e-6


def test_weights_are_invariant_to_translation_rotation_and_scale(rng):
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    np.testing.assert_allclose(lle_weights(3 * X @ turn + 5, NEIGHBORS).data, lle_weights(X, NEIGHBORS).data, atol=1e-9)


def test_distances_sparse_rows_and_linear_kernel_give_equal_weights():
    W, D2 = lle_weights(X, NEIGHBORS), cdist(X, X) ** 2
    for other in (
        lle_weights(sparse.csr_matrix(X), NEIGHBORS),
        lle_weights(X, NEIGHBORS, kernel=Linear().value, scale=1.7),  # ⟨x, y⟩ after centring, in any unit
        lle_weights_from_distances(D2, NEIGHBORS),
        lle_weights_from_distances(D2, NEIGHBORS, kernel=Linear().value),
    ):
        np.testing.assert_allclose(other.toarray(), W.toarray(), atol=1e-8)


def test_kernel_weights_match_the_direct_solution():
    scale = np.linspace(2, 4, 90)
    W = lle_weights(X, NEIGHBORS, kernel=Gaussian().value, scale=scale)
    np.testing.assert_allclose(
        W.data,
        lle_weights_from_distances(cdist(X, X) ** 2, NEIGHBORS, kernel=Gaussian().value, scale=scale).data,
        atol=1e-9,
    )
    i, near = 5, np.sort(NEIGHBORS[5])
    K = np.exp(-(cdist(X, X) ** 2) / scale[i])
    G = 1 - K[i, near] - K[i, near][:, None] + K[np.ix_(near, near)]
    w = np.linalg.solve(G + 1e-3 * np.trace(G) * np.eye(7), np.ones(7))
    np.testing.assert_allclose(W[i].toarray()[0, near], w / w.sum())


def test_new_rows_are_reconstructed_from_fitted_rows(rng):
    new = rng.standard_normal((3, 4))
    near = np.argsort(cdist(new, X), axis=1)[:, :7]
    W = lle_weights(X, near, rows=new, reg=1e-12)
    assert W.shape == (3, 90)
    np.testing.assert_allclose(W @ X, new, atol=1e-6)
    from_distances = lle_weights_from_distances(cdist(X, X) ** 2, near, rows=cdist(new, X) ** 2, reg=1e-3)
    np.testing.assert_allclose(from_distances.data, lle_weights(X, near, rows=new).data, atol=1e-8)


def test_equal_neighbors_get_equal_weights():
    W = lle_weights(np.ones((10, 3)), np.array([[(i + s) % 10 for s in (1, 2, 3)] for i in range(10)]))
    np.testing.assert_allclose(W.data, 1 / 3)


def test_lle_matrix_gives_the_reconstruction_error(rng):
    W, Y = lle_weights(X, NEIGHBORS), rng.standard_normal((90, 2))
    M = lle_matrix(W)
    assert np.trace(Y.T @ (M @ Y)) == pytest.approx(np.linalg.norm(Y - W @ Y) ** 2)
    np.testing.assert_allclose(M @ np.ones(90), 0, atol=1e-12)
    assert abs(M - M.T).max() < 1e-15


def test_regularization_too_small_for_equal_neighbors_raises(rng):
    X = np.repeat(rng.normal(size=(3, 2)), 8, axis=0)
    neighbors = np.array([[j for j in range(24) if j != i][:6] for i in range(24)])
    with pytest.raises(ValueError, match="reg=1e-300 is too small: the neighbours of a point are linearly dependent"):
        lle_weights_from_distances(cdist(X, X, "sqeuclidean"), neighbors, reg=1e-300)


def test_weights_and_matrix_on_a_device_match_the_host():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    W, on_device = lle_weights(X, NEIGHBORS), lle_weights(torch.as_tensor(X), torch.as_tensor(NEIGHBORS))
    host = on_device.host()
    np.testing.assert_array_equal(host.indices, W.indices)
    np.testing.assert_allclose(host.data, W.data, rtol=1e-9)
    M, same = lle_matrix(W), lle_matrix(on_device)
    np.testing.assert_array_equal(same.host().indices, M.indices)
    np.testing.assert_array_equal(same.host().indptr, M.indptr)
    np.testing.assert_allclose(same.host().data, M.data, atol=1e-12)
    on_device.data[3] = torch.nan
    with pytest.raises(ValueError, match="the weights of the neighbours are not finite: reg is too small"):
        lle_matrix(on_device)
