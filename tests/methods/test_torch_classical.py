"""Classical methods, MDS and the spectral start in PyTorch on the CPU, compared with NumPy."""

from __future__ import annotations

import pickle
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.datasets import load_digits
from support.cases import relative_error, unequal_digits

import equipoise as eq
from equipoise.affinities import locally_linear as lle
from equipoise.arrays.to_device import require_gpu_memory
from equipoise.initialize.spectral import spectral
from equipoise.linalg import eigen
from equipoise.linalg.gram import Factor, Inner

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from equipoise.arrays.device_csr import Rows  # noqa: E402
from equipoise.linalg import lanczos as device_eigen  # noqa: E402
from equipoise.linalg.laplacian import eigenmap, is_connected  # noqa: E402
from equipoise.objectives.stress.torch_stress import Recomputed  # noqa: E402

CLOSED = (
    eq.PCA(),
    eq.PCA(3, n_landmarks=30),
    eq.PCA(solver="flow"),
    eq.ClassicalMDS(),
    eq.ClassicalMDS(metric="cosine"),
    eq.ClassicalMDS(3, metric="manhattan"),
    eq.ClassicalMDS(n_landmarks=30),
    eq.ClassicalMDS(metric="cosine", solver="flow"),
    eq.Isomap(),
    eq.Isomap(metric="cosine"),
    eq.Isomap(n_landmarks=30),
    eq.LLE(),
    eq.LLE(metric="cosine", n_neighbors=7),
    eq.LaplacianEigenmaps(),
    eq.LaplacianEigenmaps(affinity="gaussian"),
)
EVERY = pytest.mark.parametrize("Method", [eq.PCA, eq.ClassicalMDS, eq.MDS, eq.Isomap, eq.LLE, eq.LaplacianEigenmaps])


@pytest.fixture(scope="module")
def digits():
    return unequal_digits(500)


def on_torch(method):
    return clone(method).set_params(engine="torch", device="cpu", random_state=0, n_jobs=1)


