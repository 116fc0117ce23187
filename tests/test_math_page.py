"""Every numbered equation of docs/math.md, written out in float64 with dense matrices, agrees with the code.

`EQUATIONS` holds a check for each number; `ELSEWHERE` in support/equations.py names the tests of the other equations.
Formulas of sections without numbers are in test_math_sections.py.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.isotonic import IsotonicRegression
from support.cases import differences, to_dense
from support.equations import ELSEWHERE
from support.source_tree import ROOT, needs

import equipoise as eq
from equipoise import divergences, kernels
from equipoise.engines import Sampled
from equipoise.engines.sampled import draw_offsets
from equipoise.evaluate import continuity, preservation_ratio, shepard, stress, trustworthiness
from equipoise.linalg.gram import Inner
from equipoise.linalg.landmark_choice import FromDistances, ridge_leverage
from equipoise.objectives import GramLoss

PAGE = ROOT / "docs" / "math.md"
pytestmark = needs("docs")

N = 24
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 4)) + 2 * (np.arange(N)[:, None] % 2)
Y = 1.5 * RNG.standard_normal((N, 2))
D2 = cdist(Y, Y, "sqeuclidean")
OFF = ~np.eye(N, dtype=bool)
C = np.eye(N) - 1 / N

EQUATIONS = {}


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
        drawn = dict(zip(offsets, weights, strict=True))  # all of O, and for the edges 1 − w_o, or 1 outside of O
        of_offset = np.array([drawn.get(offset, 0.0) for offset in range(n)])
        from_all = of_offset[(np.arange(n) - np.arange(n)[:, None]) % n]
        assert_allclose(from_all + near * ~np.eye(n, dtype=bool) * (1 - from_all), weight)


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


# Classical methods


def centred_gram():
    return C @ X @ X.T @ C


def loss_of(B, error=0.0):
    """Return the loss of PCA for the Gram matrix B."""
    diagonal = np.diag(B)
    return GramLoss(Inner(diagonal[:, None] + diagonal - 2 * B), error)


def gradient_of(loss, at):
    balance = loss.balance(at, None, loss=True)
    return -(balance.attraction + balance.repulsion)


@equation("C1")
def gram_matrices():
    B = centred_gram()
    L = B - C @ Y @ Y.T @ C
    for problem in (eq.PCA().problem(X), eq.ClassicalMDS(metric="precomputed").problem(cdist(X, X))):
        close(problem.loss(Y), np.square(L).sum())
        close(problem.gradient(Y), -4 * L @ C @ Y)
        close(problem.gradient(Y), 4 * springs(L))


@equation("C2")
def step_length():
    rng = np.random.default_rng(1)
    for _ in range(50):
        A = rng.standard_normal((N, N))
        B = C @ (A + A.T) @ C
        loss = loss_of(B)
        at = C @ rng.standard_normal((N, 2)) * rng.uniform(0.01, 2.0)
        beta, sigma = np.linalg.norm(B, 2), np.linalg.norm(at, 2)
        c = 4 * (3 * sigma**2 + max(0.0, -np.linalg.eigvalsh(B)[0]))
        V, h = C @ rng.standard_normal((N, 2)), 1e-4
        along = (gradient_of(loss, at + h * V) - gradient_of(loss, at - h * V)) / (2 * h)
        assert (along * V).sum() <= c * (V * V).sum() * (1 + 1e-6)
        assert loss.balance(at, None, loss=False).stiffness * 4 / N >= c * (1 - 1e-9)
        small = at * min(1.0, np.sqrt(beta) / sigma)
        after = small - gradient_of(loss, small) / (4 * 3 * beta)
        assert np.linalg.norm(after, 2) <= np.sqrt(beta) * (1 + 1e-9)


@equation("C3", "C4")
def landmarks():
    d2, chosen = cdist(X, X, "sqeuclidean"), np.array([0, 7, 14])
    m = len(chosen)
    found = FromDistances(lambda i: d2[i], chosen)
    s = d2[:, chosen].mean(axis=1) - d2[np.ix_(chosen, chosen)].sum() / (2 * m**2)
    close(s, np.square(X - X[chosen].mean(axis=0)).sum(axis=1))
    K = -0.5 * (d2[:, chosen] - s[:, None] - s[chosen])
    W = K[chosen]
    low = K @ np.linalg.pinv(W, rcond=1e-10) @ K.T
    close(found.F @ found.F.T, low)
    G = (X - X[chosen].mean(axis=0)) @ (X - X[chosen].mean(axis=0)).T
    for ridge in (None, 0.7):
        size = np.trace(G - low) / m if ridge is None else ridge
        scores = np.diag(G - K @ np.linalg.inv(W + size * np.eye(m)) @ K.T) / size
        close(ridge_leverage(found, ridge), np.clip(scores, 0, 1))


@equation("C5")
def certificate():
    B = centred_gram()
    values, U = np.linalg.eigh(B)
    low = (U[:, -1:] * values[-1:]) @ U[:, -1:].T
    R = B - low
    exact, approximate = loss_of(B), loss_of(low, float(np.linalg.norm(R)))
    for scale in (0.1, 1.0, 3.0):
        a, b = gradient_of(exact, scale * Y), gradient_of(approximate, scale * Y)
        close(a - b, -4 * C @ R @ C @ (scale * Y))
        size = np.linalg.norm(b)
        bound = size * (size - 4 * np.linalg.norm(R) * np.linalg.norm(C @ (scale * Y), 2))
        close(approximate.certificate(scale * Y), bound)
        assert (a * b).sum() >= bound


@equation("C6")
def trace_quotients():
    for problem in (eq.LLE(n_neighbors=6).problem(X), eq.LaplacianEigenmaps(n_neighbors=6).problem(X)):
        W = to_dense(problem.affinities)
        is_lle = problem.affinities.data.min() < 0
        degree = np.ones(N) if is_lle else W.sum(axis=1)
        root = np.sqrt(degree)
        A = W if is_lle else np.eye(N) - W / np.outer(root, root)
        U = root[:, None] * Y
        U -= np.outer(root, root @ U) / (root @ root)
        S = np.linalg.inv(U.T @ U)
        close(problem.objective.loss(U), np.trace(S @ U.T @ A @ U))
        balance = problem.objective.balance(U, problem.engine, loss=True)
        close(-(balance.attraction + balance.repulsion), 2 * (A @ U - U @ S @ U.T @ A @ U) @ S)


@equation("D1")
def double_kernel_lle():
    problem = build(eq.DKLLE(n_neighbors=6))
    W = to_dense(problem.objective.weights)
    M = -W - W.T + W.T @ W + np.eye(N)
    close(to_dense(problem.affinities), M)
    K, slope = 1 / (1 + D2), -1 / (1 + D2) ** 2
    close(problem.loss(Y), np.trace(M @ K) + K.sum() / N)
    close(problem.gradient(Y), 4 * springs((M + 1 / N) * slope))
    other = 4 * springs((M + 2 * K / N) * slope)  # of Tr(M K) + Tr((I − K)²)/n, appendix D.2
    appendix = differences(lambda at: _appendix_loss(M, at), Y)
    assert_allclose(other, appendix, atol=1e-6 * np.abs(appendix).max())
    assert np.linalg.norm(other - problem.gradient(Y)) > 0.02 * np.linalg.norm(other)


def _appendix_loss(M, at):
    K = 1 / (1 + cdist(at, at, "sqeuclidean"))
    return np.trace(M @ K) + np.trace((np.eye(N) - K) @ (np.eye(N) - K)) / N


@equation("D2")
def double_kernel_pca():
    problem = build(eq.DKPCA(n_neighbors=6))
    K_X, K = to_dense(problem.affinities) + np.eye(N), 1 / (1 + D2)
    A = C @ (K_X - K) @ C
    close(problem.loss(Y), np.square(A).sum())
    close(problem.gradient(Y), 8 * springs(A / (1 + D2) ** 2))


@equation("D6")
def t_sne_as_a_double_kernel_loss():
    problem, P, k, slope, Z, _ = joint(eq.TSNE())
    M = -over(P, k)
    np.fill_diagonal(M, -M.sum(axis=1))
    assert np.linalg.eigvalsh(M)[0] > -1e-12
    close(problem.gradient(Y), 4 * springs((M + 1 / Z) * slope))
    exact = eq.ClassicalMDS(metric="precomputed").fit_transform(np.sqrt(D2))  # 1/k − 1 = d²: a map of loss 0
    close(cdist(exact, exact, "sqeuclidean"), D2)


# Measures


def ranks(A):
    """Return the rank of j among the other points by distance from i, 1 for the nearest; the point itself gets 0."""
    return np.argsort(np.argsort(cdist(A, A), axis=1), axis=1)


@equation("19", "20")
def neighbourhoods():
    k, a, b = 5, ranks(X), ranks(Y)
    w = k * (2 * N - 3 * k - 1) / 2
    false, missing = (b <= k) & OFF, (a <= k) & OFF
    close(trustworthiness(X, Y, k), 1 - (np.maximum(a - k, 0) * false).sum(axis=1).mean() / w)
    close(continuity(X, Y, k), 1 - (np.maximum(b - k, 0) * missing).sum(axis=1).mean() / w)
    same = (np.argsort(a, axis=1) == np.argsort(ranks(X[:, :3]), axis=1)).mean(axis=0)  # column 0 is the point itself
    assert same[1] > 0 and same[2:7].sum() > 0
    close(preservation_ratio(X, X[:, :3], 2, 6), same[2:7].sum() / ((6 - 2) * same[1]))


@equation("21")
def distances():
    i = np.triu_indices(N, 1)
    a, b = cdist(X, X)[i], cdist(Y, Y)[i]
    found = stress(X, Y)
    close(float(found.raw), np.square(b - a).sum())
    close(float(found.normalised), np.sqrt(np.square(b - a).sum() / np.square(a).sum()))
    scale = (a * b).sum() / np.square(b).sum()
    best = np.sqrt(np.square(scale * b - a).sum() / np.square(a).sum())
    close(best, np.sqrt(1 - (a * b).sum() ** 2 / (np.square(a).sum() * np.square(b).sum())))
    close(float(found.scale_free), best)
    close(found.scale, scale)
    close(float(shepard(X, Y).correlation), spearmanr(a, b).statistic)


# The tests


@pytest.mark.parametrize("tag", EQUATIONS)
def test_equation_agrees_with_the_code(tag):
    EQUATIONS[tag]()


def test_every_numbered_equation_is_checked():
    tags = re.findall(r"\\tag\{([^}]+)\}", PAGE.read_text(encoding="utf-8"))
    assert len(tags) == len(set(tags)), "an equation number is used twice"
    unchecked = set(tags) - EQUATIONS.keys() - ELSEWHERE.keys()
    assert not unchecked, f"add a check of {sorted(unchecked)} to EQUATIONS, or name its test in ELSEWHERE"
    assert not (EQUATIONS.keys() | ELSEWHERE.keys()) - set(tags), "a check has no equation"
