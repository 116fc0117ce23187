"""Equations (V1) to (V7) of docs/math.md, section 1, written out in float64 with dense matrices, match the code."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from equipoise import divergences
from equipoise.engines import Reference
from equipoise.kernels import RegularizedPowerLaw, StudentT
from equipoise.objectives import joint_objective

N = 20
OFF = ~np.eye(N, dtype=bool)
both_kernels = pytest.mark.parametrize("kernel", [StudentT(), RegularizedPowerLaw(3.0, 0.1)], ids=repr)


class Case:
    """Affinities P with a third of the pairs, a map Y, and k, k', Z and Q of a kernel."""

    def __init__(self, kernel, rng):
        A = np.triu(rng.random((N, N)) * (rng.random((N, N)) < 0.3), 1)
        self.P, self.Y = (A + A.T) / (2 * A.sum()), 1.2 * rng.standard_normal((N, 2))
        d2 = ((self.Y[:, None] - self.Y) ** 2).sum(axis=2)
        self.k = np.where(OFF, kernel.value(d2), 1.0)
        self.slope = np.where(OFF, kernel.slope(d2), 0.0)
        self.k0 = float(kernel.value(np.zeros(1))[0])
        self.Z = self.k[OFF].sum()
        self.Q = np.where(OFF, self.k / self.Z, 0.0)
        self.stored, self.kernel = self.P > 0, kernel

    def springs(self, A):
        """Return Σ_j A_ij (y_i − y_j)."""
        A = np.where(OFF, A, 0.0)
        return A.sum(axis=1)[:, None] * self.Y - A @ self.Y

    def gradient_of_field(self, slope):
        """Return ∇Φ[u] = 2 Σ_j u' (y_i − y_j)."""
        return 2 * self.springs(slope)

    def found(self, divergence):
        """Return the loss and the gradient of the code."""
        balance = joint_objective(sparse.csr_matrix(self.P), self.kernel, divergence).balance(
            self.Y, Reference(), loss=True
        )
        return balance.loss, -(balance.attraction + balance.repulsion)


@pytest.fixture
def case(kernel, rng):
    return Case(kernel, rng)


def close(found, loss, gradient):
    assert_allclose(found[0], loss, rtol=1e-10)
    assert_allclose(found[1], gradient, atol=1e-10 * np.abs(gradient).max())


def kl(p, q):
    return (p[p > 0] * np.log(p[p > 0] / q[p > 0])).sum()


@both_kernels
@pytest.mark.parametrize("r", [0.5, 0.8, 1.5])
def test_v1_renyi(case, r):
    P, Q, k, Z = case.P, case.Q, case.k, case.Z
    T = (P[case.stored] ** r * Q[case.stored] ** (1 - r)).sum()
    edges = case.springs(P**r * k**-r * case.slope)
    alpha = -4 / r * (Z ** (r - 1) * edges - T / Z * case.springs(case.slope))  # eq. (3)
    close(case.found(divergences.Renyi(r)), np.log(T) / (r - 1), r / T * alpha)


@both_kernels
@pytest.mark.parametrize("beta", [0.5, 1.3, 2.0])
def test_v2_and_v3_beta(case, beta):
    P, k, Z, e = case.P[OFF], case.k, case.Z, beta - 1
    Q = case.Q[OFF]
    A, B, H = (P * Q**e).sum(), (Q**beta).sum(), (P[P > 0] ** beta).sum() / e - 1 / e
    loss = (np.where(P > 0, P, 0.0) ** beta / (beta * e) + Q**beta / beta - P * Q**e / e).sum()
    assert_allclose((H + B - 1) / beta - (A - 1) / e, loss)
    of_k = case.gradient_of_field(case.slope)
    of_power = case.gradient_of_field(beta * k**e * case.slope)
    gradient = -4 * Z**-e * case.springs(case.P * k ** (e - 1) * case.slope)
    gradient = gradient + 2 / Z * (A - B) * of_k + 2 / beta * Z**-beta * of_power
    close(case.found(divergences.Beta(beta)), loss, gradient)


@both_kernels
@pytest.mark.parametrize("gamma", [-0.5, 0.4, 1.0])
def test_v4_gamma(case, gamma):
    P, k = case.P, case.k
    M, L = (P * k**gamma)[OFF].sum(), (k[OFF] ** (gamma + 1)).sum()
    own = (P[case.stored] ** (gamma + 1)).sum()
    loss = (np.log(own) / (gamma + 1) - np.log(M)) / gamma + np.log(L) / (gamma + 1)
    of_power = case.gradient_of_field((gamma + 1) * k**gamma * case.slope)
    gradient = -4 / M * case.springs(P * k ** (gamma - 1) * case.slope) + 2 / ((gamma + 1) * L) * of_power
    close(case.found(divergences.Gamma(gamma)), loss, gradient)
    if gamma == 1:
        cosine = (P * case.Q).sum() / np.sqrt((P**2).sum() * (case.Q**2).sum())
        assert_allclose(loss, -np.log(cosine))


