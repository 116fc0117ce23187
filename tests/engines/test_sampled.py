import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from support.cases import KERNELS, UserKernel, relative_error

import equipoise as eq
from equipoise import _core
from equipoise.engines import Exact, Reference, Sampled
from equipoise.engines.sampled import draw_offsets
from equipoise.evaluate import neighbor_recall
from equipoise.kernels import Gaussian, RegularizedPowerLaw, StudentT

ALL_PARTNERS = 10**9  # more partners than points in any test


def cloud(rng, n, d):
    return (2 * rng.standard_normal((n, d))).astype(np.float32)


def nearest_graph(Y, k):
    """Return the directed graph of the k nearest neighbours."""
    d2 = ((Y[:, None].astype(np.float64) - Y) ** 2).sum(axis=2)
    columns = np.argsort(d2, axis=1)[:, 1 : k + 1]
    indptr = np.arange(0, columns.size + 1, k)
    return sparse.csr_matrix((np.ones(columns.size), columns.ravel(), indptr), shape=d2.shape)


def sampled_engine(seed=0, partners=32, graph=None, threads=1):
    engine = Sampled(threads, seed, partners)
    if graph is not None:
        engine.sum_exactly(graph, 5)
    return engine


@pytest.mark.parametrize("n", [3, 10, 101, 300, 1001])
@pytest.mark.parametrize("partners", [1, 2, 16, 64])
def test_offsets_are_distinct_symmetric_and_weights_sum_to_n_minus_1(n, partners):
    for seed in range(5):
        offsets, weights = draw_offsets(n, partners, seed)
        assert len(set(offsets)) == len(offsets) == min(n - 1, max(2, partners) + (n % 2 == 0))
        assert offsets.min() >= 1 and offsets.max() <= n - 1
        weight = dict(zip(offsets, weights, strict=True))
        assert all(weight[n - o] == weight[o] for o in offsets)
        assert weights.sum() == pytest.approx(n - 1)


@pytest.mark.parametrize("n", [14, 15])
def test_every_offset_is_drawn_equally_often(n):
    total = np.zeros(n)
    for seed in range(4000):
        offsets, weights = draw_offsets(n, 4, seed)
        total[offsets] += weights
    # Each is drawn with p = 1/3, as one of 2 of 6 or 7 pairs, and then has weight 1/p: variance 1/p - 1.
    assert np.abs(total[1:] / 4000 - 1).max() < 4.5 * np.sqrt(2.5 / 4000)


@pytest.mark.parametrize("kernel", [*KERNELS, UserKernel()], ids=lambda k: repr(k).split(" object")[0])
@pytest.mark.parametrize(("n", "d"), [(2, 4), (64, 4), (101, 5), (65, 19)])
def test_sampling_all_partners_gives_the_exact_field(rng, kernel, n, d):
    for dtype in (np.float32, np.float64):
        Y = cloud(rng, n, d).astype(dtype)
        for charges in (None, rng.random(n), rng.standard_normal((n, 3))):
            result, truth = (
                sampled_engine(partners=ALL_PARTNERS).field(Y, kernel, charges),
                Reference().field(Y, kernel, charges),
            )
            assert result.potential.shape == truth.potential.shape and result.gradient.shape == truth.gradient.shape
            tolerance = 5e-6 if dtype == np.float32 or isinstance(kernel, UserKernel) else 1e-13
            assert relative_error(result.potential, truth.potential) <= tolerance
            assert relative_error(result.gradient, truth.gradient) <= tolerance


