"""Triton kernels against their PyTorch equivalents.

Runs on a GPU or with Triton's interpreter: TRITON_INTERPRET=1 pytest tests/engines/test_triton.py (NumPy before 2.4).
"""

from __future__ import annotations

import os
import subprocess
import sys
from inspect import signature

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from support.cases import relative_error

import equipoise as eq
from equipoise.engines.mesh.plan import Plan
from equipoise.engines.tables import edge_table
from equipoise.kernels import Gaussian, StudentT

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is installed only with GPU builds of PyTorch")
GPU = torch.cuda.is_available()
if not GPU and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("no GPU, and TRITON_INTERPRET=1 is not set", allow_module_level=True)

from equipoise.affinities import perplexity as affinities  # noqa: E402
from equipoise.affinities import perplexity_triton  # noqa: E402
from equipoise.arrays import sums_triton as sums  # noqa: E402
from equipoise.arrays.device_csr import Rows  # noqa: E402
from equipoise.arrays.namespace import centered  # noqa: E402
from equipoise.arrays.triton_kernels import recorded  # noqa: E402
from equipoise.engines.base import LinearForce, StepPlan  # noqa: E402
from equipoise.engines.torch import fused  # noqa: E402
from equipoise.engines.torch.device_arrays import DeviceSource  # noqa: E402
from equipoise.engines.torch.edges import stored_edges  # noqa: E402
from equipoise.engines.torch.engine import DIRECT, GraphStepper, Torch  # noqa: E402
from equipoise.engines.torch.lookup import Lookup  # noqa: E402
from equipoise.engines.torch.particle_mesh import ParticleMesh, transpose_padded  # noqa: E402
from equipoise.engines.torch.replay import CudaGraph  # noqa: E402
from equipoise.methods.gpu_kernels import launch_descent, launch_near_field, search  # noqa: E402
from equipoise.neighbors import blocks_triton, centers_triton, gpu_blocks  # noqa: E402
from equipoise.neighbors import gpu as neighbors  # noqa: E402
from equipoise.neighbors.gpu_blocks import Blocks  # noqa: E402
from equipoise.optimize import step_torch as step  # noqa: E402
from equipoise.optimize import step_triton as rows_fused  # noqa: E402
from equipoise.optimize.rules import StepParameters  # noqa: E402

HOST, DEVICE = torch.device("cpu"), torch.device("cuda" if GPU else "cpu")
DIMENSIONS = pytest.mark.parametrize("d", [1, 2, 3])
pytestmark = [pytest.mark.gpu, *([] if GPU else [pytest.mark.filterwarnings("ignore")])]  # the interpreter warns
requires_gpu = pytest.mark.skipif(not GPU, reason="requires a GPU")


def points(n, d, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).uniform(-3, 3, (n, d)).astype(np.float32))


def assert_close(found, true, tolerance):
    assert relative_error(found.cpu().double().numpy(), true.cpu().double().numpy()) <= tolerance


@DIMENSIONS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [0, 2])
def test_spread_and_gather_match_pytorch(d, dtype, m):
    Y = points(200, d)
    charges = None if m == 0 else torch.from_numpy(np.random.default_rng(1).random((200, m)).astype(np.float32))
    mesh = ParticleMesh(StudentT(), Plan(0.5, (30,) * d, 0.0, dtype), HOST, True)
    mesh.copies = 3
    source, base = DeviceSource(Y, charges), torch.zeros(max(1, m), dtype=torch.float64)
    grid = mesh._spread(source, charges)
    phi = mesh._convolve(grid)
    on_gpu = [None if x is None else x.to(DEVICE) for x in (Y, charges, mesh._unit(source), phi, base)]
    assert torch.equal(fused.bounding_box(on_gpu[0]).cpu(), source.box)
    box = source.box.to(DEVICE)
    assert_close(fused.spread(mesh, on_gpu[0], box, on_gpu[1], on_gpu[2]), grid, 1e-6)
    potential, gradient = fused.gather(mesh, on_gpu[0], box, on_gpu[3].contiguous(), on_gpu[4])
    expected = mesh._gather(Y, source.box, phi, base)
    assert_close(potential, expected[0], 1e-6)
    assert_close(gradient, expected[1], 1e-5)


