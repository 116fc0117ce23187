"""The matrices of modified LLE, Hessian LLE and LTSA against regressions, and their maps against known coordinates."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import make_s_curve
from sklearn.manifold import LocallyLinearEmbedding
from support.classical_cases import tie_free_digits

import equipoise as eq
from equipoise.affinities import local_geometry
from equipoise.affinities.local_geometry import VARIANTS, smallest_neighborhood, variant_matrix
from equipoise.neighbors import nearest_neighbors

X = np.random.default_rng(0).normal(size=(60, 5))


def residual(functions, y):
    """Return the squared norm of y minus its regression on the columns of `functions`."""
    return np.sum((y - functions @ np.linalg.lstsq(functions, y, rcond=None)[0]) ** 2)


@pytest.mark.parametrize("columns", [3, 20])  # fewer than the neighbours, and more
@pytest.mark.parametrize("d", [1, 2, 3])
def test_forms_are_what_regressions_on_tangent_coordinates_leave(columns, d, rng):
    A, k = rng.normal(size=(40, columns)), 12
    y, near = rng.normal(size=40), nearest_neighbors(A, 12).indices
    affine, hessian = 0.0, 0.0
    for rows in near:
        centred = A[rows] - A[rows].mean(axis=0)
        U = np.linalg.svd(centred, full_matrices=False)[0][:, :d]
        first = np.column_stack([np.ones(k), U])
        second = np.column_stack([first, *(U[:, a] * U[:, b] for a in range(d) for b in range(a + 1))])
        affine += residual(first, y[rows])
        hessian += residual(first, y[rows]) - residual(second, y[rows])
    for variant, expected in [("ltsa", affine), ("hessian", hessian)]:
        M = variant_matrix(variant, A, near, d, 1e-3)
        assert_allclose(y @ M @ y, expected, rtol=1e-8)
        assert_allclose(M @ np.ones(40), 0, atol=1e-10)


def test_modified_weights_sum_to_one_and_reconstruct_small_singular_directions():
    near = nearest_neighbors(X, 8).indices
    V, values = local_geometry._left_singular(X[near] - X[:, None, :])
    used = np.broadcast_to(np.arange(8) >= 5, (60, 8))
    W = local_geometry._weight_vectors(V, values, used, 1e-3)
    assert_allclose(W.sum(axis=1)[:, 5:], 1, rtol=1e-9)
    assert not W[:, :, :5].any()
    M = variant_matrix("modified", X, near, 2, 1e-3)
    assert_allclose(M @ np.ones(60), 0, atol=1e-9)
    assert np.linalg.eigvalsh(M.toarray())[0] > -1e-9


@pytest.mark.parametrize("shape", ["s_curve", "digits"])
def test_modified_maps_match_scikit_learn(shape):
    A = make_s_curve(400, random_state=0)[0] if shape == "s_curve" else tie_free_digits(400)
    theirs = LocallyLinearEmbedding(n_neighbors=15, method="modified", eigen_solver="dense").fit(A)
    ours = eq.LLE(n_neighbors=15, variant="modified").fit(A)
    Z = theirs.embedding_
    assert_allclose(np.abs(ours.embedding_) / 20, np.abs(Z), atol=1e-6 * np.abs(Z).max())
    assert_allclose(ours.loss_, theirs.reconstruction_error_, rtol=1e-6)
    new = A[:5] + 1e-3
    assert_allclose(np.abs(ours.transform(new)) / 20, np.abs(theirs.transform(new)), atol=1e-6 * np.abs(Z).max())


@pytest.mark.parametrize("variant", [variant for variant in VARIANTS if variant != "standard"])
def test_a_rolled_sheet_is_unrolled(variant):
    A, t = make_s_curve(800, random_state=0)
    method = eq.LLE(n_neighbors=12, variant=variant).fit(A)
    functions = np.column_stack([np.ones(800), method.embedding_])
    for coordinate in (t, A[:, 1]):  # standard LLE explains 0.3 of the second
        assert residual(functions, coordinate) < 2e-3 * np.sum((coordinate - coordinate.mean()) ** 2)
    assert method.weights_ is None


@pytest.mark.parametrize("variant", [variant for variant in VARIANTS if variant != "standard"])
def test_sparse_tables_give_the_map_of_dense_ones(variant):
    A = np.where(X > -1, X + 2, 0.0)
    dense, table = (eq.LLE(n_neighbors=8, variant=variant).fit(B) for B in (A, sparse.csr_matrix(A)))
    assert_allclose(table.embedding_, dense.embedding_, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "A", "message"),
    [
        (eq.LLE(variant="laplacian"), X, "unknown variant 'laplacian'; choose from standard, modified, hessian, ltsa"),
        (eq.LLE(variant="hesian"), X, "unknown variant 'hesian'; did you mean hessian?"),
        (eq.LLE(variant=np.array(["ltsa", "standard"])), X, "unknown variant array(['ltsa', 'standard']"),
        (eq.LLE(variant="ltsa", kernel="rbf"), X, "variant='ltsa' needs kernel=\"linear\""),
        (eq.LLE(variant="ltsa", metric="precomputed"), cdist(X, X), "variant='ltsa' needs a table (n, D)"),
        (eq.LLE(6, variant="ltsa", n_neighbors=20), X, "n_components=6 is too large for variant='ltsa' and 5 columns"),
        (
            eq.LLE(variant="hessian", n_neighbors=4),
            X,
            "n_neighbors=4 is too small for variant='hessian' and 2 components; use at least 5",
        ),
    ],
)
def test_invalid_variants_raise(method, A, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        method.fit(A)


@pytest.mark.parametrize("variant", [variant for variant in VARIANTS if variant != "standard"])
def test_smallest_neighborhoods_determine_a_map(variant):
    k = smallest_neighborhood(variant, 2)
    near = nearest_neighbors(X, k).indices
    M = variant_matrix(variant, X, near, 2, 1e-3)
    assert M.nnz and np.isfinite(M.data).all()
    assert abs(M).max() > 1e-6
    if variant != "modified":
        ranks = [rank_of_one_neighborhood(variant, size) for size in (k - 1, k)]
        assert ranks == {"hessian": [2, 3], "ltsa": [0, 1]}[variant]  # three second derivatives in the plane


def rank_of_one_neighborhood(variant, size):
    """Return the rank of M if every point has the same neighbourhood, in a map of the plane."""
    M = variant_matrix(variant, X[:size], np.tile(np.arange(size), (size, 1)), 2, 1e-3)
    return np.linalg.matrix_rank(M.toarray(), tol=1e-8)


def test_the_memory_of_the_forms_is_checked(monkeypatch):
    monkeypatch.setattr(local_geometry, "available_memory", lambda: 1e5)
    with pytest.raises(MemoryError, match=r"LLE\(variant='ltsa'\) needs about .* use fewer rows or n_neighbors"):
        eq.LLE(variant="ltsa").fit(X)
