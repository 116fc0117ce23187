"""Formulas written once give NumPy's result for arrays of every library."""

from dataclasses import dataclass

import array_api_compat
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from support.cases import KERNELS
from support.namespaces import every_library, numpy_of

import equipoise as eq
from equipoise.affinities.locally_linear import lle_weights
from equipoise.arrays import namespace
from equipoise.arrays.csr import dense, on_host
from equipoise.arrays.device_csr import Rows
from equipoise.arrays.namespace import morton_order
from equipoise.geometry import Flat, Orthonormal, Sphere
from equipoise.linalg import eigen, lanczos
from equipoise.linalg.laplacian import NormalizedAffinities, eigenmap, normalized_laplacian
from equipoise.linalg.pca import JITTER, finish, principal_scores, top_eigenvectors

D2 = np.concatenate([[0.0], np.geomspace(1e-6, 100.0, 40)])
DIVERGENCES = [eq.divergences.Alpha(a) for a in (-3.0, -1.0, 0.0, 0.5, 1.0, 3.0)] + [eq.divergences.ChiSquare()]


def assert_same(found, expected, **tolerance):
    assert_allclose(numpy_of(found), expected, **{"rtol": 1e-12, "atol": 1e-14, **tolerance})


@every_library
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_match_numpy_in_every_library(library, kernel):
    for name in ("value", "slope", "log_value", "log_slope"):
        found = getattr(kernel, name)(library(D2))
        assert type(found) is type(library(D2))
        assert_same(found, getattr(kernel, name)(D2))


@every_library
@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
def test_divergences_match_numpy_in_every_library(library, divergence):
    t = np.geomspace(1e-3, 1e3, 50)
    assert_same(divergence.value(library(t)), divergence.value(t), atol=1e-11)
    assert_same(divergence.slope(library(t)), divergence.slope(t), atol=1e-11)


@every_library
@pytest.mark.parametrize(
    "geometry",
    [Flat(), Flat([[2.0, 0.5], [0.5, 1.0]]), Sphere(1.0), Orthonormal(np.linspace(1, 2, 30))],
    ids=["flat", "metric", "sphere", "orthonormal"],
)
def test_geometries_match_numpy_in_every_library(library, geometry, rng):
    Y, F = rng.standard_normal((2, 30, 2))
    U = geometry.work(Y)
    assert_same(geometry.work(library(Y)), U)
    assert_same(geometry.map(library(U)), geometry.map(U))
    assert_same(geometry.pull_back(library(Y), library(F)), geometry.pull_back(Y, F))
    assert_same(geometry.tangent(library(U), library(F)), geometry.tangent(U, F))
    assert_same(geometry.project(library(U)), geometry.project(U))
    assert_same(geometry.retract(library(U)), geometry.retract(U))


@every_library
def test_zero_row_on_the_sphere_raises(library):
    with pytest.raises(ValueError, match="row 1 of the map is all zeros"):
        Sphere(1.0).work(library(np.array([[1.0, 2.0], [0.0, 0.0]])))


@every_library
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_morton_order_matches_numpy_in_every_library(library, d, rng):
    U = rng.standard_normal((500, d))
    assert_array_equal(numpy_of(morton_order(library(U))), morton_order(U))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_consecutive_points_in_morton_order_are_close(rng, d):
    U = rng.standard_normal((4000, d)).astype(np.float32)
    order = morton_order(U)
    assert_array_equal(np.sort(order), np.arange(4000))
    step = np.linalg.norm(np.diff(U[order], axis=0), axis=1).mean()
    assert step < 0.5 * np.linalg.norm(np.diff(U, axis=0), axis=1).mean()


def test_coincident_points_keep_their_order():
    assert_array_equal(morton_order(np.zeros((5, 2))), np.arange(5))


@every_library
def test_reductions_and_conversions_match_numpy_in_every_library(library, rng):
    U = rng.standard_normal((40, 3))
    x = library(U)
    assert float(namespace.total(x)) == pytest.approx(U.sum(), rel=1e-12)
    assert namespace.sum_squares(x) == pytest.approx((U**2).sum(), rel=1e-12)
    assert_same(namespace.column_squares(x), (U**2).sum(axis=0))
    assert_same(namespace.centered(x), U - U.mean(axis=0))
    assert namespace.spread(x) == pytest.approx(U.std(axis=0).max(), rel=1e-12)
    assert_same(namespace.at_least(x, 0.1), np.maximum(U, 0.1))
    assert_same(namespace.at_most(x, 0.1), np.minimum(U, 0.1))
    assert type(namespace.cast_like(x, U)) is type(x) and namespace.cast_like(x, U).dtype == x.dtype
    assert_same(namespace.times_matrix(x, np.diag([1.0, 2.0, 3.0])), U * [1, 2, 3])
    assert_array_equal(namespace.to_numpy(x), U)
    assert type(namespace.array_like(x, U)) is type(x) and type(namespace.on_device_of(x, U)) is type(x)
    order = rng.permutation(40)
    if not isinstance(x, np.ndarray | torch.Tensor):
        return  # the standard does not allow assignment to an array of indices
    assert_array_equal(numpy_of(namespace.unpermute(x[order], order)), U)


