"""Neighbourhoods and ranks against sorted distances, scikit-learn's trustworthiness and hand-computed values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness as scikit_trustworthiness

from equipoise.arrays import blocks
from equipoise.evaluate import (
    Neighborhoods,
    continuity,
    neighbor_recall,
    order,
    preservation_ratio,
    ranks,
    recall_curve,
    sample,
    trustworthiness,
)
from equipoise.spaces import Euclidean

X = np.random.default_rng(0).normal(size=(150, 6))
Y = X[:, :2] + 0.3 * np.random.default_rng(1).normal(size=(150, 2))
NAMES = ("near_x", "near_y", "rank_x", "rank_y")


def order_and_ranks(D):
    """Return all points sorted by distance (ties by index), and the rank of each point from 1."""
    D = D.copy()
    np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1, kind="stable")
    return order, np.argsort(order, axis=1) + 1


def squared(V):
    return np.square(V[:, None] - V[None]).sum(axis=2)


def expected_ranks(D_x, D_y, k):
    (order_x, rank_x), (order_y, rank_y) = order_and_ranks(D_x), order_and_ranks(D_y)
    near_x, near_y = order_x[:, :k], order_y[:, :k]
    return near_x, near_y, np.take_along_axis(rank_x, near_y, 1), np.take_along_axis(rank_y, near_x, 1)


def assert_same_ranks(hoods, truth):
    for name, array in zip(NAMES, truth, strict=True):
        np.testing.assert_array_equal(getattr(hoods, name), array, name)


rng = np.random.default_rng(2)
HARD_CASES = {
    "normal": (X, Y),
    "ties": (rng.integers(0, 3, (130, 6)) * 1.0, rng.integers(0, 4, (130, 2)) * 1.0),
    "far from the origin": (1e6 + rng.normal(size=(90, 3)), rng.normal(size=(90, 1)) - 1e5),
    "duplicates": (np.repeat(rng.normal(size=(10, 4)), 9, axis=0), np.repeat(rng.normal(size=(9, 2)), 10, axis=0)),
    "distant tight clusters": (
        np.r_[rng.normal(size=(60, 40)), 1e-5 * rng.normal(size=(60, 40)) + 9],
        np.r_[1e-6 * rng.normal(size=(60, 2)), rng.normal(size=(60, 2))],
    ),
    "huge and tiny": (2.0**-700 * rng.integers(0, 9, (70, 4)), 2.0**480 * rng.integers(0, 9, (70, 2))),
    "many columns": (rng.normal(size=(80, 300)), rng.normal(size=(80, 3))),
}


def test_ranks_without_cached_float32_copy_are_the_same(monkeypatch):
    """A float32 copy too large to cache is recomputed in parts; the ranks still match float64."""
    held = Neighborhoods(X, Y, 20)
    monkeypatch.setattr(order, "MAX_CACHED", 0)
    monkeypatch.setattr(blocks, "block_bytes", lambda: 8 * X.shape[1] * 40)
    parts = Neighborhoods(X, Y, 20)
    assert parts._in_x._cached is None and held._in_x._cached is not None
    assert_same_ranks(parts, [getattr(held, name) for name in NAMES])
    assert_same_ranks(parts, expected_ranks(squared(X), squared(Y), 20))


@pytest.mark.parametrize("k", [1, 4, 15, 69])
@pytest.mark.parametrize("name", HARD_CASES)
def test_ranks_match_sorted_distances(name, k):
    data, embedding = HARD_CASES[name]
    unit = [1.0, 1.0] if name != "huge and tiny" else [2.0**700, 2.0**-480]  # squares of X underflow in float64
    assert_same_ranks(
        Neighborhoods(data, embedding, k), expected_ranks(squared(data * unit[0]), squared(embedding * unit[1]), k)
    )


@given(
    st.integers(3, 70),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([1, 2, 5, 1000]),
    st.integers(0, 2**32 - 1),
    st.data(),
)
def test_ranks_match_sorted_distances_for_random_points(n, D, d, levels, seed, data):
    rng = np.random.default_rng(seed)
    A, B = rng.integers(-levels, levels + 1, (n, D)) * 0.25, rng.integers(-levels, levels + 1, (n, d)) * 1.0
    if not (np.ptp(A, axis=0).any() and np.ptp(B, axis=0).any()):
        return
    k = data.draw(st.integers(1, n - 1))
    assert_same_ranks(Neighborhoods(A, B, k), expected_ranks(squared(A), squared(B), k))


def test_ranks_under_other_metrics_and_input_types():
    D = cdist(X, X, "cityblock")
    truth = expected_ranks(D, squared(Y), 10)
    assert_same_ranks(Neighborhoods(X, Y, 10, metric="cityblock"), truth)
    assert_same_ranks(Neighborhoods(D, Y, 10, metric="precomputed"), truth)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert_same_ranks(Neighborhoods(X, Y, 10, metric="cosine"), expected_ranks(squared(unit), squared(Y), 10))
    assert_same_ranks(Neighborhoods(Euclidean(X), Y, 10), expected_ranks(squared(X), squared(Y), 10))
    assert_same_ranks(Neighborhoods(sparse.csr_matrix(X), Y, 10), expected_ranks(squared(X), squared(Y), 10))


def test_ranks_do_not_depend_on_threads_or_block_size(monkeypatch):
    one = Neighborhoods(X, Y, 20, n_jobs=1)
    assert_same_ranks(one, [getattr(Neighborhoods(X, Y, 20, n_jobs=3), name) for name in NAMES])
    monkeypatch.setattr(ranks, "cache_bytes", lambda: 1)
    monkeypatch.setattr(ranks, "ROWS", 7)
    assert_same_ranks(one, [getattr(Neighborhoods(X, Y, 20, n_jobs=2), name) for name in NAMES])


def test_permuting_the_points_permutes_the_ranks():
    order = np.random.default_rng(3).permutation(len(X))
    a, b = Neighborhoods(X, Y, 10), Neighborhoods(X[order], Y[order], 10)
    np.testing.assert_array_equal(b.rank_x, a.rank_x[order])
    np.testing.assert_array_equal(order[b.near_y], a.near_y[order])


@pytest.mark.parametrize("k", [1, 5, 15, 74])
def test_trustworthiness_and_continuity_match_scikit_learn(k):
    assert trustworthiness(X, Y, k) == pytest.approx(scikit_trustworthiness(X, Y, n_neighbors=k), abs=1e-12)
    assert continuity(X, Y, k) == pytest.approx(scikit_trustworthiness(Y, X, n_neighbors=k), abs=1e-12)
    by_cosine = scikit_trustworthiness(X, Y, n_neighbors=k, metric="cosine")
    assert trustworthiness(X, Y, k, metric="cosine") == pytest.approx(by_cosine, abs=1e-12)


def test_trustworthiness_of_digits_matches_scikit_learn():
    data = load_digits().data[:600] + 1e-3 * np.random.default_rng(0).normal(size=(600, 64))  # integers would tie
    embedding = data[:, [20, 43]]
    assert trustworthiness(data, embedding, 12) == pytest.approx(
        scikit_trustworthiness(data, embedding, n_neighbors=12), abs=1e-9
    )


def test_trustworthiness_of_the_worst_ranks_is_zero():
    line = np.arange(5.0)[:, None]
    worst = {k: ranks.worst_penalty(5, k) for k in (1, 2, 3, 4)}
    assert worst == {1: 3, 2: 3, 3: 1, 4: 0}  # ranks up to 4: 4 − 1; (4 − 2) + (3 − 2); 4 − 3; none
    # Points 0 and 4 are nearest neighbours in the map but have rank 4 in the data.
    embedding = np.array([[0.0], [10.0], [20.0], [9.0], [0.5]])
    found = trustworthiness(line, embedding, 1)
    assert found.values[0] == found.values[4] == 0 and found.error == 0
    assert trustworthiness(line, embedding, 4) == 1  # all other points are neighbours
    assert found == pytest.approx(found.values.mean())


def test_continuity_values_locate_a_tear():
    ring = np.c_[np.cos(np.arange(40) * np.pi / 20), np.sin(np.arange(40) * np.pi / 20)]
    flat = np.arange(40.0)[:, None]  # cut between the last and the first point
    hoods = Neighborhoods(ring, flat, 4)
    torn = np.flatnonzero(hoods.continuity(4).values < 1)
    np.testing.assert_array_equal(torn, [0, 1, 38, 39])
    missing = hoods.near_x[0][hoods.rank_y[0] > 4]
    assert set(missing) == {38, 39}
    assert hoods.trustworthiness(4).values[20] == 1


def test_recall_and_recall_curve_for_several_k():
    hoods, order_x = Neighborhoods(X, Y, 40), order_and_ranks(squared(X))[0]
    order_y = order_and_ranks(squared(Y))[0]
    for k in (1, 7, 40):
        kept = [len(set(a[:k]) & set(b[:k])) / k for a, b in zip(order_x, order_y, strict=True)]
        np.testing.assert_allclose(hoods.recall(k).values, kept)
        assert neighbor_recall(X, Y, k) == pytest.approx(np.mean(kept))
    curve = recall_curve(X, Y)
    np.testing.assert_array_equal(curve.ks, [1, 2, 5, 10, 20, 50, 100])
    np.testing.assert_allclose(curve.recall, [neighbor_recall(X, Y, int(k)) for k in curve.ks])
    np.testing.assert_allclose(curve.chance, curve.ks / 149)
    assert (curve.errors == 0).all()
    assert recall_curve(X, Y, [3, 149]).recall[1] == 1


def test_preservation_ratio_matches_the_formula():
    order_x, order_y = (order_and_ranks(squared(V))[0] for V in (X, Y))
    B = (order_x == order_y).mean(axis=0)
    for low, high in ((2, 5), (5, 20)):
        truth = B[low - 1 : high].sum() / (high - low) / B[0]
        assert preservation_ratio(X, Y, low, high) == pytest.approx(truth)
    assert preservation_ratio(X, 3 * X, 2, 5) == pytest.approx(4 / 3)  # four preserved ranks over m - l = 3
    line, turned = np.arange(6.0)[:, None] ** 2, np.array([[0.0], [9.0], [1.0], [8.0], [2.0], [7.0]])
    if (order_and_ranks(squared(line))[0][:, 0] == order_and_ranks(squared(turned))[0][:, 0]).any():
        raise AssertionError("the example keeps a nearest neighbour")
    assert np.isnan(preservation_ratio(line, turned, 2, 3))


def test_sampled_measures_are_within_their_standard_error(monkeypatch):
    whole = Neighborhoods(X, Y, 10)
    monkeypatch.setattr(sample, "ALL", 60)
    monkeypatch.setattr(sample, "MIN_SAMPLE", 20)
    draws = [Neighborhoods(X, Y, 10, random_state=seed) for seed in range(60)]
    some = draws[0]
    assert len(some.points) == 24 and (np.diff(some.points) > 0).all()
    np.testing.assert_array_equal(some.rank_x, whole.rank_x[some.points])  # ranks among all points
    for measure in ("trustworthiness", "continuity", "recall"):
        numbers = [getattr(draw, measure)(10) for draw in draws]
        truth, spread = getattr(whole, measure)(10), np.std([float(number) for number in numbers])
        assert abs(np.mean(numbers) - truth) < 4 * spread / np.sqrt(60)
        assert np.median([number.error for number in numbers]) == pytest.approx(spread, rel=0.35)
    curve, ratio = some.recall_curve([10]), [draw.preservation_ratio(2, 8) for draw in draws]
    assert curve.errors[0] == some.recall(10).error and curve.errors[0] > 0
    known = [r for r in ratio if np.isfinite(r)]
    assert np.median([r.error for r in known]) == pytest.approx(np.std([float(r) for r in known]), rel=0.5)


def test_sample_points_sizes_and_seeds():
    assert len(sample.sample_points(20_000, 0)) == 20_000
    assert len(sample.sample_points(70_000, 0)) == 5714
    assert len(sample.sample_points(1_000_000, 0)) == 1000
    np.testing.assert_array_equal(sample.sample_points(70_000, 3), sample.sample_points(70_000, 3))
    assert (sample.sample_points(70_000, 3) != sample.sample_points(70_000, 4)).any()


def test_invalid_k_and_n_jobs_raise():
    for call, match in (
        (lambda: trustworthiness(X, Y, 150), r"k must be between 1 and n_samples - 1 = 149, got 150"),
        (lambda: continuity(X, Y, 2.5), "k must be an integer, got 2.5"),
        (lambda: recall_curve(X, Y, []), r"ks is empty; pass at least one size, such as \[10\], or omit ks"),
        (lambda: recall_curve(X, Y, [1, 200]), "each of ks must be between 1 and n_samples - 1 = 149, got 200"),
        (lambda: preservation_ratio(X, Y, 5, 5), "l must be smaller than m, got l=5 and m=5"),
        (lambda: preservation_ratio(X, Y, 0, 5), "l must be between 1"),
        (lambda: preservation_ratio(X, Y, 1, 150), r"m must be between 1 and n_samples - 1 = 149, got 150"),
        (lambda: preservation_ratio(X, Y, 9, 5), "l must be smaller than m, got l=9 and m=5"),
        (lambda: Neighborhoods(X, Y, 5).preservation_ratio(2, 6), "m=6 is too large for Neighborhoods created with k="),
        (lambda: Neighborhoods(X, Y, 5).recall(6), "k=6 is too large for Neighborhoods created with k=5"),
        (lambda: trustworthiness(X, Y, n_jobs=0), "n_jobs must be a positive integer, -1 for all cores, or None"),
    ):
        with pytest.raises(ValueError, match=match):
            call()
