"""PairEmbedding, and UMAP's sampling for DKPCA and the SNE family: quality, determinism, input, files and errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from support.cases import without_diagonal
from support.command_line import embed

import equipoise as eq
from equipoise import kernels
from equipoise.affinities import fuzzy
from equipoise.divergences import ChiSquare
from equipoise.pair_losses import BinaryCrossEntropy, Contrastive, LogLikelihood, PairLoss, SquaredDifference

SAMPLED = {"engine": "negative_sampling", "random_state": 0}
QUARTIC = PairLoss(lambda kx, ky: (kx - ky) ** 4, lambda kx, ky: 4 * (ky - kx) ** 3)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:700], y[:700]


def accuracy(Y, y):
    return cross_val_score(KNeighborsClassifier(10), Y, y, cv=5).mean()


@pytest.mark.parametrize(
    ("method", "floor"),
    [
        (eq.PairEmbedding(random_state=0, n_iter=250), 0.9),
        (eq.PairEmbedding(loss=SquaredDifference(), random_state=0, n_iter=250), 0.87),
        (eq.PairEmbedding(loss=LogLikelihood(), negative_sample_rate=5, random_state=0, n_iter=200), 0.92),
        (eq.PairEmbedding(loss=LogLikelihood(), **SAMPLED), 0.92),
        (eq.PairEmbedding(loss=SquaredDifference(), **SAMPLED), 0.9),
        (eq.PairEmbedding(loss=QUARTIC, **SAMPLED), 0.88),
        (eq.PairEmbedding(loss=Contrastive("learned"), affinity="perplexity", **SAMPLED), 0.92),
        (eq.PairEmbedding(loss=Contrastive(), kernel=kernels.StudentT(), **SAMPLED), 0.92),
        (eq.DKPCA(**SAMPLED), 0.9),
        (eq.TSNE(**SAMPLED), 0.9),
    ],
    ids=lambda value: repr(value).replace("\n", ""),
)
def test_classes_of_digits_are_separate(digits, method, floor):
    X, y = digits
    assert accuracy(method.fit_transform(X), y) > floor
    assert method.loss_ < method._problem.loss(method._problem.Y0)


@pytest.mark.parametrize("loss", [None, QUARTIC, Contrastive("learned")], ids=repr)
@pytest.mark.parametrize("components", [2, 3, 5])
def test_sampling_gives_same_bytes_for_any_number_of_threads(digits, loss, components):
    X = digits[0][:300]
    settings = {**SAMPLED, "loss": loss, "n_iter": 10}
    maps = [eq.PairEmbedding(components, n_jobs=jobs, **settings).fit(X) for jobs in (1, 2)]
    assert_array_equal(maps[0].embedding_, maps[1].embedding_)
    assert maps[0].loss_ == maps[1].loss_ and np.isfinite(maps[0].embedding_).all()


def test_gradient_gives_same_bytes_for_any_number_of_threads(digits):
    maps = [eq.PairEmbedding(n_iter=20, random_state=0, n_jobs=jobs, engine="grid") for jobs in (1, 2)]
    assert_array_equal(*(method.fit_transform(digits[0]) for method in maps))


def test_sampled_double_kernel_pca_is_a_pair_embedding(digits):
    X = digits[0][:300]
    pca = eq.DKPCA(n_iter=50, **SAMPLED).fit(X)
    pairs = eq.PairEmbedding(loss=SquaredDifference(), n_iter=50, **SAMPLED).fit(X)
    assert_array_equal(pca.embedding_, pairs.embedding_)
    assert pca.engine_ == "negative_sampling"


# Affinities and input


def test_affinities_are_those_of_other_methods(digits):
    X = digits[0][:120]

    def of(method):
        P = method.problem(X).affinities
        return P.toarray() if sparse.issparse(P) else P

    settings = {"random_state": 0, "engine": "exact"}
    assert_allclose(of(eq.PairEmbedding(**settings)), of(eq.UMAP(**settings)))
    gaussian = eq.PairEmbedding(affinity="gaussian", bandwidth="global", **settings)
    assert_allclose(of(gaussian), of(eq.DKPCA(bandwidth="global", **settings)))
    perplexity = eq.PairEmbedding(affinity="perplexity", perplexity=9, **settings)
    assert_allclose(of(perplexity), 120 * of(eq.TSNE(perplexity=9, **settings)), rtol=1e-5)


@pytest.mark.parametrize("engine", ["exact", "grid", "negative_sampling"])
def test_precomputed_affinities_are_symmetrised_and_not_scaled(rng, engine):
    A = without_diagonal(sparse.random(60, 60, 0.1, format="csr", random_state=0))
    for given in (A, A.toarray()):
        method = eq.PairEmbedding(affinity="precomputed", engine=engine, random_state=0, n_iter=20).fit(given)
        K = method.affinities_
        K = K.toarray() if sparse.issparse(K) else K
        assert_allclose(K, (A + A.T).toarray() / 2, rtol=1e-6)
        assert method.transform(given[:3]).shape == (3, 2)


def test_own_kernel_and_own_loss(digits):
    class Loop(kernels.Kernel):
        def value(self, d2):
            return (1 + d2) ** -1.5

        def slope(self, d2):
            return -1.5 * (1 + d2) ** -2.5

    class Mine(PairLoss):
        def value(self, kx, ky):
            return (kx - ky) ** 2 * (1 + kx)

        def slope(self, kx, ky):
            return 2 * (ky - kx) * (1 + kx)

    X = digits[0][:150]
    method = eq.PairEmbedding(loss=Mine(), kernel=Loop(), n_iter=60, random_state=0).fit(X)
    assert method.loss_ < method._problem.loss(method._problem.Y0)
    with pytest.raises(
        ValueError, match=r"the parameter loss cannot be saved: .*; use a loss of equipoise.pair_losses"
    ):
        eq.save(method.set_params(kernel=None), "unused.eqz")


def test_new_points_are_placed_near_their_class(digits):
    X, y = digits
    for method in (eq.PairEmbedding(n_iter=150, random_state=0), eq.DKPCA(**SAMPLED), eq.TSNE(**SAMPLED)):
        method.fit(X[:500])
        Y_new = method.transform(X[500:])
        near = KNeighborsClassifier(5).fit(method.embedding_, y[:500])
        assert near.score(Y_new, y[500:]) > 0.8


@pytest.mark.parametrize(
    "method",
    [
        eq.PairEmbedding(loss=LogLikelihood(2.0), kernel=kernels.Gaussian(), n_iter=20, random_state=0),
        eq.PairEmbedding(loss=BinaryCrossEntropy(0.1), affinity="perplexity", n_iter=20, random_state=0),
        eq.PairEmbedding(loss=Contrastive("learned"), n_iter=20, **SAMPLED),
        eq.DKPCA(n_iter=20, **SAMPLED),
        eq.TSNE(n_iter=20, **SAMPLED),
    ],
    ids=lambda method: repr(method).replace("\n", ""),
)
def test_saved_methods_transform_alike(digits, method, tmp_path):
    X = digits[0][:120]
    method.fit(X)
    eq.save(method, tmp_path / "model.eqz")
    loaded = eq.load(tmp_path / "model.eqz")
    assert_array_equal(loaded.embedding_, method.embedding_)
    assert_array_equal(loaded.transform(X[:5] + 0.1), method.transform(X[:5] + 0.1))
    assert loaded.get_params() == {**method.get_params(), "callbacks": ()}


def test_command_line_embeds_with_a_loss(tmp_path):
    np.savetxt(tmp_path / "table.csv", np.random.default_rng(0).normal(size=(60, 4)), delimiter=",")
    options = ["--loss", "LogLikelihood(gamma=7)", "--engine", "negative_sampling", "--iterations", "20"]
    out = tmp_path / "map.csv"
    assert embed(tmp_path / "table.csv", "--method", "pairembedding", *options, "--out", out) == 0
    assert len(out.read_text().splitlines()) == 61


# Limits of the SNE family


def test_contrastive_normaliser_is_reported(digits):
    problem = eq.TSNE(n_iter=30, **SAMPLED).problem(digits[0][:200])
    problem.optimize()
    assert problem.normalizer > 0 and problem.engine_name == "negative_sampling"
    gradient = problem.gradient(problem.Y)
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0


def test_early_exaggeration_depends_on_the_engine():
    assert eq.PairEmbedding().resolve_early_exaggeration() == 12.0
    assert eq.PairEmbedding(engine="negative_sampling").resolve_early_exaggeration() == 1.0
    assert eq.PairEmbedding(early_exaggeration=3).resolve_early_exaggeration() == 3


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (eq.PairEmbedding(loss="squared"), "loss must be an equipoise.PairLoss or None, got 'squared'"),
        (eq.PairEmbedding(loss=min), r"got <built-in function min>; for a function F pass PairLoss\(F, dF\)"),
        (eq.PairEmbedding(loss=eq.pair_losses.LogLikelihood), r"use LogLikelihood\(\.\.\.\) with parentheses"),
        (eq.PairEmbedding(kernel=eq.kernels.StudentT), r"use StudentT\(\.\.\.\) with parentheses"),
        (eq.PairEmbedding(kernel="student"), "kernel must be an equipoise.kernels.Kernel or None, got 'student'"),
        (eq.PairEmbedding(affinity="uniform"), "unknown affinity 'uniform'; choose from 'fuzzy', 'gaussian'"),
        (eq.PairEmbedding(n_neighbors=1), "n_neighbors must be an integer >= 2, got 1"),
        (eq.PairEmbedding(negative_sample_rate=0), "negative_sample_rate must be a positive number or None, got 0"),
        (eq.PairEmbedding(affinity="gaussian", bandwidth=np.inf), "bandwidth=inf makes every affinity 1"),
        (eq.PairEmbedding(loss=Contrastive("learned")), 'requires engine="negative_sampling"; use it, or a number'),
        (eq.PairEmbedding(negative_sample_rate=2.5, **SAMPLED), "must be an integer for engine=.*got 2.5"),
        (eq.PairEmbedding(negative_sample_rate=70_000, **SAMPLED), "must be at most 65536 for engine="),
        (eq.PairEmbedding(optimizer=eq.Momentum(), **SAMPLED), "has its own optimiser; use optimizer=None"),
        (eq.PairEmbedding(kernel=kernels.RegularizedPowerLaw(2, 0.5)), r"use a kernel with k\(0\) <= 1"),
        (eq.DKPCA(bandwidth="global", **SAMPLED), "have no bandwidth; omit bandwidth='global'"),
        (eq.DKPCA(optimizer=eq.Momentum(), **SAMPLED), "has its own optimiser"),
        (eq.DKLLE(**SAMPLED), "unknown engine 'negative_sampling'"),
        (eq.SNE(**SAMPLED), "but SNE does not normalise Q over all pairs; use TSNE or SymmetricSNE"),
        (eq.GSNE(**SAMPLED), r"minimises the KL divergence, but GSNE has Alpha\(alpha=-0.5\); use alpha=-1"),
        (eq.SymmetricSNE(divergence=ChiSquare(), **SAMPLED), "minimises the KL divergence, but SymmetricSNE has"),
        (eq.SphericalSNE(**SAMPLED), "needs a map in flat space, not geometry='sphere'; use another engine"),
        (eq.TSNE(optimizer=eq.GradientDescent(), **SAMPLED), "has its own optimiser"),
        (eq.TSNE(g=lambda Y: Y, **SAMPLED), r"does not support a function g\(Y\); use another engine"),
    ],
    ids=lambda value: repr(value).replace("\n", "")[:60],
)
def test_invalid_parameters_raise(digits, method, message):
    with pytest.raises(ValueError, match=message):
        method.fit(digits[0][:80])


def test_memberships_of_the_graph_are_the_affinities(digits):
    K = eq.PairEmbedding(random_state=0).problem(digits[0][:100]).affinities
    assert K.max() <= 1 and abs(K - K.T).max() == 0 and K.min() >= 0
    assert fuzzy.fuzzy_union(K, 1).nnz == K.nnz
