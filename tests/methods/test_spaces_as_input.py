"""A metric space as X: every method gives the map of its distances, or a clear error."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from support.cases import correlations
from support.methods import NEW, X, brief, every_method, over, over_those_with

import equipoise as eq
from equipoise.inputs import make_input
from equipoise.inputs import space as space_module
from equipoise.linalg.pca import JITTER

D = cdist(X, X)
NEEDS_ROWS = {eq.PCA: "for a metric space use ClassicalMDS", eq.Parametric: "X is a metric space"}


class Bare:
    """A metric space that is not derived from `MetricSpace`."""

    n = len(X)

    def distances(self, i=None, j=None):
        i, j = (np.arange(self.n) if k is None else k for k in (i, j))
        return D[np.ix_(i, j)]


@pytest.mark.parametrize("space", [eq.spaces.Euclidean(X), Bare()], ids=["Euclidean", "Bare"])
@every_method
def test_map_is_that_of_the_distances(Method, space):
    if Method is eq.PCA and isinstance(space, eq.spaces.Euclidean):
        found, expected = brief(Method).fit(space), brief(Method).fit(X)  # its points are the rows of a table
        assert_array_equal(found.embedding_, expected.embedding_)
        assert_array_equal(found.transform(NEW), expected.transform(NEW))
        return
    if Method in NEEDS_ROWS:
        with pytest.raises(ValueError, match=NEEDS_ROWS[Method]):
            brief(Method).fit(space)
        return
    found, expected = brief(Method).fit(space), brief(Method, metric="precomputed").fit(D)
    assert_array_equal(found.embedding_, expected.embedding_)
    assert found.n_features_in_ == len(X)
    new, to_fitted = (NEW if isinstance(space, eq.spaces.Euclidean) else cdist(NEW, X)), cdist(NEW, X)
    assert_allclose(found.transform(new), expected.transform(to_fitted), rtol=1e-9, atol=1e-9)


@over([eq.TSNE, eq.SNE, eq.UMAP, eq.DKPCA, eq.DKLLE])
def test_map_from_neighbours_is_that_of_the_distances(Method):
    found = brief(Method, engine="grid").fit(eq.spaces.Euclidean(X))
    assert_array_equal(found.embedding_, brief(Method, metric="precomputed", engine="grid").fit(D).embedding_)


@over_those_with("metric")
def test_metric_with_a_space(Method):
    with pytest.raises(ValueError, match="a metric space defines its own distance; omit metric='cosine'"):
        brief(Method, metric="cosine").fit(eq.spaces.Euclidean(X))


@over_those_with("h")
def test_metric_tensor_with_a_space(Method):
    with pytest.raises(ValueError, match="h requires a dense table, but X is a metric space"):
        brief(Method, h=np.eye(5)).fit(Bare())


@over_those_with("affinity")
def test_precomputed_affinities_with_a_space(Method):
    with pytest.raises(ValueError, match="requires affinities"):
        brief(Method, affinity="precomputed").fit(Bare())


def test_neighbours_do_not_depend_on_the_block(monkeypatch):
    data = make_input(Bare(), "euclidean")
    whole = data.neighbors(7, 1)[0]
    monkeypatch.setattr("equipoise.inputs.base.FIXED_ENTRIES", 7 * len(X))
    parts = data.neighbors(7, 1)[0]
    assert_array_equal(parts.indices, whole.indices)
    assert_array_equal(parts.data, whole.data)


@pytest.mark.parametrize(("landmarks", "least"), [(30, 0.98), (60, 0.999)])
def test_start_of_many_points_is_from_landmarks(monkeypatch, landmarks, least):
    expected = make_input(X, "euclidean").principal(2, np.random.RandomState(0))
    monkeypatch.setattr(space_module, "PRINCIPAL", 20)
    monkeypatch.setattr(space_module, "LANDMARKS", landmarks)
    found = make_input(Bare(), "euclidean").principal(2, np.random.RandomState(0))
    assert correlations(found, expected).min() > least


def test_start_of_many_points_at_the_same_place(monkeypatch):
    monkeypatch.setattr(space_module, "PRINCIPAL", 20)
    monkeypatch.setattr(space_module, "LANDMARKS", 10)
    space = eq.spaces.Precomputed(np.zeros((30, 30)))
    assert np.abs(make_input(space, "euclidean").principal(2, np.random.RandomState(0))).max() < 12 * JITTER


def test_evaluate():
    Y = X[:, :2]
    report, expected = eq.evaluate(Bare(), Y), eq.evaluate(D, Y, metric="precomputed")
    assert float(report.trustworthiness) == float(expected.trustworthiness)
    assert report.stress == expected.stress
    assert "the space Bare(n=60)" in str(report)


def test_stability_of_subsamples():
    found = eq.stability(brief(eq.ClassicalMDS), Bare(), runs=2, subsample=0.8)
    assert len(found.maps) == 2


def test_a_table_with_columns_named_like_a_space():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X[:, :2], columns=["n", "distances"])
    assert_array_equal(brief(eq.MDS).fit_transform(table), brief(eq.MDS).fit_transform(X[:, :2]))