@pytest.mark.parametrize(
    "kernel", [StudentT(), RegularizedPowerLaw(3.0, 0.1), UserKernel()], ids=lambda k: type(k).__name__
)
@pytest.mark.parametrize("n", [400, 401])
@pytest.mark.parametrize("stored", [False, True], ids=["random", "with stored pairs"])
def test_mean_over_seeds_is_the_exact_field(rng, kernel, n, stored):
    Y, charges, times = cloud(rng, n, 5), rng.uniform(0.5, 2, (n, 2)), 400
    engine = sampled_engine(graph=nearest_graph(Y, 10) if stored else None)
    truth = Exact(1).field(Y, kernel, charges)
    for part, exact in enumerate(truth):
        draws = []
        for engine.seed in range(times):
            draws.append(engine.field(Y, kernel, charges)[part])
        z = (np.mean(draws, axis=0) - exact) / (np.std(draws, axis=0) / np.sqrt(times))
        # Standard normal if unbiased. Points share their offsets, so the entries of a column are not independent.
        assert np.sqrt((z**2).mean()) < 1.3 and np.abs(z).max() < 6


def test_variance_matches_the_formula(rng):
    n, partners = 401, 32
    Y, kernel = cloud(rng, n, 5), StudentT()
    d2 = ((Y[:, None].astype(np.float64) - Y) ** 2).sum(axis=2)
    k = kernel.value(d2)
    pairs = np.array([[k[i, (i + o) % n] + k[i, (i - o) % n] for o in range(1, 201)] for i in range(n)])
    H, h = 200, partners // 2
    stated = H**2 / h * (1 - h / H) * pairs.var(axis=1, ddof=1)
    seen = np.var([sampled_engine(seed, partners).field(Y, kernel).potential for seed in range(600)], axis=0)
    assert np.median(seen / stated) == pytest.approx(1, abs=0.1)


def test_stored_pairs_reduce_the_variance(rng):
    Y, kernel = cloud(rng, 1000, 5), RegularizedPowerLaw(3.0, 0.1)
    truth, error = Exact(1).field(Y, kernel).gradient, {}
    for graph in (None, nearest_graph(Y, 40)):
        draws = [sampled_engine(seed, 64, graph).field(Y, kernel).gradient for seed in range(20)]
        error[graph is None] = np.sqrt(np.mean([np.linalg.norm(g - truth) ** 2 for g in draws])) / np.linalg.norm(truth)
    assert error[False] < 0.2 * error[True]


def test_stored_pairs_are_summed_exactly(rng):
    n = 300
    Y, charges = cloud(rng, n, 6), rng.random((n, 2))
    full = sparse.csr_matrix(np.ones((n, n)))  # its diagonal is ignored
    for kernel in (*KERNELS, UserKernel()):
        result, truth = (
            sampled_engine(partners=8, graph=full).field(Y, kernel, charges),
            Exact(1).field(Y, kernel, charges),
        )
        assert relative_error(result.potential, truth.potential) <= 2e-5
        assert relative_error(result.gradient, truth.gradient) <= 2e-5


@pytest.mark.parametrize("n", [1000, 1001])
def test_forces_of_unit_charges_sum_to_zero(rng, n):
    Y = cloud(rng, n, 5)
    for graph in (None, nearest_graph(Y, 15)):
        gradient = sampled_engine(graph=graph).field(Y, StudentT()).gradient
        assert np.abs(gradient.sum(axis=0)).max() <= 1e-6 * np.abs(gradient).sum()


def test_forces_are_the_gradient_of_the_estimated_loss(rng):
    X = rng.standard_normal((600, 8))
    problem = eq.TSNE(5, engine="sampled", random_state=0, perplexity=5).problem(X)
    Y, step = 3 * rng.standard_normal((600, 5)), rng.standard_normal((600, 5))
    change = (problem.loss(Y + 1e-3 * step) - problem.loss(Y - 1e-3 * step)) / 2e-3
    assert change == pytest.approx(float((problem.gradient(Y) * step).sum()), rel=1e-3)
    assert problem.loss(Y) == problem.loss(Y)
    assert_allclose(problem.attraction(Y) + problem.repulsion(Y), -problem.gradient(Y), rtol=1e-12, atol=1e-18)


