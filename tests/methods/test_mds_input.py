"""MDS on degenerate data, and invalid input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from support.cases import changed
from support.mds_cases import KNOWN, City, D, W, X, Y, stress

import equipoise as eq


def test_duplicate_rows_and_coincident_starts_stay_finite():
    twice = np.vstack([X[:30], X[:30]])
    method = eq.MDS(random_state=0, tol=0).fit(twice)
    assert np.abs(method.embedding_[:30] - method.embedding_[30:]).max() < 1e-2 * np.abs(method.embedding_).max()
    heap = eq.MDS(init=np.zeros((70, 2)), n_iter=3).fit(X)  # zero gradient: the map stays, without NaN
    assert heap.loss_ == pytest.approx((pdist(X) ** 2).sum(), rel=1e-5) and not heap.embedding_.any()
    same = eq.MDS(random_state=0).fit(np.ones((5, 3)))
    assert same.loss_ < 1e-10 and np.isfinite(same.embedding_).all() and np.isfinite(same.stress_1_)


@pytest.mark.parametrize("n", [2, 3])
def test_fewer_points_than_dimensions_keep_their_distances(n):
    method = eq.MDS(3, random_state=0, tol=0).fit(X[:n])
    np.testing.assert_allclose(pdist(method.embedding_), pdist(X[:n]), rtol=1e-3)


def test_triangle_inequality_violation_warns_and_is_fitted():
    bent = D.copy()
    bent[3, 7] = bent[7, 3] = 100
    with pytest.warns(UserWarning, match=r"not a metric: D\[\d+, \d+\] = 100 is larger than D"):
        method = eq.MDS(metric="precomputed", random_state=0).fit(bent)
    assert method.loss_ == pytest.approx(stress(bent, method.embedding_)[0], rel=1e-5)


GROUPS = np.where(np.arange(70)[:, None] // 40 == np.arange(70) // 40, D, np.nan)
given = eq.MDS(metric="precomputed")


@pytest.mark.parametrize(
    ("method", "data", "message"),
    [
        (given, changed(D, 1, 3, 9.0), r"not symmetric: D\[1, 3\] = 9 but D\[3, 1\] = "),
        (given, changed(D, 1, 3, np.nan), r"D\[1, 3\] is missing \(NaN\) but D\[3, 1\]"),
        (given, changed(D, 1, 3, -1.0, True), r"D\[1, 3\] = -1 is negative"),
        (given, changed(D, 1, 3, np.inf, True), r"D\[1, 3\] = inf is infinite"),
        (given, changed(D, 2, 2, 1.0), "zero diagonal"),
        (given, D[:, :5], "square"),
        (given, changed(KNOWN.tolil(), 0, KNOWN[0].indices[0], 77.0).tocsr(), r"not symmetric: D\[0, \d+\] = 77"),
        (given, GROUPS, "2 groups of points unconnected: points 0 and 40"),
        (given, 1e13 * D, "largest dissimilarity is .* rescale"),
        (eq.MDS(), 1e-14 * X, "largest dissimilarity is about .*; rescale the data"),
        (eq.MDS(), changed(X, 3, 2, np.nan), "X contains NaN at row 3, column 2"),
        (eq.MDS(weights=W[:5]), X, r"weights must have shape \(70, 70\)"),
        (eq.MDS(weights=changed(W, 1, 3, 9.0)), X, r"not symmetric: weights\[1, 3\] = 9 but weights\[3, 1\]"),
        (eq.MDS(weights=changed(W, 1, 3, -1.0, True)), X, r"weights\[1, 3\] = -1"),
        (eq.MDS(weights=sparse.csr_matrix(~np.isnan(GROUPS) * 1.0)), X, "2 groups"),
        (eq.MDS(metric="inner_product"), X, "metric must be a callable or one of"),
        (eq.MDS(metric="manhattan"), City(X), "a metric space defines its own distance"),
        (eq.MDS(), City(X[:1]), "has 1 point; at least 2 are needed"),
        (eq.MDS(n_components=0), X, "n_components must be an integer >= 1"),
        (eq.MDS(n_init=0), X, "n_init must be an integer >= 1"),
        (eq.MDS(stress="none"), X, "unknown stress 'none'; choose from 'metric', 'relative', 'log', 'max'"),
        (eq.MDS(solver="sgd"), X, "unknown solver 'sgd'"),
        (eq.MDS(solver="smacof", stress="log"), X, 'solver="smacof" does not support stress="log"; use solver="lbfgs"'),
        (eq.MDS(solver="descent", stress="max"), X, 'solver="descent" does not support stress="max"'),
        (eq.MDS(learning_rate=0.1), X, 'learning_rate=0.1 is used by solver="descent" only, got solver="lbfgs"'),
        (eq.MDS(solver="descent", learning_rate=0), X, 'learning_rate must be a positive number or "auto", got 0'),
        (eq.MDS(stress="max", engine="random_pairs"), X, 'stress="max" compares all pairs; use engine="stored"'),
        (eq.MDS(stress="log", init=changed(Y, 4, slice(None), Y[2])), X, "init puts points 2 and 4 at the same posi"),
        (eq.MDS(engine="grid"), X, "unknown engine 'grid'"),
        (eq.MDS(tol=-1), X, "tol must be"),
        (eq.MDS(n_iter=-1), X, "n_iter must not be negative"),
        (eq.MDS(n_jobs=0), X, "n_jobs must be"),
        (eq.MDS(callbacks=[1]), X, "callbacks must be"),
        (eq.MDS(init="spectral"), X, "unknown init 'spectral'; init must be 'auto'"),
        (eq.MDS(init=Y[:5]), X, r"init has shape \(5, 2\)"),
        (eq.MDS(metric="precomputed", init="pca"), D, "needs a dense table"),
        (eq.MDS(engine="recomputed", metric="manhattan"), X, "Euclidean metric"),
        (eq.MDS(engine="random_pairs", weights=W), X, "does not support weights or missing distances"),
        (eq.MDS(engine="listed"), X, "needs sparse weights or distances; for dense input"),
        (eq.MDS(engine="stored", metric="precomputed"), KNOWN, "engine='stored' needs dense input; for sparse weights"),
        (eq.MDS(stress="ordinal", engine="random_pairs"), X, "ranks all pairs"),
        (eq.MDS(metric="correlation"), changed(X, 4, slice(None), 1.0), "distance between points 0 and 4 is nan"),
    ],
)  # fmt: skip
def test_invalid_input_raises(method, data, message):
    with pytest.raises(ValueError, match=message):
        method.fit(data)


def test_transform_rejects_invalid_input():
    for method, data, new, message in [
        (eq.MDS(stress="ordinal", n_iter=2), X, X, "the order of the dissimilarities does not determine"),
        (eq.MDS(metric="precomputed", n_iter=2), KNOWN, D, "not available after a fit to sparse distances"),
        (eq.MDS(metric="precomputed", n_iter=2), D, changed(D, 0, 1, np.nan), "finite and nonnegative"),
        (eq.MDS(n_iter=2), City(X), D[:, :5], r"expected distances \(m, 70\) to the fitted points"),
    ]:
        with pytest.raises(ValueError, match=message):
            method.fit(data).transform(new)
    problem = eq.MDS().problem(X)
    with pytest.raises(ValueError, match=r"Y has shape \(5, 2\)"):
        problem.loss(Y[:5])
