"""Random walks between landmarks: closed forms on small graphs, simulated walks, maps and errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from support.methods import X

import equipoise as eq
from equipoise.affinities import random_walk
from equipoise.affinities.random_walk import hitting_probabilities


def chain(weights):
    """Return the weights of a path graph."""
    W = np.diag(np.asarray(weights, dtype=float), 1)
    return sparse.csr_matrix(W + W.T)


def test_gamblers_ruin():
    """On a path with landmarks at both ends, a walk from node k of 0..5 reaches node 5 first with probability k/5."""
    among, from_others = hitting_probabilities(chain(np.ones(5)), np.array([0, 5]), np.arange(1, 5))
    assert_allclose(from_others.toarray()[:, 1], np.arange(1, 5) / 5, rtol=1e-12)
    assert_allclose(among.toarray(), [[0, 1], [1, 0]])


def test_weights_of_a_path_act_like_resistances():
    """From the middle landmark, each end is reached with a probability inverse to the resistance of the way to it."""
    W = chain([2.0, 1.0, 0.5, 0.25])  # resistances ½ + 1 to the left of node 2, and 2 + 4 to the right
    among, _ = hitting_probabilities(W, np.array([0, 2, 4]), np.array([1, 3]))
    assert_allclose(among.toarray()[1], [6 / 7.5, 0, 1.5 / 7.5], rtol=1e-12)
    assert_allclose(among.toarray()[[0, 2]], [[0, 1, 0], [0, 1, 0]], rtol=1e-12)


def random_graph(n=30):
    rng = np.random.default_rng(0)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.3), 1)
    return W + W.T


def test_absorbing_markov_chain():
    W, landmarks = random_graph(), np.array([1, 4, 9, 20])
    others, T = np.setdiff1d(np.arange(30), landmarks), W / W.sum(axis=1, keepdims=True)
    H = np.linalg.solve(np.eye(26) - T[np.ix_(others, others)], T[np.ix_(others, landmarks)])
    P = T[np.ix_(landmarks, landmarks)] + T[np.ix_(landmarks, others)] @ H
    np.fill_diagonal(P, 0.0)
    among, from_others = hitting_probabilities(sparse.csr_matrix(W), landmarks, others)
    assert_allclose(among.toarray(), P / P.sum(axis=1, keepdims=True), rtol=1e-10)
    assert_allclose(from_others.toarray(), H, rtol=1e-10)


def test_simulated_walks():
    W, landmarks = random_graph(), np.array([1, 4, 9, 20])
    among, _ = hitting_probabilities(sparse.csr_matrix(W), landmarks, np.setdiff1d(np.arange(30), landmarks))
    T, rng, counts = np.cumsum(W / W.sum(axis=1, keepdims=True), axis=1), np.random.default_rng(0), np.zeros(4)
    for _ in range(3000):
        at = 1
        while at == 1 or at not in landmarks:  # a walk that returns to its start goes on
            at = int(np.searchsorted(T[at], rng.random()))
        counts[np.flatnonzero(landmarks == at)[0]] += 1
    assert_allclose(counts / 3000, among.toarray()[0], atol=0.03)


def test_all_points_as_landmarks_make_one_step():
    W = random_graph()
    among, from_others = hitting_probabilities(sparse.csr_matrix(W), np.arange(30), np.arange(0))
    assert_allclose(among.toarray(), W / W.sum(axis=1, keepdims=True), rtol=1e-12)
    assert from_others.shape == (0, 30)


def test_iterative_solution_agrees_with_the_factorised_one(monkeypatch):
    walk = random_walk(X, 20, 8)
    monkeypatch.setattr("equipoise.linalg.definite.WIDEST", 0)
    other = random_walk(X, 20, 8)
    assert_array_equal(walk.landmarks, other.landmarks)
    assert_allclose(other.among.toarray(), walk.among.toarray(), atol=1e-9)
    assert_allclose(other.from_others.toarray(), walk.from_others.toarray(), atol=1e-9)
    monkeypatch.setattr("equipoise.linalg.definite.MAX_STEPS", 1)
    with pytest.raises(RuntimeError, match="was not solved in 1 iterations; use more landmarks"):
        random_walk(X, 20, 8)


def test_map_of_all_digits_from_landmarks():
    data = load_digits()
    walk = random_walk(data.data[:900], 200)
    assert_array_equal(np.sort(np.concatenate([walk.landmarks, walk.others])), np.arange(900))
    assert_allclose(np.asarray(walk.among.sum(axis=1)).ravel(), 1.0)
    assert repr(walk) == "<random walks of 900 points between 200 landmarks>"
    Y = walk.embed(eq.TSNE(affinity="precomputed", random_state=0, n_jobs=1))
    found = KNeighborsClassifier(5).fit(Y[walk.landmarks], data.target[walk.landmarks]).predict(Y[walk.others])
    assert (found == data.target[walk.others]).mean() > 0.9


def test_landmarks_are_chosen_by_seed_or_given():
    assert_array_equal(random_walk(X, [7, 3, 40], 8).landmarks, [3, 7, 40])
    assert_array_equal(random_walk(X, 10, 8, random_state=1).landmarks, random_walk(X, 10, 8, random_state=1).landmarks)
    space = eq.spaces.Euclidean(X)
    assert_allclose(random_walk(space, 10, 8).among.toarray(), random_walk(X, 10, 8).among.toarray(), atol=1e-6)


PAIRS = sparse.csr_matrix(([1.0] * 3, ([0, 2, 3], [1, 3, 4])), shape=(5, 5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_walk(X, 61), "landmarks=61 is out of range for n_samples=60; use 2 to 60 landmarks"),
        (lambda: random_walk(X, [3, 3]), "landmarks contains 1 point; pass at least 2"),
        (lambda: random_walk(X, [3, 60]), "landmarks contains the index 60"),
        (lambda: random_walk(X, 5, bandwidth=-1.0), "bandwidth must be"),
        (lambda: random_walk(X, 5, 0), "n_neighbors must be an integer >= 1"),
        (
            lambda: random_walk(PAIRS + PAIRS.T, [0, 1, 2], 1, metric="precomputed"),
            "the component of the graph that contains point 2 has 1 landmark",
        ),
        (lambda: random_walk(X, 9, 8).embed(eq.TSNE()), 'requires a method with affinity="precomputed", but TSNE has'),
    ],
)
def test_invalid_arguments_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()
