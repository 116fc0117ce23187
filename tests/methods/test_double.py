"""Double-kernel LLE and PCA: losses and forces against dense formulas, limiting cases, degenerate and invalid input."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from support.cases import differences, relative_error

import equipoise as eq
from equipoise.affinities import bandwidth, builders
from equipoise.engines import make_engine
from equipoise.kernels import Gaussian, Squared, StudentT
from equipoise.objectives import DoubleKernelLLE, DoubleKernelPCA

N, K = 30, 6
CASES = [
    eq.DKLLE(n_neighbors=K, bandwidth="local"),
    eq.DKLLE(n_neighbors=K, bandwidth="global"),
    eq.DKLLE(3, n_neighbors=K, bandwidth=2.0),
    eq.DKLLE(1, n_neighbors=K, bandwidth=np.inf),
    eq.DKPCA(n_neighbors=K),
    eq.DKPCA(3, n_neighbors=K, bandwidth="global"),
    eq.DKPCA(1, n_neighbors=K, bandwidth=2.0),
]
every_case = pytest.mark.parametrize("method", CASES, ids=lambda method: repr(method).replace("\n", ""))
both = pytest.mark.parametrize("Method", [eq.DKLLE, eq.DKPCA], ids=lambda Method: Method.__name__)


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, 4)) + 2 * (np.arange(N)[:, None] % 2)


def build(method, X, engine="reference"):
    return clone(method).set_params(engine=engine, random_state=0).problem(X)


def random_map(rng, problem, dtype=np.float64):
    return (1.5 * rng.standard_normal(problem.Y0.shape)).astype(dtype)


def dense_loss(problem, Y):
    """Return the loss of Draganov & Dohn 2024, eq. (8) or (6), computed with dense matrices."""
    n, A = len(Y), problem.affinities
    A = A.toarray() if sparse.issparse(A) else A
    K_Y = 1 / (1 + cdist(Y, Y, "sqeuclidean"))
    if isinstance(problem.objective, DoubleKernelLLE):
        return np.trace(A @ K_Y) + K_Y.sum() / n
    C = np.eye(n) - 1 / n
    return ((C @ (A + np.eye(n) - K_Y) @ C) ** 2).sum()


# Loss and forces


@every_case
def test_loss_matches_the_paper(X, rng, method):
    problem = build(method, X)
    for scale in (0.1, 1.0, 10.0):
        Y = scale * random_map(rng, problem)
        assert_allclose(problem.loss(Y), dense_loss(problem, Y), rtol=1e-10)


@every_case
def test_gradient_matches_finite_differences(X, rng, method):
    problem = build(method, X)
    Y = random_map(rng, problem)
    assert relative_error(problem.gradient(Y), differences(lambda Y: dense_loss(problem, Y), Y)) < 1e-7


@every_case
def test_gradient_with_sparse_affinities_matches_finite_differences(X, rng, method):
    problem = build(method, X, "grid")  # K_X on nearest neighbours only
    problem.engine = make_engine("reference", 1, 0.01, seed=0)
    assert sparse.issparse(problem.affinities)
    Y, step = random_map(rng, problem), 1e-5
    direction = rng.standard_normal(Y.shape)
    change = (dense_loss(problem, Y + step * direction) - dense_loss(problem, Y - step * direction)) / (2 * step)
    assert_allclose((problem.gradient(Y) * direction).sum(), change, rtol=1e-6)


@every_case
@pytest.mark.parametrize(("engine", "tol"), [("exact", 1e-5), ("grid", 0.02), ("sampled", 1e-5)])
def test_engines_agree_with_reference(rng, method, engine, tol):
    X = rng.standard_normal((300, 4))
    problem = build(method, X, engine)
    Y = random_map(rng, problem, np.float32)
    gradient, loss = problem.gradient(Y), problem.loss(Y)
    problem.engine = make_engine("reference", 1, 0.01, seed=0)
    Y64 = Y.astype(np.float64)
    size = np.linalg.norm(problem.attraction(Y64)) + np.linalg.norm(problem.repulsion(Y64))  # the two cancel in part
    assert np.linalg.norm(gradient - problem.gradient(Y64)) < tol * size
    assert_allclose(loss, problem.loss(Y64), rtol=10 * tol)


@every_case
def test_forces_sum_to_minus_gradient_and_to_zero(X, rng, method):
    problem = build(method, X)
    Y = random_map(rng, problem)
    attraction, repulsion = problem.attraction(Y), problem.repulsion(Y)
    assert relative_error(-(attraction + repulsion), problem.gradient(Y)) < 1e-14
    for force in (attraction, repulsion):
        assert_allclose(force.sum(axis=0), 0, atol=1e-10 * np.abs(force).max())


def test_dklle_attraction_comes_from_negative_entries(X, rng):
    problem = build(eq.DKLLE(n_neighbors=K), X)
    Y = random_map(rng, problem)
    M = problem.affinities.toarray()
    slope = -1 / (1 + cdist(Y, Y, "sqeuclidean")) ** 2
    pull = np.minimum(M, 0) * slope
    assert relative_error(problem.attraction(Y), -4 * (pull.sum(axis=1)[:, None] * Y - pull @ Y)) < 1e-12


def test_points_that_reconstruct_a_third_repel_each_other(X, rng):
    """M_ij is Σ_l w_li w_lj, the sum over paths i − l − j, for points i and j that do not reconstruct each other."""
    problem = build(eq.DKLLE(n_neighbors=K, reg=10.0), X)  # with a large `reg` all weights are positive
    W, M = problem.objective.weights.toarray(), problem.affinities.toarray()
    apart = (W == 0) & (W.T == 0) & ~np.eye(N, dtype=bool)
    paths = W.T @ W
    assert W.min() >= 0 and apart.sum() > N
    assert_allclose(M[apart], paths[apart], atol=1e-12)
    i, j = np.argwhere(apart & (paths > 0))[0]
    Y = random_map(rng, problem)
    attraction, repulsion = problem.pair_scalars(Y, [i], [j])
    assert attraction[0] == 0
    assert_allclose(repulsion[0], 4 * (paths[i, j] + 1 / N) / (1 + ((Y[i] - Y[j]) ** 2).sum()) ** 2, rtol=1e-9)


def test_kernel_on_the_data_is_gaussian_and_that_on_the_map_cauchy(X):
    """Draganov & Dohn 2024, section 2.2; the diagonal of K_X is not stored."""
    d2 = np.geomspace(1e-3, 1e3, 20)
    for method in (eq.DKPCA(n_neighbors=K), eq.DKLLE(n_neighbors=K), eq.UMAP(a=1.0, b=1.0)):
        assert_allclose(method.output_kernel().value(d2), 1 / (1 + d2), rtol=1e-14)
    found = build(eq.DKPCA(n_neighbors=K, bandwidth=1.5), X).affinities
    assert_allclose(found + np.eye(N), np.exp(-cdist(X, X, "sqeuclidean") / (2 * 1.5**2)), rtol=1e-12)


@every_case
def test_loss_and_gradient_are_invariant_to_isometries_and_row_order(X, rng, method):
    problem = build(method, X)
    Y = random_map(rng, problem)
    loss, gradient = problem.loss(Y), problem.gradient(Y)
    assert_allclose(problem.loss(Y + 3.0), loss, rtol=1e-12)
    rotation = np.linalg.qr(rng.standard_normal((Y.shape[1], Y.shape[1])))[0]
    assert relative_error(problem.gradient(Y @ rotation), gradient @ rotation) < 1e-10
    order = rng.permutation(N)
    relabelled = build(method, X[order])
    assert_allclose(relabelled.loss(Y[order]), loss, rtol=1e-8)
    assert relative_error(relabelled.gradient(Y[order]), gradient[order]) < 1e-8
    moved = problem.objective.permuted(order).balance(Y[order], problem.engine, loss=True)
    assert_allclose(moved.loss, loss, rtol=1e-12)
    assert relative_error(-(moved.attraction + moved.repulsion), gradient[order]) < 1e-12


@every_case
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_loss_is_positive(X, rng, method, scale):
    problem = build(method, X)
    assert problem.loss(scale * random_map(rng, problem)) > 0


# Limits


def test_dklle_loss_of_a_small_map_approaches_lle_loss(X, rng):
    """E(εY) = n + ε² [2 tr(YᵀMY) − (1/n) Σ d2] + O(ε⁴), as k = 1 − d2 + … and M 1 = 0."""
    problem = build(eq.DKLLE(n_neighbors=K), X)
    Y, eps = random_map(rng, problem), 1e-4
    M = problem.affinities.toarray()
    assert_allclose(problem.loss(np.zeros_like(Y)), N, rtol=1e-12)
    second = 2 * np.trace(Y.T @ M @ Y) - cdist(Y, Y, "sqeuclidean").sum() / N
    assert_allclose((problem.loss(eps * Y) - N) / eps**2, second, rtol=1e-5)


def test_dklle_loss_of_distant_points_is_the_trace_plus_one(X, rng):
    problem = build(eq.DKLLE(n_neighbors=K), X)
    far = 1e6 * random_map(rng, problem)
    assert_allclose(problem.loss(far), problem.affinities.diagonal().sum() + 1, rtol=1e-6)


def test_dkpca_with_wide_kernel_reduces_to_pca(X):
    """For large σ, K_X ≈ 1 − d²/2σ² and K_Y ≈ 1 − d2, so the PCA map divided by √2 σ is a minimum."""
    sigma = 300.0
    problem = build(eq.DKPCA(n_neighbors=K, bandwidth=sigma), X)
    truth = PCA(2).fit_transform(X) / (np.sqrt(2) * sigma)
    sizes = [np.linalg.norm(problem.gradient(scale * truth)) for scale in (0.9, 1.0, 1.1)]
    assert sizes[1] < 1e-3 * min(sizes[0], sizes[2])
    losses = [problem.loss(scale * truth) for scale in (0.9, 1.0, 1.1)]
    assert losses[1] < min(losses[0], losses[2])


def test_dklle_weights_with_wide_kernel_match_linear_kernel(X):
    wide, linear = (build(eq.DKLLE(n_neighbors=3, bandwidth=sigma), X).affinities for sigma in (1e3, np.inf))
    assert_allclose(wide.toarray(), linear.toarray(), atol=1e-4)


def test_squared_kernel_value_slope_and_field(rng):
    d2 = rng.uniform(0, 9, 100)
    for kernel in (StudentT(), StudentT(3.0), Gaussian()):
        squared = Squared(kernel)
        assert_allclose(squared.value(d2), kernel.value(d2) ** 2)
        assert_allclose(squared.slope(d2), (squared.value(d2 + 1e-6) - squared.value(d2 - 1e-6)) / 2e-6, rtol=1e-5)
    Y = rng.standard_normal((50, 2))
    exact, reference = (
        make_engine(name, 1, 0.01, seed=0).field(Y, Squared(StudentT())) for name in ("exact", "reference")
    )
    assert relative_error(exact.gradient, reference.gradient) < 1e-12


def test_pair_forces_match_formulas():
    r = np.linspace(0.1, 5, 9)
    slope = 1 / (1 + r**2) ** 2
    attraction, repulsion = eq.DKLLE().pair_forces(r, 0.5, 10.0)
    assert_allclose(attraction, 2 * slope * r)
    assert_allclose(repulsion, 0.4 * slope * r)
    attraction, repulsion = eq.DKPCA().pair_forces(r, 0.5)
    assert_allclose(attraction, 4 * slope * r)
    assert_allclose(repulsion, 8 * slope * r / (1 + r**2))  # they balance where k = K_X


# Estimators


def test_grid_errors_do_not_raise_the_dkpca_loss():
    fit = eq.DKPCA(random_state=0, engine="grid", n_jobs=1).fit(load_digits().data)
    losses = fit.loss_curve_[:, 1]
    assert losses[-1] <= 1.002 * losses.min() < 0.95 * losses[0]


@both
def test_same_bytes_for_any_number_of_threads(Method):
    digits = load_digits().data[:1200]
    maps = [Method(random_state=0, n_iter=60, n_jobs=jobs).fit_transform(digits).tobytes() for jobs in (1, 3)]
    assert maps[0] == maps[1]


def test_dklle_separates_digits_and_places_new_rows_in_their_class():
    X, labels = load_digits(return_X_y=True)
    method = eq.DKLLE(random_state=0).fit(X[:600])
    curve = method.loss_curve_[:, 1]
    assert curve[-1] < 0.25 * curve[0]
    score = cross_val_score(KNeighborsClassifier(10), method.embedding_, labels[:600], cv=5).mean()
    assert score > 0.9  # measured: 0.93
    new = method.transform(X[600:800])
    assert KNeighborsClassifier(10).fit(method.embedding_, labels[:600]).score(new, labels[600:800]) > 0.85  # got 0.89
    assert_allclose(method.transform(X[600:603]), new[:3], atol=1e-5)
    assert_allclose(method.transform(X[5:7]), method.embedding_[5:7])


def test_dkpca_places_new_rows_near_their_class():
    X, labels = make_blobs(200, 5, centers=3, random_state=0)
    method = eq.DKPCA(random_state=0).fit(X[:150])
    new = method.transform(X[150:])
    assert KNeighborsClassifier(1).fit(method.embedding_, labels[:150]).score(new, labels[150:]) == 1.0


@both
def test_precomputed_distances_and_sparse_tables_give_the_same_affinities(X, Method):
    table = Method(n_neighbors=K, engine="reference").problem(X).affinities
    distances = Method(n_neighbors=K, engine="reference", metric="precomputed", init="random").problem(cdist(X, X))
    rows = Method(n_neighbors=K, engine="reference").problem(sparse.csr_matrix(X))
    for other in (distances.affinities, rows.affinities):
        assert_allclose(*(A.toarray() if sparse.issparse(A) else A for A in (other, table)), atol=1e-8)


def test_dklle_metric_matches_precomputed_distances(X):
    method = eq.DKLLE(n_neighbors=K, metric="cityblock", random_state=0, n_iter=50).fit(X)
    given = eq.DKLLE(n_neighbors=K, metric="precomputed").problem(cdist(X, X, "cityblock"))
    assert_allclose(method.affinities_.toarray(), given.affinities.toarray(), rtol=1e-5, atol=1e-6)
    assert_allclose(method.transform(X[:2] + 1e-9), method.embedding_[:2], atol=0.5)


# Degenerate and invalid input


@both
def test_duplicate_rows_warn_and_stay_close(rng, Method):
    X = np.concatenate([rng.standard_normal((40, 3)), np.ones((10, 3))])
    with pytest.warns(UserWarning, match=re.escape("10 rows (the first is row 40) have at least 5 duplicates")):
        method = Method(n_neighbors=5, bandwidth="local", random_state=0).fit(X)
    assert np.isfinite(method.embedding_).all()
    spread = np.ptp(method.embedding_, axis=0).max()
    assert np.ptp(method.embedding_[40:], axis=0).max() < 0.7 * spread


@both
@pytest.mark.filterwarnings("ignore:.*at least . duplicates?, so")
def test_identical_points_give_finite_maps(Method):
    assert np.isfinite(Method(n_neighbors=5, random_state=0).fit_transform(np.ones((20, 3)))).all()


@both
def test_constant_column_does_not_change_affinities(X, Method):
    wide = np.column_stack([X, np.full(N, 7.0)])
    plain, padded = (Method(n_neighbors=K).problem(V).affinities for V in (X, wide))
    assert_allclose(*(A.toarray() if sparse.issparse(A) else A for A in (padded, plain)), rtol=1e-4, atol=1e-5)


def test_dklle_keeps_components_separate(rng):
    X = np.concatenate([rng.standard_normal((60, 3)), 1000 + rng.standard_normal((60, 3))])
    Y = eq.DKLLE(n_neighbors=5, random_state=0).fit_transform(X)
    nearest = np.argsort(cdist(Y, Y), axis=1)[:, 1]
    assert ((nearest < 60) == (np.arange(120) < 60)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1, got 0"),
        ({"bandwidth": "wide"}, 'bandwidth must be "local", "global" or a positive number, got \'wide\''),
        ({"bandwidth": -1.0}, 'bandwidth must be "local", "global" or a positive number, got -1.0'),
        ({"bandwidth": 1.57e162}, "bandwidth=1.57e+162 is out of range"),
        ({"bandwidth": 2.81e-241}, "rescale the data, and use a bandwidth between 1e-75 and 1e+75"),
    ],
)
@both
def test_invalid_parameters_raise(X, Method, settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Method(**settings).problem(X)


def test_invalid_data_and_metrics_raise(X, monkeypatch):
    graph = sparse.csr_matrix(cdist(X, X))
    with pytest.raises(ValueError, match="a sparse graph does not store them all; pass a table, or a dense"):
        eq.DKLLE(metric="precomputed").problem(graph)
    with pytest.raises(ValueError, match="row 0 of the precomputed graph stores 29 neighbours, fewer than"):
        bandwidth.variances(graph, 40)
    with pytest.raises(ValueError, match="distances from different points cannot be compared"):
        eq.DKLLE(metric="inner_product").problem(X)
    with pytest.raises(ValueError, match=re.escape("reg must be a positive number, got 0")):
        eq.DKLLE(reg=0).problem(X)
    with pytest.raises(ValueError, match="use a finite bandwidth for DKPCA"):
        eq.DKPCA(bandwidth=np.inf).problem(X)
    method = eq.DKLLE(n_neighbors=K, metric="precomputed", n_iter=10).fit(cdist(X, X))
    with pytest.raises(ValueError, match="only some of the distances to the 30 fitted points"):
        method.transform(graph[:2])
    monkeypatch.setattr(builders, "MOST", 10)
    with pytest.raises(
        ValueError, match=r"With metric=cityblock .* this is limited to 10 points, but X has 30\. Use metric="
    ):
        eq.DKLLE(metric="cityblock").problem(X)


def test_dkpca_accepts_a_precomputed_graph(X):
    graph = sparse.csr_matrix(cdist(X, X))
    dense = eq.DKPCA(n_neighbors=K, engine="reference").problem(X)
    sparse_problem = eq.DKPCA(n_neighbors=K, engine="reference", metric="precomputed").problem(graph)
    assert isinstance(sparse_problem.objective, DoubleKernelPCA)
    assert_allclose(sparse_problem.affinities.toarray(), dense.affinities, atol=1e-12)
