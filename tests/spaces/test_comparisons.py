"""Two spaces without a given correspondence: isometries, Gromov-Wasserstein distances, and optimal transport."""

import doctest
import importlib
from itertools import permutations, product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from equipoise import spaces
from equipoise.spaces.transport import monotone_coupling, squared_wasserstein, transport

FOUR_BY_FOUR = list(product(range(4), repeat=2))


def distances(X):
    return cdist(X, X)


def shuffled(D, rng):
    order = rng.permutation(len(D))
    return D[np.ix_(order, order)], order


def strongly_regular(differences):
    """Return the distances, 1 or 2, of a graph on Z₄ × Z₄ whose neighbours differ by one of `differences`."""
    D = [[0 if p == q else 2 - (((p[0] - q[0]) % 4, (p[1] - q[1]) % 4) in differences) for q in FOUR_BY_FOUR]
         for p in FOUR_BY_FOUR]  # fmt: skip
    return np.array(D, float)


ROOK = strongly_regular({(a, b) for a, b in FOUR_BY_FOUR if (a == 0) != (b == 0)})
SHRIKHANDE = strongly_regular({(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)})


def test_shuffled_points_are_isometric_and_the_bijection_is_found(rng):
    X = rng.normal(size=(60, 3))
    order = rng.permutation(60)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    found = spaces.is_isometric(spaces.Euclidean(X), spaces.Euclidean(X[order] @ turn + 5))
    assert found
    np.testing.assert_array_equal(order[found.bijection], np.arange(60))
    assert str(found).startswith("isometric: a bijection preserves all distances")


@pytest.mark.parametrize("D", [
    spaces.Discrete(40).matrix(), SHRIKHANDE, cdist(*[np.array(list(product((0, 1), repeat=5)))] * 2, "cityblock"),
    np.repeat(np.repeat(1 - np.eye(5), 3, axis=0), 3, axis=1),  # coincident points
])  # fmt: skip
def test_symmetric_spaces_are_isometric_to_themselves(rng, D):
    other, _ = shuffled(D, rng)
    found = spaces.is_isometric(D, other)
    assert found
    np.testing.assert_array_equal(other[np.ix_(found.bijection, found.bijection)], D)
    assert len(np.unique(found.bijection)) == len(D)


def test_reasons_why_spaces_are_not_isometric(rng):
    D = distances(rng.normal(size=(10, 2)))
    changed = D.copy()
    changed[0, 1] = changed[1, 0] = D[0, 1] + 1e-3
    assert "10 points and 9 points" in str(spaces.is_isometric(D, D[:9, :9]))
    assert "sorted distances differ by up to" in str(spaces.is_isometric(D, changed))
    assert spaces.is_isometric(D, changed, tol=1e-2)
    # The same distances, arranged as a path of four points and as a star: 1, 1, 1 and 2, 2, 2.
    path = np.array([[0, 1, 2, 2], [1, 0, 1, 2], [2, 1, 0, 1], [2, 2, 1, 0]], float)
    star = np.array([[0, 1, 1, 1], [1, 0, 2, 2], [1, 2, 0, 2], [1, 2, 2, 0]], float)
    assert "no points of the second space" in str(spaces.is_isometric(path, star))
    # Two strongly regular graphs with the same parameters, which no refinement of points tells apart.
    found = spaces.is_isometric(ROOK, SHRIKHANDE)
    assert not found and found.bijection is None and "all candidates fail" in found.reason


def test_mirror_images_of_triangles_agree_with_all_permutations(rng):
    for _ in range(30):  # small integers: many ties
        A, B = (np.triu(rng.integers(1, 3, size=(5, 5)), 1).astype(float) for _ in range(2))
        A, B = A + A.T, B + B.T
        brute = any(np.array_equal(A, B[np.ix_(p, p)]) for p in permutations(range(5)))
        assert bool(spaces.is_isometric(A, B)) == brute


@pytest.mark.parametrize("module", ["embeddability", "gromov_wasserstein", "isometry", "isolines"])
def test_examples_in_docstrings(module):
    result = doctest.testmod(importlib.import_module(f"equipoise.spaces.{module}"))
    assert result.attempted and not result.failed


def test_points_of_different_kinds_need_no_search(rng):
    X, order = rng.normal(size=(40, 2)), rng.permutation(40)
    found = spaces.is_isometric(distances(X), distances(X[order]), time_limit=1e-9)
    np.testing.assert_array_equal(order[found.bijection], np.arange(40))


def test_undecided_raises_timeout():
    with pytest.raises(TimeoutError, match=r"undecided after 1 assignments: .* raise time_limit, or compare them by"):
        spaces.is_isometric(ROOK, SHRIKHANDE, time_limit=1e-9)


@pytest.mark.parametrize("size", [(6, 9), (9, 6), (5, 5), (7, 5)])
def test_transport_is_the_optimum_of_the_linear_programme(rng, size):
    cost = rng.normal(size=size)
    n, m = size
    found = transport(cost)
    np.testing.assert_allclose(found.coupling.sum(axis=1), 1 / n)
    np.testing.assert_allclose(found.coupling.sum(axis=0), 1 / m)
    marginals = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    best = linprog(cost.ravel(), A_eq=marginals, b_eq=np.repeat([1 / n, 1 / m], [n, m])).fun
    assert (cost * found.coupling).sum() == pytest.approx(best) == found.lower_bound


