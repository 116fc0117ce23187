from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import log_softmax
from sklearn.base import clone
from support.cases import KERNELS, differences, relative_error

import equipoise as eq
from equipoise.divergences import Alpha, ChiSquare, Divergence
from equipoise.geometry import Flat
from equipoise.kernels import StudentT
from equipoise.methods import METHODS
from equipoise.objectives import joint_objective

N, D = 24, 4
G = np.array([[2.0, 0.5], [0.5, 1.0]])
H = np.diag([1.0, 4.0, 0.5, 2.0]) + 0.3


@dataclass(frozen=True)
class JensenShannon(Divergence):
    """A user-defined divergence: f(t) = t log t − (1+t) log((1+t)/2)."""

    def value(self, t):
        return t * np.log(t) - (1 + t) * np.log((1 + t) / 2)

    def slope(self, t):
        return np.log(2 * t / (1 + t))


DENSE = [  # divergences over all pairs: P must be dense
    *(eq.GSNE(alpha=alpha) for alpha in (1.0, 1.5, 3.0)),
    eq.SymmetricSNE(divergence=ChiSquare()),
    eq.SymmetricSNE(divergence=Alpha(1.0)),
    eq.SymmetricSNE(kernel=StudentT(), divergence=JensenShannon()),
]
CASES = [
    *(Method() for Method in METHODS),
    *(eq.SymmetricSNE(kernel=kernel) for kernel in KERNELS),
    *(eq.GSNE(alpha=alpha) for alpha in (-2.0, -1.0, -0.5, 0.0, 0.6)),
    *(eq.SymmetricSNE(kernel=k, divergence=Alpha(alpha)) for k in KERNELS for alpha in (-2.0, -0.5, 0.0, 0.6)),
    *DENSE,
    *(eq.TSNE(dof=dof) for dof in (0.5, 3.0)),
    eq.TSNE(g=G, h=H),
    eq.SNE(g=G),
    eq.GSNE(alpha=1.5, g=G),
    eq.SNE(3),
    eq.TSNE(1),
    *(eq.SphericalSNE(dimension) for dimension in (2, 4)),
    *(Method(metric="precomputed", init="random") for Method in (eq.SNE, eq.TSNE, eq.GSNE)),
]
EVERY_CASE = pytest.mark.parametrize("method", CASES, ids=lambda method: repr(method).replace("\n", ""))


@pytest.fixture
def X(rng):
    """Return two clusters, close enough for every P_ij to be positive."""
    return rng.standard_normal((N, D)) + 2 * (np.arange(N)[:, None] % 2)


def neighbor_graph(D, k):
    """Return the distances to the k nearest neighbours in CSR, with explicit zeros."""
    nearest = np.argsort(D + np.where(np.eye(len(D)), np.inf, 0.0), axis=1)[:, :k]
    rows = np.repeat(np.arange(len(D)), k)
    graph = sparse.csr_matrix((D[rows, nearest.ravel()], nearest.ravel(), k * np.arange(len(D) + 1)), shape=D.shape)
    graph.sort_indices()
    return graph


def build(method, X, engine="reference"):
    data = neighbor_graph(cdist(X, X), 9) if method.metric == "precomputed" else X
    return clone(method).set_params(engine=engine, random_state=0).problem(data)


def random_map(rng, problem, dtype=np.float64):
    return (1.5 * rng.standard_normal(problem.Y0.shape)).astype(dtype)


@EVERY_CASE
def test_gradient_matches_finite_differences(X, rng, method):
    problem = build(method, X)
    Y = random_map(rng, problem)
    difference = differences(problem.loss, Y)
    gradient = problem.gradient(Y)
    assert np.linalg.norm(difference - gradient) <= 1e-7 * np.linalg.norm(gradient)


@EVERY_CASE
def test_exact_engine_is_accurate_in_float32(X, rng, method):
    problem, truth = build(method, X, "exact"), build(method, X)
    Y = random_map(rng, problem, np.float32)
    gradient = problem.gradient(Y)
    assert gradient.dtype == np.float32
    assert relative_error(gradient, truth.gradient(Y.astype(np.float64))) < 2e-5
    assert_allclose(problem.loss(Y), truth.loss(Y.astype(np.float64)), rtol=1e-5)
    norm = np.linalg.norm(gradient)
    size = min(0.02, 0.0005 * problem.loss(Y) / norm)  # the loss changes by 0.1 %, far above its rounding error
    for direction in (gradient, *rng.standard_normal((4, *Y.shape))):
        step = (size / np.linalg.norm(direction) * direction).astype(np.float32)
        above, below = Y + step, Y - step
        move = above.astype(np.float64) - below
        change = problem.loss(above) - problem.loss(below)
        assert abs(change - (gradient * move).sum()) <= 1e-3 * norm * np.linalg.norm(move)