def test_at_least_keeps_nan_and_the_gradient():
    x = torch.tensor([np.nan, 0.0, 1.0, 2.0], requires_grad=True)
    y = namespace.at_least(x, 1.0)
    assert_array_equal(numpy_of(y), [np.nan, 1, 1, 2])
    y[1:].sum().backward()
    assert_array_equal(x.grad, [0, 0, 1, 1])


def test_at_most_of_a_number_is_a_number():
    assert [namespace.at_most(x, 0.5) for x in (0.25, 2)] == [0.25, 0.5]
    assert type(namespace.at_most(0.75, 0.5)) is float


def test_main_array_of_a_pair_is_its_distances():
    distances = torch.zeros((3, 2))
    assert namespace.main_array((np.zeros((3, 2)), distances)) is distances
    for X in (distances, np.zeros(3), None, (np.zeros((3, 2)), np.zeros((3, 2))), [torch.zeros(2), torch.zeros(2)]):
        assert namespace.main_array(X) is X


def test_scalars_lists_and_sparse_matrices_use_the_numpy_namespace():
    numpy = namespace.array_namespace(np.zeros(1))
    for x in (1.0, 2, None, np.float64(1), [1.0], sparse.eye(2, format="csr")):
        assert namespace.array_namespace(x) is numpy


@every_library
def test_fix_signs_in_every_library(library):
    V = np.array([[1.0, -3.0, 2.0], [-2.0, 1.0, -2.0]])
    assert_array_equal(numpy_of(eigen.fix_signs(library(V))), [[-1, 3, 2], [2, -1, -2]])


@every_library
@pytest.mark.parametrize("n", [40, 400])
def test_lanczos_matches_arpack(library, n, rng):
    A = rng.standard_normal((n, n))
    A = A @ A.T
    values, V = eigen.top(A, 3)
    found, W = lanczos.top(library(A), 3)
    assert_allclose(found, values, rtol=1e-10)
    assert_allclose(np.abs((numpy_of(W) * V).sum(axis=0)), 1, rtol=1e-8)


def graph(n, rng):
    i = np.arange(n)
    W = sparse.coo_matrix(
        (rng.uniform(0.5, 1, 4 * n), (np.tile(i, 4), np.concatenate([(i + s) % n for s in range(1, 5)])))
    )
    return sparse.csr_matrix(W + W.T, dtype=np.float32)


