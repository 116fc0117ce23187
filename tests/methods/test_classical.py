"""PCA, classical MDS, Isomap, LLE and Laplacian eigenmaps: closed forms, gradient flows, landmarks, new points."""

from __future__ import annotations

import inspect
import pickle
import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn import decomposition, manifold
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_s_curve, make_swiss_roll
from sklearn.exceptions import ConvergenceWarning
from support.classical_cases import LOCAL, SCALING, X, every_method, r2, tie_free_digits, with_neighbors
from support.shared_data import SHARED

import equipoise as eq
from equipoise.geometry import Orthonormal
from equipoise.linalg.gram import Factor, Inner
from equipoise.objectives import GramLoss

MNIST = SHARED / "mnist.npz"


def mnist_1000():
    if not MNIST.exists():
        pytest.skip("../shared/data/mnist.npz is missing")
    with np.load(MNIST, allow_pickle=False) as file:
        images = file["X"]
    return images[np.sort(np.random.RandomState(0).permutation(len(images))[:1000])] / 255.0


@every_method
def test_clone_keeps_parameters_and_docstring_lists_them(Method):
    method = Method(n_components=3, solver="flow", tol=1e-3)
    assert clone(method).get_params() == method.get_params()
    text = inspect.getdoc(Method)
    assert all(re.search(rf"\b{name}\b", text) for name in inspect.signature(Method).parameters)


# Closed forms


@pytest.mark.parametrize("shape", ["digits", "s_curve", "swiss_roll"])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (eq.PCA(), decomposition.PCA(2)),
        (eq.Isomap(n_neighbors=8), manifold.Isomap(n_neighbors=8)),
        (eq.LLE(n_neighbors=12), manifold.LocallyLinearEmbedding(n_neighbors=12)),
        (
            eq.LaplacianEigenmaps(n_neighbors=12),  # scikit-learn counts the point itself
            manifold.SpectralEmbedding(affinity="nearest_neighbors", n_neighbors=13, random_state=0),
        ),
    ],
    ids=lambda method: type(method).__name__,
)
def test_closed_forms_match_scikit_learn(ours, theirs, shape):
    data = {"digits": tie_free_digits, "s_curve": lambda n: make_s_curve(n, random_state=0)[0]}
    data["swiss_roll"] = lambda n: make_swiss_roll(n, random_state=0)[0]
    A = data[shape](700)
    assert r2(clone(ours).fit_transform(A), clone(theirs).fit_transform(A)) >= 0.9999


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_classical_mds_matches_eigenvectors_of_centred_squared_distances(metric):
    A = load_digits().data[:400]
    D2 = cdist(A, A, {"manhattan": "cityblock"}.get(metric, metric)) ** 2
    C = np.eye(400) - 1 / 400
    values, V = np.linalg.eigh(-C @ D2 @ C / 2)
    Y = V[:, :-4:-1] * np.sqrt(values[:-4:-1])
    method = eq.ClassicalMDS(3, metric=metric).fit(A)
    assert r2(method.embedding_, Y) > 1 - 1e-9
    np.testing.assert_allclose(method.eigenvalues_, values[:-4:-1])
    np.testing.assert_allclose(method.loss_, (values**2).sum() - (values[:-4:-1] ** 2).sum(), rtol=1e-6)