@pytest.mark.parametrize("kernel", [StudentT(), Gaussian(), RegularizedPowerLaw(3.0, 0.1), UserKernel()], ids=repr)
def test_sampled_engine_is_identical_for_any_threads_and_instruction_set(rng, kernel):
    Y, charges = cloud(rng, 3000, 5), rng.random((3000, 2))
    graph = sparse.random(3000, 3000, 0.01, format="csr", random_state=0, dtype=np.float32)

    def all_results(threads):
        engine = sampled_engine(3, 128, graph, threads)
        parts = [*engine.field(Y, kernel), *engine.field(Y, kernel, charges), *engine.freeze(Y, kernel)(Y[:100])]
        parts.append(engine.edges(Y, graph, kernel, -1.0, potential=True)[1])
        return b"".join(part.tobytes() for part in parts)

    seen = [all_results(threads) for threads in (1, 2, 4)]
    _core.use_base_instruction_set(True)
    try:
        seen.append(all_results(2))
    finally:
        _core.use_base_instruction_set(False)
    assert len(set(seen)) == 1


@pytest.mark.parametrize("d", [4, 5, 8, 9, 16, 33])
@pytest.mark.parametrize("kernel", [*KERNELS, UserKernel()], ids=lambda k: repr(k).split(" object")[0])
def test_edges_match_the_reference_in_many_dimensions(rng, kernel, d):
    Y = cloud(rng, 200, d) * np.float32(np.sqrt(3 / d))  # distances as in the mesh tests
    A = sparse.random(200, 200, 0.1, format="csr", random_state=0, dtype=np.float32)
    rows = A[:17]
    for b in (-1.0, -0.75):
        truth = Reference().edges(Y, A, kernel, b, potential=True)
        for potential in (True, False):
            psi, force = sampled_engine(threads=2).edges(Y, A, kernel, b, potential=potential)
            assert relative_error(force, truth[1]) <= 2e-5
            assert np.isnan(psi) != potential
            if potential:
                assert_allclose(psi, truth[0], rtol=2e-5, atol=2e-5 * A.sum())
        to = sampled_engine().edges_to(Y[:17], Y, rows, kernel, b)
        assert relative_error(to, Reference().edges_to(Y[:17], Y, rows, kernel, b)) <= 2e-5


def test_frozen_field_matches_the_reference(rng):
    Y, targets, charges = cloud(rng, 500, 5), cloud(rng, 70, 5), rng.random((500, 2))
    for kernel in (StudentT(), UserKernel()):
        result, truth = sampled_engine().freeze(Y, kernel)(targets), Reference().freeze(Y, kernel)(targets)
        assert relative_error(result.potential, truth.potential) <= 5e-6
        assert relative_error(result.gradient, truth.gradient) <= 5e-6
    both = sampled_engine().freeze(Y, StudentT(), charges)(targets)
    for part, exact in zip(both, Reference().freeze(Y, StudentT(), charges)(targets), strict=True):
        assert part.shape == exact.shape and relative_error(part, exact) <= 5e-6
    one = sampled_engine().freeze(Y, StudentT(), charges[:, 1])(targets)
    assert_array_equal(both.potential[:, 1], one.potential)
    assert_array_equal(both.gradient[:, 1], one.gradient)
    few = [Sampled(1, seed, sources=100).freeze(Y, StudentT())(targets).potential for seed in range(200)]
    truth = Reference().freeze(Y, StudentT())(targets).potential
    z = (np.mean(few, axis=0) - truth) / (np.std(few, axis=0) / np.sqrt(200))
    assert np.abs(z).max() < 5
    at = Sampled(1, 0, sources=100).freeze(Y, StudentT())
    assert_array_equal(at(targets).gradient[3:4], at(targets[3:4]).gradient)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "exact"),
    [
        (eq.TSNE(5), eq.TSNE(5)),
        (eq.SNE(5), eq.SNE(5)),
        (eq.GSNE(5), eq.GSNE(5)),
        (eq.SphericalSNE(5), eq.SphericalSNE(5)),
        (eq.SymmetricSNE(5, kernel=UserKernel()), eq.TSNE(5, dof=2)),  # the same kernel in another unit
    ],
    ids=lambda method: type(method).__name__,
)
def test_sampled_map_is_nearly_as_good_as_the_exact_map(method, exact):
    X = eq.data.load("digits").X[:600]
    problem = method.set_params(random_state=0, engine="sampled", n_iter=500, n_jobs=1).problem(X)
    problem.engine.partners = 64
    assert sparse.issparse(problem.affinities)
    best = exact.set_params(random_state=0, engine="exact", n_iter=500, n_jobs=1).fit_transform(X)
    assert neighbor_recall(X, problem.optimize()) >= 0.97 * neighbor_recall(X, best)