@DIMENSIONS
@pytest.mark.parametrize("kernel", [StudentT(), Gaussian()], ids=repr)
@pytest.mark.parametrize("potential", [True, False])
def test_edges_match_pytorch(d, kernel, potential):
    A = sparse.random(60, 60, 0.1, format="csr", dtype=np.float32, random_state=0)
    Y, table = points(60, d), edge_table(kernel, -1.0)
    psi, force = stored_edges(Y, Rows.of(A, HOST), Lookup(table, HOST), potential=potential)
    found = fused.edges(Y.to(DEVICE), Rows.of(A, DEVICE), Lookup(table, DEVICE, kernel.rational), potential)
    assert_close(found[1], force, 1e-6)
    if potential:
        assert float(found[0]) == pytest.approx(float(psi), rel=1e-5)


@DIMENSIONS
def test_direct_sums_match_pytorch(d):
    Y, charges = points(60, d), torch.from_numpy(np.random.default_rng(1).random((60, 2)).astype(np.float32))
    direct = Torch(1, 0.01, "cpu")._cached_transform(StudentT(), DIRECT)
    source = DeviceSource(Y, charges)
    potential, gradient = direct.solve(source, 1)(source.Y)
    look = direct._lookup
    look.segments = look.segments.to(DEVICE)
    found = fused.direct(Y.to(DEVICE), Y.to(DEVICE), charges.to(DEVICE), look, True)
    assert_close(found[0], potential, 1e-5)
    assert_close(found[1], gradient, 1e-5)


def test_flag_is_set_when_the_map_leaves_its_bounds():
    box = torch.tensor([[0.0, 0.0], [2.0, 1.0]], device=DEVICE)
    for most, least, up in (((2.0, 1.0), 2.0, 0), ((1.9, 1.0), 0.0, 1), ((9.0, 0.9), 0.0, 1), ((9.0, 9.0), 2.1, 1)):
        flag = torch.zeros((), dtype=torch.int32, device=DEVICE)
        fused.flag_extent(box, flag, most, least)
        assert int(flag) == up
    fused.flag_extent(box * float("nan"), flag.zero_(), (9.0, 9.0), 0.0)
    assert int(flag) == 1


@DIMENSIONS
def test_momentum_step_matches_pytorch(d):
    gradient, velocity, gain = (points(50, d, seed) for seed in range(3))
    gain = gain.abs()
    on_gpu = [x.clone().to(DEVICE) for x in (gradient, velocity, gain)]
    rule = (0.3, 0.8, 0.2, 0.8, 0.5, 0.01, 1.0)
    moved = step.tensor_step(gradient, velocity, gain, StepParameters(*rule))
    for numbers in (rule[:2], torch.tensor(rule[:2], dtype=torch.float64, device=DEVICE)):
        for found, expected in zip(rows_fused.step(*on_gpu, *numbers, *rule[2:]), moved, strict=True):
            assert_close(found, expected, 1e-6)


@DIMENSIONS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_planned_step_equals_separate_operations(d, dtype):
    U, edges, gradient, velocity, gain = (points(300, d, seed).to(DEVICE) for seed in range(5))
    gradient, gain, Z = gradient.to(dtype), gain.abs(), torch.tensor(7.3, dtype=torch.float64, device=DEVICE)
    momentum, taken = torch.tensor([0.0, 0.7], device=DEVICE), torch.tensor(1, dtype=torch.int32, device=DEVICE)
    plan = StepPlan(LinearForce(None, None, None, 3.7, -2.0, 1.0), 0.3, 0.2, 0.8, 0.5, 0.01, 1.0, np.array([0.0, 0.7]))
    found = fused.advance((U, velocity, gain), (edges, gradient, Z), plan, momentum, taken)
    force = 3.7 * edges + (-2.0 / Z) * gradient
    rule = StepParameters(0.3, 0.7, 0.2, 0.8, 0.5, 0.01, 1.0)
    new_velocity, new_gain = rows_fused.step(-force, velocity, gain, *rule)
    for result, expected in zip(found, (U + new_velocity, new_velocity, new_gain), strict=True):
        assert torch.equal(result, expected)