def fit_without_warnings(method, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # disconnected graphs and slow flows, as with NumPy
        return method.fit(X)


def procrustes_r2(A, B):
    """Return Procrustes R²: the share of the variance of B explained by a rotation and scaling of A."""
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    return np.linalg.svd(A.T @ B, compute_uv=False).sum() ** 2 / (np.square(A).sum() * np.square(B).sum())


@pytest.mark.parametrize("method", CLOSED, ids=repr)
def test_torch_map_matches_numpy(method, digits):
    expected = fit_without_warnings(clone(method).set_params(random_state=0), digits)
    actual = fit_without_warnings(on_torch(method), digits)
    assert isinstance(actual.embedding_, np.ndarray) and actual.embedding_.dtype == np.float64
    assert procrustes_r2(actual.embedding_, expected.embedding_) >= 0.999999
    np.testing.assert_allclose(actual.eigenvalues_, expected.eigenvalues_, rtol=1e-8, atol=1e-14)
    assert actual.loss_ == pytest.approx(expected.loss_, rel=1e-8)
    assert (actual.affinities_ is None) == (expected.affinities_ is None)
    if isinstance(expected.affinities_, np.ndarray):
        assert relative_error(actual.affinities_, expected.affinities_) < 1e-10
    new = digits[:20] + 0.1
    assert relative_error(actual.transform(new), expected.transform(new)) < 1e-6  # new points are compared in float32


@pytest.mark.parametrize("method", [*CLOSED, eq.MDS()], ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_tensor_input_gives_tensor_output(method, dtype, digits):
    X = torch.as_tensor(digits[:320]).to(dtype)
    of_tensor, of_array = (fit_without_warnings(on_torch(method), x) for x in (X, X.numpy()))
    assert torch.is_tensor(of_tensor.embedding_) and isinstance(of_array.embedding_, np.ndarray)
    assert of_tensor.engine_ == of_array.engine_ == "torch"
    assert relative_error(of_tensor.embedding_, of_array.embedding_) < 1e-5
    placed = of_tensor.transform(X[:9])
    assert torch.is_tensor(placed)
    for method, x in ((of_tensor, X[:9].numpy()), (of_array, X[:9])):
        assert isinstance(method.transform(x), np.ndarray)
    assert torch.equal(pickle.loads(pickle.dumps(of_tensor)).transform(X[:9]), placed)


def test_pca_inverse_transform_of_tensors(digits):
    X = torch.as_tensor(digits)
    pca = eq.PCA(64, engine="torch", device="cpu").fit(X)
    back = pca.inverse_transform(pca.embedding_)
    assert torch.is_tensor(back) and relative_error(back, digits) < 1e-12
    assert isinstance(pca.components_, np.ndarray) and isinstance(pca.inverse_transform(np.zeros((1, 64))), np.ndarray)
    with pytest.raises(ValueError, match=r"Y has shape \(2, 3\); pass an array \(m, 64\)"):
        pca.inverse_transform(torch.zeros(2, 3))
    few, wide = X[:9], torch.as_tensor(np.random.default_rng(0).standard_normal((40, 1500)))
    for table in (few, wide):  # fewer rows than columns
        actual, expected = eq.PCA(engine="torch", device="cpu").fit(table), eq.PCA().fit(table.numpy())
        assert relative_error(actual.embedding_, expected.embedding_) < 1e-10
        np.testing.assert_allclose(actual.explained_variance_ratio_, expected.explained_variance_ratio_)


@pytest.mark.parametrize("shape", [(350, 20), (20, 350), (1200, 1100)], ids=str)
@pytest.mark.parametrize("mean", [0.0, 100.0])
def test_factor_of_tensors_matches_numpy(shape, mean):
    F = np.random.default_rng(0).standard_normal(shape) * np.linspace(2, 1, shape[1]) + mean
    expected, actual = Factor(F), Factor(torch.as_tensor(F))
    assert actual.norm2() == pytest.approx(expected.norm2(), rel=1e-9)
    assert actual.trace() == pytest.approx(expected.trace(), rel=1e-9)
    assert actual.norm() == pytest.approx(expected.norm(), rel=1e-6)
    (values, U), (true, V) = actual.top(3), expected.top(3)
    np.testing.assert_allclose(values, true, rtol=1e-10)
    assert relative_error(U, V) < 1e-6
    assert relative_error(actual.product(V), expected.times(V)) < 1e-10
    assert relative_error(actual.rows(np.arange(4)), expected.rows(np.arange(4))) < 1e-9


def test_inner_matrix_of_tensors_matches_numpy():
    D2 = np.square(np.random.default_rng(0).random((50, 50)))
    expected, actual = Inner(D2 + D2.T), Inner(torch.as_tensor(D2 + D2.T))
    assert relative_error(actual.B, expected.B) < 1e-14
    assert relative_error(actual.squared(np.array([3, 7])), expected.squared(np.array([3, 7]))) < 1e-14


@pytest.mark.parametrize("d", [1, 2, 5, 30])
def test_lanczos_matches_full_decomposition(d):
    A = np.random.default_rng(0).standard_normal((500, 500))
    A = A + A.T
    values, V = device_eigen.top(torch.as_tensor(A), d)
    true, U = eigen.top(A, d)
    np.testing.assert_allclose(values, true, rtol=1e-10)
    assert relative_error(V, U) < 1e-6
    again = device_eigen.top(torch.as_tensor(A), d)[1]
    assert torch.equal(again, V)


def test_lanczos_with_repeated_and_zero_eigenvalues():
    angle = 2 * np.pi * np.arange(400) / 400
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    values, V = device_eigen.top(torch.as_tensor(circle @ circle.T), 5)  # eigenvalues 200, 200, 0, …
    np.testing.assert_allclose(values, [200, 200, 0, 0, 0], atol=1e-10)
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-12)
    values, V = device_eigen.top(torch.zeros((400, 400), dtype=torch.float64), 2)
    assert not values.any()
    np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-12)


