"""Equations of docs/math.md on losses and forces, written out with dense matrices (see test_math_page.py)."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.isotonic import IsotonicRegression

import equipoise as eq
from equipoise import divergences, kernels
from equipoise.engines import Sampled
from equipoise.engines.sampled import draw_offsets
from support.cases import differences, to_dense

N = 24
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4)) + 2 * (np.arange(N)[:, None] % 2)
Y = 1.5 * RNG.standard_normal((N, 2))
D2 = cdist(Y, Y, "sqeuclidean")
OFF = ~np.eye(N, dtype=bool)
C = np.eye(N) - 1 / N

EQUATIONS = {}  # the number of an equation and the function that checks it


def equation(*tags):
    """Register a check of the equations with these numbers."""

    def register(check):
        EQUATIONS.update(dict.fromkeys(tags, check))
        return check

    return register


def build(method):
    return method.set_params(engine="reference", random_state=0).problem(X)


def springs(A, at=Y):
    """Return Σ_j A_ij (y_i − y_j)."""
    A = np.where(np.eye(len(A), dtype=bool), 0.0, A)
    return A.sum(axis=1)[:, None] * at - A @ at


def joint(method):
    """Return the problem, its affinities P, and k, k', Z and Q of the map Y."""
    problem = build(method.set_params(perplexity=5))
    kernel = problem.objective.kernel
    k, slope = np.where(OFF, kernel.value(D2), 0.0), np.where(OFF, kernel.slope(D2), 0.0)
    return problem, to_dense(problem.affinities), k, slope, k.sum(), k / k.sum()


def close(result, formula):
    assert_allclose(result, formula, rtol=1e-9, atol=1e-9 * np.abs(formula).max())


def over(a, b):
    return np.divide(a, b, out=np.zeros_like(a), where=OFF)


def deformed_log(t, e):
    return np.log(t) if e == 0 else (t**e - 1) / e


@equation("1")
def kullback_leibler():
    for method in (eq.TSNE(), eq.TSNE(dof=3.0), eq.SymmetricSNE(kernel=kernels.Gaussian())):
        problem, P, k, slope, Z, Q = joint(method)
        attraction, repulsion = -4 * springs(P * over(slope, k)), 4 / Z * springs(slope)
        close(problem.gradient(Y), attraction + repulsion)
        close(problem.attraction(Y), -attraction)
        close(problem.repulsion(Y), -repulsion)
        stored = P > 0
        close(problem.loss(Y), (P[stored] * np.log(P[stored] / Q[stored])).sum())


@equation("2", "3")
def alpha_divergence():
    for alpha in (-2.0, -0.5, 0.0, 0.6):
        problem, P, k, slope, Z, Q = joint(eq.GSNE(alpha=alpha, beta=1.8, eta=0.7))
        s = (1 - alpha) / 2
        T = (P**s * np.where(OFF, Q, 1.0) ** (1 - s))[OFF].sum()
        close(problem.loss(Y), 4 / (1 - alpha**2) * (1 - T))
        edges = P**s * np.where(OFF, k, 1.0) ** -s * slope
        close(problem.gradient(Y), -4 / s * (Z ** (s - 1) * springs(edges) - T / Z * springs(slope)))


@equation("2'")
def alpha_divergence_near_kl():
    for alpha in (-1.0, -1 + 1e-6, -0.95):
        problem, P, k, _, Z, _ = joint(eq.GSNE(alpha=alpha))
        s, e = (1 - alpha) / 2, (1 + alpha) / 2
        p, k = P[P > 0], k[P > 0]
        H = -(p * deformed_log(p, -e)).sum()
        psi = (p**s * deformed_log(k, 1 - s)).sum()
        assert_allclose(problem.loss(Y), (deformed_log(Z, -e) - Z**-e * (H + psi)) / s, rtol=1e-6)


@equation("4")
def any_convex_function():
    for divergence in (divergences.ChiSquare(), divergences.Alpha(1.0), divergences.Alpha(2.0)):
        problem, P, _, slope, Z, Q = joint(eq.SymmetricSNE(kernel=kernels.StudentT(), divergence=divergence))
        ratio = np.where(OFF, Q, 1.0) / np.where(OFF, P, 1.0)
        G = divergence.slope(ratio)
        close(problem.gradient(Y), 4 / Z * springs((G - (Q * G).sum()) * slope))