def test_kernels_of_a_fit_can_be_recorded():
    calls = [call for d in (1, 2, 3) for call in recorded(lambda d=d: launch_descent(d))]
    names = {call.kernel.name for call in calls}
    assert names == {
        *("_accept", "_advance", "_box", "_direct", "_edges", "_flag_extent", "_gather", "_merge_boxes", "_parts"),
        *("_spread", "_step", "_subtract_mean", "_sum_copies", "_sum_parts", "_transpose_padded"),
    }
    calls += [call for d in (1, 2, 3) for call in recorded(lambda d=d: launch_near_field(d))]
    assert {call.kernel.name for call in calls} - names == {"_cells", "_near"}
    assert all(x.is_meta for call in calls for x in call.arguments if isinstance(x, torch.Tensor))


def variants_of(launch):
    """Return what determines the variants of the kernels that a function launches."""

    def kinds(call):
        parameters = signature(call.kernel.function.fn).parameters.values()
        return tuple(
            x.dtype if isinstance(x, torch.Tensor) else x if "constexpr" in str(parameter.annotation) else type(x)
            for parameter, x in zip(parameters, call.arguments, strict=True)
        )

    return {(call.kernel.name, *kinds(call), *sorted(call.options.items())) for call in recorded(launch)}


@pytest.mark.parametrize(("D", "same", "k"), [(10, 13, 15), (30, 20, 90), (50, 60, 90), (100, 300, 340), (128, 192, 9)])
def test_prepared_kernels_of_a_search_are_those_it_launches(D, same, k):
    name, launch = search(D, k)
    prepared = variants_of(launch)
    assert search(same, k)[0] == name and variants_of(search(same, k)[1]) == prepared
    assert {kernel for kernel, *_ in prepared} == {"_nearest", "_compare", "_merge", "_select"}
    X = torch.randn(1000, D, generator=torch.Generator().manual_seed(0))
    blocks = Blocks(X)

    def searched():
        centers_triton.nearest_center(X, X[:7])
        blocks_triton.nearest(blocks, k, len(blocks), neighbors.PRECISIONS[0])

    assert variants_of(searched) == prepared


@pytest.mark.parametrize("up", [0, 1])
def test_step_is_accepted_unless_the_flag_is_set(up):
    old, new = ([points(50, 2, seed).to(DEVICE) for seed in seeds] for seeds in ((0, 1, 2), (3, 4, 5)))
    old.append(torch.tensor(7.0, dtype=torch.float64, device=DEVICE))
    new.append(old[-1] + 1)
    kept = [x.clone() for x in (old if up else new)]
    flag, good = (torch.tensor(x, dtype=torch.int32, device=DEVICE) for x in (up, 4))
    fused.accept_step(flag, good, old, new)
    assert all(torch.equal(found, x) for found, x in zip(old, kept, strict=True))
    assert int(good) == 5 - up
    new[0] = new[0].T.contiguous().T  # column by column
    fused.accept_step(flag.zero_(), good, old, new)
    assert torch.equal(old[0], new[0])


@pytest.mark.parametrize("shape", [(1, 40, 37), (2, 33, 70), (2, 3, 40, 37)])
def test_transpose_padded_matches_pytorch(shape):
    S = torch.view_as_complex(torch.randn(*shape, 2, generator=torch.Generator().manual_seed(0)))
    assert torch.equal(fused.transpose_padded(S.to(DEVICE), 83).cpu(), transpose_padded(S, 83))