@every_library
def test_normalized_affinity_products_match_numpy_in_every_library(library, rng):
    W, U = graph(50, rng).toarray(), rng.standard_normal((50, 2)).astype(np.float32)
    assert_same(
        NormalizedAffinities(library(W)).times(library(U)), NormalizedAffinities(W).times(U), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("form", [sparse.csr_matrix, lambda W: W.toarray()], ids=["csr", "dense"])
def test_normalized_affinities_are_one_matrix_in_every_form(form, rng):
    W = graph(50, rng).astype(np.float64)
    root = np.sqrt(W.toarray().sum(axis=1))
    expected = W.toarray() / np.outer(root, root)
    A = NormalizedAffinities(form(W))
    assert_allclose(dense(A.matrix()), expected, rtol=1e-14)
    assert_allclose(A.root, root, rtol=1e-14)
    trivial = root / np.linalg.norm(root)
    without = expected - np.outer(trivial, trivial)  # the eigenvector root belongs to the eigenvalue 1
    assert_allclose(A.times(np.eye(50, dtype=np.float32)), without, atol=1e-6)
    laplacian, also_root = normalized_laplacian(sparse.csr_matrix(W))
    assert_allclose(laplacian.toarray(), np.eye(50) - expected, rtol=1e-14)
    assert_array_equal(also_root, A.root)


@every_library
def test_start_maps_have_unit_spread_and_jitter_in_every_library(library, rng):
    scores = 5 * rng.standard_normal((2000, 1))
    Y = numpy_of(finish(library(scores), 2, np.random.RandomState(0)))
    assert_allclose(np.std(Y[:, 0] - scores[:, 0] / scores.std()), JITTER, rtol=0.1)
    assert_allclose(Y[:, 1].std(), JITTER, rtol=0.1)
    assert_array_equal(numpy_of(finish(library(scores), 2, np.random.RandomState(0))), Y)
    assert_allclose(numpy_of(finish(library(0 * scores), 2, np.random.RandomState(0))).std(), JITTER, rtol=0.1)


def test_device_eigenmap_matches_arpack(rng):
    W = graph(400, rng)
    W.data[:] = np.where(W.indices < 100, 1, 0.2) * W.data  # makes all eigenvalues distinct
    W = sparse.csr_matrix(W + W.T)
    from_numpy, one = eigenmap(W, 2, 1e-6, 300, 100)
    from_tensor, two = eigenmap(Rows.of(W, torch.device("cpu")), 2, 1e-6, 300, 100)
    assert one and two
    assert (
        np.abs((from_numpy * numpy_of(from_tensor)).sum(axis=0)) / np.linalg.norm(from_numpy, axis=0) ** 2 > 0.999
    ).all()


@every_library
@pytest.mark.parametrize("shape", [(30, 5), (5, 30)])
def test_principal_components_match_numpy_in_every_library(library, shape, rng):
    X = rng.standard_normal(shape)
    X -= X.mean(axis=0)
    assert_same(principal_scores(library(X), 3), principal_scores(X, 3), atol=1e-8)
    assert_same(top_eigenvectors(library(X.T @ X), 2)[0], top_eigenvectors(X.T @ X, 2)[0], atol=1e-8)


@pytest.mark.parametrize("kernel", [None, eq.kernels.Gaussian().value], ids=["linear", "kernel"])
def test_lle_weights_of_a_tensor_match_numpy(kernel, rng):
    X = rng.standard_normal((60, 5))
    neighbors = np.argsort(rng.random((60, 60)), axis=1)[:, :7]
    settings = {"kernel": kernel, "scale": np.linspace(1, 2, 60)}
    from_numpy, from_tensor = (
        lle_weights(X, neighbors, **settings),
        lle_weights(torch.from_numpy(X), neighbors, **settings),
    )
    assert_allclose(on_host(from_tensor).toarray(), from_numpy.toarray(), atol=1e-12)


@dataclass(frozen=True)
class Softened(eq.kernels.Kernel):
    """k = exp(−√(1 + d2)), written against the array namespace as in docs/howto/own_kernel.md."""

    def value(self, d2):
        xp = array_api_compat.array_namespace(d2)
        return xp.exp(-xp.sqrt(1 + d2))

    def slope(self, d2):
        xp = array_api_compat.array_namespace(d2)
        root = xp.sqrt(1 + d2)
        return -xp.exp(-root) / (2 * root)


class PlainNumPy(Softened):
    def value(self, d2):
        return np.exp(-np.sqrt(1 + d2))

    def slope(self, d2):
        return -np.exp(-np.sqrt(1 + d2)) / (2 * np.sqrt(1 + d2))


def curved(Y):
    return torch.eye(2, dtype=Y.dtype) * (1 + Y.square().sum(dim=1))[:, None, None]


@every_library
def test_namespace_kernel_accepts_arrays_of_every_library(library):
    kernel, plain = Softened(), PlainNumPy()
    for name in ("value", "slope", "log_value", "log_slope"):
        assert_same(getattr(kernel, name)(library(D2)), getattr(plain, name)(D2))


@pytest.mark.parametrize(
    "settings", [{"engine": name} for name in ("reference", "exact", "grid", "torch")] + [{"g": curved}]
)
def test_namespace_kernel_runs_in_every_engine(settings, rng):
    X, Y = rng.standard_normal((60, 4)), rng.standard_normal((60, 2))
    kernels = Softened(), PlainNumPy()
    one, two = (eq.SymmetricSNE(kernel=k, perplexity=5, n_iter=20, random_state=0, **settings) for k in kernels)
    problem, other = one.problem(X), two.problem(X)
    assert problem.loss(Y) == pytest.approx(other.loss(Y), rel=1e-6)
    assert_allclose(problem.gradient(Y), other.gradient(Y), rtol=1e-5, atol=1e-8)
    assert np.isfinite(one.fit(X).loss_)


def test_namespace_kernel_trains_an_encoder(rng):
    method = eq.SymmetricSNE(kernel=Softened(), perplexity=5)
    found = eq.Parametric(method, epochs=2, random_state=0).fit(rng.standard_normal((60, 4)))
    assert np.isfinite(found.loss_)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_check_finite_names_the_first_value_whose_power_overflows(container):
    X = np.ones((4, 3))
    X[2, 1], X[3, 2] = -1e80, 1e90
    namespace.check_finite(container(X), "X")
    namespace.check_finite(container(X), "X", power=2)
    message = r"X contains -1e\+80 at row 2, column 1 \('b'\), and 1 more such entry; .* beyond 1e\+75 .* rescale"
    with pytest.raises(ValueError, match=message):
        namespace.check_finite(container(X), "X", ["a", "b", "c"], power=4)
    X[1, 0] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 1, column 0; drop such rows"):
        namespace.check_finite(container(X), "X", power=4)
    namespace.check_finite(container(np.zeros((3, 0))), "X")


def test_require_names_the_parameter_and_its_condition():
    namespace.require(3, "k", "> 0", lambda x: x > 0)
    for value in (0, np.nan, "a", 10**400):
        with pytest.raises(ValueError, match="k must be a finite number > 0, got"):
            namespace.require(value, "k", "> 0", lambda x: x > 0)
