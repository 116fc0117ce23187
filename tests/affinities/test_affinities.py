from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from support.cases import relative_error

from equipoise.affinities.perplexity import conditional, conditional_of_points, joint, resolve_perplexity

N = 40


def points(rng, n=N, repeats=4):
    """Return n points in R^5, of which `repeats` are identical."""
    X = rng.standard_normal((n, 5))
    X[10 : 10 + repeats] = X[10]
    return X


def off_diagonal_graph(D2):
    """Return all off-diagonal pairs in CSR, with explicit zeros."""
    n = len(D2)
    off = ~np.eye(n, dtype=bool)
    return sparse.csr_matrix((D2[off], np.nonzero(off)[1], np.arange(n + 1) * (n - 1)), shape=(n, n))


class Points(NamedTuple):
    """Points whose distances are not stored."""

    X: np.ndarray


def three_inputs(X):
    D2 = cdist(X, X, "sqeuclidean")
    return Points(X), D2, off_diagonal_graph(D2)


def rows(distances, perplexity, n=N, dtype=np.float64, n_threads=1):
    scales = resolve_perplexity(perplexity, n)
    if isinstance(distances, Points):
        return conditional_of_points(distances.X, scales, dtype, n_threads)
    P = conditional(distances, scales, dtype, n_threads)
    return P.toarray() if sparse.issparse(P) else P


def log_perplexity(P):
    P = np.asarray(P, dtype=np.float64)
    return -(P * np.log(np.where(P > 0, P, 1.0))).sum(axis=1)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("perplexity", [3.5, 5.0, 13.0, 30.0, 38.9])
@pytest.mark.parametrize("kind", [0, 1, 2], ids=["points", "dense", "graph"])
def test_every_row_has_the_requested_perplexity(rng, scale, perplexity, kind):
    P = rows(three_inputs(scale * points(rng))[kind], perplexity)
    assert_allclose(log_perplexity(P), np.log(perplexity), rtol=0, atol=1e-5)
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert (P >= 0).all()
    assert_array_equal(np.diag(P), np.zeros(N))


@pytest.mark.parametrize("gap", [1e-6, 1e-3])
def test_perplexities_close_to_their_limits(rng, gap):
    X = points(rng, repeats=1)
    for perplexity in (1 + gap, N - 1 - gap):
        assert_allclose(log_perplexity(rows(Points(X), perplexity)), np.log(perplexity), rtol=0, atol=1e-5)


def test_rows_are_gaussian_in_the_distance(rng):
    X = points(rng)
    P, D2 = rows(Points(X), 7.0), cdist(X, X, "sqeuclidean")
    for i in range(N):
        off = np.arange(N) != i
        slope, start = np.polyfit(D2[i, off], np.log(P[i, off]), 1)
        assert slope < 0
        assert_allclose(np.log(P[i, off]), start + slope * D2[i, off], rtol=0, atol=1e-9 * (1 - slope * D2[i].max()))


@given(st.data())
def test_any_perplexity_above_the_number_of_ties_is_reached(data):
    # The entropy of a row runs from log(ties at the smallest distance) to log(its length), both ends excluded.
    value = st.one_of(st.integers(0, 3).map(float), st.floats(1e-6, 1e6), st.floats(1e-60, 1e60))
    distances = np.array(data.draw(st.lists(value, min_size=2, max_size=30)))
    ties, m = np.sum(distances == distances.min()), len(distances)
    share = data.draw(st.floats(0.01, 1.0))
    perplexity = min(max(ties ** (1 - share) * m**share, 1.0), float(m))
    graph = sparse.csr_matrix((distances, np.arange(m), [0, m]), shape=(1, m))
    p = conditional(graph, np.array([perplexity]), np.float64, 1).toarray()
    assert_allclose(log_perplexity(p), np.log(perplexity), rtol=0, atol=1e-5)
    assert_allclose(p.sum(), 1.0, rtol=1e-12)
    assert (np.diff(p[0][np.argsort(distances)]) <= 0).all()


def test_points_distances_and_graph_give_the_same_affinities(rng):
    from_points, from_dense, from_graph = (rows(distances, 9.0) for distances in three_inputs(points(rng)))
    assert relative_error(from_points, from_dense) < 1e-8
    assert_array_equal(from_dense, from_graph)


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["points", "dense", "graph"])
def test_float32_result_is_the_rounded_float64_result(rng, kind):
    distances = three_inputs(points(rng))[kind]
    single = rows(distances, 9.0, dtype=np.float32)
    assert single.dtype == np.float32
    assert_array_equal(single, rows(distances, 9.0).astype(np.float32))
    assert_allclose(log_perplexity(single), np.log(9.0), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["points", "dense", "graph"])
def test_affinities_are_identical_for_any_number_of_threads(rng, kind):
    distances = three_inputs(points(rng, n=60))[kind]
    one, *more = (rows(distances, [5.0, 20.0], n=60, n_threads=threads).tobytes() for threads in (1, 2, 3))
    assert all(other == one for other in more)


