"""The scalars A_ij and R_ij of pairs: they sum to the gradient of every problem of attraction and repulsion."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.methods import X

import equipoise as eq
from equipoise.divergences import ChiSquare, Gamma, JensenShannon, NeRV
from equipoise.kernels import StudentT

SMALL = X[:24]
METHODS = [
    *(eq.TSNE(perplexity=5, engine=engine) for engine in ("reference", "exact", "grid")),
    eq.SNE(perplexity=5, engine="reference"),
    eq.GSNE(perplexity=5, engine="reference"),
    *(
        eq.SymmetricSNE(kernel=StudentT(), divergence=divergence, perplexity=5, engine="reference")
        for divergence in (ChiSquare(), JensenShannon(), NeRV(), Gamma(0.5))
    ),
    eq.UMAP(n_neighbors=5, engine="reference"),
    eq.UMAP(n_neighbors=5, loss="intended", engine="reference"),
    eq.DKLLE(n_neighbors=5, engine="reference"),
    eq.DKPCA(n_neighbors=5, engine="reference"),
    eq.DKPCA(n_neighbors=5, engine="negative_sampling"),
    eq.PairEmbedding(n_neighbors=5, engine="reference"),
    eq.PairEmbedding(affinity="gaussian", n_neighbors=5, negative_sample_rate=3, engine="reference"),
    eq.PCA(solver="flow"),
    eq.ClassicalMDS(solver="flow", metric="cityblock"),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: repr(method).replace("\n", ""))
def test_scalars_sum_to_the_gradient(method, rng):
    problem = method.set_params(random_state=0).problem(SMALL)
    Y = 2 * rng.standard_normal(problem.Y0.shape)
    A, R = problem.pair_scalars(Y)
    gradient = problem.gradient(Y)
    total = np.einsum("ij,ijc->ic", A - R, Y[:, None] - Y)
    tolerance = 0.02 if problem.engine_name == "grid" else 1e-6 if method.engine != "reference" else 1e-10
    assert np.abs(total - gradient).max() < tolerance * np.abs(gradient).max()
    attraction = -np.einsum("ij,ijc->ic", A, Y[:, None] - Y)
    assert np.abs(attraction - problem.attraction(Y)).max() < 1e-5 * np.abs(attraction).max()


def test_some_pairs_are_those_of_the_table(rng):
    problem = eq.TSNE(perplexity=5, engine="reference", random_state=0).problem(SMALL)
    Y = rng.standard_normal(problem.Y0.shape)
    A, R = problem.pair_scalars(Y)
    i, j = np.array([3, 0, 7]), np.array([5, 2, 1])
    for found, table in zip(problem.pair_scalars(Y, i, j), (A, R), strict=True):
        assert_allclose(found, table[i, j])
    a, r = problem.pair_scalars(Y, 4, np.arange(24))
    assert_allclose(a, A[4])
    assert_allclose(r, R[4])
    assert (A >= 0).all() and (R >= 0).all() and not np.diag(A).any() and not np.diag(R).any()


def test_scalars_of_t_sne_are_those_of_the_closed_form(rng):
    problem = eq.TSNE(perplexity=5, engine="reference", random_state=0).problem(SMALL)
    Y = rng.standard_normal(problem.Y0.shape)
    k = 1 / (1 + ((Y[:, None] - Y) ** 2).sum(axis=2))
    np.fill_diagonal(k, 0)
    A, R = problem.pair_scalars(Y)
    assert_allclose(A, 4 * problem.affinities * k, rtol=1e-10)
    assert_allclose(R, 4 * k**2 / k.sum(), rtol=1e-10)


def test_scalars_of_double_kernel_pca_are_the_kernels(rng):
    problem = eq.PairEmbedding(loss=eq.pair_losses.SquaredDifference(), n_neighbors=5, engine="reference").problem(
        SMALL
    )
    Y = rng.standard_normal(problem.Y0.shape)
    k = 1 / (1 + ((Y[:, None] - Y) ** 2).sum(axis=2))
    A, R = problem.pair_scalars(Y)
    delta = 8 * k**2  # Draganov & Dohn 2024, eq. (7): −c' δ_ij
    np.fill_diagonal(delta, 0)
    assert_allclose(A, delta * problem.affinities.toarray(), rtol=1e-10)
    assert_allclose(R, delta * k, rtol=1e-10)


def test_scalars_on_the_sphere_give_the_gradient_by_projection(rng):
    problem = eq.SphericalSNE(perplexity=5, engine="reference", random_state=0).problem(SMALL)
    Y = rng.standard_normal(problem.Y0.shape)
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    A, R = problem.pair_scalars(Y)
    total = np.einsum("ij,ijc->ic", A - R, Y[:, None] - Y)
    assert_allclose(total - (total * Y).sum(axis=1, keepdims=True) * Y, problem.gradient(Y), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ((0, 24), "j must be between 0 and 23, got 24 to 24"),
        (([-1, 3], 2), "i must be between 0 and 23, got -1 to 3"),
        ((0.5, 1), r"i must be an index or an array of indices of points, got 0\.5"),
        ((None, 1), "i must be an index or an array of indices of points, got None; omit both for all"),
    ],
)
def test_invalid_indices_raise(pairs, message):
    problem = eq.TSNE(perplexity=5, random_state=0).problem(SMALL)
    with pytest.raises(ValueError, match=message):
        problem.pair_scalars(problem.Y0, *pairs)


def test_losses_that_are_not_sums_over_pairs_raise():
    problem = eq.LLE(solver="flow", n_neighbors=5).problem(SMALL)
    with pytest.raises(TypeError, match="the forces of TraceQuotient are not sums over pairs of points"):
        problem.pair_scalars(problem.Y0)


def test_underflowing_kernels_raise():
    problem = eq.SNE(perplexity=5, engine="reference", random_state=0).problem(SMALL)
    Y = problem.Y0 + np.eye(24)[:, :2] * 100
    with pytest.raises(FloatingPointError, match="the kernel underflows between point 0 and all others"):
        problem.pair_scalars(Y)