@equation("5")
def original_sne():
    for kernel in (kernels.Gaussian(), kernels.StudentT()):
        problem = build(eq.SNE(perplexity=5, kernel=kernel))
        P = to_dense(problem.affinities)
        P = P if np.allclose(P.sum(axis=1), 1) else P / P.sum(axis=1, keepdims=True)
        k, slope = np.where(OFF, kernel.value(D2), 0.0), kernel.slope(D2)
        inverse = 1 / k.sum(axis=1)
        pair = (inverse[:, None] + inverse) * slope - (P + P.T) * over(slope, k)
        close(problem.gradient(Y), 2 * springs(pair))
        Q = k * inverse[:, None]
        close(problem.loss(Y), (P[P > 0] * np.log(P[P > 0] / Q[P > 0])).sum())


@equation("6")
def random_partners():
    for n in (N, N - 1):  # for an even n, the offset n/2 is its own opposite
        at, stored = Y[:n], sparse.random(n, n, 0.1, random_state=0, format="csr")
        engine = Sampled(1, seed=3, partners=6)
        engine.sum_exactly(stored, 2)
        offsets, weights = draw_offsets(n, 6, 3)
        H, h = (n - 1) // 2, sum(offset < n / 2 for offset in offsets)
        assert_allclose(weights, np.where(2 * offsets == n, 1.0, H / h))
        near = (stored + stored.T).toarray() > 0
        weight = near.astype(float)
        for offset, w in zip(offsets, weights, strict=True):
            i, j = np.arange(n), (np.arange(n) + offset) % n
            weight[i, j] = np.where(near[i, j], 1.0, w)
        np.fill_diagonal(weight, 0.0)
        charges, d2 = np.linspace(0.5, 2.0, n), cdist(at, at, "sqeuclidean")
        found = engine.field(at, kernels.StudentT(), charges)
        assert_allclose(found.potential, (weight / (1 + d2)) @ charges, rtol=1e-6)  # the weights are float32
        gradient = -2 * springs(weight * charges / (1 + d2) ** 2, at)
        assert_allclose(found.gradient, gradient, atol=1e-6 * np.abs(gradient).max())


@equation("7")
def step_of_majorisation():
    delta = cdist(X, X)
    problem = eq.MDS(metric="precomputed", solver="smacof").problem(delta)
    B = -np.where(OFF, delta / np.where(OFF, np.sqrt(D2), 1.0), 0.0)
    B -= np.diag(B.sum(axis=1))
    V = N * np.eye(N) - 1
    at = Y - Y.mean(axis=0)
    gradient = 2 * V @ at - 2 * B @ at
    assert_allclose(problem.gradient(at), gradient, atol=1e-6 * np.abs(gradient).max())  # δ is stored in float32
    after = problem.optimize(n_iter=1, Y0=at)
    assert_allclose(after, at - (V @ at - B @ at) / N, rtol=1e-5, atol=1e-6)  # maps are float32
    assert_allclose(after, B @ at / N, rtol=1e-5, atol=1e-6)  # the step of SMACOF
    total = np.trace(at.T @ V @ at) - 2 * np.trace(at.T @ B @ at) + np.square(delta[np.triu_indices(N, 1)]).sum()
    assert_allclose(problem.loss(at), total, rtol=1e-6)


@equation("8")
def ordinal_stress():
    delta = cdist(X, X)
    problem = eq.MDS(metric="precomputed", stress="ordinal").problem(delta)
    i = np.triu_indices(N, 1)
    d = np.sqrt(D2[i])
    fitted = IsotonicRegression().fit(delta[i], d).predict(delta[i])  # no two δ are equal
    close(problem.loss(Y), np.square(d - fitted).sum() / np.square(d).sum())
    gradient = differences(problem.loss, Y)
    assert_allclose(problem.gradient(Y), gradient, atol=1e-6 * np.abs(gradient).max())


@equation("16", "17")
def losses_of_umap():
    u = -np.log(1 - 1 / (1 + D2 + 0.01))
    u_slope = -1 / ((D2 + 0.01) * (1 + D2 + 0.01))
    k, slope = 1 / (1 + D2), -1 / (1 + D2) ** 2
    u, m = np.where(OFF, u, 0.0), 5
    for loss in ("intended", "effective"):
        problem = build(eq.UMAP(loss=loss, a=1.0, b=1.0, n_neighbors=6))
        mu = to_dense(problem.affinities)
        degree = mu.sum(axis=1)
        weight = 1 - mu if loss == "intended" else m / (2 * N) * (degree[:, None] + degree)
        close(problem.loss(Y), -(mu * np.log(k)).sum() + (weight * u).sum())
        close(problem.gradient(Y), 4 * springs(-mu * slope / k + weight * u_slope))
