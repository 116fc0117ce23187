"""Points sorted along a space-filling curve: same forces and same map, another order in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import equipoise as eq
from equipoise.arrays.morton import locality, permuted
from equipoise.optimize import gradient_steps


@pytest.mark.parametrize("d", [1, 2, 3])
def test_consecutive_points_in_morton_order_are_close(rng, d):
    U = rng.standard_normal((4000, d)).astype(np.float32)
    order = locality(U)
    assert_array_equal(np.sort(order), np.arange(4000))
    step = np.linalg.norm(np.diff(U[order], axis=0), axis=1).mean()
    assert step < 0.5 * np.linalg.norm(np.diff(U, axis=0), axis=1).mean()


def test_coincident_points_keep_their_order():
    assert_array_equal(locality(np.zeros((5, 2))), np.arange(5))


def test_permuted_matches_dense_indexing(rng):
    A = sparse.random(30, 30, 0.2, format="csr", random_state=0)
    order = rng.permutation(30)
    expected = A.toarray()[np.ix_(order, order)]
    assert_array_equal(permuted(A, order).toarray(), expected)
    assert_array_equal(permuted(A.toarray(), order), expected)
    roomy = A.copy()
    roomy.data, roomy.indices = np.append(A.data, [7.0, 8.0]), np.append(A.indices, [0, 0]).astype(A.indices.dtype)
    assert_array_equal(permuted(roomy, order).toarray(), expected)


@pytest.mark.parametrize("Method", [eq.TSNE, eq.GSNE, eq.SNE], ids=lambda m: m.__name__)
def test_permuted_objective_has_permuted_forces(rng, Method):
    X, Y, order = rng.standard_normal((60, 4)), rng.standard_normal((60, 2)), rng.permutation(60)
    problem = Method(perplexity=5, engine="grid").problem(X)
    engine, other = problem.engine, problem.objective.permuted(order)
    original = problem.objective.balance(Y, engine, loss=True)
    permuted_balance = other.balance(Y[order], engine, loss=True)
    assert_allclose(permuted_balance.attraction, original.attraction[order], rtol=1e-6, atol=1e-9)
    assert_allclose(permuted_balance.repulsion, original.repulsion[order], rtol=1e-6, atol=1e-9)
    assert permuted_balance.loss == pytest.approx(original.loss, rel=1e-9)
    assert_array_equal(other.affinities.toarray(), problem.affinities.toarray()[np.ix_(order, order)])


def test_map_and_callbacks_keep_the_row_order_of_the_data(monkeypatch):
    X = eq.data.load("digits").X[:400]
    seen = []
    settings = {"random_state": 0, "engine": "grid", "n_iter": 150, "perplexity": 10}
    plain = eq.TSNE(**settings).fit_transform(X)
    monkeypatch.setattr(gradient_steps, "LOCALITY", 10)
    method = eq.TSNE(**settings, callbacks=[lambda i, loss, Y: seen.append(np.array(Y))])
    ordered = method.fit_transform(X)
    # Sums are taken in another order, so the runs diverge slowly; mixed-up rows would differ at once.
    assert np.corrcoef(plain[:, 0], ordered[:, 0])[0, 1] > 0.99
    assert_array_equal(seen[-1], ordered)
    assert_array_equal(method.affinities_.toarray(), eq.TSNE(**settings).problem(X).affinities.toarray())


def test_sampled_engine_does_not_reorder_points(monkeypatch):
    X = eq.data.load("digits").X[:300]
    settings = {"n_components": 4, "random_state": 0, "engine": "sampled", "n_iter": 30, "perplexity": 10}
    plain = eq.TSNE(**settings).fit_transform(X)
    monkeypatch.setattr(gradient_steps, "LOCALITY", 10)
    assert eq.TSNE(**settings).fit_transform(X).tobytes() == plain.tobytes()
