"""Equations as the sources print them, beside the gradients of the package (docs/sources.md)."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from support.cases import to_dense

import equipoise as eq

N = 30


def test_gradient_of_spherical_sne_is_the_tangential_part_of_equation_28(rng):
    """Eq. 28 of Lin et al. 2024, without its multiplier λ_i, which cancels the radial part."""
    X, rho, d = rng.standard_normal((N, 4)), 0.7, 3
    problem = eq.SphericalSNE(n_components=d, rho=rho, perplexity=6, engine="reference").problem(X)
    Y = rng.standard_normal((N, d))
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    P = to_dense(problem.affinities)
    apart = Y[:, None] - rho * Y  # y_i − ρ y_j
    size2 = (apart**2).sum(axis=2)
    Q = size2 ** (-d / 2)
    np.fill_diagonal(Q, 0.0)
    Q /= Q.sum()
    one, other = apart / size2[..., None], -np.swapaxes(apart, 0, 1) / size2.T[..., None]  # and (ρ y_i − y_j)/‖·‖²
    first = np.einsum("ij,ijc->ic", P, one + rho * other)
    second = -rho * np.einsum("ij,ijc->ic", Q, other) - np.einsum("ji,ijc->ic", Q, one)
    printed = d * (first + second)
    tangential = printed - (printed * Y).sum(axis=1, keepdims=True) * Y
    assert_allclose(problem.gradient(Y), tangential, atol=1e-9 * np.abs(tangential).max())


def test_equation_2_of_umap_is_minus_half_of_the_gradient(rng):
    """Eq. 2 of Draganov & Dohn 2024 lacks the minus sign of their eq. 1: it is the step, not the gradient."""
    X, Y = rng.standard_normal((N, 4)), rng.standard_normal((N, 2))
    loss = eq.pair_losses.BinaryCrossEntropy(epsilon=1e-12)
    problem = eq.PairEmbedding(loss=loss, n_neighbors=6, engine="reference").problem(X)
    k_x = to_dense(problem.affinities)
    k = 1 / (1 + ((Y[:, None] - Y) ** 2).sum(axis=2))
    np.fill_diagonal(k, 0.5)
    scalars = (k_x / k - (1 - k_x) / (1 - k)) * -2 * k**2  # δ_ij = −2 k²
    np.fill_diagonal(scalars, 0.0)
    printed = scalars.sum(axis=1)[:, None] * Y - scalars @ Y
    assert_allclose(-2 * printed, problem.gradient(Y), atol=1e-7 * np.abs(printed).max())