def test_unconverged_lanczos_falls_back_to_dense_or_raises(monkeypatch):
    A = torch.as_tensor(np.diag(np.linspace(0, 1, 400)))
    monkeypatch.setattr(device_eigen, "RESTARTS", 1)
    np.testing.assert_allclose(device_eigen.top(A, 1)[0], 1.0)  # a full decomposition instead
    monkeypatch.setattr(device_eigen, "DENSE", 399)
    with pytest.raises(
        RuntimeError, match="with 400 rows did not converge in 1 restart; the eigenvalues may be nearly"
    ):
        device_eigen.top(A, 1)


def test_lle_weights_of_coincident_neighbours_are_equal(digits):
    X = np.repeat(digits[:30], 4, axis=0)
    neighbors = np.arange(len(X)) // 4 * 4
    neighbors = (neighbors[:, None] + (np.arange(len(X))[:, None] + [1, 2, 3]) % 4).astype(np.int32)
    actual, expected = lle.lle_weights(torch.as_tensor(X), neighbors), lle.lle_weights(X, neighbors)
    np.testing.assert_allclose(actual.host().toarray(), expected.toarray(), atol=1e-14)
    np.testing.assert_allclose(actual.data, 1 / 3)


def test_torch_isomap_joins_components_as_numpy_does(digits):
    X = np.vstack([digits[:60], digits[60:120] + 500])
    with pytest.warns(UserWarning, match="connected by 1 bridge,"):
        expected = eq.Isomap(n_neighbors=5).fit(X)
    with pytest.warns(UserWarning, match="connected by 1 bridge,"):
        actual = eq.Isomap(n_neighbors=5, engine="torch", device="cpu").fit(X)
    np.testing.assert_allclose(actual.eigenvalues_, expected.eigenvalues_, rtol=1e-8)


# ---- stress

MDS_CASES = {
    "table": {},
    "smacof": {"solver": "smacof"},
    "weights": {"weights": True},
    "precomputed distances": {"metric": "precomputed"},
    "missing distances": {"metric": "precomputed", "gaps": True},
    "missing distances and weights": {"metric": "precomputed", "gaps": True, "weights": True},
    "cityblock": {"metric": "cityblock"},
    "3-D": {"n_components": 3},
}


def mds_case(case, X):
    """Return the parameters of MDS and the data to fit."""
    case = dict(case)
    if case.get("weights"):
        W = np.random.default_rng(1).random((len(X), len(X)))
        case["weights"] = W + W.T
    if case.get("metric") == "precomputed":
        X = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
        if case.pop("gaps", False):
            X[2, 5] = X[5, 2] = X[7, 300] = X[300, 7] = np.nan
    return {**case, "random_state": 0, "n_jobs": 1}, X


@pytest.mark.parametrize("case", MDS_CASES.values(), ids=MDS_CASES)
def test_torch_stress_and_its_minimum_match_the_cpu(case, digits):
    parameters, X = mds_case(case, digits)
    expected = eq.MDS(tol=1e-7, engine="stored", **parameters)
    actual = eq.MDS(tol=1e-7, engine="torch", device="cpu", **parameters)
    one, other = actual.problem(X), expected.problem(X)
    np.testing.assert_allclose(one.Y0, other.Y0, rtol=1e-6, atol=1e-6)
    Y = other.Y0
    error = 1e-12 if "metric" in case else 1e-6  # float32 points on the CPU, float32 distances in torch
    assert one.loss(Y) == pytest.approx(other.loss(Y), rel=error)
    for force in ("gradient", "attraction", "repulsion"):
        assert relative_error(getattr(one, force)(Y), getattr(other, force)(Y)) < error
    expected.fit(X), actual.fit(X)
    assert actual.engine_ == "torch" and actual.loss_ == pytest.approx(expected.loss_, rel=1e-6)
    assert actual.stress_1_ == pytest.approx(expected.stress_1_, rel=1e-4)
    assert procrustes_r2(actual.embedding_, expected.embedding_) > 0.999


