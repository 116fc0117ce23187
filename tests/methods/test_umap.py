"""UMAP: affinities, both losses against finite differences, negative sampling, kinds of input and errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs

import equipoise as eq
from equipoise import _core, data
from equipoise.affinities import fuzzy
from equipoise.arrays.csr import compiled_pattern
from equipoise.engines import Reference, Sampled
from equipoise.kernels import Membership, NonMembership
from equipoise.neighbors.search import nearest_neighbors
from equipoise.objectives import EffectiveCrossEntropy
from equipoise.optimize.negative_sampling import CLIP, SOFTENED, edge_offsets
from equipoise.problems import ForceProblem

LOSSES = ("effective", "intended")


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(150, 5, centers=4, random_state=0)


@pytest.fixture(scope="module")
def digits():
    bundled = data.load("digits")
    return bundled.X[:1200], bundled.labels[:1200]


def one_nn(Y, labels):
    graph = nearest_neighbors(np.asarray(Y, np.float64), 1, "euclidean", n_threads=1)
    return float((labels[graph.indices[:, 0]] == labels).mean())


# Affinities


def test_memberships_sum_to_log2_k_and_decay_exponentially(rng):
    D = np.sort(rng.uniform(0.5, 3, (40, 9)), axis=1)
    graph = sparse.csr_matrix((D.ravel() ** 2, np.tile(np.arange(9), 40), np.arange(0, 361, 9)), shape=(40, 40))
    W = fuzzy.memberships(graph, 10, np.float64, 1).data.reshape(40, 9)
    assert_allclose(W.sum(axis=1), np.log2(10), rtol=1e-8)
    assert_allclose(W[:, 0], 1)
    sigma = -(D[:, 1:] - D[:, :1]) / np.log(W[:, 1:])  # constant within each row
    assert_allclose(sigma, sigma[:, :1] * np.ones((1, 8)), rtol=1e-9)


def test_duplicates_have_membership_one():
    D2 = sparse.csr_matrix(([0.0, 0, 0, 0, 0, 4, 9], ([0] * 7, range(1, 8))), shape=(8, 8))
    D2 = sparse.csr_matrix((D2.data, D2.indices, np.arange(0, 57, 7)[:2].tolist() + [7] * 7), shape=(8, 8))
    W = np.empty(7)
    _core.memberships(compiled_pattern(D2), D2.data, 3.0, 1e-3, W, 1)
    assert_allclose(W[:6], 1)  # five duplicates and the nearest distinct point
    assert 0 <= W[6] < 1e-10


def test_fuzzy_union_is_the_probabilistic_sum(rng):
    W = sparse.random(30, 30, 0.2, format="lil", random_state=0)
    W.setdiag(0)
    W = W.tocsr()
    W.eliminate_zeros()
    W.data[:3] = 1
    dense = W.toarray()
    assert_allclose(fuzzy.fuzzy_union(W).toarray(), dense + dense.T - dense * dense.T, atol=1e-12)


def test_a_and_b_match_umap_learn():
    kernel = Membership.fitted(0.1, 1.0)
    assert_allclose((kernel.a, kernel.b), (1.577, 0.895), atol=5e-4)
    assert_allclose(Membership.fitted(0.2, 2.0).b, kernel.b, rtol=1e-5)  # only the unit changes


# Losses


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_matches_finite_differences(blobs, rng, loss):
    problem = eq.UMAP(loss=loss, n_neighbors=6, engine="reference").problem(blobs[0][:40])
    Y = rng.standard_normal((40, 2))
    gradient, h = problem.gradient(Y), 1e-6
    for i, c in [(0, 0), (7, 1), (39, 0)]:
        step = np.zeros_like(Y)
        step[i, c] = h
        assert_allclose((problem.loss(Y + step) - problem.loss(Y - step)) / (2 * h), gradient[i, c], rtol=1e-5)
    assert_allclose(gradient.sum(axis=0), 0, atol=1e-9 * np.abs(gradient).sum())


@pytest.mark.parametrize("loss", LOSSES)
def test_loss_matches_the_formula(blobs, rng, loss):
    problem = eq.UMAP(loss=loss, n_neighbors=6, negative_sample_rate=3, engine="reference").problem(blobs[0][:40])
    Y, mu = rng.standard_normal((40, 2)), problem.affinities.toarray()
    kernel, apart = problem.objective.kernel, problem.objective.apart
    d2 = ((Y[:, None] - Y) ** 2).sum(axis=2)
    off, degree = ~np.eye(40, dtype=bool), mu.sum(axis=1)
    gap = 1 - 1 / (1 + kernel.a * (d2 + apart.epsilon) ** kernel.b)
    c = 1 - mu if loss == "intended" else 3 * (degree[:, None] + degree) / 80
    stated = -(mu * np.log(kernel.value(d2)) + c * np.log(gap))[off].sum()
    assert_allclose(problem.loss(Y), stated, rtol=1e-6)  # μ in single precision


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("engine", ["exact", "grid"])
def test_engines_agree_with_reference(digits, loss, engine):
    X = digits[0][:300]
    truth = eq.UMAP(loss=loss, engine="reference", random_state=0).problem(X)
    other = eq.UMAP(loss=loss, engine=engine, random_state=0).problem(X)
    wrong = other.gradient(truth.Y0.astype(np.float32)) - truth.gradient(truth.Y0)
    scale = np.sqrt((truth.repulsion(truth.Y0) ** 2).mean())
    assert np.sqrt((wrong**2).mean()) < (0.05 if engine == "grid" else 1e-4) * scale


@pytest.mark.parametrize("epsilon", [1e-3, 0.01])
def test_non_membership_is_minus_log_of_one_minus_k(epsilon):
    kernel, d2 = NonMembership(1.577, 0.895, epsilon), np.array([0.0, 1e-3, 1, 50, 1e6])
    x = d2 + epsilon
    assert_allclose(kernel.value(d2), -np.log1p(-1 / (1 + 1.577 * x**0.895)), rtol=1e-9)
    h = 1e-6 * x
    assert_allclose(kernel.slope(d2 + h), (kernel.value(d2 + 2 * h) - kernel.value(d2)) / (2 * h), rtol=1e-5)


# Negative sampling


def one_step(mu, Y, kernel, seed, step, rate=1e-3, count=5, clip=1e9):
    out, due = np.empty_like(Y), np.zeros(mu.nnz, np.float32)
    period = (1 / mu.data).astype(np.float32)
    degrees = np.asarray(mu.sum(axis=1), np.float32).ravel()
    arrays = compiled_pattern(mu), period, degrees, due, Y, out
    ends = {"until": 1.0, "count": count, "seed": seed, "step": step, "threads": 1}
    _core.negatives_step(*arrays, kernel.a, kernel.b, SOFTENED, clip, rate, 1.0, **ends)
    return (out - Y) / rate


def test_mean_sampled_step_is_minus_the_gradient_of_the_effective_loss(rng):
    n, kernel = 60, Membership.fitted(0.1, 1.0)
    mu = sparse.random(n, n, 0.1, format="csr", random_state=1)
    mu = fuzzy.fuzzy_union(mu - sparse.diags(mu.diagonal()))
    mu.data = np.ones(mu.nnz, np.float32)  # every edge is due in every iteration
    lattice = np.argwhere(np.ones((10, 6)))  # no two points so close that rare large repulsions dominate the mean
    Y = (lattice + rng.uniform(-0.3, 0.3, (n, 2))).astype(np.float32)
    mean = np.mean([one_step(mu, Y, kernel, 3, step) for step in range(4000)], axis=0)
    objective = EffectiveCrossEntropy(mu, kernel, NonMembership(kernel.a, kernel.b, SOFTENED), 5)
    balance = objective.balance(Y.astype(np.float64), Reference(), loss=False)
    expected = balance.attraction + balance.repulsion
    assert np.linalg.norm(mean - expected) < 0.03 * np.linalg.norm(expected)


def test_repulsive_steps_are_clipped():
    mu, kernel = sparse.csr_matrix(np.array([[0, 1], [1, 0]], np.float32)), Membership.fitted(0.1, 1.0)
    Y = np.array([[0, 0], [0.01, 0]], np.float32)
    pull = one_step(mu, Y, kernel, 0, 0, count=0)[0, 0]
    pushes = [pull - one_step(mu, Y, kernel, 0, step, clip=CLIP)[0, 0] for step in range(60)]
    assert_array_equal(np.unique(np.round(pushes)), [0, 4, 8, 12, 16, 20])  # a sample of the point itself adds 0


def test_edge_offsets_are_symmetric():
    A = sparse.random(50, 50, 0.1, format="csr", random_state=0)
    A = (A + A.T).tocsr()
    phase = sparse.csr_matrix((edge_offsets(A, 5) + 1e-9, A.indices, A.indptr), shape=A.shape)
    assert abs(phase - phase.T).max() == 0
    assert 0.4 < edge_offsets(A, 5).mean() < 0.6


@pytest.mark.parametrize("components", [2, 3, 5])
def test_negative_sampling_gives_same_bytes_for_any_number_of_threads(digits, components):
    X = digits[0][:700]
    maps = [
        eq.UMAP(components, engine="negative_sampling", n_iter=10, random_state=0, n_jobs=jobs).fit_transform(X)
        for jobs in (1, 3)
    ]
    assert_array_equal(*maps)
    assert np.isfinite(maps[0]).all()


@pytest.mark.parametrize("engine", ["auto", "negative_sampling"])
def test_umap_separates_digits(digits, engine):
    X, labels = digits
    umap = eq.UMAP(engine=engine, n_iter=200, random_state=0).fit(X)
    assert one_nn(umap.embedding_, labels) > 0.93
    assert umap.loss_ < umap._problem.loss(umap._problem.Y0)


@pytest.mark.parametrize("Method", [eq.UMAP, eq.DKLLE], ids=lambda Method: Method.__name__)
def test_near_points_of_a_map_share_neighbours_in_the_data(digits, Method):
    """Draganov & Dohn 2024, section 5.1, of UMAP; it follows from their conjecture about DK-LLE."""
    X, n, k = digits[0][:500], 500, 15
    member = np.zeros((n, n))
    near = nearest_neighbors(X, k, "euclidean", n_threads=1).indices
    member[np.arange(n)[:, None], near] = 1
    shared = member @ member.T / k
    Y = np.asarray(Method(random_state=0).fit_transform(X), np.float64)
    in_map = nearest_neighbors(Y, k, "euclidean", n_threads=1)
    by_rank = np.take_along_axis(shared, in_map.indices, axis=1)[
        np.arange(n)[:, None], np.argsort(in_map.distances, axis=1)
    ].mean(axis=0)
    at_random = shared[~np.eye(n, dtype=bool)].mean()
    assert at_random < 0.04 and by_rank[0] > 0.6 and by_rank.min() > 10 * at_random
    assert by_rank[:5].mean() > by_rank[5:10].mean() > by_rank[10:].mean()


def test_negative_sampling_quality_does_not_depend_on_row_order(digits):
    X, labels = digits  # adjacent rows share negative samples
    order = np.argsort(labels, kind="stable")
    mixed = eq.UMAP(engine="negative_sampling", random_state=0).fit_transform(X)
    sorted_ = eq.UMAP(engine="negative_sampling", random_state=0).fit_transform(X[order])
    assert one_nn(sorted_, labels[order]) > one_nn(mixed, labels) - 0.02


def test_negative_sampling_reports_to_callbacks(blobs):
    seen = []
    umap = eq.UMAP(
        engine="negative_sampling", n_iter=100, callbacks=[lambda i, loss, Y: seen.append(i)], random_state=0
    )
    umap.fit(blobs[0])
    assert seen == [0, 50, 100] and len(umap.loss_curve_) == 3
    stop = eq.UMAP(engine="negative_sampling", n_iter=100, callbacks=[lambda i, loss, Y: i == 50], random_state=0).fit(
        blobs[0]
    )
    assert stop.n_iter_ == 50 and stop._problem.stopped == "callback"


# Input


def test_labels_improve_class_separation(digits):
    X, labels = digits[0][:500], digits[1][:500]
    plain = eq.UMAP(random_state=0).fit_transform(X)
    known = eq.UMAP(random_state=0).fit_transform(X, labels)
    names = np.array(list("abcdefghij"))[labels]
    assert one_nn(known, labels) > one_nn(plain, labels)
    assert one_nn(known, labels) > 0.98
    assert_array_equal(known, eq.UMAP(random_state=0).fit_transform(X, names))


def test_unknown_labels_only_repeat_the_fuzzy_union(blobs):
    X, _ = blobs
    none = eq.UMAP().problem(X, np.full(len(X), -1)).affinities.toarray()
    mu = eq.UMAP().problem(X).affinities.toarray()
    assert_allclose(none, 2 * mu - mu**2, atol=1e-6)  # row maxima are 1; the union is taken once more


def test_transform_places_new_points_near_their_class(digits):
    X, labels = digits
    umap = eq.UMAP(random_state=0).fit(X[:1000])
    Y = umap.transform(X[1000:])
    graph = ((Y[:, None] - umap.embedding_) ** 2).sum(axis=2).argmin(axis=1)
    assert (labels[:1000][graph] == labels[1000:]).mean() > 0.9
    assert_array_equal(umap.transform(X[:3]), umap.embedding_[:3])


def test_disconnected_components_stay_separate(rng):
    X = np.concatenate([rng.standard_normal((30, 3)) + 1000 * s for s in range(3)])
    Y = eq.UMAP(n_neighbors=5, random_state=0).fit_transform(X)
    assert np.isfinite(Y).all()
    assert one_nn(Y, np.repeat([0, 1, 2], 30)) == 1


def test_precomputed_distances_and_neighbours_give_the_same_affinities(blobs):
    X = blobs[0][:80]
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    graph = nearest_neighbors(X, 14, "euclidean", n_threads=1)
    plain = eq.UMAP(n_iter=50, random_state=0).fit(X)
    dense = eq.UMAP(metric="precomputed", n_iter=50, random_state=0).fit(D)
    lists = eq.UMAP(metric="precomputed", n_iter=50, random_state=0).fit((graph.indices, graph.distances))
    given = eq.UMAP(affinity="precomputed", n_iter=50, random_state=0).fit(plain.affinities_)
    for other in (dense, lists):
        assert_allclose(other.affinities_.toarray(), plain.affinities_.toarray(), atol=1e-5)
    mu = plain.affinities_.toarray()
    assert_allclose(given.affinities_.toarray(), 2 * mu - mu**2, atol=1e-6)  # the union with itself


def test_too_large_n_neighbors_warns_and_is_reduced(blobs):
    with pytest.warns(UserWarning, match="n_neighbors=15 is too large for n_samples=8; n_neighbors=8 is used"):
        Y = eq.UMAP(random_state=0, n_iter=20).fit_transform(blobs[0][:8])
    assert np.isfinite(Y).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 1}, "n_neighbors must be an integer >= 2"),
        ({"min_dist": 2.0}, "min_dist must be between 0 and spread=1, got 2.0"),
        ({"spread": 0}, "spread must be a positive number, got 0"),
        ({"negative_sample_rate": 0}, "negative_sample_rate must be a positive number"),
        ({"negative_sample_rate": 2.5, "engine": "negative_sampling"}, "an integer for engine="),
        ({"negative_sample_rate": 65_537, "engine": "negative_sampling"}, "must be at most 65536 for engine=.*got"),
        ({"negative_sample_rate": 2**31, "engine": "negative_sampling"}, "must be at most 65536 for engine="),
        ({"loss": "intended", "engine": "negative_sampling"}, "optimises loss=\"effective\", not 'intended'"),
        ({"loss": "true"}, "unknown loss 'true'; choose from 'effective', 'intended'"),
        ({"target_weight": 2}, "target_weight must be between 0 and 1, got 2"),
        ({"affinity": "gaussian"}, "unknown affinity 'gaussian'; choose from 'fuzzy', 'precomputed'"),
        ({"engine": np.empty(0)}, r"unknown engine array\(.*; choose from 'auto'"),
        ({"engine": np.array(["exact", "grid"])}, r"unknown engine array\("),
        ({"n_iter": "many"}, 'n_iter must be an integer or "auto", got'),
        ({"engine": "negative_sampling", "optimizer": eq.Momentum()}, "has its own optimiser; use optimizer=None"),
    ],
)
def test_invalid_parameters_raise(blobs, parameters, message):
    with pytest.raises(ValueError, match=message):
        eq.UMAP(**parameters).fit(blobs[0])


def test_the_largest_negative_sample_rate_is_accepted_by_the_core(blobs):
    umap = eq.UMAP(n_neighbors=3, negative_sample_rate=65_536, engine="negative_sampling", n_iter=1, random_state=0)
    assert np.isfinite(umap.fit_transform(blobs[0][:20])).all()


def test_invalid_labels_and_short_neighbour_lists_raise(blobs):
    X = blobs[0]
    with pytest.raises(ValueError, match=r"y has shape \(3,\), but X has 150 rows"):
        eq.UMAP().fit(X, [0, 1, 2])
    with pytest.raises(ValueError, match=r"y\[0\] = 0.5 is not an integer"):
        eq.UMAP().fit(X, np.full(len(X), 0.5))
    with pytest.raises(ValueError, match=r"y\[1\] = None is not a class; number the classes and use -1"):
        eq.UMAP().fit(X, np.array(["a", None, "b"] * 50, dtype=object))
    graph = nearest_neighbors(X, 5, "euclidean", n_threads=1)
    with pytest.raises(ValueError, match="stores 5 neighbours, fewer than n_neighbors − 1 = 14"):
        eq.UMAP(metric="precomputed").fit((graph.indices, graph.distances))


def test_negative_sampling_evaluates_the_loss_with_the_sampled_engine(blobs):
    problem = eq.UMAP(engine="negative_sampling", random_state=0).problem(blobs[0])
    assert isinstance(problem.engine, Sampled)
    exact = eq.UMAP(engine="exact", random_state=0).problem(blobs[0])
    assert_allclose(problem.loss(problem.Y0), exact.loss(problem.Y0), rtol=1e-4)  # few points: all are partners


def test_auto_engine_in_many_dimensions_uses_gradient_descent():
    X = np.random.default_rng(0).standard_normal((3100, 6))
    umap = eq.UMAP(5, negative_sample_rate=0.5, n_iter=30, random_state=0).fit(X)
    assert umap._problem.engine.traits.name == "sampled" and type(umap._problem) is ForceProblem
    assert umap.embedding_.std() > 0.5


def test_deprecated_engine_name_sampled_warns(blobs):
    with pytest.warns(FutureWarning, match='engine="negative_sampling"'):
        old = eq.UMAP(engine="sampled", n_iter=20, random_state=0).fit(blobs[0])
    new = eq.UMAP(engine="negative_sampling", n_iter=20, random_state=0).fit(blobs[0])
    assert old.engine_ == new.engine_ == "negative_sampling"
    assert old.embedding_.tobytes() == new.embedding_.tobytes()


def test_sampled_engine_with_intended_loss_does_not_warn(blobs):
    umap = eq.UMAP(engine="sampled", loss="intended", n_iter=20, random_state=0).fit(blobs[0])
    assert umap.engine_ == "sampled" and type(umap._problem) is ForceProblem


@pytest.mark.parametrize(
    ("settings", "n_iter", "early"),
    [
        ({}, 300, 4.0),
        ({"engine": "negative_sampling"}, 500, 1.0),
        ({"engine": "sampled", "loss": "intended"}, 500, 1.0),
        ({"engine": "grid", "loss": "intended"}, 300, 4.0),
    ],
)
def test_automatic_schedule_depends_on_the_engine_as_documented(blobs, settings, n_iter, early):
    schedule = eq.UMAP(**settings, random_state=0).problem(blobs[0]).schedule
    assert (schedule.n_iter, schedule.early_exaggeration) == (n_iter, early)
    text = " ".join(eq.UMAP.__doc__.split())
    for name, sampled, other in (("n_iter", "it is 500", 300), ("early_exaggeration", '"auto" is 1', 4)):
        entry = text[text.index(f" {name} : ") :][:400]
        engines = 'if the engine is "negative_sampling" or "sampled", as in umap-learn'
        assert f"{sampled} {engines}, and {other} with other engines." in entry


def test_callbacks_get_copies_of_the_map_in_negative_sampling(blobs):
    frames = []
    keep = [lambda i, loss, Y: frames.append(Y)]
    eq.UMAP(engine="negative_sampling", n_iter=100, callbacks=keep, random_state=0).fit(blobs[0])
    assert len(frames) == 3 and not np.array_equal(frames[0], frames[1]) and not np.array_equal(frames[1], frames[2])


def test_fitted_kernel_scales_with_spread():
    one, small = Membership.fitted(0.1, 1.0), Membership.fitted(0.001, 0.01)
    d2 = np.linspace(0, 9, 50)
    assert_allclose(small.value(d2 * 1e-4), one.value(d2), rtol=1e-6)


def test_labels_that_remove_all_edges_raise(blobs):
    with pytest.raises(ValueError, match="the neighbour graph has no edges left"):
        eq.UMAP(target_weight=1, n_iter=5).fit(blobs[0], np.arange(len(blobs[0])))


def test_transform_of_precomputed_affinities_uses_the_scale_of_the_fit(blobs):
    X = blobs[0]
    mu = eq.UMAP(random_state=0).problem(X).affinities
    umap = eq.UMAP(affinity="precomputed", random_state=0).fit(10 * mu)
    Y = umap.transform(10 * mu[:20])
    nearest = np.sqrt(((Y[:, None] - umap.embedding_) ** 2).sum(axis=2)).min(axis=1)
    assert np.median(nearest) < 0.3
