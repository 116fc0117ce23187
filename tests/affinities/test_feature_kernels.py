"""Kernel PCA and kernel LLE: scikit-learn, methods on kernel distances, limits and errors."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.utils import get_tags
from support.cases import unequal_digits

import equipoise as eq
from equipoise.inputs import KernelMatrix
from equipoise.kernels import StudentT
from equipoise.procrustes import disagreement

ALL = unequal_digits(170) / 16
X, NEW = ALL[:150], ALL[150:]


def cauchy(A, B):
    return 1 / (1 + 0.3 * cdist(A, B) ** 2)


KERNELS = {
    "rbf": ({"kernel": "rbf"}, partial(rbf_kernel, gamma=1 / 64)),
    "rbf, gamma": ({"kernel": "rbf", "gamma": 0.1}, partial(rbf_kernel, gamma=0.1)),
    "polynomial": ({"kernel": "polynomial"}, partial(polynomial_kernel, gamma=1 / 64)),
    "Kernel": ({"kernel": StudentT(), "gamma": 0.3}, cauchy),
    "function": ({"kernel": laplacian_kernel}, laplacian_kernel),
}
over_kernels = pytest.mark.parametrize(("settings", "k"), KERNELS.values(), ids=KERNELS)


def kernel_distances(K):
    D = np.sqrt(np.maximum(np.diag(K)[:, None] + np.diag(K) - 2 * K, 0))
    np.fill_diagonal(D, 0)
    return (D + D.T) / 2


def up_to_sign(found, expected):
    return found * np.sign((found * expected).sum(axis=0))


@over_kernels
def test_pca_matches_scikit_learn(settings, k):
    theirs = KernelPCA(3, kernel="precomputed").fit(k(X, X))
    expected = theirs.transform(k(X, X))
    ours = eq.PCA(3, **settings).fit(X)
    assert_allclose(up_to_sign(ours.embedding_, expected), expected, atol=1e-10 * np.abs(expected).max())
    assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    signs = np.sign((ours.embedding_ * expected).sum(axis=0))
    new = theirs.transform(k(NEW, X))
    assert_allclose(ours.transform(NEW) * signs, new, atol=1e-10 * np.abs(new).max())
    assert_array_equal(ours.transform(NEW), np.concatenate([ours.transform(NEW[i : i + 1]) for i in range(len(NEW))]))


@over_kernels
def test_pca_equals_classical_scaling_of_kernel_distances(settings, k):
    ours = eq.PCA(**settings).fit(X)
    scaling = eq.ClassicalMDS(metric="precomputed").fit(kernel_distances(k(X, X)))
    assert_allclose(ours.embedding_, scaling.embedding_, atol=1e-9 * np.abs(scaling.embedding_).max())
    given = eq.PCA(kernel="precomputed").fit(k(X, X))
    assert_allclose(given.embedding_, ours.embedding_, atol=1e-9)
    assert_allclose(given.transform(k(NEW, X)), ours.transform(NEW), atol=1e-9)


@over_kernels
def test_lle_equals_lle_of_kernel_distances(settings, k):
    ours = eq.LLE(n_neighbors=12, **settings).fit(X)
    distances = eq.LLE(n_neighbors=12, metric="precomputed").fit(kernel_distances(k(X, X)))
    assert np.abs(ours.weights_ - distances.weights_).max() < 1e-12
    assert_allclose(ours.embedding_, distances.embedding_, atol=1e-7)
    new = np.sqrt(
        np.array([k(NEW[i : i + 1], NEW[i : i + 1])[0, 0] for i in range(len(NEW))])[:, None]
        + np.diag(k(X, X))
        - 2 * k(NEW, X)
    )
    assert_allclose(ours.transform(NEW), distances.transform(new), atol=1e-6)
    assert_allclose(ours.transform(X[:4]), ours.embedding_[:4], atol=1e-6)
    given = eq.LLE(n_neighbors=12, kernel="precomputed").fit(k(X, X))
    assert np.abs(given.weights_ - ours.weights_).max() < 1e-12


@pytest.mark.parametrize("settings", [KERNELS["rbf, gamma"][0], KERNELS["polynomial"][0]], ids=["rbf", "polynomial"])
def test_flow_and_landmarks_reach_the_closed_form(settings):
    exact = eq.PCA(**settings).fit(X)
    flow = eq.PCA(solver="flow", random_state=0, **settings).fit(X)
    assert disagreement(flow.embedding_, exact.embedding_) < 1e-3
    assert_allclose(flow.loss_, exact.loss_, rtol=1e-6)
    landmarks = eq.PCA(n_landmarks=150, random_state=0, **settings).fit(X)
    assert_allclose(landmarks.embedding_, exact.embedding_, atol=1e-6 * np.abs(exact.embedding_).max())
    assert_allclose(landmarks.transform(NEW), exact.transform(NEW), atol=1e-6 * np.abs(exact.embedding_).max())
    assert landmarks.low_rank_error_ < 1e-6


def test_linear_function_is_pca():
    linear, ours = eq.PCA().fit(X), eq.PCA(kernel=lambda A, B: A @ B.T).fit(X)
    assert_allclose(ours.embedding_, linear.embedding_, atol=1e-9)
    assert_allclose(ours.explained_variance_ratio_, linear.explained_variance_ratio_, rtol=1e-9)
    assert not hasattr(ours, "components_")


def test_wide_rbf_lle_is_lle():
    """As γ → 0 the feature space of exp(−γ d²) is locally the space of the data."""
    wide, linear = eq.LLE(n_neighbors=12, kernel="rbf", gamma=1e-7).fit(X), eq.LLE(n_neighbors=12).fit(X)
    assert np.abs(wide.weights_ - linear.weights_).max() < 1e-4


def test_kernels_of_metric_spaces_and_sparse_tables():
    space = eq.spaces.PNorm(X, 1)
    found = eq.PCA(kernel="rbf", gamma=0.01).fit(space)
    K, new = np.exp(-0.01 * cdist(X, X, "cityblock") ** 2), np.exp(-0.01 * cdist(NEW, X, "cityblock") ** 2)
    expected = eq.PCA(kernel="precomputed").fit(K)
    assert_allclose(found.embedding_, expected.embedding_, atol=1e-9)
    assert_allclose(found.transform(NEW), expected.transform(new), atol=1e-9)
    weights = eq.LLE(kernel="rbf", gamma=0.01, n_neighbors=12).fit(space).weights_
    assert np.abs(weights - eq.LLE(kernel="precomputed", n_neighbors=12).fit(K).weights_).max() < 1e-12
    for kernel in ("rbf", "polynomial"):
        dense, thin = (eq.PCA(kernel=kernel).fit(table) for table in (X, sparse.csr_matrix(X)))
        assert_allclose(thin.embedding_, dense.embedding_, atol=1e-7)
        assert_allclose(thin.transform(sparse.csr_matrix(NEW)), dense.transform(NEW), atol=1e-7)


def test_saved_kernels(tmp_path):
    for method in (
        eq.PCA(kernel="rbf"),
        eq.PCA(kernel="polynomial", n_landmarks=40, random_state=0),
        eq.LLE(kernel="rbf"),
    ):
        eq.save(method.fit(X), tmp_path / "map.eqz")
        assert eq.load(tmp_path / "map.eqz").transform(NEW).tobytes() == method.transform(NEW).tobytes()
    precomputed = eq.PCA(kernel="precomputed").fit(rbf_kernel(X))
    eq.save(precomputed, tmp_path / "map.eqz")
    new = rbf_kernel(NEW, X)
    assert eq.load(tmp_path / "map.eqz").transform(new).tobytes() == precomputed.transform(new).tobytes()
    assert get_tags(precomputed).input_tags.pairwise and not get_tags(eq.PCA(kernel="rbf")).input_tags.pairwise


@pytest.mark.parametrize(
    ("method", "data", "message"),
    [
        (eq.PCA(kernel="polynomal"), X, "unknown kernel 'polynomal'; did you mean polynomial"),
        (eq.LLE(kernel="cosmic"), X, "unknown kernel 'cosmic'; choose from 'linear', 'rbf'"),
        (eq.PCA(kernel=3), X, "kernel must be one of 'linear', 'rbf', 'polynomial', 'precomputed', a kernel of"),
        (eq.PCA(kernel=StudentT), X, "kernel must be one of"),
        (eq.PCA(kernel="rbf", gamma=-1), X, "gamma must be a positive number or None, got -1"),
        (eq.PCA(gamma=1.0), X, "gamma=1 has no effect with kernel='linear'; omit gamma"),
        (eq.PCA(kernel=sigmoid_kernel, gamma=1.0), X, "gamma=1 has no effect with kernel=a function"),
        (eq.PCA(kernel="rbf"), eq.spaces.Euclidean(X), "has no default width; pass gamma"),
        (eq.PCA(kernel="polynomial"), eq.spaces.Euclidean(X), 'needs a table of coordinates .* use kernel="rbf"'),
        (eq.LLE(kernel="polynomial", metric="cosine"), X, "needs a table of coordinates .* no metric"),
        (eq.LLE(kernel="precomputed", metric="cosine"), X, 'with kernel="precomputed" X contains the kernel'),
        (eq.PCA(kernel="precomputed"), eq.spaces.Euclidean(X), "requires a kernel matrix"),
        (eq.PCA(kernel="precomputed"), X, "a precomputed kernel must be square; got shape"),
        (
            eq.PCA(kernel="precomputed"),
            np.triu(np.ones((5, 5))),
            r"must be symmetric, but K\[0, 1\] = 1 and K\[1, 0\] = 0",
        ),
        (eq.PCA(kernel=lambda A, B: (A @ B.T) * B[:, 0]), X, r"the kernel is not symmetric: k\(x_"),
        (eq.PCA(kernel=lambda a, b: a @ b), X, "the kernel fails for two tables"),
        (eq.PCA(kernel=lambda A, B: A), X, r"the kernel returned shape \(64, 64\) for tables of 64 and 150 rows"),
        (eq.PCA(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)), X, "row 0 of A and row 0 of B is nan"),
        (eq.LLE(kernel="rbf", metric="precomputed"), sparse.csr_matrix(np.eye(9, k=1) + np.eye(9, k=-1)), "needs all"),
        (eq.LLE(kernel="rbf", engine="torch"), X, 'LLE with a kernel does not support engine="torch"'),
    ],
)
def test_invalid_kernels_raise(method, data, message):
    with pytest.raises(ValueError, match=message):
        method.fit(data)


def test_what_a_kernel_does_not_give():
    with pytest.raises(ValueError, match='inverse_transform requires kernel="linear"'):
        eq.PCA(kernel="rbf").fit(X).inverse_transform(np.zeros((1, 2)))
    given = eq.LLE(kernel="precomputed").fit(rbf_kernel(X))
    with pytest.raises(ValueError, match=r"cannot place new points, because their weights depend on k\(x, x\)"):
        given.transform(rbf_kernel(NEW, X))
    with pytest.raises(ValueError, match=r"must have shape \(m, 150\), one column per fitted point; got shape"):
        KernelMatrix(rbf_kernel(X)).check_new(rbf_kernel(NEW, X[1:]))