def test_torch_stress_gradient_matches_finite_differences(digits):
    problem = eq.MDS(engine="torch", device="cpu", random_state=0).problem(digits[:40])
    rng = np.random.default_rng(0)
    Y, move = rng.standard_normal((40, 2)), rng.standard_normal((40, 2))
    slope = (problem.loss(Y + 1e-5 * move) - problem.loss(Y - 1e-5 * move)) / 2e-5
    assert (problem.gradient(Y) * move).sum() == pytest.approx(slope, rel=1e-7)
    together = np.zeros((40, 2))  # coincident points have a residual but no force
    assert not problem.gradient(together).any() and problem.loss(together) > 0


def test_recomputed_distances_match_stored_distances(digits, monkeypatch):
    stored = eq.MDS(engine="torch", device="cpu", random_state=0).fit(digits)
    monkeypatch.setattr("equipoise.methods.mds.STORED", 100)
    recomputed = eq.MDS(engine="torch", device="cpu", random_state=0).fit(digits)
    assert recomputed.loss_ == pytest.approx(stored.loss_, rel=1e-6)
    rows = Recomputed(torch.as_tensor(digits - digits.mean(axis=0))).rows(slice(3, 8))
    assert relative_error(rows, np.sqrt(np.square(digits[3:8, None] - digits).sum(axis=2))) < 1e-12


def test_mds_checkpoint_rejects_other_dissimilarities(digits, tmp_path):
    path = tmp_path / "run.eqz"
    method = eq.MDS(engine="torch", device="cpu", random_state=0, callbacks=[eq.Checkpoint(path, every=5)])
    first = method.fit(digits[:100]).loss_
    method.set_params(callbacks=[eq.Checkpoint(path, every=5, resume=True)])
    assert method.fit(digits[:100]).loss_ == first
    with pytest.raises(ValueError, match="another run: it differs in dissimilarities or weights"):
        method.fit(digits[100:200])


# ---- engine and device


