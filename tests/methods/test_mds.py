"""MDS: stress and its gradient, solvers, fitted maps and kinds of input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances
from support.mds_cases import KNOWN, MISSING, SPARSE, City, D, W, X, Y, rigid_error, stress

import equipoise as eq
from equipoise import _core

DIGITS = load_digits(return_X_y=True)[0][:400]


# Loss and forces

PROBLEMS = {
    "stored": (eq.MDS(), X, D, 1.0),
    "recomputed": (eq.MDS(engine="recomputed"), X, D, 1.0),
    "precomputed": (eq.MDS(metric="precomputed"), D, D, 1.0),
    "weights": (eq.MDS(weights=W), X, D, W),
    "sparse weights": (eq.MDS(weights=sparse.csr_matrix(np.where(MISSING, 0, W))), X, D, np.where(MISSING, 0, W)),
    "NaN distances": (eq.MDS(metric="precomputed"), np.where(MISSING, np.nan, D), D, ~MISSING),
    "sparse distances": (eq.MDS(metric="precomputed"), sparse.csr_matrix(np.where(MISSING, 0, D)), D, ~MISSING),
    "sparse distances, weights": (eq.MDS(metric="precomputed", weights=W), KNOWN, D, np.where(MISSING, 0, W)),
    "sparse distances, sparse weights": (
        eq.MDS(metric="precomputed", weights=SPARSE),
        KNOWN,
        D,
        np.where(MISSING, 0, SPARSE.toarray()),
    ),
    "3-D": (eq.MDS(3), X, D, 1.0),
    "5-D": (eq.MDS(5), X, D, 1.0),
    "1-D": (eq.MDS(1), X, D, 1.0),
}
every_problem = pytest.mark.parametrize("name", PROBLEMS)


@every_problem
def test_loss_and_gradient_match_the_formula(name):
    method, data, delta, weights = PROBLEMS[name]
    problem = method.problem(data)
    Z = 2 * np.random.RandomState(3).standard_normal(problem.Y0.shape)
    loss, gradient = stress(delta, Z, weights)
    assert problem.loss(Z) == pytest.approx(loss, rel=1e-6)
    np.testing.assert_allclose(problem.gradient(Z), gradient, atol=1e-6 * np.abs(gradient).max())
    in_float32 = problem.gradient(Z.astype(np.float32))
    assert in_float32.dtype == np.float32
    np.testing.assert_allclose(in_float32, gradient, atol=1e-5 * np.abs(gradient).max())


@pytest.mark.parametrize(
    "method", [eq.MDS(), eq.MDS(weights=W), eq.MDS(stress="ordinal")], ids=["metric", "weights", "ordinal"]
)
def test_gradient_matches_finite_differences(method):
    problem, gradient = method.problem(X), method.problem(X).gradient(Y)
    for i, c in [(0, 0), (13, 1), (69, 0)]:
        step = np.zeros_like(Y)
        step[i, c] = 1e-3
        slope = (problem.loss(Y + step) - problem.loss(Y - step)) / 2e-3
        assert slope == pytest.approx(gradient[i, c], abs=2e-4 * np.abs(gradient).max())


@pytest.mark.parametrize(
    "method", [eq.MDS(), eq.MDS(weights=W), eq.MDS(stress="ordinal")], ids=["metric", "weights", "ordinal"]
)
def test_attraction_and_repulsion_sum_to_minus_gradient(method):
    problem = method.problem(X)
    attraction, repulsion, gradient = problem.attraction(Y), problem.repulsion(Y), problem.gradient(Y)
    scale = np.abs(attraction).max()
    np.testing.assert_allclose(attraction + repulsion, -gradient, atol=1e-12 * scale)
    np.testing.assert_allclose(attraction.sum(axis=0), 0, atol=1e-6 * scale)
    np.testing.assert_allclose(repulsion.sum(axis=0), 0, atol=1e-6 * scale)
    assert (attraction * (Y - Y.mean(axis=0))).sum() < 0 < (repulsion * (Y - Y.mean(axis=0))).sum()


def test_loss_is_invariant_under_isometries_and_relabelling():
    problem, order = eq.MDS().problem(X), np.random.RandomState(0).permutation(len(X))
    angle = 0.7
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert problem.loss(Y @ R + 5) == pytest.approx(problem.loss(Y), rel=1e-6)
    assert eq.MDS().problem(X[order]).loss(Y[order]) == pytest.approx(problem.loss(Y), rel=1e-7)


@pytest.mark.parametrize("n", [2, 31, 33, 255, 257, 300])
def test_loss_and_gradient_for_sizes_around_block_boundaries(n):
    A, Z = np.random.RandomState(n).standard_normal((n, 5)), np.random.RandomState(n + 1).standard_normal((n, 2))
    loss, gradient = stress(squareform(pdist(A)), Z)
    for engine in ("stored", "recomputed"):
        problem = eq.MDS(engine=engine).problem(A)
        assert problem.loss(Z) == pytest.approx(loss, rel=1e-5)
        np.testing.assert_allclose(problem.gradient(Z), gradient, atol=1e-5 * np.abs(gradient).max())


def test_stress_between_two_sets_matches_the_formula():
    A, B = Y[:40].copy(), Y[40:].copy()
    delta, w = D[:40, 40:].astype(np.float32), np.linspace(0.5, 2, 30).astype(np.float32)
    G, H = np.empty(A.shape), np.empty(B.shape)
    actual = _core.stress_between(delta, w, A, B, G, H, 2)
    pairs = np.zeros_like(D)
    pairs[:40, 40:] = w
    loss, gradient = stress(D, Y, pairs + pairs.T)
    assert actual == pytest.approx(loss, rel=1e-6)
    np.testing.assert_allclose(2 * np.vstack([G, H]), gradient, atol=1e-5 * np.abs(gradient).max())


def test_every_instruction_set_gives_the_same_bytes():
    here = eq.MDS(n_jobs=1, random_state=0).fit(DIGITS)
    try:
        _core.use_base_instruction_set(True)
        base = eq.MDS(n_jobs=1, random_state=0).fit(DIGITS)
    finally:
        _core.use_base_instruction_set(False)
    assert base.embedding_.tobytes() == here.embedding_.tobytes()


# Solvers


def guttman(delta, Z):
    """Return the Guttman transform Z⁺ = n⁻¹ B(Z) Z in matrix form."""
    d = squareform(pdist(Z))
    B = -np.divide(delta, d, out=np.zeros_like(d), where=d > 0)
    np.fill_diagonal(B, -B.sum(axis=1))
    return B @ Z / len(Z)


def test_gradient_descent_with_rate_1_over_2n_is_smacof():
    problem = eq.MDS().problem(X)
    Z = Y - Y.mean(axis=0)
    np.testing.assert_allclose(Z - problem.gradient(Z) / (2 * len(Z)), guttman(D, Z), atol=1e-6)
    for _ in range(5):
        Z = guttman(D, Z)
    method = eq.MDS(init=Y - Y.mean(axis=0), solver="smacof", n_iter=5, tol=0).fit(X)
    np.testing.assert_allclose(method.embedding_, Z, atol=1e-5)


@pytest.mark.parametrize("solver", ["smacof", "lbfgs"])
@pytest.mark.parametrize("name", ["stored", "weights", "sparse weights", "NaN distances", "5-D"])
def test_loss_decreases_at_every_step(name, solver):
    method, data, *_ = PROBLEMS[name]
    problem = method.set_params(init="random", random_state=0, solver=solver, tol=0, n_iter=60).problem(data)
    problem.optimize()
    assert len(problem.loss_curve) > 20
    assert (np.diff(problem.loss_curve[:, 1]) < 0).all()
    assert problem.loss_curve[-1, 1] < 0.7 * problem.loss_curve[0, 1]


def test_lbfgs_needs_fewer_iterations_than_smacof():
    smacof, fast = (
        eq.MDS(solver=s, random_state=0, tol=0, n_iter=m).fit(DIGITS) for s, m in [("smacof", 300), ("lbfgs", 60)]
    )
    assert fast.loss_ < smacof.loss_


def test_gradient_vanishes_at_the_fitted_map():
    method = eq.MDS(random_state=0, tol=0).fit(X)
    problem = method.problem(X)
    assert (
        np.abs(problem.gradient(method.embedding_)).max() < 1e-3 * np.abs(problem.attraction(method.embedding_)).max()
    )


# Fitted maps


@pytest.mark.parametrize("d", [1, 2, 3])
def test_recovers_configuration_from_exact_distances(d):
    Z = np.random.RandomState(d).standard_normal((60, d)) * 7
    for data, options in ((squareform(pdist(Z)), {"metric": "precomputed"}), (Z, {})):
        method = eq.MDS(d, random_state=0, tol=0, **options).fit(data)
        assert rigid_error(method.embedding_, Z) < 1e-3
        assert method.stress_1_ < 1e-3


def test_recovers_configuration_from_some_of_the_distances():
    Z = np.random.RandomState(0).standard_normal((70, 2)) * 7
    delta = squareform(pdist(Z))
    gaps = eq.MDS(metric="precomputed", random_state=0, tol=0).fit(np.where(MISSING, np.nan, delta))
    known = eq.MDS(metric="precomputed", random_state=0, tol=0).fit(sparse.csr_matrix(np.where(MISSING, 0, delta)))
    weighted = eq.MDS(weights=~MISSING * 1.0, random_state=0, tol=0).fit(Z)
    assert (gaps.engine_, known.engine_, weighted.engine_) == ("stored", "listed", "stored")
    for method in (gaps, known, weighted):
        assert rigid_error(method.embedding_, Z) < 2e-3


def test_heavily_weighted_pairs_fit_better():
    near = np.where(np.argsort(np.argsort(D, axis=1), axis=1) <= 10, 50.0, 1.0)
    near = np.maximum(near, near.T)
    plain, weighted = (eq.MDS(weights=w, random_state=0).fit(X).embedding_ for w in (None, near))
    assert stress(D, weighted, near)[0] < 0.8 * stress(D, plain, near)[0]
    assert stress(D, plain)[0] < stress(D, weighted)[0]


def test_stored_recomputed_and_precomputed_distances_agree():
    stored, again = (eq.MDS(engine=engine, random_state=0).fit(DIGITS) for engine in ("stored", "recomputed"))
    assert stored.embedding_.tobytes() == again.embedding_.tobytes()
    given = eq.MDS(metric="precomputed", init=stored.embedding_, random_state=0).fit(pairwise_distances(DIGITS))
    assert given.loss_ == pytest.approx(stored.loss_, rel=1e-4)


@pytest.mark.parametrize(
    "metric", ["manhattan", "cosine", "seuclidean", "mahalanobis", lambda a, b: np.abs(a - b).max()]
)
def test_loss_under_other_metrics_matches_the_formula(metric):
    delta = pairwise_distances(X, metric=metric)
    problem = eq.MDS(metric=metric, random_state=0).problem(X)
    assert problem.loss(Y) == pytest.approx(stress(delta, Y)[0], rel=1e-5)


def test_sparse_table_gives_the_same_loss():
    S = np.where(np.abs(X) > 1, X, 0)
    a, b = (eq.MDS().problem(data).loss(Y) for data in (S, sparse.csr_matrix(S)))
    assert a == pytest.approx(b, rel=1e-6)


def test_metric_space_gives_the_same_map_as_its_metric(monkeypatch):
    space, table = eq.MDS(random_state=0).fit(City(X)), eq.MDS(metric="manhattan", random_state=0).fit(X)
    assert space.embedding_.tobytes() == table.embedding_.tobytes()
    monkeypatch.setattr("equipoise.problems.stress_pairs.PARTNERS", 20)
    space, table = (
        eq.MDS(metric=m, engine="random_pairs", random_state=0).fit(A)
        for m, A in [("euclidean", City(X)), ("manhattan", X)]
    )
    assert space.embedding_.tobytes() == table.embedding_.tobytes()


def test_sampled_stress_approximates_exact_stress(monkeypatch):
    # With 200 of 399 partners the exact stress of the map was 4.9 % above the minimum, the estimate 3.1 % below.
    monkeypatch.setattr("equipoise.problems.stress_pairs.PARTNERS", 200)
    exact, sampled = (eq.MDS(engine=engine, random_state=0).fit(DIGITS) for engine in ("stored", "random_pairs"))
    full = exact.problem(DIGITS).loss(sampled.embedding_)
    assert exact.loss_ < full < 1.08 * exact.loss_
    assert sampled.loss_ < full  # it is minimised on its own pairs
    start = exact.problem(DIGITS).Y0
    assert sampled.problem(DIGITS).loss(start) == pytest.approx(exact.problem(DIGITS).loss(start), rel=0.03)


def test_deprecated_engine_name_sampled_warns():
    with pytest.warns(FutureWarning, match='engine="random_pairs"'):
        old = eq.MDS(engine="sampled", random_state=0, n_iter=5).fit(DIGITS)
    new = eq.MDS(engine="random_pairs", random_state=0, n_iter=5).fit(DIGITS)
    assert old.engine_ == new.engine_ == "random_pairs" and old.embedding_.tobytes() == new.embedding_.tobytes()


def test_auto_engine_uses_random_pairs_for_large_data(monkeypatch):
    monkeypatch.setattr("equipoise.methods.mds.STORED", 399)
    monkeypatch.setattr("equipoise.problems.stress_pairs.PARTNERS", 60)
    assert eq.MDS(random_state=0, n_iter=5).fit(DIGITS).engine_ == "random_pairs"
    assert eq.MDS(random_state=0, n_iter=5).fit(DIGITS[:399]).engine_ == "stored"


def test_n_init_keeps_the_best_start():
    starts = [eq.MDS(init="random", n_init=m, random_state=0).fit(X) for m in (1, 6)]
    assert starts[1].loss_ <= starts[0].loss_
    problem = eq.MDS(n_init=4, random_state=0).problem(X)
    problem.optimize()
    alone = [eq.MDS(init=start).fit(X).loss_ for start in problem.starts]
    assert problem.loss_curve[-1, 1] == min(alone)


# Estimator


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"engine": "recomputed"},
        {"engine": "random_pairs"},
        {"stress": "ordinal", "n_iter": 8},
        {"metric": "manhattan"},
    ],
)
def test_same_bytes_for_any_number_of_threads(options, monkeypatch):
    monkeypatch.setattr("equipoise.problems.stress_pairs.PARTNERS", 100)
    one, two, four = (eq.MDS(random_state=0, n_jobs=n, **options).fit(DIGITS) for n in (1, 2, 4))
    assert one.embedding_.tobytes() == two.embedding_.tobytes() == four.embedding_.tobytes()
    assert one.loss_curve_.tobytes() == four.loss_curve_.tobytes()


def test_fitted_attributes_and_verbose_output(capsys):
    method = eq.MDS(random_state=0, verbose=1, n_init=2).fit(X)
    assert method.embedding_.shape == (70, 2) and method.embedding_.dtype == np.float32
    assert method.loss_ == method.loss_curve_[-1, 1] and method.n_iter_ == method.loss_curve_[-1, 0]
    assert method.loss_ == pytest.approx(stress(D, method.embedding_)[0], rel=1e-5)
    d = pdist(method.embedding_.astype(float))
    assert method.stress_1_ == pytest.approx(np.sqrt(stress(D, method.embedding_)[0] / (d**2).sum()), rel=1e-4)
    assert capsys.readouterr().out.startswith("engine stored: 70 points in 2-D, 2 starts\niteration     0   loss ")
    assert pickle.loads(pickle.dumps(method)).transform(X[:3]).tobytes() == method.transform(X[:3]).tobytes()


def test_callbacks_stop_the_run_and_interrupts_keep_the_map():
    seen = []
    method = eq.MDS(random_state=0, callbacks=[lambda i, loss, Y: seen.append((i, loss)) or i == 3]).fit(X)
    assert method.n_iter_ == 3 and [i for i, _ in seen] == [0, 1, 2, 3] and method.loss_ == seen[-1][1]

    def interrupt(i, loss, Y):
        if i == 4:
            raise KeyboardInterrupt

    stopped = eq.MDS(random_state=0, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X)
    assert stopped.n_iter_ == 4 and stopped.loss_ < seen[-1][1]
    assert stopped.loss_ == pytest.approx(stress(D, stopped.embedding_)[0], rel=1e-5)


def test_transform_minimises_the_stress_of_each_new_point():
    method = eq.MDS(random_state=0).fit(X[:60])
    new = method.transform(X[60:])
    np.testing.assert_array_equal(method.transform(X[:60]), method.embedding_)
    assert method.transform(X[60:61]).tobytes() == new[:1].tobytes()

    def own(y, i):
        return ((np.linalg.norm(y - method.embedding_, axis=1) - D[i, :60]) ** 2).sum()

    for i in range(60, 70):
        y = new[i - 60]
        assert all(own(y, i) <= own(y + step, i) for step in 0.05 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]))
    given = eq.MDS(metric="precomputed", init=method.embedding_, n_iter=0).fit(D[:60, :60])
    np.testing.assert_allclose(given.transform(D[60:, :60]), new, atol=1e-4)