@DIMENSIONS
@pytest.mark.parametrize("n", [1, 700, 5000, 300_001])  # the last size needs several passes per part
def test_sums_match_pytorch(d, n):
    Y = points(n, d) + 1
    assert float(sums.total(Y.to(DEVICE))) == pytest.approx(float(Y.double().sum()), rel=1e-13)
    assert float(sums.total(Y[:, -1].to(DEVICE))) == pytest.approx(float(Y[:, -1].double().sum()), rel=1e-13)
    assert_close(sums.centered(Y.to(DEVICE)) + 1, centered(Y) + 1, 1e-7)


def test_conditional_rows_match_pytorch():
    d2 = points(40, 20).square()
    assert_close(
        perplexity_triton.conditional(d2.to(DEVICE), 7.0, affinities.HALVINGS),
        affinities.conditional_rows(d2, 7.0),
        1e-5,
    )


@pytest.fixture
def blocks(monkeypatch):
    """Return points in blocks of up to 16 points, small enough for the interpreter."""
    monkeypatch.setattr(gpu_blocks, "BLOCK", 16)
    monkeypatch.setattr(gpu_blocks, "CELL", 48)
    monkeypatch.setattr(Blocks, "size", 16)
    monkeypatch.setattr(blocks_triton, "GROUP", 4)
    monkeypatch.setattr(blocks_triton, "TILES", 2)
    X = points(150, 20) + 5 * points(4, 20, 1)[torch.arange(150) % 4]
    return Blocks(X - X.mean(dim=0))


def test_nearest_centers_match_pytorch(monkeypatch):
    X, centers = points(100, 20), points(37, 20, 1)
    monkeypatch.setattr(centers_triton, "ROWS", 32)
    monkeypatch.setattr(centers_triton, "CENTERS", 16)
    found = centers_triton.nearest_center(X.to(DEVICE), centers.to(DEVICE)).cpu()
    assert torch.equal(found, gpu_blocks.nearest_center(X, centers))


@pytest.mark.parametrize(("width", "part"), [(1, 64), (3, 64), (None, 64), (None, 16)])
def test_block_search_matches_pytorch(blocks, width, part, monkeypatch):
    monkeypatch.setattr(blocks_triton, "PART", part)
    k, width = 5, width or len(blocks)
    indices, d2 = blocks.nearest(k, width)
    for name in ("X", "starts", "centers"):
        setattr(blocks, name, getattr(blocks, name).to(DEVICE))
    found = [part.cpu() for part in blocks_triton.nearest(blocks, k, width, "tf32")]
    assert torch.equal(found[0], indices)
    assert_close(found[1], d2, 1e-6)


def test_block_search_keeps_some_of_many_duplicates(blocks):
    blocks.X, blocks.centers = (torch.zeros_like(A).to(DEVICE) for A in (blocks.X, blocks.centers))
    blocks.starts = blocks.starts.to(DEVICE)
    indices, d2 = blocks_triton.nearest(blocks, 30, len(blocks), "tf32")  # 150 points at distance 0, room for 64
    assert not d2.any() and all(len(set(row)) == 30 for row in indices.tolist())
    assert not (indices.cpu() == torch.arange(150)[:, None]).any()


@requires_gpu
@pytest.mark.parametrize("spread", [1.0, 0.003])  # also tight clusters, where inner products lose precision
@pytest.mark.parametrize("many", [None, 1000])  # all pairs, or pairs in nearby blocks
def test_search_finds_the_nearest_neighbors(spread, many, monkeypatch):
    monkeypatch.setattr(neighbors, "MANY", many or neighbors.MANY)
    generator = torch.Generator(device=DEVICE).manual_seed(0)
    centers = torch.randn(8, 50, generator=generator, device=DEVICE)
    X = centers[torch.arange(20_000, device=DEVICE) % 8]
    X = X + spread * torch.randn(X.shape, generator=generator, device=DEVICE)
    found, again = (neighbors.search(X, 60, 0.99) for _ in range(2))
    D = torch.cdist(X[:200].double(), X.double(), compute_mode="donot_use_mm_for_euclid_dist")
    D.fill_diagonal_(torch.inf)
    true = D.topk(60, largest=False).indices
    recall = float((true[:, :, None] == found.indices[:200, None, :]).any(dim=2).float().mean())
    assert recall >= (0.98 if many else 0.999) and found.recall >= (0.99 if many else 0.999)
    assert found.indices.equal(again.indices) and found.d2.equal(again.d2)