@both_kernels
@pytest.mark.parametrize(("lam", "epsilon"), [(0.0, 0.1), (0.3, 0.01)])
def test_v5_and_v6_nerv(case, lam, epsilon):
    P, Q, k, Z = case.P, case.Q, case.k, case.Z
    floor = epsilon / (N * (N - 1))
    L = np.where(OFF, np.log(((1 - epsilon) * P + floor) / floor), 0.0)
    assert_allclose(L[~case.stored], 0, atol=1e-15)
    u, u_slope = k * np.log(k / case.k0) - k, case.slope * np.log(k / case.k0)
    m = u[OFF].sum() / Z + 1 - (L * k)[OFF].sum() / Z
    backward = m + np.log(case.k0) - np.log(Z) - np.log(floor)
    assert_allclose(backward, kl(Q[OFF], ((1 - epsilon) * P + floor)[OFF]))
    assert m <= 0 <= L.min() and u_slope.min() >= 0
    gradient = -4 / Z * case.springs(L * case.slope) + 2 / Z * case.gradient_of_field(u_slope)
    gradient = gradient - 2 * m / Z * case.gradient_of_field(case.slope)
    forward = -4 * case.springs(P * case.slope / k) + 4 / Z * case.springs(case.slope)  # eq. (1)
    loss = lam * kl(P[OFF], Q[OFF]) + (1 - lam) * backward
    close(case.found(divergences.NeRV(lam, epsilon)), loss, lam * forward + (1 - lam) * gradient)


@both_kernels
def test_v7_jensen_shannon(case):
    P, Q, Z, stored, c = case.P, case.Q, case.Z, case.stored, np.log(2) / 2
    M = (P + Q) / 2
    t = np.where(stored, Q / np.where(stored, P, 1.0), 1.0)
    f = 0.5 * (t * np.log(t) - (1 + t) * np.log((1 + t) / 2))
    w = np.where(stored, c - 0.5 * np.log(2 * t / (1 + t)), 0.0)  # c − f'(t)
    loss = c + (P * f - c * Q)[stored].sum()
    assert_allclose(loss, (kl(P[OFF], M[OFF]) + kl(Q[OFF], M[OFF])) / 2)
    W = (Q * w).sum()
    gradient = -4 / Z * case.springs(w * case.slope) + 2 * W / Z * case.gradient_of_field(case.slope)
    close(case.found(divergences.JensenShannon()), loss, gradient)


@both_kernels
def test_stiffness_of_every_divergence(case):
    """c of section 7, at the exaggeration x; sections 1 and 7 of docs/math.md list it for every divergence."""
    P, Q, stored, x, epsilon, lam = case.P, case.Q, case.stored, 3.0, 0.1, 0.3
    p, q = P[stored], Q[stored]
    floor = epsilon / (N * (N - 1))
    share = (Q * np.where(OFF, np.log(((1 - epsilon) * P + floor) / floor), 0.0)).sum()  # V/Z
    t = q / (x * p)
    w = np.log(2) / 2 - 0.5 * np.log(2 * t / (1 + t))
    stated = {
        divergences.KL(): x,
        divergences.Alpha(-0.5): x**0.75 * (p**0.75 * q**0.25).sum() / 0.75,
        divergences.Renyi(0.75): x**0.75,
        divergences.Beta(1.4): x * (p * q**0.4).sum(),
        divergences.Gamma(0.4): x,
        divergences.NeRV(lam, epsilon): lam * x + (1 - lam) * x * share,
        divergences.JensenShannon(): (q * w).sum(),
    }
    for divergence, stiffness in stated.items():
        objective = joint_objective(sparse.csr_matrix(P), case.kernel, divergence)
        found = objective.balance(case.Y, Reference(), loss=False, exaggeration=x).stiffness
        assert_allclose(found, stiffness, rtol=1e-10, err_msg=repr(divergence))


@both_kernels
def test_stiffness_and_exaggeration_of_dense_divergences(case, rng):
    P, Q, x = rng.random((N, N)), case.Q, 3.0
    P = np.where(OFF, (P + P.T) / (P + P.T)[OFF].sum(), 0.0)
    ratio = Q / np.where(OFF, P, 1.0)
    G = np.where(OFF, 2 * (ratio / x - 1) - (Q * 2 * (ratio - 1)).sum(), 0.0)  # χ²: f'(Q/xP) − ⟨G⟩, not exaggerated
    balance = joint_objective(P, case.kernel, divergences.ChiSquare()).balance(
        case.Y, Reference(), loss=False, exaggeration=x
    )
    assert_allclose(balance.stiffness, max(1.0, N * (np.abs(G) * Q).sum(axis=1).max()), rtol=1e-10)
    gradient = 4 / case.Z * case.springs(G * case.slope)
    assert_allclose(-(balance.attraction + balance.repulsion), gradient, atol=1e-10 * np.abs(gradient).max())
