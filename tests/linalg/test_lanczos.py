"""Block Lanczos on devices: thin orthonormalisation, and the smallest eigenvalues of a Laplacian."""

import numpy as np
import pytest

from equipoise.arrays.csr import make_csr, symmetrized
from equipoise.linalg import eigen
from equipoise.linalg.laplacian import normalized_laplacian
from equipoise.neighbors.search import nearest_neighbors
from equipoise.objectives import TraceQuotient

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from equipoise.linalg import lanczos  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cholesky_qr_is_orthonormal_also_for_nearly_dependent_columns(dtype, rng):
    U = rng.standard_normal((4000, 3))
    U[:, 1] = U[:, 0] + 1e-2 * U[:, 1]
    U = torch.as_tensor(1e-8 * U, dtype=dtype)
    Q, R = lanczos._cholesky_qr(U)
    accuracy = 1e-6 if dtype == torch.float32 else 1e-14
    np.testing.assert_allclose(Q.double().T @ Q.double(), np.eye(3), atol=accuracy)
    np.testing.assert_allclose(Q.double().numpy() @ R, U.double().numpy(), atol=1e-8 * accuracy * 100)
    assert not np.tril(R, -1).any()


def test_dependent_columns_are_left_to_householder(rng):
    u = torch.as_tensor(rng.standard_normal((500, 1)))
    for U in (torch.cat([u, 2 * u], dim=1), torch.cat([u, 0 * u], dim=1), u * float("nan")):
        assert lanczos._cholesky_qr(U) is None
    Q, R = lanczos._qr(torch.cat([u, 2 * u], dim=1))
    np.testing.assert_allclose(Q.T @ Q, np.eye(2), atol=1e-12)
    assert abs(R[1, 1]) < 1e-10


@pytest.fixture(scope="module")
def laplacian():
    X = np.random.default_rng(0).standard_normal((900, 3))
    graph = nearest_neighbors(X, 8)
    W = symmetrized(make_csr(np.ones(8 * 900), graph.indices.ravel(), np.arange(0, 7201, 8), (900, 900)))
    return *normalized_laplacian(W), W


def test_bottom_matches_the_cpu(laplacian):
    A, root, _ = laplacian
    null = (root / np.linalg.norm(root))[:, None]
    values, V = lanczos.bottom(A, null, 3, eigen.LOOSE, "cpu")
    true, U = eigen.bottom(A, null, 3)
    np.testing.assert_allclose(values, true, rtol=1e-8)
    np.testing.assert_allclose(V, U, atol=1e-5)
    np.testing.assert_array_equal(V, lanczos.bottom(A, null, 3, eigen.LOOSE, "cpu")[1])


@pytest.mark.parametrize("restarts", [300, 0])  # without restarts it does not converge, and the CPU takes over
def test_trace_quotient_on_a_gpu_matches_the_cpu(laplacian, restarts, monkeypatch):
    A, root, W = laplacian
    run = lanczos.bottom
    monkeypatch.setattr(lanczos, "bottom", lambda A, null, d, tol, device: run(A, null, d, tol, "cpu"))
    monkeypatch.setattr(lanczos, "RESTARTS", restarts)
    values, U = TraceQuotient(A, root, W, "cuda").solve(2)
    true, V = TraceQuotient(A, root, W).solve(2)
    np.testing.assert_allclose(values, true, rtol=1e-8)
    np.testing.assert_allclose(U, V, atol=1e-5 * np.abs(V).max())