def test_pca_attributes_match_scikit_learn():
    A = load_digits().data[:300]
    ours, theirs = eq.PCA(5).fit(A), decomposition.PCA(5, svd_solver="full").fit(A)
    for name in ("explained_variance_", "explained_variance_ratio_", "mean_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_allclose(np.abs(ours.components_ @ theirs.components_.T), np.eye(5), atol=1e-6)
    new = load_digits().data[300:320]
    np.testing.assert_allclose(
        ours.inverse_transform(ours.transform(new)), theirs.inverse_transform(theirs.transform(new)), atol=1e-6
    )


@pytest.mark.parametrize(("n", "D"), [(1200, 1100), (60, 2000), (1100, 30)])
def test_pca_of_wide_and_sparse_tables_matches_svd(n, D):
    A = sparse.random(n, D, 0.05, random_state=0, format="csr")
    A.data *= 10
    A = (A @ sparse.diags(np.linspace(3, 0.1, D) ** 2)).tocsr()
    singular = np.linalg.svd(A.toarray() - A.mean(axis=0).A1, compute_uv=False)[:2]
    for table in (A, A.toarray()):
        method = eq.PCA().fit(table)
        np.testing.assert_allclose(np.sqrt(method.eigenvalues_), singular, rtol=1e-8)
        np.testing.assert_allclose(method.transform(table[:7]), method.embedding_[:7], atol=1e-8)


@every_method
def test_result_is_independent_of_threads_and_signs_are_fixed(Method):
    one, two = (Method(n_jobs=jobs, random_state=0).fit(X).embedding_ for jobs in (1, 2))
    assert one.tobytes() == two.tobytes()
    assert (one[np.abs(one).argmax(axis=0), [0, 1]] > 0).all()


@every_method
def test_pickled_method_gives_the_same_transform(Method):
    method = Method(random_state=0).fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(method)).transform(X[:5]), method.transform(X[:5]))


# Flows


@pytest.mark.parametrize("name", ["iris", "digits", "mnist"])
@pytest.mark.parametrize(
    "method",
    [eq.PCA(), eq.ClassicalMDS(), eq.ClassicalMDS(metric="manhattan"), eq.Isomap(n_neighbors=10)],
    ids=["PCA", "ClassicalMDS", "ClassicalMDS-L1", "Isomap"],
)
def test_flow_converges_to_closed_form(method, name):
    A = {"iris": lambda: load_iris().data, "digits": lambda: load_digits().data, "mnist": mnist_1000}[name]()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the neighbour graph has 2")  # iris has 2 components
        closed = clone(method).fit(A)
        flow = clone(method).set_params(solver="flow", random_state=0).fit(A)
    assert r2(flow.embedding_, closed.embedding_) >= 0.999999
    # The orientation is the same as well.
    np.testing.assert_allclose(flow.embedding_, closed.embedding_, atol=2e-3 * closed.embedding_.std())
    np.testing.assert_allclose(flow.loss_, closed.loss_, rtol=1e-6)
    assert 0 < flow.n_iter_ < 1000 and closed.n_iter_ == 0


@pytest.mark.parametrize("Method", LOCAL)
def test_flow_of_local_methods_converges_to_closed_form(Method):
    A = tie_free_digits(150)
    closed = Method(n_neighbors=20).fit(A)
    flow = Method(n_neighbors=20, solver="flow", random_state=1).fit(A)
    assert r2(flow.embedding_, closed.embedding_) >= 0.999999
    np.testing.assert_allclose(flow.eigenvalues_, closed.eigenvalues_, rtol=1e-5)


@every_method
def test_gradient_matches_finite_differences_and_sum_of_forces(Method, rng):
    problem = Method(n_components=3, random_state=0).problem(X[:40])
    Y = problem.Y0 + 0.1 * problem.Y0.std() * rng.standard_normal(problem.Y0.shape)
    gradient, step = problem.gradient(Y), 1e-5 * Y.std()
    for i, c in [(0, 0), (7, 1), (39, 2)]:
        E = np.zeros_like(Y)
        E[i, c] = step
        slope = (problem.loss(Y + E) - problem.loss(Y - E)) / (2 * step)
        assert slope == pytest.approx(gradient[i, c], abs=1e-5 * np.abs(gradient).max())
    np.testing.assert_allclose(problem.attraction(Y) + problem.repulsion(Y), -gradient, rtol=1e-12)


