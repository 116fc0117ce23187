"""Affinities of one function p(d) for all points: closed forms, truncation to neighbours, new points and errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from support.cases import to_dense, unequal_digits
from support.methods import NEW, X, brief

import equipoise as eq
from equipoise.affinities import FixedWidth
from equipoise.kernels import Gaussian, Kernel, StudentT

D = cdist(X, X)
OFF = ~np.eye(len(X), dtype=bool)
SIGMA = 9.0


def closed_form(p, by_rows=False):
    """Return P of Lin et al. 2024, eq. 10, or p_{j|i} of eq. 1."""
    P = np.where(OFF, p(D), 0.0)
    return P / P.sum(axis=1, keepdims=True) if by_rows else P / P.sum()


AFFINITIES = {
    "FixedWidth": (FixedWidth(SIGMA), lambda d: np.exp(-(d**2) / (2 * SIGMA**2))),
    "kernel": (StudentT(), lambda d: 1 / (1 + d**2)),
    "function": (lambda d: np.exp(-d / 4), lambda d: np.exp(-d / 4)),
}


@pytest.mark.parametrize("name", AFFINITIES)
@pytest.mark.parametrize("engine", ["reference", "exact", "grid"])
def test_affinities_match_the_closed_form(name, engine):
    affinity, p = AFFINITIES[name]
    tolerance = 1e-12 if engine == "reference" else 2e-7
    settings = {"affinity": affinity, "engine": engine, "perplexity": 20}  # 3 · 20 neighbours are all points
    joint, rows = brief(eq.TSNE, **settings).fit(X), brief(eq.SNE, **settings).fit(X)
    assert_allclose(to_dense(joint.affinities_), closed_form(p), rtol=0, atol=tolerance)
    assert_allclose(to_dense(rows.affinities_), closed_form(p, by_rows=True), rtol=0, atol=tolerance)


def test_width_of_the_paper_is_its_gaussian():
    assert FixedWidth(np.sqrt(0.5)).log_value(np.array([3.0])) == pytest.approx(-9.0)
    scaled = X / 10
    first = brief(eq.GSNE, affinity=FixedWidth(np.sqrt(0.5)), engine="exact").fit(scaled)
    second = brief(eq.GSNE, affinity=Gaussian(), engine="exact").fit(scaled)
    assert_allclose(first.affinities_, second.affinities_, rtol=1e-5, atol=1e-12)


def test_perplexity_of_equidistant_points_is_a_fixed_width():
    """On points whose σ_i are all equal, SNE with a perplexity is SNE with that width."""
    ring = np.column_stack([np.cos(a := 2 * np.pi * np.arange(40) / 40), np.sin(a)])
    given = eq.SNE(perplexity=8, engine="reference", n_iter=1).fit(ring).affinities_
    row = cdist(ring, ring)[0]
    sigma = np.sqrt((row[2] ** 2 - row[1] ** 2) / (2 * np.log(given[0, 1] / given[0, 2])))
    found = eq.SNE(affinity=FixedWidth(sigma), engine="reference", n_iter=1).fit(ring).affinities_
    assert_allclose(found, given, rtol=1e-4)


def test_truncation_keeps_the_nearest_neighbours_and_warns():
    settings = {"affinity": lambda d: np.exp(-d / 20), "engine": "grid", "perplexity": 3}
    with pytest.warns(UserWarning, match=r"the 9 nearest neighbours of a point have only \d+% of the affinity p\(d\)"):
        P = brief(eq.TSNE, **settings).fit(X).affinities_
    near = np.argsort(D + np.where(OFF, 0, np.inf), axis=1)[:, :9]
    kept = np.zeros(D.shape, dtype=bool)
    np.put_along_axis(kept, near, True, axis=1)
    assert_array_equal(P.toarray() > 0, kept | kept.T)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        brief(eq.TSNE, affinity=FixedWidth(2.0), engine="grid", perplexity=6).fit(X)


def test_tiny_and_huge_data_keep_their_units():
    for unit in (1e-120, 1e120):
        for engine in ("reference", "grid"):
            method = brief(eq.TSNE, affinity=FixedWidth(SIGMA * unit), engine=engine, perplexity=20).fit(X * unit)
            assert_allclose(to_dense(method.affinities_), closed_form(AFFINITIES["FixedWidth"][1]), atol=2e-7)


@pytest.mark.parametrize("name", AFFINITIES)
@pytest.mark.parametrize("engine", ["exact", "grid"])
def test_new_points(name, engine):
    method = brief(eq.TSNE, affinity=AFFINITIES[name][0], engine=engine, perplexity=20, tol=0.5).fit(X)
    assert_array_equal(method.transform(X[3:5]), method.embedding_[3:5])
    P, _ = method._fitted.new_rows(method._data, NEW)
    expected = AFFINITIES[name][1](cdist(NEW, X))
    assert_allclose(
        P.toarray(), expected / expected.sum(axis=1, keepdims=True), atol=1e-9 if engine == "exact" else 1e-2
    )


def test_held_out_digits_are_placed_in_their_class():
    data = load_digits()
    method = eq.TSNE(affinity=FixedWidth(5.0), random_state=0, n_jobs=1).fit(data.data[:600])
    Y = method.transform(data.data[600:700])
    found = KNeighborsClassifier(5).fit(method.embedding_, data.target[:600]).predict(Y)
    assert (found == data.target[600:700]).mean() > 0.9


def test_new_points_far_from_all_others_are_placed():
    method = brief(eq.TSNE, affinity=FixedWidth(3.0)).fit(X)
    assert np.isfinite(method.transform(X[:1] + 1000.0)).all()  # p underflows, its ratios do not
    compact = brief(eq.TSNE, affinity=lambda d: np.maximum(1 - d / 30, 0)).fit(X)
    with pytest.raises(ValueError, match="row 0 has no affinity to any other point"):
        compact.transform(X[:1] + 1000.0)


def test_spaces_and_saved_files(tmp_path):
    U = unequal_digits(60)
    space = eq.spaces.Sphere(U / np.linalg.norm(U, axis=1)[:, None])
    method = brief(eq.TSNE, affinity=FixedWidth(0.2), engine="exact").fit(space)
    P = np.exp(-(space.matrix() ** 2) / (2 * 0.2**2)) * OFF
    assert_allclose(method.affinities_, P / P.sum(), atol=1e-6)
    eq.save(method, tmp_path / "map.eqz")
    loaded = eq.load(tmp_path / "map.eqz")
    assert loaded.affinity == FixedWidth(0.2)
    assert loaded.transform(space.X[:3] * 1.0).tobytes() == method.transform(space.X[:3] * 1.0).tobytes()
    own = brief(eq.TSNE, affinity=lambda d: np.exp(-d)).fit(X)
    with pytest.raises(ValueError, match=r"the parameter affinity cannot be saved: .* use affinities\.FixedWidth"):
        eq.save(own, tmp_path / "own.eqz")


def test_isolated_points_warn_and_rows_without_affinity_raise():
    far = np.vstack([X, [[500.0] * 5]])
    with pytest.warns(UserWarning, match="row 60 has no affinity to any other point, .* nothing attracts it"):
        brief(eq.TSNE, affinity=lambda d: np.maximum(1 - d / 100, 0), engine="exact").fit(far)
    for engine in ("exact", "grid"):
        with pytest.raises(ValueError, match="row 60 has no affinity to any other point, because p"):
            brief(eq.SNE, affinity=lambda d: np.maximum(1 - d / 100, 0), engine=engine).fit(far)
    with pytest.raises(ValueError, match=r"p\(d\) is 0 for all pairs of points"):
        brief(eq.TSNE, affinity=lambda d: (d < 1e-3) * 1.0, engine="exact").fit(X)


class Rising(Kernel):
    """A kernel that increases."""

    def value(self, d2):
        return 1 + d2

    def slope(self, d2):
        return np.ones_like(d2)


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        (lambda d: d, r"must not increase with the distance, but it rises from 1e-06 at d = 1e-06"),
        (lambda d: -np.ones_like(d), r"the affinity p\(1e-06\) = -1\.0, but it must be finite and nonnegative"),
        (lambda d: 1.0, r"must return one number per distance; for an array of shape \(121,\) it returned \(\)"),
        (lambda d: 1 if d < 1 else 0, r"fails for an array of distances: .* Write it elementwise"),
        (lambda d: 0 * d, r"is 0 at all distances"),
        (Gaussian, r"use Gaussian\(\.\.\.\) with parentheses"),
        (3, r"affinity must be a name, a function p\(d\) of distances"),
        (Rising(), "Rising.value must not increase"),
    ],
)
def test_invalid_affinities_raise_before_work(affinity, message):
    with pytest.raises(ValueError, match=message):
        brief(eq.TSNE, affinity=affinity).fit(X)


def test_infinite_affinity_of_duplicates_is_named():
    with pytest.raises(ValueError, match=r"p\(0\) = inf \(two points coincide\)"):
        brief(eq.TSNE, affinity=lambda d: 1 / d, engine="exact").fit(np.vstack([X, X[:1]]))
    with pytest.raises(ValueError, match="sigma must be"):
        FixedWidth(0.0)