REPLAYED = {
    "TSNE": eq.TSNE(),
    "TSNE in 1-D": eq.TSNE(1),
    "TSNE in 3-D": eq.TSNE(3),
    "SNE": eq.SNE(),
    "PowerSNE": eq.PowerSNE(),
    "UMAP": eq.UMAP(),
    "SphericalSNE": eq.SphericalSNE(init=np.asfortranarray(points(20_000, 3).numpy())),  # column by column
}


def on_gpu(method, **settings):
    """Return a copy of a method for a short GPU run with a cheap initial map."""
    init = method.init if isinstance(method.init, np.ndarray) else "pca"
    return clone(method).set_params(engine="torch", device="cuda", random_state=0, n_iter=120, init=init, **settings)


@pytest.fixture(scope="module")
def table():
    return np.random.default_rng(0).standard_normal((20_000, 10)).astype(np.float32)


@requires_gpu
@pytest.mark.parametrize("method", REPLAYED.values(), ids=REPLAYED)
def test_replayed_steps_equal_single_steps(method, table, monkeypatch):
    taken, run = [], CudaGraph.replay

    def counted_replay(*arguments):
        taken.append(run(*arguments))
        return taken[-1]

    monkeypatch.setattr(CudaGraph, "replay", counted_replay)
    replayed = on_gpu(method).fit_transform(table)
    assert sum(taken) > 60
    monkeypatch.setattr(GraphStepper, "replay_steps", lambda *arguments: 0)
    np.testing.assert_array_equal(on_gpu(method).fit_transform(table), replayed)


@requires_gpu
@pytest.mark.parametrize("method", REPLAYED.values(), ids=REPLAYED)
def test_interrupted_run_resumes_to_the_same_bytes(method, table, tmp_path):
    whole, path = on_gpu(method).fit_transform(table), tmp_path / "run.eqc"

    def stop(iteration, loss, Y):
        if iteration >= 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on_gpu(method, callbacks=[eq.Checkpoint(path, every=37), stop]).fit(table)
    resumed = on_gpu(method, callbacks=[eq.Checkpoint(path, every=37, resume=True)]).fit(table)
    np.testing.assert_array_equal(resumed.embedding_, whole)


@requires_gpu
@pytest.mark.filterwarnings("ignore::equipoise.UnfinishedWarning")
@pytest.mark.parametrize("deterministic", [True, False])
def test_deterministic_maps_are_identical(deterministic):
    X = np.random.default_rng(0).standard_normal((20_000, 10)).astype(np.float32)
    settings = {"engine": "torch", "device": "cuda", "random_state": 0, "n_iter": 100}
    maps = [eq.TSNE(deterministic=deterministic, **settings).fit(X) for _ in range(2)]
    assert np.array_equal(maps[0].embedding_, maps[1].embedding_) == deterministic
    assert maps[0].loss_ == pytest.approx(maps[1].loss_, rel=5e-3)


@requires_gpu
def test_fits_compile_only_kernels_that_were_prepared(tmp_path):
    """In a fresh process, no fit compiles a kernel on its own thread, whatever n, D, k and the method are."""
    code = """
import sys, threading, torch, triton, equipoise as eq
found = []
def listen(*, src, **details):
    if threading.current_thread() is threading.main_thread():
        found.append(src.name)
triton.knobs.compilation.listener = listen
methods = (eq.TSNE(), 20000, 10), (eq.TSNE(perplexity=9), 17003, 30), (eq.UMAP(), 30001, 10), (eq.SNE(), 20000, 10)
for method, n, D in methods:
    method.set_params(engine="torch", device="cuda", random_state=0, n_iter=120)
    method.fit(torch.randn(n, D, device="cuda"))
print(sorted(found))
"""
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr[-2000:]