@EVERY_CASE
@pytest.mark.parametrize("engine", ["reference", "exact"])
def test_forces_sum_to_minus_the_gradient(X, rng, method, engine):
    problem = build(method, X, engine)
    Y = random_map(rng, problem)
    attraction, repulsion, gradient = problem.attraction(Y), problem.repulsion(Y), problem.gradient(Y)
    assert relative_error(-(attraction + repulsion), gradient) < 1e-14
    if isinstance(problem.geometry, Flat):
        # Forces sum to 0; attraction contracts the map and repulsion expands it.
        assert np.abs(attraction.sum(axis=0)).max() < 1e-12 * np.abs(attraction).sum()
        assert np.abs(repulsion.sum(axis=0)).max() < 1e-12 * np.abs(repulsion).sum()
        assert (attraction * Y).sum() < 0 < (repulsion * Y).sum()
    else:
        assert_allclose((gradient * Y).sum(axis=1), 0.0, atol=1e-14 * np.abs(gradient).sum())


@EVERY_CASE
def test_loss_is_invariant_to_translation_rotation_and_relabelling(X, rng, method):
    problem = build(method, X)
    Y = random_map(rng, problem)
    loss, gradient = problem.loss(Y), problem.gradient(Y)
    order = rng.permutation(N)
    relabelled = build(method, X[order])
    assert_allclose(relabelled.loss(Y[order]), loss, rtol=1e-8)
    assert relative_error(relabelled.gradient(Y[order]), gradient[order]) < 1e-8
    if isinstance(problem.geometry, Flat):
        assert_allclose(problem.loss(Y + 3.0), loss, rtol=1e-12)
        assert relative_error(problem.gradient(Y + 3.0), gradient) < 1e-11
    if method.g is None:
        rotation = np.linalg.qr(rng.standard_normal((Y.shape[1], Y.shape[1])))[0]
        assert_allclose(problem.loss(Y @ rotation), loss, rtol=1e-12)
        assert relative_error(problem.gradient(Y @ rotation), gradient @ rotation) < 1e-11


@EVERY_CASE
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_divergences_are_nonnegative(X, rng, method, scale):
    problem = build(method, X)
    assert problem.loss(scale * random_map(rng, problem)) >= -1e-12


@pytest.mark.parametrize(
    ("method", "k", "f"),
    [
        (eq.SymmetricSNE(), lambda r: np.exp(-(r**2)), lambda t: -np.log(t)),
        (eq.TSNE(), lambda r: 1 / (1 + r**2), lambda t: -np.log(t)),
        (eq.TSNE(dof=3.0), lambda r: (1 + r**2 / 3) ** -2, lambda t: -np.log(t)),
        (eq.PowerSNE(beta=3.0, r0=0.7), lambda r: np.maximum(r, 0.7) ** -3, lambda t: -np.log(t)),
        (eq.GSNE(alpha=0.0), lambda r: 1 / (0.1 + r**3), lambda t: 2 * (1 - np.sqrt(t)) ** 2),
        (eq.GSNE(alpha=-2.0), lambda r: 1 / (0.1 + r**3), lambda t: -4 / 3 * (1.5 - t / 2 - t**-0.5)),
        (eq.GSNE(alpha=0.6), lambda r: 1 / (0.1 + r**3), lambda t: 6.25 * (0.2 + 0.8 * t - t**0.8)),
        (eq.GSNE(alpha=1.0), lambda r: 1 / (0.1 + r**3), lambda t: t * np.log(t)),
        (eq.GSNE(alpha=3.0, eta=1.0), lambda r: 1 / (1 + r**3), lambda t: (t - 1) ** 2 / 2),
        (eq.SphericalSNE(3, rho=0.8), lambda r: (0.04 + 0.8 * r**2) ** -1.5, lambda t: -np.log(t)),
    ],
    ids=lambda value: repr(value) if hasattr(value, "fit") else "",
)
def test_loss_matches_its_definition(X, rng, method, k, f):
    problem = build(method, X)
    Y = random_map(rng, problem)
    U = Y if isinstance(problem.geometry, Flat) else Y / np.linalg.norm(Y, axis=1, keepdims=True)
    off = ~np.eye(N, dtype=bool)
    P, kernel = problem.affinities[off], k(cdist(U, U)[off])
    assert_allclose(problem.loss(Y), (P * f(kernel / kernel.sum() / P)).sum(), rtol=1e-10)


