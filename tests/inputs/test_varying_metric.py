"""A metric function h(x) on the data: distances, affinities, new rows, and unsupported uses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from support.cases import to_dense

import equipoise as eq

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

N, DIM = 24, 5


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, DIM))


def position_dependent_h(X):
    return (1 + X[:, 0] ** 2)[:, None, None] * np.eye(X.shape[1]) + 0.3


def test_function_h_matches_its_distance_formula(X):
    H = position_dependent_h(X)
    diff = X[:, None] - X
    d2 = np.einsum("ijk,ijkl,ijl->ij", diff, (H[:, None] + H) / 2, diff)
    for method in (eq.TSNE(perplexity=5, random_state=0), eq.TSNE(perplexity=5, engine="grid", random_state=0)):
        by_function = method.set_params(h=position_dependent_h).problem(X)
        truth = method.set_params(h=None, metric="precomputed").problem(np.sqrt(d2))
        assert_allclose(to_dense(by_function.affinities), to_dense(truth.affinities), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_function_h_with_one_tensor_equals_constant_h(kind, X):
    H = np.cov(X.T) + np.eye(DIM)
    found = eq.TSNE(perplexity=5, h=lambda X: kind(np.cov(X.T) + np.eye(DIM)), random_state=0, n_iter=20).fit(X)
    truth = eq.TSNE(perplexity=5, h=H, random_state=0, n_iter=20).fit(X)
    assert_array_equal(found.embedding_, truth.embedding_)
    assert_array_equal(found.transform(X[:3] + 0.1), truth.transform(X[:3] + 0.1))


def test_transform_under_function_h(X):
    fitted = eq.TSNE(perplexity=5, h=position_dependent_h, random_state=0, n_iter=50).fit(X)
    new = X[:4] + 0.05
    assert_allclose(fitted._data.squared_to_all(X[:4]), fitted._data.D[:4] ** 2, atol=1e-12)
    assert_array_equal(fitted.transform(X[:4]), fitted.embedding_[:4])
    near = cdist(fitted.transform(new), fitted.embedding_).argmin(axis=1)
    assert (near == np.arange(4)).sum() >= 3
    among_all = eq.TSNE(
        perplexity=5, h=lambda X: position_dependent_h(X - X.mean(axis=0)), random_state=0, n_iter=5
    ).fit(X)
    with pytest.raises(ValueError, match="depends on that row alone"):
        among_all.transform(new)


def test_function_h_that_returns_text_raises(X):
    with pytest.raises(ValueError, match=r"h\(X\) must return metric tensors as arrays of numbers; it returned 'far'"):
        eq.TSNE(perplexity=5, h=lambda X: "far").fit(X)


def test_function_h_with_overflowing_distances_raises(X):
    message = r"the squared distance between rows 0 and 1 in the metric h\(X\) overflows; divide X by a constant"
    with pytest.raises(ValueError, match=message):
        eq.TSNE(perplexity=5, h=lambda X: np.tile(np.eye(DIM), (len(X), 1, 1))).fit(1e200 * X)


def test_unsupported_uses_of_a_function_h_raise(X, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"h\(X\) must return one metric tensor \(5, 5\)"):
        eq.TSNE(h=lambda X: np.eye(2)).fit(X)
    with pytest.raises(ValueError, match=r"h requires metric=.euclidean., got 'cosine'"):
        eq.TSNE(h=position_dependent_h, metric="cosine").fit(X)
    fitted = eq.TSNE(perplexity=5, h=position_dependent_h, n_iter=1, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"h cannot be saved: function position_dependent_h .*precomputed"):
        eq.save(fitted, tmp_path / "map.eq")
    monkeypatch.setattr("equipoise.inputs.varying_metric.available_memory", lambda: 1e4)
    with pytest.raises(MemoryError, match=r"a function h.X. compares all pairs of 24 points, which needs"):
        eq.TSNE(perplexity=5, h=position_dependent_h).fit(X)