def test_fit_reports_the_sampled_engine():
    fitted = eq.TSNE(5, engine="sampled", random_state=0, n_iter=10, n_jobs=1).fit(eq.data.load("digits").X[:600])
    assert fitted.engine_ == "sampled" and fitted.embedding_.shape == (600, 5) and sparse.issparse(fitted.affinities_)


def test_equal_seeds_give_identical_maps():
    X = eq.data.load("digits").X[:600]
    maps = [
        eq.TSNE(5, engine="sampled", random_state=seed, n_iter=60, n_jobs=jobs).fit_transform(X).tobytes()
        for seed, jobs in ((0, 1), (0, 2), (0, 4), (1, 1))
    ]
    assert maps[0] == maps[1] == maps[2] != maps[3]
    problem = eq.TSNE(5, engine="sampled", random_state=0, n_iter=60).problem(X)
    assert problem.optimize().tobytes() == problem.optimize().tobytes() == maps[0]


def test_transform_after_pickling():
    X = eq.data.load("digits").X
    method = eq.TSNE(5, engine="sampled", random_state=0, n_iter=50).fit(X[:600])
    first = method.transform(X[600:603])
    assert_array_equal(pickle.loads(pickle.dumps(method)).transform(X[600:603]), first)


def test_sampled_loss_decreases_and_converges_like_the_exact_loss():
    X = eq.data.load("digits").X[:600]
    rule = eq.Momentum(min_loss_change=1e-3)
    ends = {}
    for engine in ("exact", "sampled"):
        problem = eq.TSNE(5, engine=engine, random_state=0, n_iter=3000, optimizer=rule, n_jobs=1).problem(X)
        if engine == "sampled":
            problem.engine.partners = 64
        problem.optimize()
        late = problem.loss_curve[problem.loss_curve[:, 0] > 300, 1]
        assert problem.stopped == "min_loss_change" and (np.diff(late) < 0).all()
        ends[engine] = problem.n_iter
    assert 0.6 < ends["sampled"] / ends["exact"] < 1.7


def test_invalid_engine_choices_and_arguments_raise():
    X = eq.data.load("digits").X[:80]
    with pytest.raises(ValueError, match=r'not 5; use engine="sampled"'):
        eq.TSNE(5, engine="grid").problem(X)
    with pytest.raises(ValueError, match=r'but this divergence needs all pairs; use engine="exact"'):
        eq.GSNE(5, alpha=1.5, engine="sampled").problem(X)
    native, Y, out = _core.Kernel.gaussian(), np.zeros((5, 4)), (np.empty((5, 1)), np.empty((5, 1, 4)))
    for offsets, weights, charges, message in (
        ([5], [1.0], (5, 1), "offsets must be between 1 and n - 1"),
        ([0], [1.0], (5, 1), "offsets must be between 1 and n - 1"),
        ([1], [1.0, 1.0], (5, 1), "one element per offset"),
        ([1], [1.0], (4, 1), r"charges must have shape \(n, m\)"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.field_offsets(native, np.ones(charges), Y, np.array(offsets), np.array(weights), None, *out, 1)
    with pytest.raises(ValueError, match="targets must have shape"):
        _core.field_at(native, np.ones((5, 1)), np.zeros((5, 3)), Y, *out, 1)