def test_pca_gradient_is_a_sum_over_pairs(rng):
    problem = eq.PCA(random_state=0).problem(X[:30])
    Y = rng.standard_normal((30, 2))
    C = np.eye(30) - 1 / 30
    L = C @ (X[:30] @ X[:30].T - Y @ Y.T) @ C
    assert problem.loss(Y) == pytest.approx((L**2).sum())
    by_pairs = 4 * (L[:, :, None] * (Y[:, None] - Y[None])).sum(axis=1)  # Draganov & Dohn 2024, Lemma 3.3
    np.testing.assert_allclose(problem.gradient(Y), by_pairs, atol=1e-9 * np.abs(by_pairs).max())
    np.testing.assert_allclose(problem.gradient(Y).sum(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("method", [eq.PCA(), eq.ClassicalMDS(metric="cosine"), *(Method() for Method in LOCAL)])
def test_loss_is_invariant_to_translation_and_rotation(method, rng):
    problem = method.problem(X[:60])
    Y = rng.standard_normal((60, 2))
    turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    assert problem.loss(Y @ turn + [3, -5]) == pytest.approx(problem.loss(Y))


@every_method
def test_gradient_descent_never_increases_the_loss(Method):
    problem = Method(random_state=3).problem(X)
    problem.rule = eq.GradientDescent(every=1, min_loss_change=0.0, min_grad_norm=1e-12)
    problem.optimize(n_iter=200)
    loss = problem.loss_curve[:, 1]
    assert (np.diff(loss) <= 1e-9 * loss[0]).all() and loss[-1] < loss[0]


def test_momentum_needs_fewer_steps_than_gradient_descent():
    A = load_iris().data
    steps = []
    for rule in (eq.GradientDescent(every=10, min_loss_change=0.0, min_grad_norm=1e-6), None):
        problem = eq.PCA(random_state=0).problem(A)
        problem.rule = rule or problem.rule
        problem.optimize()
        assert problem.stopped == "min_grad_norm"
        steps.append(problem.n_iter)
    assert 4 * steps[1] < steps[0]  # measured: 130 and 1,260


def test_unconverged_flow_warns_and_calls_callbacks():
    seen = []
    with pytest.warns(ConvergenceWarning, match=r"did not converge in n_iter=20 steps: .*, above tol=1e-06"):
        eq.PCA(solver="flow", n_iter=20, random_state=0, callbacks=[lambda i, E, Y: seen.append(i)]).fit(X)
    assert seen == [0, 10, 20]
    stopped = eq.PCA(solver="flow", random_state=0, callbacks=[lambda i, E, Y: i >= 10]).fit(X)
    assert stopped.n_iter_ == 10 and len(stopped.loss_curve_) == 2


def test_orthonormal_retraction_satisfies_the_constraints(rng):
    root = rng.uniform(1, 2, 30)
    surface = Orthonormal(root)
    U = surface.retract(surface.work(rng.standard_normal((30, 3))))
    np.testing.assert_allclose(U.T @ U, (root @ root) * np.eye(3), atol=1e-9)
    np.testing.assert_allclose(root @ U, 0, atol=1e-9)
    np.testing.assert_allclose(surface.retract(U), U)
    np.testing.assert_allclose(U.T @ surface.tangent(U, rng.standard_normal((30, 3))), 0, atol=1e-9)


# Landmarks: low-rank Gram matrices, docs/math.md, section 15


@pytest.mark.parametrize("solver", ["eigen", "flow"])
@pytest.mark.parametrize("Method", SCALING)
def test_landmark_maps_approximate_full_maps(Method, solver):
    A = make_swiss_roll(500, random_state=0)[0]
    full = Method().fit(A)
    few = Method(n_landmarks=60, solver=solver, random_state=0).fit(A)
    assert r2(few.embedding_, full.embedding_) > 0.98  # Isomap 0.992, the others 1
    assert full.low_rank_error_ == 0 and few.low_rank_error_ < (0.35 if Method is eq.Isomap else 1e-9)  # 0.23
    np.testing.assert_allclose(few.transform(A[:9]), few.embedding_[:9], atol=1e-6 * np.abs(few.embedding_).max())


def test_using_all_points_as_landmarks_is_exact():
    method = eq.ClassicalMDS(metric="euclidean", n_landmarks=160).fit(X)
    assert method.low_rank_error_ < 1e-9
    np.testing.assert_allclose(method.embedding_, eq.PCA().fit_transform(X), atol=1e-9)


def test_low_rank_error_matches_true_error(rng):
    A = load_digits().data[:300]
    errors = []
    for m in (5, 15, 40, 80):
        method = eq.PCA(n_landmarks=m, random_state=0).fit(A)
        G = (A - A.mean(axis=0)) @ (A - A.mean(axis=0)).T
        true = np.linalg.norm(G - method._gram.times(np.eye(300))) / np.linalg.norm(G)
        assert method.low_rank_error_ == pytest.approx(true, rel=0.35, abs=1e-4)  # estimated from 64 of 300 rows
        errors.append(true)
    assert errors == sorted(errors, reverse=True) and errors[-1] < 0.05


@pytest.mark.parametrize("mean", [0.0, 1.0, 1e3, 1e6])
def test_pca_is_accurate_for_data_with_a_large_mean(rng, mean):
    A = rng.standard_normal((200, 5)) * [5, 3, 2, 1, 0.5]
    shifted = eq.PCA().fit(A + mean)
    plain = eq.PCA().fit(A)
    np.testing.assert_allclose(shifted.embedding_, plain.embedding_, atol=1e-14 * max(1.0, mean) * 50)
    np.testing.assert_allclose(shifted.eigenvalues_, plain.eigenvalues_, rtol=1e-12 * max(1.0, mean / 1e3))
    assert shifted.mean_ == pytest.approx(plain.mean_ + mean)


def test_pca_accepts_strided_and_fortran_arrays(rng):
    wide = rng.standard_normal((100, 8))
    strided = wide[:, :5]
    np.testing.assert_array_equal(eq.PCA().fit_transform(strided), eq.PCA().fit_transform(strided.copy()))
    np.testing.assert_array_equal(eq.PCA().fit_transform(strided.copy(order="F")), eq.PCA().fit_transform(strided))


def test_low_rank_gradient_is_a_descent_direction_within_its_error_bound():
    A = load_digits().data[:300]
    exact, low = (eq.PCA(n_landmarks=m, random_state=0).problem(A) for m in (None, 20))
    Y = low.Y0
    true, approximate = exact.gradient(Y), low.gradient(Y)
    assert (true * approximate).sum() > 0
    bound = low.objective.gradient_error(Y)
    assert 0.02 * bound < np.linalg.norm(true - approximate) < bound  # measured: 0.07


# New points


@every_method
def test_transform_keeps_fitted_rows_and_places_new_rows_near_neighbours(Method):
    A = make_swiss_roll(900, random_state=0)[0]
    fitted, new = A[:800], A[800:]
    method = with_neighbors(Method, 10).fit(fitted)
    scale = method.embedding_.std()
    np.testing.assert_allclose(method.transform(fitted[:20]), method.embedding_[:20], atol=1e-6 * scale)
    together = method.transform(new)
    np.testing.assert_allclose(together[:3], np.vstack([method.transform(row[None]) for row in new[:3]]), atol=1e-9)
    nearest = cdist(new, fitted).argmin(axis=1)
    assert np.median(np.linalg.norm(together - method.embedding_[nearest], axis=1)) < 0.15 * scale


def test_transform_of_precomputed_distances_matches_transform_of_rows():
    A = load_digits().data[:200].astype(float)
    new = load_digits().data[200:210].astype(float)
    table = eq.ClassicalMDS(metric="manhattan").fit(A)
    given = eq.ClassicalMDS(metric="precomputed").fit(cdist(A, A, "cityblock"))
    np.testing.assert_allclose(given.embedding_, table.embedding_, atol=1e-8)
    np.testing.assert_allclose(given.transform(cdist(new, A, "cityblock")), table.transform(new), atol=1e-8)


def test_gram_matrices_match_dense_definition(rng):
    F, V = rng.standard_normal((25, 6)), rng.standard_normal((25, 2))
    C = np.eye(25) - 1 / 25
    B = C @ F @ F.T @ C
    for gram in (
        Factor(F),
        Factor(sparse.csr_matrix(F)),
        Factor(np.hstack([F, np.zeros((25, 30))])),
        Inner(cdist(F, F) ** 2),
    ):
        np.testing.assert_allclose(gram.times(V), B @ V, atol=1e-9)
        np.testing.assert_allclose(gram.rows(np.array([3, 8])), B[[3, 8]], atol=1e-9)
        assert gram.norm2() == pytest.approx((B**2).sum())
        assert np.linalg.norm(B, 2) <= gram.norm() * (1 + 1e-9) and gram.norm() < 1.02 * np.linalg.norm(B, 2)
        np.testing.assert_allclose(gram.top(3)[0], np.linalg.eigvalsh(B)[:-4:-1])
    assert GramLoss(Factor(F)).affinities is None