@pytest.mark.parametrize("size", [(6, 9), (9, 6), (5, 5)])
def test_transport_on_a_line_is_monotone(rng, size):
    a, b = rng.normal(size=size[0]), rng.normal(size=size[1])
    cost = np.square(a[:, None] - b)
    assert (cost * monotone_coupling(a, b)).sum() == pytest.approx(transport(cost).lower_bound)
    assert squared_wasserstein(a, b) == pytest.approx(transport(cost).lower_bound)


@pytest.mark.parametrize("size", [(20, 20), (20, 14)])
def test_gromov_wasserstein_lies_above_its_lower_bounds(rng, size):
    A, B = (distances(rng.normal(size=(n, 3))) for n in size)
    found = spaces.gromov_wasserstein(A, B)
    T = found.coupling
    np.testing.assert_allclose([np.ptp(T.sum(axis=1)), np.ptp(T.sum(axis=0))], 0, atol=1e-12)
    direct = sum(T[i, j] * (T * np.square(A[i][:, None] - B[j])).sum() for i, j in np.argwhere(T > 0))  # eq. (E11)
    assert found.distance == float(found) == pytest.approx(np.sqrt(direct) / 2, rel=1e-6)
    assert 0 < found.eccentricity_bound <= found.local_bound <= found.distance
    assert 0 < found.distances_bound <= found.distance
    swapped = spaces.gromov_wasserstein(B, A)
    assert swapped.lower_bound == pytest.approx(found.lower_bound)
    product_cost = np.square(A).mean() + np.square(B).mean() - 2 * A.mean() * B.mean()
    assert found.distance < np.sqrt(product_cost) / 2


def test_gromov_wasserstein_of_isometric_spaces_is_zero(rng):
    D = distances(rng.normal(size=(40, 2)))
    other, order = shuffled(D, rng)
    found = spaces.gromov_wasserstein(D, other)
    assert found.distance == 0 == found.lower_bound
    np.testing.assert_array_equal(order[found.assignment], np.arange(40))
    assert "distance at most 0, at least 0" in str(found)


def test_gromov_wasserstein_of_a_space_with_every_point_twice_is_zero(rng):
    """Spaces of different sizes, at a distance that (E11) gives as 0."""
    D = distances(rng.normal(size=(12, 2)))
    found = spaces.gromov_wasserstein(np.repeat(np.repeat(D, 2, axis=0), 2, axis=1), D)
    assert found.distance == pytest.approx(0, abs=1e-6 * D.max())


def test_gromov_wasserstein_to_a_point_is_half_the_root_mean_square_distance(rng):
    D = distances(rng.normal(size=(15, 2)))
    found = spaces.gromov_wasserstein(D, spaces.Discrete(1))
    assert found.distance == pytest.approx(np.sqrt(np.square(D).mean()) / 2)
    assert found.lower_bound == pytest.approx(found.distance)  # there is one coupling only


def test_gromov_wasserstein_of_copies_of_points_is_small(rng):
    D = distances(rng.normal(size=(12, 2)))
    doubled = np.repeat(np.repeat(D, 2, axis=0), 2, axis=1)
    assert spaces.gromov_wasserstein(D, doubled).distance < 1e-6


def test_gromov_wasserstein_agrees_with_pot(rng):
    gromov = pytest.importorskip("ot").gromov
    A, B = (distances(rng.normal(size=(n, 2))) for n in (15, 15))
    cost = gromov.gromov_wasserstein2(A, B)
    assert spaces.gromov_wasserstein(A, B).distance <= np.sqrt(cost) / 2 * (1 + 1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spaces.gromov_wasserstein(ROOK, ROOK, max_iter=0), "max_iter must be an integer >= 1, got 0"),
        (lambda: spaces.is_isometric(ROOK, ROOK, tol=-1), "tol must be a finite number >= 0, got -1"),
        (
            lambda: spaces.is_isometric(ROOK, ROOK, time_limit=0),
            "time_limit must be a positive number of seconds, got 0",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda X: spaces.is_isometric(X, X), "A"),
        (lambda X: spaces.gromov_wasserstein(spaces.Euclidean(X), X), "B"),
        (spaces.embeddability, "space"),
    ],
    ids=["is_isometric", "gromov_wasserstein", "embeddability"],
)
def test_tables_in_place_of_distances_name_the_remedy(function, name, rng):
    remedy = rf"Pass a square matrix of distances, or equipoise.spaces.Euclidean\({name}\) for a table"
    with pytest.raises(ValueError, match=rf"{name}: .* must be square, got shape \(6, 2\). {remedy}"):
        function(rng.normal(size=(6, 2)))
    with pytest.raises(ValueError, match=remedy):
        function(rng.normal(size=(6, 6)) ** 2)