@pytest.mark.parametrize(("engine", "tolerance"), [("reference", 1e-10), ("exact", 1e-4)])
@pytest.mark.parametrize("outlier", [1.0, 8.0, 20.0])
def test_original_sne_matches_its_definition(X, rng, engine, tolerance, outlier):
    # Hinton & Roweis 2002, eq. (3) and (5). A point 20 away has k = e^−400 to its neighbours, and q is still a softmax.
    problem = build(eq.SNE(), X, engine)
    Y = random_map(rng, problem, problem.engine.traits.dtype)
    Y[0] = outlier
    P, U, off = problem.affinities.astype(np.float64), Y.astype(np.float64), ~np.eye(N, dtype=bool)
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-6)
    log_q = log_softmax(np.where(off, -cdist(U, U, "sqeuclidean"), -np.inf), axis=1)
    Q = np.exp(log_q)
    assert_allclose(problem.loss(Y), (P[off] * (np.log(P[off]) - log_q[off])).sum(), rtol=tolerance)
    force = (P + P.T - Q - Q.T)[:, :, None] * (U[:, None] - U[None])
    assert relative_error(problem.gradient(Y), 2 * force.sum(axis=1)) < tolerance


SPARSE = [eq.SNE(), eq.SymmetricSNE(), eq.TSNE(), eq.PowerSNE(), eq.GSNE(), eq.GSNE(alpha=0.6), eq.SphericalSNE()]


@pytest.mark.parametrize("method", SPARSE, ids=repr)
@pytest.mark.parametrize("engine", ["reference", "exact"])
def test_graph_of_all_neighbors_equals_the_dense_problem(X, rng, method, engine):
    distances = cdist(X, X)
    method = clone(method).set_params(metric="precomputed", init="random", engine=engine)
    graph, dense = method.problem(neighbor_graph(distances, N - 1)), method.problem(distances)
    assert sparse.issparse(graph.affinities) and graph.affinities.nnz == N * (N - 1)
    assert_allclose(graph.affinities.toarray(), dense.affinities, rtol=1e-6 if engine == "exact" else 1e-12)
    Y = random_map(rng, dense)
    assert_allclose(graph.loss(Y), dense.loss(Y), rtol=1e-6 if engine == "exact" else 1e-12)
    assert relative_error(graph.gradient(Y), dense.gradient(Y)) < (1e-6 if engine == "exact" else 1e-12)


def test_graph_keeps_neighbors_at_distance_zero(X):
    X[:3] = X[0]
    distances = cdist(X, X)
    method = eq.TSNE(metric="precomputed", init="random", engine="reference")
    graph, dense = method.problem(neighbor_graph(distances, N - 1)), method.problem(distances)
    assert_allclose(graph.affinities.toarray(), dense.affinities, rtol=1e-12)


@pytest.mark.parametrize("Method", METHODS)
def test_fit_with_defaults_lowers_the_loss(rng, Method):
    method, cloud = Method(random_state=0), rng.standard_normal((N, D))  # no clusters, so the map could collapse
    start = method.problem(cloud)
    assert method.fit(cloud).loss_ < 0.8 * start.loss(start.Y0)
    assert np.linalg.matrix_rank(method.embedding_ - method.embedding_.mean(axis=0), tol=1e-3) == method.n_components


def fitted(method, X):
    method = clone(method).set_params(n_iter=100, early_exaggeration=2.0, random_state=3).fit(X)
    assert method.embedding_.std() > 0.1
    return method.embedding_.tobytes(), method.loss_


@pytest.mark.parametrize("engine", ["reference", "exact"])
@pytest.mark.parametrize("twin", [eq.GSNE(alpha=-1.0, beta=2.0, eta=1.0), eq.SymmetricSNE(kernel=StudentT())], ids=repr)
def test_equivalent_settings_equal_tsne_exactly(X, twin, engine):
    assert fitted(clone(twin).set_params(engine=engine), X) == fitted(eq.TSNE(engine=engine), X)


@pytest.mark.parametrize("alpha", [-1.0, -0.5, 1.5])
@pytest.mark.parametrize(("beta", "eta"), [(2.0, 0.1), (3.0, 0.01), (1.5, 20.0)])
def test_eta_only_rescales_the_map(X, rng, alpha, beta, eta):
    scaled, unit = (build(eq.GSNE(alpha=alpha, beta=beta, eta=value), X) for value in (eta, 1.0))
    Y, length = random_map(rng, unit), eta ** (1 / beta)
    assert_allclose(scaled.loss(length * Y), unit.loss(Y), rtol=1e-10)
    assert relative_error(scaled.gradient(length * Y) * length, unit.gradient(Y)) < 1e-10
    assert relative_error(scaled.optimize(n_iter=20) / length, unit.optimize(n_iter=20)) < 1e-7


