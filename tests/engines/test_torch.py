"""The torch engine on the CPU matches the reference for every kernel and every method."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from support.cases import KERNELS, UserKernel, norm_error, relative_error, unequal_digits, without_diagonal

import equipoise as eq
from equipoise.affinities import perplexity as affinities
from equipoise.arrays.csr import symmetrized
from equipoise.engines import Exact, Reference, Sampled, choose_device, choose_engine, make_engine
from equipoise.engines.tables import edge_table
from equipoise.kernels import Gaussian, PowerLaw, RegularizedPowerLaw, StudentT
from equipoise.methods import ALL
from equipoise.neighbors.search import nearest_neighbors

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from equipoise.affinities.perplexity import conditional_rows  # noqa: E402
from equipoise.arrays.device_csr import Rows  # noqa: E402
from equipoise.arrays.tiles import in_tiles  # noqa: E402
from equipoise.engines.torch.direct import Direct  # noqa: E402
from equipoise.engines.torch.engine import Torch  # noqa: E402
from equipoise.engines.torch.lookup import Lookup  # noqa: E402
from equipoise.engines.torch.particle_mesh import ParticleMesh, spline  # noqa: E402
from equipoise.neighbors.gpu_scan import nearest  # noqa: E402
from equipoise.neighbors.recall import estimate_recall  # noqa: E402

TOL = 0.01
ANY_KERNEL = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def engine(tol=TOL):
    return Torch(1, tol, "cpu")


def graph(rng, n):
    A = sparse.random(n, n, 12 / n, format="csr", dtype=np.float32, random_state=rng)
    return without_diagonal(A)


@ANY_KERNEL
@pytest.mark.parametrize(("d", "extent"), [(1, 1.0), (2, 1.0), (2, 30.0), (3, 1.0), (5, 1.0)])
def test_field_matches_the_reference_within_tol(kernel, d, extent):
    rng = np.random.default_rng(0)
    Y = (extent * kernel.length * rng.standard_normal((300, d))).astype(np.float32)
    for charges in (None, rng.random(300), rng.standard_normal((300, 2))):
        found, truth = engine().field(Y, kernel, charges), Reference().field(Y, kernel, charges)
        assert found.potential.shape == truth.potential.shape and found.gradient.shape == truth.gradient.shape
        assert norm_error(found.gradient, truth.gradient) <= TOL
        assert norm_error(found.potential, truth.potential) <= TOL


@ANY_KERNEL
@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("b", [-1.0, -0.75, 0.0])
def test_edges_match_the_reference(kernel, d, b):
    rng = np.random.default_rng(1)
    Y, A = (2 * kernel.length * rng.standard_normal((200, d))).astype(np.float32), graph(rng, 200)
    psi, force = engine().edges(Y, A, kernel, b, potential=True)
    true_psi, true_force = Reference().edges(Y, A, kernel, b, potential=True)
    assert relative_error(force, true_force) <= 5e-6
    assert abs(psi - true_psi) <= 5e-6 * max(abs(true_psi), 0.1 * A.sum())
    assert np.isnan(engine().edges(Y, A, kernel, b, potential=False)[0])


def test_empty_rows_have_no_force():
    A = sparse.csr_matrix(([1.0, 1.0], ([0, 3], [3, 0])), shape=(5, 5), dtype=np.float32)
    Y = np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32)
    _, force = engine().edges(Y, A, StudentT(), -1.0, potential=False)
    assert not force[[1, 2, 4]].any() and force[[0, 3]].all()


def test_kinked_kernels_and_many_dimensions_use_direct_sums():
    rng = np.random.default_rng(0)
    transforms = {}
    for name, kernel, d in (("kink", PowerLaw(), 2), ("five", StudentT(), 5), ("smooth", StudentT(), 2)):
        Y = 5 * rng.standard_normal((3000, d)).astype(np.float32)
        transforms[name] = type(engine()._transform(kernel, engine()._source(Y, None)))
    assert transforms == {"kink": Direct, "five": Direct, "smooth": ParticleMesh}


def test_float64_and_dense_weights_match_the_exact_engine():
    rng = np.random.default_rng(0)
    Y, A = rng.standard_normal((50, 2)), rng.random((50, 50))
    for weights in (A, sparse.csr_matrix(A)):
        found = engine().edges(Y, weights, StudentT(), -1.0, potential=True)
        truth = Exact(1).edges(Y, weights, StudentT(), -1.0, potential=True)
        assert found[0] == truth[0]
        np.testing.assert_array_equal(found[1], truth[1])


def test_spline_weights_sum_to_one_and_slopes_are_derivatives():
    weights, slopes = spline()
    f, h = np.linspace(0, 0.999, 50)[:, None], 1e-6
    powers = np.arange(6)
    np.testing.assert_allclose((f**powers @ weights).sum(axis=1), 1, rtol=1e-14)
    difference = ((f + h) ** powers @ weights - (f - h) ** powers @ weights) / (2 * h)
    np.testing.assert_allclose(f**powers @ slopes, difference, atol=1e-9)


def test_lookup_matches_the_kernel():
    kernel, d2 = RegularizedPowerLaw(2.5, 0.3), np.float32(10.0) ** np.linspace(-14, 14, 500, dtype=np.float32)
    look = Lookup(edge_table(kernel, -1.0), torch.device("cpu"))
    found = look.slope(torch.from_numpy(d2)).numpy()
    inside = (d2 > 1e-10) & (d2 < 1e10)
    np.testing.assert_allclose(found[inside], kernel.log_slope(d2[inside].astype(np.float64)), rtol=2e-5)
    np.testing.assert_array_equal(found, look.both(torch.from_numpy(d2))[1].numpy())


def test_device_copy_is_freed_with_its_matrix():
    rng = np.random.default_rng(0)
    Y, A, grid = rng.standard_normal((50, 2)).astype(np.float32), graph(rng, 50), engine()
    grid.edges(Y, A, StudentT(), -1.0, potential=False)
    assert len(grid._rows) == 1
    del A
    assert not grid._rows


def test_out_of_memory_retries_with_smaller_tiles():
    seen, tried = [], []

    def process(part):
        tried.append(part)
        if part.stop - part.start > 2:
            raise torch.cuda.OutOfMemoryError("no room")
        seen.extend(range(part.start, part.stop))

    in_tiles(7, 1, process)
    assert seen == list(range(7)) and tried[0] == slice(0, 7)

    def always_fail(part):
        raise torch.cuda.OutOfMemoryError("no room")

    with pytest.raises(
        MemoryError, match=r"GPU out of memory: one row of 1000000000 numbers needs about 4 GB.* or device=.cpu.\."
    ):
        in_tiles(3, 10**9, always_fail)


@pytest.fixture(scope="module")
def digits():
    return unequal_digits(400)


@pytest.mark.slow
@pytest.mark.parametrize("Method", ALL, ids=lambda Method: Method.__name__)
def test_every_method_matches_the_cpu_result(Method, digits):
    if not issubclass(Method, eq.Embedding):
        pytest.skip("closed forms and stress do not use edges and field; see test_torch_classical.py")
    n_iter = 500 if Method is eq.SphericalSNE else 150  # runs on the sphere converge slowly
    settings = {"random_state": 0, "n_iter": n_iter, "n_jobs": 1}
    on_torch = Method(engine="torch", device="cpu", **settings).fit(digits)
    on_cpu = Method(engine="grid", **settings).fit(digits)
    assert (on_torch.engine_, on_torch.embedding_.dtype) == ("torch", np.float32)
    assert on_torch.loss_ <= 1.02 * on_cpu.loss_
    problem = Method(engine="torch", device="cpu", tol=1e-3, **settings).problem(digits)
    same = Method(engine="grid", tol=1e-3, **settings).problem(digits)
    Y = on_cpu.embedding_
    assert problem.loss(Y) == pytest.approx(same.loss(Y), rel=5e-3)
    truth = same.objective.balance(problem.geometry.work(Y.astype(np.float64)), Exact(1), loss=False)
    for force in ("attraction", "repulsion"):
        true = problem.geometry.pull_back(Y, getattr(truth, force))
        error, mesh = (norm_error(getattr(p, force)(Y), true) for p in (problem, same))
        assert error <= max(problem.engine.tol, mesh)  # DKPCA's fields nearly cancel; the CPU mesh errs more
    assert on_torch.transform(digits[:3] + 0.01).shape == (3, on_torch.n_components)


def test_fortran_ordered_init_gives_the_same_map(digits):
    start = np.random.default_rng(0).standard_normal((len(digits), 3)).astype(np.float32)
    settings = {"engine": "torch", "device": "cpu", "n_iter": 20}
    rows, columns = (
        eq.SphericalSNE(init=order(start), **settings) for order in (np.ascontiguousarray, np.asfortranarray)
    )
    np.testing.assert_array_equal(rows.fit_transform(digits), columns.fit_transform(digits))
    assert columns.problem(digits)._state.U.is_contiguous()  # required by CUDA graph replay


def test_divergence_raises(digits):
    descent = eq.optimize.GradientDescent()
    with pytest.raises(
        FloatingPointError, match="the embedding contains NaN or infinite coordinates; lower learning_rate"
    ):
        eq.TSNE(engine="torch", device="cpu", random_state=0, learning_rate=1e30, optimizer=descent).fit(digits)


def test_equal_seeds_and_pickles_give_identical_results(digits, tmp_path):
    fit = eq.TSNE(engine="torch", device="cpu", random_state=0, n_iter=60).fit(digits)
    again = eq.TSNE(engine="torch", device="cpu", random_state=0, n_iter=60, n_jobs=1).fit(digits)
    np.testing.assert_array_equal(fit.embedding_, again.embedding_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fit)).transform(digits[:5]), fit.transform(digits[:5]))


def test_user_kernel_matches_the_cpu_result(digits):
    on_torch, on_cpu = (
        eq.SymmetricSNE(kernel=UserKernel(), engine=name, random_state=0, n_iter=60).fit(digits)
        for name in ("torch", "grid")
    )
    assert on_torch.loss_ == pytest.approx(on_cpu.loss_, rel=0.02)


def test_choose_device(monkeypatch):
    assert choose_device("auto", "auto") == ("auto", "cpu") and choose_device("grid", "cpu") == ("grid", "cpu")
    assert choose_device("torch", "cpu") == ("torch", "cpu")
    assert choose_engine("torch", 10, 2, False) == "torch"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("torch", "auto") == ("torch", "cuda") == choose_device("auto", "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("torch", "auto") == ("torch", "cpu")
    with pytest.raises(ValueError, match=r'device="cuda", but PyTorch .* finds no GPU; use device="cpu" or "auto"'):
        choose_device("auto", "cuda")
    with pytest.raises(ValueError, match='requires engine="torch" or "auto"; engine=\'grid\' runs on the CPU'):
        eq.TSNE(engine="grid", device="cuda").fit(np.eye(9))
    with pytest.raises(ValueError, match="device must be one of 'auto', 'cpu', 'cuda', got 'tpu'"):
        eq.TSNE(device="tpu").fit(np.eye(9))


def test_missing_pytorch_raises_with_install_hint(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("equipoise.engines.choose.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'engine="torch" needs PyTorch: pip install "equipoise\[gpu\]"'):
        eq.TSNE(engine="torch").fit(np.eye(9))
    assert isinstance(make_engine("exact", 1, 0.1), Exact)


def test_gaussian_forces_do_not_underflow_on_a_wide_map():
    Y = np.float32(3.0) * np.arange(40, dtype=np.float32).reshape(20, 2)
    found, truth = engine().field(Y, Gaussian()), Reference().field(Y, Gaussian())
    assert norm_error(found.gradient, truth.gradient) <= TOL  # forces of 6e-31, representable in float32


def test_device_neighbors_match_brute_force(digits):
    jittered = digits + 0.01 * np.random.default_rng(0).standard_normal(digits.shape)
    X = torch.from_numpy(jittered)
    indices, d2, _ = nearest(X, X, 20, torch.arange(len(X)))
    D = cdist(jittered, jittered)
    np.fill_diagonal(D, np.inf)
    true = np.argsort(D, axis=1)[:, :20]
    np.testing.assert_array_equal(indices.numpy(), true)
    np.testing.assert_allclose(d2.numpy(), np.take_along_axis(D, true, axis=1) ** 2, rtol=1e-5)
    sample = torch.arange(0, 400, 7)
    kth = nearest(X[sample], X, 21).d2[:, -1]
    assert estimate_recall(d2[sample], kth) == 1.0
    assert estimate_recall(1.5 * d2[sample], kth) < 0.9


def test_duplicates_are_neighbors_of_each_other():
    X = torch.tensor([[0.0, 1.0]]).repeat(5, 1)
    indices, d2, _ = nearest(X, X, 2, torch.arange(len(X)))
    assert not d2.any() and indices.tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]]


def test_conditional_rows_match_the_cpu(digits):
    graph = nearest_neighbors(digits, 30, "euclidean", n_threads=1)
    D2 = graph.into_squared(len(digits))
    P = affinities.conditional(D2, np.array([10.0]), np.float64, 1)
    on_torch = conditional_rows(torch.from_numpy(D2.data.reshape(-1, 30)), 10.0)
    np.testing.assert_allclose(on_torch.numpy().ravel(), P.data, rtol=1e-7, atol=1e-15)
    S = symmetrized(P)
    rows = Rows.of_neighbors(on_torch, torch.from_numpy(D2.indices.reshape(-1, 30))).symmetrized().host()
    np.testing.assert_array_equal(rows.indptr, S.indptr)
    np.testing.assert_array_equal(rows.indices, S.indices)
    np.testing.assert_allclose(rows.data, S.data, rtol=1e-7)


def test_equal_distances_share_affinity_evenly():
    p = conditional_rows(torch.tensor([[2.0, 2.0, 2.0, 2.0], [0.0, 0.0, 0.0, 9.0]]), 2.0)
    np.testing.assert_allclose(p.numpy(), [[0.25] * 4, [1 / 3, 1 / 3, 1 / 3, 0]], atol=1e-6)


@pytest.mark.parametrize("n", [3000, 3001])
def test_many_dimensions_match_the_sampled_engine(n):
    rng = np.random.default_rng(0)
    Y, P = rng.standard_normal((n, 5)).astype(np.float32), graph(rng, n)
    on_torch, on_cpu = Torch(1, TOL, "cpu", seed=7), Sampled(1, 7)
    for one in (on_torch, on_cpu):
        one.sum_exactly(P, 5)
    for charges in (None, rng.random((n, 2))):
        found, same = (one.field(Y, StudentT(), charges) for one in (on_torch, on_cpu))
        assert norm_error(found.potential, same.potential) <= 1e-6
        assert norm_error(found.gradient, same.gradient) <= 1e-6
    targets = Y[:7] + np.float32(0.1)
    found, same = (one.freeze(Y, StudentT())(targets) for one in (on_torch, on_cpu))
    assert norm_error(found.gradient, same.gradient) <= 1e-5
    again = pickle.loads(pickle.dumps(on_torch))
    np.testing.assert_array_equal(again.field(Y, StudentT()).gradient, on_torch.field(Y, StudentT()).gradient)


@pytest.mark.parametrize(("n", "scale"), [(250, 3.0), (250, 1000.0), (20_000, 3.0)], ids=["mesh", "direct", "large"])
def test_the_field_at_a_target_does_not_depend_on_the_other_targets(n, scale):
    rng = np.random.default_rng(0)
    Y, targets = (scale * rng.standard_normal((m, 2)).astype(np.float32) for m in (n, 300))
    field = Torch(1, TOL, "cpu").freeze(Y, StudentT())
    together = field(targets)
    for part in (slice(0, 1), slice(7, 20), slice(250, 300)):
        for found, same in zip(field(targets[part]), together, strict=True):
            np.testing.assert_array_equal(found, same[part])
    assert [array.shape for array in field(targets[:0])] == [(0,), (0, 2)]


def test_map_in_five_dimensions_matches_the_sampled_engine():
    X = np.random.default_rng(0).standard_normal((3100, 8))
    fits = [eq.TSNE(5, engine=name, n_iter=12, random_state=0).fit(X) for name in ("torch", "sampled")]
    assert fits[0].loss_ == pytest.approx(fits[1].loss_, rel=0.01)


def test_out_of_memory_error_states_the_required_memory(digits, monkeypatch):
    def raise_out_of_memory(self):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Rows, "symmetrized", raise_out_of_memory)
    message = r"GPU out of memory: TSNE with 400 rows of 64 columns needs about 0\.\d+ GB"
    with pytest.raises(MemoryError, match=message):
        eq.TSNE(engine="torch", device="cpu").fit(digits)
    with pytest.raises(MemoryError, match=message):
        eq.TSNE(engine="torch", device="cpu").problem(digits)


def test_estimate_memory_covers_the_torch_engine():
    small, large = (eq.estimate_memory(n, 50, perplexity=30, engine="torch").peak for n in (10_000, 1_000_000))
    assert 7e9 < large < 12e9 and small < large / 5  # 6.8 GB were measured with 24 columns


def test_divergence_over_all_pairs_raises():
    with pytest.raises(
        ValueError, match=r'engine="torch" stores P for the nearest neighbours only, but this divergence needs P'
    ):
        eq.GSNE(alpha=1.5, engine="torch").fit(np.random.default_rng(0).standard_normal((50, 4)))


@pytest.mark.parametrize(
    "method",
    [eq.TSNE(engine="torch", n_iter=2), eq.PCA(engine="torch"), eq.Isomap(engine="torch"), eq.MDS(engine="torch")],
    ids=repr,
)
def test_out_of_memory_anywhere_raises_memory_error(method, digits, monkeypatch):
    def raise_out_of_memory(*arguments, **settings):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    X = torch.as_tensor(digits)
    fitted = clone(method).fit(X)
    for name in ("Tensor.double", "as_tensor", "Tensor.cpu"):
        monkeypatch.setattr(f"torch.{name}", raise_out_of_memory)
    named = f"GPU out of memory: {type(method).__name__} with 400 rows of 64 columns"
    for call in (method.fit, method.problem):
        with pytest.raises(MemoryError, match=f"{named} needs about"):
            call(digits)
    with pytest.raises(MemoryError, match=f"{named} to place among 400 fitted rows needs about"):
        fitted.transform(X)


def test_constant_metric_tensor_matches_the_cpu_result(digits):
    fits = [
        eq.TSNE(g=np.diag([1.0, 4.0]), engine=name, n_iter=60, random_state=0).fit(digits) for name in ("torch", "grid")
    ]
    assert fits[0].loss_ == pytest.approx(fits[1].loss_, rel=0.01)


def test_plain_descent_keeps_float32(digits):
    fit = eq.TSNE(engine="torch", optimizer=eq.optimize.GradientDescent(), n_iter=20, random_state=0).fit(digits)
    assert fit.embedding_.dtype == np.float32


def test_sparse_tensors_and_invalid_deterministic_raise():
    message = r"X is a torch.sparse_coo tensor; pass a dense tensor, for example X.to_dense\(\)"
    with pytest.raises(ValueError, match=message):
        eq.TSNE(engine="torch").fit(torch.eye(30).to_sparse())
    with pytest.raises(ValueError, match="deterministic must be True or False, got 'no'"):
        eq.TSNE(deterministic="no").fit(np.eye(30))


def test_large_integers_keep_their_precision():
    X = torch.arange(80).reshape(40, 2) + 2**40
    maps = [eq.TSNE(engine="torch", random_state=0, n_iter=30).fit_transform(T) for T in (X, X.numpy())]
    np.testing.assert_array_equal(maps[0].numpy(), maps[1])
