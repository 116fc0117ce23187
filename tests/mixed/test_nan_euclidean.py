"""metric="nan_euclidean": rows of numbers compared in the columns where both have a value."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import nan_euclidean_distances

import equipoise as eq
from equipoise.inputs import make_input

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6)) * [1, 10, 1, 1, 1, 5] + 1e3
X[RNG.random(X.shape) < 0.15] = np.nan


def test_distances_and_neighbours_are_those_of_scikit_learn():
    D = nan_euclidean_distances(X - np.nanmean(X, axis=0))  # centred, because products lose digits
    apart = np.isnan(D)  # no common column: the mean square of the differences is 2 var, by definition
    D[apart] = np.sqrt(6 * 2 * np.nanvar(X, axis=0).mean())
    assert apart.any()
    data = make_input(X, "nan_euclidean")
    assert_allclose(data.block(np.arange(120)), D, atol=1e-6)
    graph = eq.neighbors.nearest_neighbors(X, 9, "nan_euclidean")
    np.fill_diagonal(D, np.inf)
    assert_allclose(np.sort(graph.distances, axis=1), np.sort(D, axis=1)[:, :9], atol=1e-6)


def test_without_gaps_it_is_the_euclidean_distance():
    full = np.nan_to_num(X)
    expected = make_input(full, "euclidean").block(np.arange(120))
    assert_allclose(make_input(full, "nan_euclidean").block(np.arange(120)), expected, rtol=1e-9, atol=1e-9)


def test_fit_transform_evaluate_and_save(tmp_path):
    method = eq.TSNE(metric="nan_euclidean", perplexity=10, n_iter=50, random_state=0).fit(X)
    assert_array_equal(method.transform(X[:5]), method.embedding_[:5])
    assert eq.evaluate(X, method).recall > 0.3
    eq.save(method, tmp_path / "gaps.eq")
    new = np.where(np.arange(6) == 2, np.nan, X[:3])
    new[np.isnan(new).all(axis=1)] = 0
    assert_array_equal(eq.load(tmp_path / "gaps.eq").transform(new), method.transform(new))


def test_errors_name_rows_and_columns():
    wrong = X[:5].copy()
    wrong[1, 2] = np.inf
    with pytest.raises(ValueError, match="X, row 1, column 2: infinite value"):
        make_input(wrong, "nan_euclidean")
    wrong[1] = np.nan
    with pytest.raises(ValueError, match="row 1 has no value in any column"):
        make_input(wrong, "nan_euclidean")
    with pytest.raises(ValueError, match="column 1 of X has no value in any row"):
        make_input(np.where(np.arange(6) == 1, np.nan, X[:5]), "nan_euclidean")


def test_the_euclidean_distance_refuses_gaps_with_a_remedy():
    gappy = np.ones((5, 4))
    gappy[2, 1:3] = np.nan
    message = r"X contains NaN at row 2, column 1, and 1 more such entry .1 row and 2 columns have missing values.;"
    with pytest.raises(ValueError, match=message + '.*use metric="nan_euclidean"'):
        eq.TSNE().fit(gappy)
