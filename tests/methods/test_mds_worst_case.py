"""MDS with stress="max" and "max_ratio": the largest error of a distance, and bounds on it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from support.mds_cases import MISSING, D, W, X, Y, rigid_error

import equipoise as eq
from equipoise.objectives.stress.metric import AllPairs, FromPoints, Listed
from equipoise.objectives.stress.worst_case import WorstCase, worst_case_bound

FOUR = np.array([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0.0]])  # on a sphere; in no flat space
PAIRS = np.triu_indices(len(D), 1)
RESIDUALS = {"max": lambda d, delta: np.abs(d - delta), "max_ratio": lambda d, delta: np.abs(np.log(d / delta))}
both = pytest.mark.parametrize("kind", RESIDUALS)


@both
@pytest.mark.parametrize(
    ("options", "data", "weights"),
    [
        ({}, X, 1.0),
        ({"engine": "recomputed"}, X, 1.0),
        ({"engine": "torch", "device": "cpu"}, X, 1.0),
        ({"weights": W}, X, W[PAIRS]),
        ({"weights": W, "engine": "torch", "device": "cpu"}, X, W[PAIRS]),
        ({"metric": "precomputed"}, np.where(MISSING, np.nan, D), ~MISSING[PAIRS]),
        ({"metric": "precomputed"}, sparse.csr_matrix(np.where(MISSING, 0, D)), ~MISSING[PAIRS]),
    ],
    ids=["stored", "recomputed", "torch", "weights", "weights, torch", "NaN", "sparse"],
)
def test_loss_is_the_p_norm_of_the_residuals(kind, options, data, weights):
    if options.get("engine") == "torch":
        pytest.importorskip("torch")
    problem = eq.MDS(stress=kind, **options).problem(data)
    e = weights * RESIDUALS[kind](pdist(Y), D[PAIRS])
    assert problem.stress.pairs.largest(Y) == pytest.approx(e.max(), rel=1e-6)
    for stage in problem.stress.stages():
        p = 2.0**stage.doublings
        expected = e.max() * ((e / e.max()) ** p).sum() ** (1 / p)
        assert stage.slope(Y).loss == pytest.approx(expected, rel=1e-5)
    attraction, repulsion = problem.attraction(Y), problem.repulsion(Y)
    np.testing.assert_allclose(attraction + repulsion, -problem.gradient(Y), atol=1e-12)


@both
@pytest.mark.parametrize("doublings", [1, 3, 10])
def test_gradient_matches_finite_differences(kind, doublings):
    made = eq.MDS(stress=kind, weights=W).problem(X).stress
    stress = WorstCase(made.pairs, doublings)
    gradient = 2 * stress.slope(Y).half_gradient
    for i in np.argsort(-np.abs(gradient).sum(axis=1))[:2]:
        for c in (0, 1):
            step = np.zeros_like(Y)
            step[i, c] = 1e-6
            slope = (stress.slope(Y + step).loss - stress.slope(Y - step).loss) / 2e-6
            assert slope == pytest.approx(gradient[i, c], abs=1e-5 * np.abs(gradient).max())


def test_four_points_reach_the_closed_form_and_the_bound_is_tight():
    # The diagonals shrink by t and the sides of the rhombus grow by t: t² + 7t = 1/2.
    t = (np.sqrt(51) - 7) / 2
    method = eq.MDS(stress="max", metric="precomputed", random_state=0, n_iter=2000, tol=0).fit(FOUR)
    assert method.worst_case_ == pytest.approx(t, rel=1e-3)
    assert method.worst_case_bound_ == pytest.approx(t, rel=1e-6)
    # The same with factors c: 4 c² = 5/c².
    ratio = eq.MDS(stress="max_ratio", metric="precomputed", random_state=0, n_iter=2000, tol=0).fit(FOUR)
    assert ratio.worst_case_ == pytest.approx(1.25**0.25, rel=1e-3)
    assert ratio.worst_case_bound_ == pytest.approx(1.25**0.25, rel=1e-6)
    assert eq.spaces.summarize_distortion(FOUR_SPACE, ratio.embedding_).distortion == pytest.approx(1.25**0.5, rel=2e-3)


FOUR_SPACE = eq.spaces.Precomputed(FOUR)


@both
def test_worst_case_is_lower_than_that_of_other_stresses_and_above_the_bound(kind):
    method = eq.MDS(stress=kind, random_state=0).fit(X)
    d = pdist(method.embedding_.astype(float))
    own = RESIDUALS[kind](d, pdist(X)).max()
    assert method.worst_case_ == pytest.approx(np.exp(own) if kind == "max_ratio" else own, rel=1e-5)
    assert method.loss_ == pytest.approx(own, rel=len(d) ** (1 / 1024) - 1)
    assert own < method.loss_ and (1 if kind == "max_ratio" else 0) < method.worst_case_bound_ < method.worst_case_
    for other in ("metric", "relative", "log"):
        found = pdist(eq.MDS(stress=other, random_state=0).fit(X).embedding_.astype(float))
        assert own < 0.8 * RESIDUALS[kind](found, pdist(X)).max()
    assert (np.diff(method.loss_curve_[:, 1]) < 0).all()


@both
def test_bound_holds_for_random_spaces_and_is_zero_where_they_fit(kind):
    residual = "absolute" if kind == "max" else "logarithmic"
    rng = np.random.RandomState(0)
    for n, dimension in ((12, 5), (25, 20)):
        delta = squareform(pdist(rng.standard_normal((n, dimension))) ** rng.uniform(0.5, 1.5))
        for d in (1, 2, 3):
            method = eq.MDS(d, stress=kind, metric="precomputed", random_state=0, n_init=2)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # powers above 1 violate the triangle inequality
                method.fit(delta)
            assert method.worst_case_bound_ <= method.worst_case_
        assert worst_case_bound(squareform(pdist(rng.standard_normal((n, 3)))), 3, residual) == 0
    simplex = 1.0 - np.eye(20)  # d + 2 of its points already have a ratio of √2 in the plane
    assert worst_case_bound(simplex, 2) >= (np.sqrt(2) - 1) / (np.sqrt(2) + 1)
    assert worst_case_bound(3 * simplex, 2) == pytest.approx(3 * worst_case_bound(simplex, 2))
    assert worst_case_bound(simplex, 2, weights=np.full((20, 20), 4.0)) == pytest.approx(
        4 * worst_case_bound(simplex, 2)
    )


def test_recovers_a_configuration_from_exact_distances():
    Z = np.random.RandomState(0).standard_normal((50, 2)) * 7
    method = eq.MDS(stress="max", metric="precomputed", random_state=0, n_iter=500).fit(squareform(pdist(Z)))
    assert rigid_error(method.embedding_, Z) < 1e-3 and method.worst_case_bound_ < 1e-5


def test_weights_scale_the_errors_that_count():
    near = np.where(np.argsort(np.argsort(D, axis=1), axis=1) <= 10, 20.0, 1.0)
    near = np.maximum(near, near.T)
    plain, weighted = (eq.MDS(stress="max", weights=w, random_state=0).fit(X) for w in (None, near))
    worst = [(near[PAIRS] * np.abs(pdist(m.embedding_) - D[PAIRS])).max() for m in (plain, weighted)]
    assert worst[1] < 0.7 * worst[0] and weighted.worst_case_ == pytest.approx(worst[1], rel=1e-4)


def test_unknown_distances_have_no_bound():
    missing = np.where(MISSING, np.nan, D)
    method = eq.MDS(stress="max", metric="precomputed", random_state=0, n_iter=60).fit(missing)
    assert np.isnan(method.worst_case_bound_)
    assert method.worst_case_ == pytest.approx(
        np.abs(pdist(method.embedding_) - D[PAIRS])[~MISSING[PAIRS]].max(), rel=1e-4
    )


@both
def test_transform_minimises_the_worst_error_of_each_new_point(kind):
    method = eq.MDS(stress=kind, random_state=0).fit(X[:60])
    new = method.transform(X[60:])
    np.testing.assert_array_equal(method.transform(X[:60]), method.embedding_)
    for i, y in enumerate(new, 60):
        steps = np.concatenate([np.zeros((1, 2)), 0.05 * np.random.RandomState(i).standard_normal((40, 2))])
        worst = [RESIDUALS[kind](np.linalg.norm(y + s - method.embedding_, axis=1), D[i, :60]).max() for s in steps]
        assert worst[0] <= 1.02 * min(worst)


@both
def test_same_bytes_for_any_number_of_threads_and_after_a_checkpoint(kind, tmp_path):
    one, four = (eq.MDS(stress=kind, random_state=0, n_jobs=n, n_iter=60).fit(X) for n in (1, 4))
    assert one.embedding_.tobytes() == four.embedding_.tobytes()
    file = tmp_path / "run.eqc"

    def stop(iteration, loss, Y):
        if iteration == 31:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        eq.MDS(stress=kind, random_state=0, n_iter=60, callbacks=[eq.Checkpoint(file, every=5), stop]).fit(X)
    resumed = eq.MDS(stress=kind, random_state=0, n_iter=60, callbacks=[eq.Checkpoint(file, resume=True)]).fit(X)
    assert resumed.embedding_.tobytes() == one.embedding_.tobytes()
    np.testing.assert_array_equal(resumed.loss_curve_, one.loss_curve_)


def test_large_tables_recompute_all_pairs(monkeypatch):
    monkeypatch.setattr("equipoise.methods.mds.STORED", 60)
    assert eq.MDS(stress="max", random_state=0, n_iter=3).fit(X).engine_ == "recomputed"
    assert eq.MDS(stress="max", metric="manhattan", random_state=0, n_iter=3).fit(X).engine_ == "stored"


def test_power_sums_do_not_depend_on_the_instruction_set():
    from equipoise import _core

    stresses = [
        AllPairs(D[PAIRS].astype(np.float32), len(D), 1),
        FromPoints(X, 1),
        Listed(D[D > 0], sparse.csr_matrix((D > 0) * 1.0), 1),
    ]
    here = [WorstCase(pairs).slope(Y) for pairs in stresses]
    try:
        _core.use_base_instruction_set(True)
        base = [WorstCase(pairs).slope(Y) for pairs in stresses]
    finally:
        _core.use_base_instruction_set(False)
    for a, b in zip(here, base, strict=True):
        assert a.loss == b.loss and a.half_gradient.tobytes() == b.half_gradient.tobytes()