def test_several_perplexities_give_the_mean_of_their_rows(rng):
    X = points(rng)
    scales = (4.0, 9.0, 25.0)
    mean = np.mean([rows(Points(X), scale) for scale in scales], axis=0)
    for several in (scales, list(scales), np.array(scales)):
        assert_allclose(rows(Points(X), several), mean, rtol=1e-13)


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["points", "dense", "graph"])
def test_more_duplicates_than_the_perplexity_warn_and_share_evenly(rng, kind):
    X = points(rng, repeats=6)
    with pytest.warns(UserWarning, match=r"6 rows \(the first is row 10\) .* than the perplexity 2;"):
        P = rows(three_inputs(X)[kind], 2.0)
    block = np.full((6, 6), 1 / 5)
    np.fill_diagonal(block, 0.0)
    assert_allclose(P[10:16, 10:16], block, rtol=1e-15)
    assert_array_equal(np.delete(P[10:16], np.s_[10:16], axis=1), np.zeros((6, N - 6)))
    others = np.delete(P, np.s_[10:16], axis=0)
    assert_allclose(log_perplexity(others), np.log(2.0), rtol=0, atol=1e-5)


def test_as_many_duplicates_as_the_perplexity_do_not_warn(rng):
    P = rows(Points(points(rng, repeats=6)), 5.0)
    assert_allclose(log_perplexity(P), np.log(5.0), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["points", "dense", "graph"])
def test_largest_perplexity_gives_uniform_rows(rng, kind):
    P = rows(three_inputs(points(rng))[kind], N - 1)
    assert_allclose(P[~np.eye(N, dtype=bool)], 1 / (N - 1), rtol=1e-15)


def test_identical_points_give_uniform_rows():
    with pytest.warns(UserWarning, match="8 rows"):
        P = rows(Points(np.ones((8, 3))), 2.0, n=8)
    assert_allclose(P[~np.eye(8, dtype=bool)], 1 / 7, rtol=1e-15)


@pytest.mark.parametrize("n", range(2, 101))
def test_auto_perplexity_is_feasible(n):
    (perplexity,) = resolve_perplexity("auto", n)
    assert 1 <= perplexity <= n - 1
    assert perplexity == (30.0 if n >= 91 else max((n - 1) / 3, np.sqrt(n - 1)))
    X = np.random.default_rng(n).standard_normal((n, 3))
    assert_allclose(log_perplexity(rows(Points(X), "auto", n=n)), np.log(perplexity), rtol=0, atol=1e-5)


@pytest.mark.parametrize("perplexity", [5, 5.0, np.float32(5), [5], (5.0,), np.array([5])])
def test_resolve_perplexity_accepts_scalars_and_sequences(perplexity):
    assert_array_equal(resolve_perplexity(perplexity, 20), [5.0])
    assert resolve_perplexity(perplexity, 20).dtype == np.float64


@pytest.mark.parametrize(
    ("perplexity", "message"),
    [
        ("large", "perplexity must be a number, several numbers or \"auto\", got 'large'"),
        ([[5, 10]], r"perplexity must be one number or a non-empty flat list of numbers, got \[\[5, 10\]\]"),
        ([], r"perplexity must be one number or a non-empty flat list of numbers, got \[\]"),
        (0.5, "perplexity must be at least 1, got 0.5"),
        (-3, "perplexity must be at least 1, got -3"),
        (np.nan, "perplexity must be at least 1, got nan"),
        ([5, 0], "perplexity must be at least 1, got 0"),
        (20, "perplexity=20 is too large for n_samples=20: a point has 19 neighbours; use .*auto.* or at most 19"),
        ([5, np.inf], "perplexity=inf is too large for n_samples=20"),
    ],
)
def test_invalid_perplexity_raises(perplexity, message):
    with pytest.raises(ValueError, match=message):
        resolve_perplexity(perplexity, 20)


def test_row_with_too_few_neighbors_raises(rng):
    graph = off_diagonal_graph(cdist(*[points(rng)] * 2, "sqeuclidean")).tolil()
    graph[7, 3:] = 0.0
    graph = graph.tocsr()
    with pytest.raises(ValueError, match=r"row 7 of the precomputed graph stores 3 neighbours, .* perplexity 9;"):
        conditional(graph, np.array([4.0, 9.0]), np.float64, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_joint_is_symmetric_and_sums_to_one(rng, dtype):
    _, dense, graph = three_inputs(points(rng))
    P = rows(dense, 9.0, dtype=dtype)
    truth = (P.astype(np.float64) + P.T) / (2 * N)
    J = joint(conditional(graph, np.array([9.0]), dtype, 1))
    K = joint(P)
    eps = np.finfo(dtype).eps
    assert sparse.issparse(J) and J.has_sorted_indices
    assert K.dtype == J.dtype == dtype
    for S in (J.toarray(), K):
        assert_array_equal(S, S.T)
        assert_allclose(S.sum(dtype=np.float64), 1.0, rtol=4 * eps)
        assert_allclose(S, truth, rtol=4 * eps)
        assert_array_equal(np.diag(S), np.zeros(N))


def test_joint_of_several_tiles(rng):
    P = rng.random((1100, 1100))
    truth = (P + P.T) / 2200
    assert_allclose(joint(P), truth, rtol=1e-15)
