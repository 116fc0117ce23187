"""Isometries, dilation, absolute distortion, and their summaries by blocks."""

from importlib import import_module

import numpy as np
import pytest
from scipy.stats import ortho_group

import equipoise as eq
from equipoise.spaces import (
    Discrete,
    Euclidean,
    LogCompressed,
    PNorm,
    Precomputed,
    dilation,
    distortion,
    is_isometry,
    summarize_distortion,
)

X = np.random.default_rng(0).normal(size=(60, 4))
Y = X[:, :2] * [1.5, 0.5]


def test_rigid_motions_are_isometries_and_scalings_are_not():
    moved = X @ ortho_group.rvs(4, random_state=0) + 5
    assert is_isometry(X, moved) and is_isometry(moved, Euclidean(X))
    assert not is_isometry(X, 1.0001 * moved) and is_isometry(X, 1.0001 * moved, tol=1e-3)
    assert is_isometry(Discrete(3), np.eye(3) / np.sqrt(2))  # a regular triangle
    assert summarize_distortion(X, moved).distortion == pytest.approx(1)
    scaled = summarize_distortion(X, 3 * moved)
    assert scaled.expansion == pytest.approx(3) and scaled.contraction == pytest.approx(1 / 3)
    assert scaled.distortion == pytest.approx(1) and scaled.dilation.median == pytest.approx(3, rel=1e-4)


def test_dilation_and_distortion_match_their_formulas():
    d_x, d_y = Euclidean(X).matrix(), Euclidean(Y).matrix()
    i, j = [4, 7], slice(10, 20)
    np.testing.assert_allclose(dilation(X, Y, i, j), (d_y / np.where(d_x > 0, d_x, 1))[i, j])
    np.testing.assert_allclose(distortion(X, Y), np.abs(d_y - d_x))
    assert (dilation(X, Y).diagonal() == 1).all()
    assert dilation(X[[0, 0, 1]], X[[2, 3, 1]])[0, 1] == np.inf
    assert dilation(X[[0, 0, 1]], X[[2, 2, 1]])[0, 1] == 1


@pytest.mark.parametrize("block", [1, 100, 2**22])
def test_summary_matches_all_pairs_for_any_block_size(block, monkeypatch):
    monkeypatch.setattr(import_module("equipoise.spaces.distortion"), "FIXED_ENTRIES", block)
    pairs = np.triu_indices(len(X), 1)
    space = LogCompressed(PNorm(X, 1))
    d_x, d_y = space.matrix()[pairs], Euclidean(Y).matrix()[pairs]
    found = summarize_distortion(space, Y)
    ratio, gap = d_y / d_x, np.abs(d_y - d_x)
    assert found.pairs == len(ratio)
    assert found.stress == pytest.approx((gap**2).sum())
    for spread, values in ((found.dilation, ratio), (found.absolute, gap)):
        assert spread.mean == pytest.approx(values.mean())
        assert (spread.min, spread.max) == pytest.approx((values.min(), values.max()))
        levels, quantiles = zip(*spread.quantiles.items(), strict=True)
        truth = np.quantile(values, levels, method="inverted_cdf")
        np.testing.assert_allclose(quantiles, truth, rtol=6.2e-5)
    assert found.expansion == pytest.approx(ratio.max()) and found.contraction == pytest.approx(1 / ratio.min())
    assert found.expanded == tuple(k[ratio.argmax()] for k in pairs)
    assert found.contracted == tuple(k[ratio.argmin()] for k in pairs)
    assert found.distortion == pytest.approx(ratio.max() / ratio.min())
    assert f"dilation {ratio.min():.3g} to {ratio.max():.3g}" in str(found)
    assert is_isometry(space, space) and not is_isometry(space, Y)


def test_summary_does_not_depend_on_the_order_of_points():
    order = np.random.default_rng(1).permutation(len(X))
    a, b = summarize_distortion(X, Y), summarize_distortion(X[order], Y[order])
    assert a.dilation.quantiles == b.dilation.quantiles and a.absolute.quantiles == b.absolute.quantiles
    assert a.stress == pytest.approx(b.stress) and {order[k] for k in b.expanded} == set(a.expanded)


def test_at_most_one_block_of_distances_is_computed(monkeypatch):
    block_sizes = []

    class Watched(Euclidean):
        def distances(self, i=None, j=None):
            block = super().distances(i, j)
            block_sizes.append(block.size)
            return block

    monkeypatch.setattr(import_module("equipoise.spaces.distortion"), "FIXED_ENTRIES", 500)
    summarize_distortion(Watched(X), Watched(Y))
    assert max(block_sizes) <= 500 and sum(block_sizes) < 2 * len(X) ** 2 * 0.75  # about half of either matrix


def test_coincident_and_separated_points_give_infinite_distortion():
    together = summarize_distortion(X[:4], np.ones((4, 2)) * [[1, 1], [1, 1], [0, 0], [5, 5]])
    assert together.contraction == np.inf and together.contracted == (0, 1) and together.dilation.min == 0
    torn = summarize_distortion(X[[0, 0, 1]], X[[2, 3, 1]])
    assert torn.expansion == np.inf and torn.expanded == (0, 1)


def test_sphere_of_four_points_has_no_isometric_map():
    D = np.ones((4, 4)) - np.eye(4)
    D[2, 3] = D[3, 2] = 2  # Rodolà, "Non-embeddability of the sphere"
    square = np.array([[0, 0.5], [0, -0.5], [-1, 0], [1, 0]])
    found = summarize_distortion(Precomputed(D), square)
    assert found.expansion == pytest.approx(np.sqrt(1.25)) and found.contraction == pytest.approx(1)
    assert not is_isometry(Precomputed(D), square)


def test_different_numbers_of_points_raise():
    with pytest.raises(ValueError, match="space has 60 points, but Y has 59; pass the same points in the same order"):
        dilation(X, Y[1:])


def test_summary_of_one_point_raises():
    with pytest.raises(ValueError, match="space has 1 point; at least 2 are needed"):
        summarize_distortion(Discrete(1), Discrete(1))


class Fitted:
    """A fitted method, as far as measures need it."""

    def fit(self, X):
        return self

    def __init__(self, Y, geometry):
        self.embedding_, self.geometry_ = Y, geometry


def test_fitted_methods_have_the_distances_of_their_geometry():
    Y = np.array([[0.5, 1.0], [6.5, 1.0], [3.0, 4.5]])
    torus = eq.geometry.Torus((7.0, 5.0))
    D = torus.distance(Y[:, None], Y[None])
    found = summarize_distortion(Precomputed(D), Fitted(Y, torus))
    assert found.expansion == pytest.approx(1) and found.stress < 1e-20
    assert is_isometry(Precomputed(D), Fitted(Y, torus)) and not is_isometry(Precomputed(D), Y)
    assert is_isometry(Y, Fitted(Y, eq.geometry.Flat()))
    with pytest.raises(ValueError, match=r"Y is the method PCA, which is not fitted; call fit\(X\) first"):
        summarize_distortion(Y, eq.PCA())