def test_metric_tensors_equal_linear_maps(X, rng):
    tensor, plain = build(eq.TSNE(g=G, h=H), X), build(eq.TSNE(h=H), X)
    diff = X[:, None] - X[None]
    mahalanobis = np.sqrt(np.einsum("ijc,cd,ijd->ij", diff, H, diff))
    P = eq.TSNE(metric="precomputed", engine="reference").problem(mahalanobis).affinities
    assert relative_error(tensor.affinities, P) < 1e-8
    Y, L = random_map(rng, plain), np.linalg.cholesky(G)
    assert_allclose(tensor.loss(Y), plain.loss(Y @ L), rtol=1e-12)
    assert relative_error(tensor.gradient(Y), plain.gradient(Y @ L) @ L.T) < 1e-12


@pytest.mark.parametrize("d", [2, 3, 4])
def test_spherical_force_converges_to_the_power_law_force(X, rng, d):
    # Lin et al. 2024, eq. (31): F_i = 2d Σ_j (p − q)(y_j − y_i)/r² + a multiple of y_i + O(1 − ρ)
    sphere, power = build(eq.SphericalSNE(d, rho=1 - 1e-7), X), build(eq.PowerSNE(d, beta=float(d), r0=1e-6), X)
    Y = random_map(rng, power)
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    r2 = cdist(Y, Y, "sqeuclidean") + np.eye(N)
    Q = np.where(np.eye(N), 0.0, r2 ** (-d / 2))
    weight = (power.affinities - Q / Q.sum()) / r2
    equation_31 = 2 * d * (weight[:, :, None] * (Y[None] - Y[:, None])).sum(axis=1)
    for force in (-power.gradient(Y), equation_31):
        tangent = force - (force * Y).sum(axis=1, keepdims=True) * Y
        assert relative_error(-sphere.gradient(Y), tangent) < 1e-4


@pytest.mark.parametrize(
    ("alpha", "limit", "engine"),
    [
        *((-1 + gap, -1.0, engine) for gap in (1e-5, -1e-5, 1e-10) for engine in ("reference", "exact")),
        (1 - 1e-6, 1.0, "reference"),  # from the sum over edges and field to the sum over all pairs
    ],
)
def test_alpha_converges_to_the_kullback_leibler_limits(X, rng, alpha, limit, engine):
    near, limit = (build(eq.GSNE(alpha=value), X, engine) for value in (alpha, limit))
    Y = random_map(rng, limit, limit.engine.traits.dtype)
    assert_allclose(near.loss(Y), limit.loss(Y), rtol=1e-4)
    assert relative_error(near.gradient(Y), limit.gradient(Y)) < 1e-4


def test_loss_decreases_with_alpha(X, rng):
    # Lin et al. 2024, Table 3. The order is not a theorem; it holds where Q misses part of P: four displaced points.
    Y = 0.3 * rng.standard_normal((N, 2))
    Y[:4] *= 20
    losses = [
        build(eq.GSNE(alpha=alpha, beta=2.0, eta=1.0, perplexity=18), X).loss(Y)
        for alpha in (-2, -1.5, -1, -0.5, 0, 0.5)
    ]
    assert (np.diff(losses) < 0).all()


@pytest.mark.parametrize("method", DENSE, ids=repr)
def test_divergence_over_all_pairs_rejects_sparse_P_and_zeros(X, method):
    P = np.full((5, 5), 1 / 18)
    np.fill_diagonal(P, 0.0)
    P[1, 3] = P[3, 1] = 0.0
    with pytest.raises(ValueError, match=r"but P is 0 for 2 of .* pairs, the first at \[1, 3\]; raise the perplexity"):
        joint_objective(P, StudentT(), method._divergence())
    with pytest.raises(ValueError, match=r"needs P > 0 for every pair of points, but P is sparse.* pass coordinates"):
        build(clone(method).set_params(metric="precomputed", init="random"), X)


def test_distant_clusters_with_zero_P_raise(X):
    X[: N // 2] += 1e4  # p = exp(−1e8) or less
    with pytest.raises(
        ValueError, match=r"but P is 0 for 288 of .* pairs, the first at \[0, 12\]; raise the perplexity"
    ):
        build(eq.GSNE(alpha=1.5), X)


@pytest.mark.parametrize("method", DENSE, ids=lambda method: repr(method).replace("\n", ""))
def test_fit_over_all_pairs_lowers_the_loss(method, X):
    fitted = clone(method).set_params(random_state=0, n_iter=300, early_exaggeration=1).fit(X)
    assert fitted.loss_ < 0.9 * fitted.loss_curve_[0, 1]
