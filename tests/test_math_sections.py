"""Formulas of docs/math.md in sections without equation numbers agree with the code (numbers: test_math_page.py)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, sparse
from scipy.interpolate import BSpline
from scipy.spatial.distance import cdist
from support.cases import KERNELS, differences, to_dense

import equipoise as eq
from equipoise import _core, divergences, kernels, procrustes
from equipoise.engines import Reference, cpu
from equipoise.engines.mesh import mesh_engine, plan
from equipoise.engines.sampled import SOURCES, draw_offsets
from equipoise.engines.tables import tabulate
from equipoise.initialize.spectral import spectral
from equipoise.linalg.pca import JITTER
from equipoise.linalg.randomized import SMALL
from equipoise.optimize import placement

N = 24


@pytest.fixture(scope="module")
def Y():
    return 1.5 * np.random.default_rng(0).standard_normal((N, 2))


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(1).standard_normal((N, 4))


def springs(A, Y):
    """Return Σ_j A_ij (y_i − y_j)."""
    return A.sum(axis=1)[:, None] * Y - A @ Y


# Sections 0 to 8


@pytest.mark.parametrize("b", [-1.0, -0.6, 0.0])
def test_section_0_edges_and_field(Y, b):
    A = np.random.default_rng(0).uniform(size=(N, N))
    A = A + A.T
    np.fill_diagonal(A, 0.0)
    kernel, engine = kernels.StudentT(2.0), Reference()

    def k(at):
        return kernel.value(cdist(at, at, "sqeuclidean"))

    def psi(at):
        return (A * (np.log(k(at)) if b == -1 else (k(at) ** (b + 1) - 1) / (b + 1))).sum()

    total, force = engine.edges(Y, A, kernel, b, potential=True)
    # For b > −1 the engine may leave out the constant of ψ, which no force depends on.
    assert_allclose(total - psi(Y), engine.edges(2 * Y, A, kernel, b, potential=True)[0] - psi(2 * Y), rtol=1e-9)
    assert_allclose(4 * force, differences(psi, Y), atol=1e-7)
    charges = np.linspace(0.1, 2, N)
    field = engine.field(Y, kernel, charges)
    off = ~np.eye(N, dtype=bool)
    assert_allclose(field.potential, (k(Y) * off) @ charges)
    slope = kernel.slope(cdist(Y, Y, "sqeuclidean")) * off
    assert_allclose(field.gradient, 2 * springs(slope * charges, Y), atol=1e-12)
    unit = engine.field(Y, kernel)
    assert_allclose(unit.potential.sum(), (k(Y) * off).sum())
    assert_allclose(unit.gradient / 2, springs(slope, Y), atol=1e-12)


def test_section_2_lengths():
    d2 = np.concatenate([[0.0], np.geomspace(1e-8, 1e4, 20001)])
    for kernel in (kernels.StudentT(), kernels.StudentT(3.0), kernels.SphericalExit(0.8, 2)):
        steepest = np.abs(kernel.slope(d2) / kernel.value(d2)).max()
        assert_allclose(kernel.length, steepest**-0.5)
    assert_allclose(kernels.Gaussian().length, 1 / np.sqrt(2))
    assert_allclose(kernels.PowerLaw(3.0, 0.5).length, 0.5 * np.sqrt(2 / 3))
    assert_allclose(kernels.RegularizedPowerLaw(1.8, 0.2).length, 0.2 ** (1 / 1.8))
    assert_allclose(kernels.Membership(1.6, 0.9).length, 1.6 ** (-1 / 1.8))
    assert_allclose(kernels.NonMembership(1.6, 0.9, 0.01).length, 0.1)
    eta, beta, r = 0.3, 1.7, np.linspace(0.1, 4, 9)
    scaled = kernels.RegularizedPowerLaw(beta, 1.0).value((r / eta ** (1 / beta)) ** 2) / eta
    assert_allclose(kernels.RegularizedPowerLaw(beta, eta).value(r**2), scaled)


def test_section_2_spreads_of_the_initial_map(X):
    for method, lengths in (
        (eq.TSNE(perplexity=5), 1e-4),
        (eq.GSNE(perplexity=5, beta=1.8), 1e-4),
        (eq.GSNE(perplexity=5, beta=2.4), 0.1),
        (eq.PowerSNE(perplexity=5), 10),
        (eq.UMAP(n_neighbors=6, init="pca"), 5),
    ):
        problem = method.set_params(engine="reference", random_state=0).problem(X)
        spread = problem.Y0.std(axis=0)[0]
        assert spread == pytest.approx(lengths * problem.objective.kernel.length, rel=0.03), method


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_section_3_cosine_and_correlation(X, metric):
    """log p_{j|i} is linear in d_X² = (1 − cos)²."""
    P = to_dense(eq.SNE(perplexity=6, metric=metric, engine="reference").problem(X).affinities)
    Z = X - X.mean(axis=1, keepdims=True) if metric == "correlation" else X
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    d2 = (1 - Z @ Z.T) ** 2
    for i in range(N):
        j = (np.arange(N) != i) & (P[i] > 1e-12)
        line = np.polyfit(d2[i, j], np.log(P[i, j]), 1)
        assert_allclose(np.polyval(line, d2[i, j]), np.log(P[i, j]), atol=1e-6)


def test_section_3_rows_have_the_perplexity(X):
    P = eq.SNE(perplexity=6, engine="reference").problem(X).affinities
    P = P.toarray() if sparse.issparse(P) else P
    P = P / P.sum(axis=1, keepdims=True)
    entropy = -(P * np.log2(np.where(P > 0, P, 1.0))).sum(axis=1)
    assert_allclose(2**entropy, 6, rtol=1e-6)


def test_section_5_constant_metric(X, Y):
    g = np.array([[2.0, 0.5], [0.5, 1.0]])
    problem, plain = (eq.TSNE(perplexity=5, engine="reference", g=m).problem(X) for m in (g, None))
    A = np.linalg.cholesky(g).T
    assert_allclose(problem.loss(Y), plain.loss(Y @ A.T))
    assert_allclose(problem.gradient(Y), plain.gradient(Y @ A.T) @ A, atol=1e-12)


def test_section_6_sphere(X):
    rng, rho = np.random.default_rng(0), 0.6
    U = rng.standard_normal((N, 3))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    d2 = cdist(U, U, "sqeuclidean")
    assert_allclose(cdist(rho * U, U, "sqeuclidean"), (1 - rho) ** 2 + rho * d2, atol=1e-12)
    exit_kernel = kernels.SphericalExit(rho, 3)
    assert_allclose(exit_kernel.value(d2), cdist(rho * U, U) ** -3.0)
    problem = eq.SphericalSNE(rho=rho, perplexity=5, engine="reference").problem(X)
    at = U if problem.Y0.shape[1] == 3 else U[:, :2] / np.linalg.norm(U[:, :2], axis=1, keepdims=True)
    free = differences(lambda V: problem.loss(V / np.linalg.norm(V, axis=1, keepdims=True)), at)
    assert_allclose(problem.gradient(at), free, atol=1e-6 * np.abs(free).max())


def test_section_7_one_step_of_momentum(X):
    method = eq.TSNE(perplexity=5, engine="reference", random_state=0, early_exaggeration=1.0, learning_rate=3.0)
    problem = method.problem(X)
    Y0 = problem.Y0 - problem.Y0.mean(axis=0)
    first = problem.optimize(n_iter=1, Y0=Y0)
    # The first step has μ = 0 and gains of 1 + 0.2; the rate is divided by 4, and the map is centred.
    assert_allclose(first, Y0 - 1.2 * 3.0 / 4 * problem.gradient(Y0), rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("x", [1.0, 3.0])
def test_section_7_scales_of_the_losses(X, Y, x):
    """The scale m of the stopping rule, and the stiffness m c of "auto", for every loss that the section names."""

    def symmetric(divergence):
        return eq.SymmetricSNE(divergence=divergence, perplexity=5)

    cases = [
        (eq.TSNE(perplexity=5), lambda P: (1.0, x)),
        (eq.SNE(perplexity=5), lambda P: (N, N * x)),
        (eq.UMAP(n_neighbors=6), lambda P: (P.sum(), x * P.sum())),
        (eq.UMAP(n_neighbors=6, loss="intended"), lambda P: (P.sum(), x * P.sum())),
        (eq.DKLLE(n_neighbors=6), lambda M: (N, x * np.abs(M).sum())),
        (eq.DKPCA(n_neighbors=6), lambda K: (K.sum() + N, 2 * x * N * (K.sum(axis=1).max() + 1))),
        (symmetric(divergences.Beta(1.5)), lambda P: ((P**1.5).sum(), None)),
        (symmetric(divergences.NeRV(0.5)), lambda P: (1.0, None)),
        (symmetric(divergences.SymmetricKL()), lambda P: (2.0, None)),
    ]
    found = {}
    for method, stated in cases:
        problem = method.set_params(engine="reference", random_state=0).problem(X)
        mass, stiffness = stated(to_dense(problem.affinities))
        balance = problem.objective.balance(Y, problem.engine, loss=True, exaggeration=x)
        found[repr(getattr(method, "divergence", method))] = balance.stiffness
        assert_allclose(problem.objective.mass, mass, rtol=1e-9, err_msg=repr(method))
        if stiffness is not None:
            assert_allclose(balance.stiffness, stiffness, rtol=1e-9, err_msg=repr(method))
    assert_allclose(found[repr(divergences.SymmetricKL())], 2 * found[repr(divergences.NeRV(0.5))], rtol=1e-12)


def test_section_7_early_exaggeration():
    stated = {eq.TSNE: 12, eq.SNE: 12, eq.GSNE: 12, eq.UMAP: 4, eq.DKLLE: 4, eq.PowerSNE: 2, eq.DKPCA: 1}
    for method, x in stated.items():
        assert method().resolve_early_exaggeration() == x, method
    sampling = {eq.UMAP: ("negative_sampling", "sampled"), eq.PairEmbedding: ("negative_sampling",)}
    for method, engines in sampling.items():
        for engine in ("auto", "exact", "grid", "torch", "sampled", "negative_sampling"):
            x = 1 if engine in engines else 4 if method is eq.UMAP else 12
            assert method(engine=engine).resolve_early_exaggeration() == x, (method, engine)


def test_section_8_force_laws():
    r, p, Z = np.linspace(0.1, 4, 20), 0.3, 7.0
    for alpha in (-1.0, 0.0, 0.5):
        method = eq.GSNE(alpha=alpha, beta=1.8, eta=0.4)
        kernel, s = method.output_kernel(), (1 - alpha) / 2
        k, slope = kernel.value(r**2), np.abs(kernel.slope(r**2))
        attraction, repulsion = method.pair_forces(r, p, Z)
        assert_allclose(attraction, 4 / s * p**s * (k / Z) ** (1 - s) * slope / k * r)
        assert_allclose(repulsion, 4 / s * slope / Z * r)
        assert_allclose(attraction / repulsion, (p / (k / Z)) ** s)


def test_section_8_force_laws_of_other_divergences():
    """The terms of a pair in (4) and (V1) to (V7), with the sums at Q = P."""
    r, p, Z, kernel, c = np.linspace(0.1, 4, 20), 0.03, 7.0, kernels.StudentT(), np.log(2) / 2
    k, slope = kernel.value(r**2), np.abs(kernel.slope(r**2)) * r
    q, unit = k / Z, 4 * slope / k
    jensen = [c - 0.5 * np.log(2 * t / (1 + t)) for t in (q / p, 1.0)]  # c − f'(t)
    chi, backward = 4 / Z * slope * 2 * (q / p - 1), 4 / Z * slope * np.log(q / p)
    stated = {
        divergences.ChiSquare(): (np.maximum(-chi, 0), np.maximum(chi, 0)),
        divergences.Renyi(0.7): (unit * p**0.7 * q**0.3, 4 / Z * slope),
        divergences.Beta(1.4): (unit * p * q**0.4, unit * q**1.4),
        divergences.Gamma(0.6): (unit * p * (q / p) ** 0.6, unit * q * (q / p) ** 0.6),
        divergences.NeRV(0.0): (np.maximum(-backward, 0), np.maximum(backward, 0)),
        divergences.JensenShannon(): (4 / Z * slope * jensen[0], 4 / Z * slope * jensen[1]),
    }
    for divergence, forces in stated.items():
        found = eq.SymmetricSNE(divergence=divergence, kernel=kernel).pair_forces(r, p, Z)
        assert_allclose(found, forces, rtol=1e-9, atol=1e-15, err_msg=repr(divergence))


# Section 10


def test_section_10_symbol_of_the_spline():
    spline = BSpline.basis_element(np.arange(-3, 4), extrapolate=False)
    assert plan.ORDER == 6
    assert_allclose([spline(i) for i in range(3)], plan.SPLINE)
    omega = np.linspace(0, np.pi, 50)
    values = spline(np.arange(-2, 3))
    transform = sum(v * np.exp(1j * omega * i) for v, i in zip(values, range(-2, 3), strict=True))
    assert_allclose(transform, (66 + 52 * np.cos(omega) + 2 * np.cos(2 * omega)) / 120, atol=1e-15)


def test_section_10_padded_transform_from_two_unpadded_ones():
    x = np.random.default_rng(0).standard_normal(16)
    padded, n = np.fft.fft(np.concatenate([x, np.zeros(16)])), 16
    assert_allclose(padded[::2], np.fft.fft(x))
    assert_allclose(padded[1::2], np.fft.fft(x * np.exp(-np.pi * 1j * np.arange(n) / n)))


@pytest.mark.parametrize("kernel", KERNELS[:8:2], ids=repr)
def test_section_10_split_of_a_kernel(kernel):
    a, d2 = 2.5, np.linspace(1e-3, 9, 400)
    x = np.minimum(d2 / a**2, 1)
    window = 1 - 35 * x**4 + 84 * x**5 - 70 * x**6 + 20 * x**7
    at = np.array([a**2])
    tangent = kernel.value(at) + kernel.slope(at) * (d2 - a**2)
    near = plan.split(kernel, a).near(d2)
    assert_allclose(near, np.where(d2 < a**2, window * (kernel.value(d2) - tangent), 0.0), atol=1e-12)


def test_section_10_constants():
    assert (mesh_engine.MeshEngine.MARGIN, mesh_engine.Grid.MARGIN) == (0.8, 0.55)
    assert cpu.CHECKED == 128 and cpu.PAIRS == 2**20
    assert 2 ** (23 - _core.TABLE_BITS) == 64  # segments of a table per octave
    kernel = kernels.StudentT()
    table = tabulate(kernel.value, kernel.slope, 0.1, 10, 0.0)
    octave = np.log2(100 / 0.01)
    assert len(table.segments) == pytest.approx(64 * octave, abs=3)
    v0, s0, s1, s2 = table.segments[:-1].astype(np.float64).T
    nodes = (np.arange(table.first, table.first + len(table.segments)) << 17).astype(np.int32).view(np.float32)
    start, width = nodes[:-1].astype(np.float64), np.diff(nodes.astype(np.float64))
    for f in (0.0, 0.5, 1.0):  # the parabola equals the slope at both ends and in the middle
        assert_allclose(s0 + s1 * f + s2 * f**2, kernel.slope(start + f * width), rtol=1e-5)
        integral = v0 + width * (s0 * f + s1 * f**2 / 2 + s2 * f**3 / 3)
        assert_allclose(integral, kernel.value(start + f * width), rtol=1e-5)


# Sections 11 to 13


def test_section_11_force_on_a_new_point(X, Y):
    """A new row is one more point with P = p/n, while Z stays that of the map."""
    problem = eq.TSNE(perplexity=5, engine="reference").problem(X)
    p = np.random.default_rng(0).uniform(size=(1, N))
    p /= p.sum()
    at = np.array([[0.3, -0.4]])
    k, own = 1 / (1 + cdist(at, Y, "sqeuclidean")), 1 / (1 + cdist(Y, Y, "sqeuclidean"))
    Z = own.sum() - N
    force = problem.objective.freeze(Y, problem.engine)(at, sparse.csr_matrix(p), Y)
    # −∇ of (1) for the pairs of the new point: 4 Σ_j (p/n) (k'/k)(y − y_j) − (4/Z) Σ_j k' (y − y_j)
    pair = 4 * (p / N) * -k + 4 / Z * k**2
    assert_allclose(force, pair.sum() * at - pair @ Y, rtol=1e-9)
    assert placement.STEPS == 25 and placement.RULE.momentum == (0.5, 0.8)
    assert placement.RULE.friction == 0 and placement.RULE.max_step == 1.0


def test_section_12_spectral_start(X):
    P = eq.TSNE(perplexity=8, engine="reference").problem(X).affinities
    P = P.toarray() if sparse.issparse(P) else P
    degree = np.diag(P.sum(axis=1))
    _, V = linalg.eigh(degree - P, degree)
    found = spectral(sparse.csr_matrix(P), 2, None)
    for axis in (0, 1):
        assert abs(np.corrcoef(found[:, axis], V[:, axis + 1])[0, 1]) > 1 - 1e-9
    assert found[:, 0].std() == pytest.approx(1)
    noisy = spectral(sparse.csr_matrix(P), 2, np.random.RandomState(0))
    assert (noisy - found).std() == pytest.approx(JITTER, rel=0.4) and JITTER == 0.01 and SMALL == 1000


def test_section_13_offsets():
    n, partners = 41, 8
    offsets, weights = draw_offsets(n, partners, 0)
    assert set(offsets) == {n - o for o in offsets} and len(offsets) == partners
    assert_allclose(weights, 20 / 4)  # H pairs {o, n − o}, of which h are drawn
    assert weights.sum() == pytest.approx(n - 1) and SOURCES == 32_768


def test_section_13_variance(Y):
    n, partners, kernel = 21, 6, kernels.StudentT()
    k = kernel.value(cdist(Y[:n], Y[:n], "sqeuclidean"))
    H, h = 10, partners // 2
    pairs = np.array([[k[i, (i + o) % n] + k[i, (i - o) % n] for o in range(1, H + 1)] for i in range(n)])
    stated = H**2 / h * (1 - h / H) * pairs.var(axis=1, ddof=1)
    estimates = []
    for seed in range(1500):
        chosen = draw_offsets(n, partners, seed)[0]
        chosen = chosen[chosen <= H]
        estimates.append(H / h * pairs[:, chosen - 1].sum(axis=1))
    assert np.median(np.var(estimates, axis=0) / stated) == pytest.approx(1, abs=0.1)


# Sections 15 to 20


def test_section_15_new_points_from_distances(X):
    """Positions of new points are ½ Λ⁻¹ Yᵀ (b̄ − d²), with b̄ the mean squared distances (Gower 1968)."""
    fitted, new = X[:20], X[20:]
    fit = eq.ClassicalMDS(metric="precomputed").fit(cdist(fitted, fitted))
    Y, d2 = fit.embedding_, cdist(fitted, fitted, "sqeuclidean")
    stated = 0.5 * (d2.mean(axis=0) - cdist(new, fitted, "sqeuclidean")) @ Y / fit.eigenvalues_
    assert_allclose(fit.transform(cdist(new, fitted)), stated, atol=1e-10)


def test_section_17_weights_of_double_kernel_lle(X):
    """By default σ = ∞, the input space, and the ridge is 0.01 of the trace; that of LLE is 0.001."""
    for method, reg in ((eq.DKLLE(n_neighbors=6), 0.01), (eq.LLE(n_neighbors=6), 1e-3)):
        found = to_dense(method.problem(X).affinities)
        nearest = cdist(X, X).argsort(axis=1)[:, 1:7]
        solved = np.zeros((N, N))
        for i, near in enumerate(nearest):
            gram = (X[near] - X[i]) @ (X[near] - X[i]).T
            w = np.linalg.solve(gram + reg * np.trace(gram) * np.eye(6), np.ones(6))
            solved[i, near] = w / w.sum()
        M = (np.eye(N) - solved).T @ (np.eye(N) - solved)
        assert_allclose(found, M, atol=1e-6)  # entries may be float32


def test_section_17_bandwidths(X):
    """Local σ_i² are mean squared distances to the neighbours, the default of DK-PCA; the global σ² is their mean."""
    d2 = cdist(X, X, "sqeuclidean")
    sigma2 = np.sort(d2, axis=1)[:, 1:7].mean(axis=1)
    for bandwidth, width in (({}, np.sqrt(np.outer(sigma2, sigma2))), ({"bandwidth": "global"}, sigma2.mean())):
        found = to_dense(eq.DKPCA(n_neighbors=6, engine="reference", **bandwidth).problem(X).affinities)
        assert_allclose(found + np.eye(N), np.exp(-d2 / (2 * width)), rtol=1e-6)


def test_section_17_small_maps_are_kernel_pca(X, Y):
    """C K_Y C = 2 C Y Yᵀ C + O(ε⁴), so that the kernel PCA map divided by √2 is stationary in the limit."""
    C, eps = np.eye(N) - 1 / N, 1e-4
    K = 1 / (1 + cdist(eps * Y, eps * Y, "sqeuclidean"))
    assert_allclose(C @ K @ C / eps**2, 2 * C @ Y @ Y.T @ C, atol=1e-4)


def test_section_18_great_circles():
    u, v = np.array([[1.0, 0, 0]]), np.array([[np.cos(1e-9), np.sin(1e-9), 0]])
    d = eq.spaces.Sphere(np.concatenate([u, v])).matrix()
    assert_allclose(d[0, 1], 1e-9, rtol=1e-9)


def test_section_20_two_maps(Y):
    rng = np.random.default_rng(5)
    maps = np.stack([Y, Y @ np.array([[0, 1.0], [-1, 0]]) * 3 + 0.4 * rng.standard_normal(Y.shape) + 5])
    unit = [(M - M.mean(axis=0)) / np.sqrt(np.square(M - M.mean(axis=0)).sum() / N) for M in maps]
    U, sigma, Vt = np.linalg.svd(unit[0].T @ unit[1])
    R, agreement = U @ Vt, sigma.sum() / N
    assert_allclose(np.square(unit[0] @ R - unit[1]).sum() / N, 2 * (1 - agreement))
    assert_allclose(procrustes.disagreement(*maps), np.sqrt(1 - agreement))
    scale = (unit[0] @ R * unit[1]).sum() / np.square(unit[0]).sum()
    assert_allclose(scale, agreement)  # the scale fitted by least squares
    assert_allclose(np.square(scale * unit[0] @ R - unit[1]).sum() / N, 1 - agreement**2)
    aligned = procrustes.superimpose(maps)
    assert_allclose(np.square(procrustes.variation(aligned)).mean(), 1 - agreement, rtol=1e-3)


def test_section_20_variation_of_a_point():
    maps = np.random.default_rng(0).standard_normal((5, 9, 2))
    maps[1, 3] = np.nan
    v = procrustes.variation(maps)
    for i in range(9):
        present = maps[~np.isnan(maps[:, i, 0]), i]
        assert_allclose(v[i], np.sqrt(np.square(present - present.mean(axis=0)).sum() / (len(present) - 1)))
    assert procrustes.CONVERGED == 1e-3