@EVERY
def test_invalid_engine_and_device_raise(Method, digits, monkeypatch):
    with pytest.raises(ValueError, match=r"unknown engine 'grid'.*; choose from .*torch"):
        Method(engine="grid").fit(digits)
    with pytest.raises(ValueError, match="device must be one of 'auto', 'cpu', 'cuda', got 'tpu'"):
        Method(device="tpu").fit(digits)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match='finds no GPU; use device="cpu" or "auto"'):
        Method(device="cuda").fit(digits)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("equipoise.engines.choose.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'engine="torch" needs PyTorch: pip install "equipoise\[gpu\]"'):
        Method(engine="torch").fit(digits)


@EVERY
def test_cpu_tensor_with_default_engine_is_fitted_by_numpy(Method, digits):
    fitted = fit_without_warnings(Method(random_state=0), torch.as_tensor(digits[:100]))
    assert isinstance(fitted.embedding_, np.ndarray) and fitted.engine_ == ("stored" if Method is eq.MDS else "numpy")


def test_unsupported_input_on_torch_raises(digits):
    few = sparse.csr_matrix(np.where(digits > 8, digits, 0.0))
    for method in (eq.PCA(), eq.ClassicalMDS(), eq.LLE(), eq.LaplacianEigenmaps()):
        with pytest.raises(
            ValueError,
            match=r'supports engine="torch" only for dense tables \(n, D\) .*engine="auto" with device="cpu"',
        ):
            on_torch(method).fit(few)
    for method in (eq.LLE(metric="manhattan"), eq.LaplacianEigenmaps(metric="manhattan")):
        with pytest.raises(ValueError, match="with the Euclidean or cosine metric"):
            on_torch(method).fit(digits)
    with pytest.raises(ValueError, match='compares all pairs; for sparse weights or distances use engine="listed"'):
        eq.MDS(engine="torch", device="cpu", weights=sparse.identity(500, format="csr")[::-1]).fit(digits)
    with pytest.raises(ValueError, match='engine="torch" does not support stress="ordinal"; use engine="stored"'):
        eq.MDS(engine="torch", device="cpu", stress="ordinal").fit(digits)


# ---- the spectral start


def umap_affinities(X):
    return eq.UMAP(engine="torch", device="cpu", random_state=0).problem(X).objective.affinities


@pytest.mark.parametrize("d", [1, 2, 3])
def test_spectral_start_of_device_graph_matches_host(d):
    W = umap_affinities(load_digits().data)
    actual, expected = (spectral(A, d, np.random.RandomState(0)) for A in (W, W.host()))
    assert procrustes_r2(actual, expected) >= 0.9999
    np.testing.assert_array_equal(actual, spectral(W, d, np.random.RandomState(0)))


def test_spectral_init_of_torch_engine_matches_grid_engine(digits):
    for Method in (eq.UMAP, eq.TSNE, eq.SNE):
        actual, expected = (
            Method(init="spectral", engine=engine, random_state=0).problem(digits).Y0 for engine in ("torch", "grid")
        )
        assert procrustes_r2(actual, expected) >= 0.9999


def test_eigenmap_solves_the_laplacian_eigenproblem(digits):
    W = umap_affinities(digits)
    Y, converged = eigenmap(W, 2, 1e-6, 100, 100)
    assert converged
    A = W.host().astype(np.float64)
    degree = np.asarray(A.sum(axis=1)).ravel()
    for y in Y.numpy().T:  # W y = (1 − λ) D y, and y is orthogonal to 1 under D
        share = (y @ (A @ y)) / (degree * y @ y)
        assert np.linalg.norm(A @ y - share * degree * y) < 1e-4 * np.linalg.norm(degree * y)
        assert abs(degree @ y) < 1e-4 * np.linalg.norm(degree * y)


def test_is_connected_matches_scipy():
    rng = np.random.default_rng(0)
    for density in (0.002, 0.004, 0.008, 0.02):
        A = sparse.random(400, 400, density, format="csr", dtype=np.float32, random_state=rng)
        A = (A + A.T).tocsr()
        assert is_connected(Rows.of(A, torch.device("cpu"))) == (connected_components(A)[0] == 1)
    chain = rng.permutation(400)
    links = sparse.csr_matrix((np.ones(399, np.float32), (chain[:-1], chain[1:])), shape=(400, 400))
    assert is_connected(Rows.of((links + links.T).tocsr(), torch.device("cpu")))


def test_spectral_start_of_disconnected_graph_matches_host(digits):
    W = umap_affinities(np.vstack([digits[:250], digits[250:] + 1000]))
    actual, expected = (spectral(A, 2, np.random.RandomState(0)) for A in (W, W.host()))
    np.testing.assert_array_equal(actual, expected)


def test_unconverged_spectral_start_warns_and_is_smoothed(digits, monkeypatch):
    W = umap_affinities(digits)
    monkeypatch.setattr("equipoise.initialize.spectral.RESTARTS", 1)
    monkeypatch.setattr("equipoise.initialize.spectral.TOLERANCE", 1e-12)
    with pytest.warns(UserWarning, match="did not converge in 1 restarts and is replaced by 100 smoothing"):
        actual, expected = (spectral(A, 5, np.random.RandomState(0)) for A in (W, W.host()))
    assert procrustes_r2(actual, expected) >= 0.9999


def test_spectral_start_in_many_dimensions_matches_host(digits):
    W = umap_affinities(digits)
    actual, expected = (spectral(A, 150, np.random.RandomState(0)) for A in (W, W.host()))
    np.testing.assert_array_equal(actual, expected)


def test_require_gpu_memory_raises_when_memory_is_short(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**9, 10**10))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 0)
    require_gpu_memory(9e8, "this", "cuda")
    require_gpu_memory(2e9, "this", "cpu")
    with pytest.raises(MemoryError, match="this needs about 2 GB, but only 1 GB are available"):
        require_gpu_memory(2e9, "this", "cuda")
