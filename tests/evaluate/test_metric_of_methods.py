"""Measures use the metric with which a method was fitted, unless they are given another."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.manifold import MDS
from support.cases import unequal_digits

import equipoise as eq
from equipoise.evaluate import shepard, trustworthiness

X = unequal_digits(60)
D = cdist(X, X, "cityblock")
COMMON = {"n_iter": 30, "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def precomputed():
    return eq.TSNE(metric="precomputed", **COMMON).fit(D)


@pytest.fixture(scope="module")
def city():
    return eq.TSNE(metric="cityblock", **COMMON).fit(X)


def test_a_method_fitted_to_distances_is_measured_by_them(precomputed):
    report = eq.evaluate(D, precomputed)
    assert "precomputed distances" in report.about
    assert report.recall == eq.evaluate(D, precomputed.embedding_, metric="precomputed").recall
    assert "60 columns, euclidean" in eq.evaluate(D, precomputed, metric="euclidean").about
    assert "60 columns, euclidean" in eq.evaluate(D, precomputed.embedding_).about
    assert trustworthiness(D, precomputed) == trustworthiness(D, precomputed.embedding_, metric="precomputed")
    np.testing.assert_allclose(shepard(D, precomputed).d_x, shepard(X, precomputed, metric="cityblock").d_x)
    assert eq.local_isometry(D, precomputed).stretch.shape == (60, 2)
    assert "the space" in eq.evaluate(eq.spaces.Euclidean(X), precomputed).about


def test_other_metrics_are_inherited(city):
    report = eq.evaluate(X, city)
    assert report.about == "64 columns, cityblock distances"
    assert report.stress.normalised == pytest.approx(eq.evaluate(D, city, metric="precomputed").stress.normalised)
    pca = eq.PCA(2).fit(X)
    assert eq.evaluate(X, pca).about == "64 columns, euclidean distances"
    other = MDS()  # of scikit-learn, whose parameter metric said something else before version 1.8
    other.metric, other.embedding_ = True, pca.embedding_
    assert eq.evaluate(X, other).about == "64 columns, euclidean distances"
    assert eq.compare(X, [city, pca, city.embedding_])["TSNE"].about == "64 columns, cityblock distances"


def test_metrics_that_do_not_fit_raise(precomputed, city):
    with pytest.raises(
        ValueError, match=r"TSNE was fitted to distances.* X has shape \(60, 64\); pass the distances, or"
    ):
        eq.evaluate(X, precomputed)
    with pytest.raises(ValueError, match=r"TSNE 1 and TSNE 2 .* with different metrics \(precomputed; cityblock"):
        eq.compare(D, [precomputed, city])
    assert eq.compare(D, [precomputed, city], metric="precomputed")["TSNE 2"].about == "precomputed distances"
