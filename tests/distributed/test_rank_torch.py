"""Descent over ranks in PyTorch: the same bytes for any number of them, and the forces of one process."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support import rank_functions
from support.shared_problems import (
    assert_field_is_within_tol,
    assert_same_bytes,
    fit_over_ranks,
    rank_parts,
    torch_engine,
)
from support.thread_ranks import run_ranks

import equipoise as eq
from equipoise.distributed import RankError, fit
from equipoise.distributed import run_ranks as run_processes
from equipoise.distributed.neighbors import Resources, find_neighbors
from equipoise.distributed.partition import Partition
from equipoise.distributed.rank_gpu import choose_backend, warn_of_shared_gpus
from equipoise.distributed.rank_problem import SharedCheckpoints
from equipoise.distributed.row_sources import open_rows
from equipoise.distributed.shared_map import SharedMap
from equipoise.divergences import JensenShannon, NeRV
from equipoise.engines.mesh.mesh_engine import AMPLE, MeshEngine
from equipoise.kernels import Gaussian, PowerLaw, StudentT

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.ranks
RANKS = 1, 2, 3
N = 2600  # three blocks of rows


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(8, 6))
    return centres[np.sort(rng.integers(8, size=N))] + rng.normal(size=(N, 6))


def settings(n_iter, **others):
    return dict(n_iter=n_iter, perplexity=10, random_state=0, engine="torch", device="cpu", **others)


JOINT = {
    "t-SNE": eq.TSNE(**settings(30)),
    "t-SNE in 3-D": eq.TSNE(3, **settings(4, tol=0.1)),
    "t-SNE in 1-D": eq.TSNE(1, **settings(12)),
    "g-SNE": eq.GSNE(alpha=-0.5, beta=2.5, **settings(12)),
    "UMAP": eq.UMAP(n_iter=12, random_state=0, engine="torch", device="cpu"),
}
OTHERS = {
    "SNE": eq.SNE(**settings(4)),
    "DKLLE": eq.DKLLE(n_iter=4, random_state=0, init="pca", engine="torch", device="cpu"),
    "s-SNE": eq.SphericalSNE(**settings(3, tol=0.1)),
    "NeRV": eq.SymmetricSNE(kernel=StudentT(), divergence=NeRV(0.5), **settings(3)),
    "Jensen-Shannon": eq.SymmetricSNE(kernel=StudentT(), divergence=JensenShannon(), **settings(3)),
}


@pytest.mark.parametrize("name", JOINT)
def test_maps_have_the_same_bytes_for_any_number_of_ranks(X, name):
    method = JOINT[name]
    single = method.problem(X)
    over = lambda A, sums: method.objective_on(A).over(sums)  # noqa: E731
    results = {size: fit_over_ranks(size, single, over, make_engine=torch_engine) for size in RANKS}
    for size in RANKS[1:]:
        assert_array_equal(results[size][0], results[1][0])
        assert_array_equal(results[size][1], results[1][1])
    single.optimize()
    assert_allclose(results[1][1][-1, 1], single.loss_curve[-1, 1], rtol=0.005)


@pytest.mark.parametrize("name", OTHERS)
def test_fits_of_other_methods_have_the_same_bytes(X, name):
    method = OTHERS[name]
    Y, curve = assert_same_bytes(method, X, (1, 4))  # one of four ranks has no points
    assert_allclose(method.problem(X).loss(Y), curve[-1, 1], rtol=5e-3)


@pytest.mark.parametrize("kernel", [StudentT(), Gaussian(), PowerLaw(2.0, 0.5)], ids=str)
@pytest.mark.parametrize(("n", "d", "width"), [(2500, 1, 4), (2500, 2, 4), (2500, 3, 4), (6000, 2, 200)])
def test_field_of_ranks_is_within_tol_of_the_reference(kernel, n, d, width):
    """The widest maps have a near part, or direct sums."""
    assert_field_is_within_tol(kernel, n, d, width, torch_engine, torch.from_numpy)


@pytest.mark.parametrize("exact", [True, False])
def test_neighbours_have_the_same_bytes_for_any_number_of_ranks(X, exact, monkeypatch):
    if not exact:
        monkeypatch.setattr("equipoise.distributed.neighbors.EXACT_WORK", 0)
    source = open_rows(X)

    def work(group):
        found = find_neighbors(group, source, 12, resources=Resources(device="cpu"))
        shared = SharedMap(group, found.partition, 1)
        parts = found.ids, found.indices, found.distances
        return [*(shared.gather(part) for part in parts), found.recall]

    one, three = run_ranks(1, work)[0], run_ranks(3, work)[0]
    for a, b in zip(one, three, strict=True):
        assert_array_equal(a, b)
    ids, indices, distances, recall = one
    farthest = np.sort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)[ids, 12:13] * (1 + 1e-12)
    assert recall == 1 if exact else recall >= 0.99
    assert (distances <= farthest).mean() == pytest.approx(recall, abs=0 if exact else 0.01)
    assert_allclose(np.linalg.norm(X[ids[indices]] - X[ids][:, None], axis=2), distances, rtol=1e-12)


def test_ranks_that_measure_other_errors_check_the_tolerance_together(X, monkeypatch):
    P = eq.TSNE(perplexity=5, engine="grid").problem(X).affinities
    Y = np.random.default_rng(1).normal(size=(N, 2)).astype(np.float32)
    checks, allowed = [0, 0], MeshEngine.MARGIN * 0.01

    def work(group):
        _, engine, shared = rank_parts(group, P, make_engine=torch_engine)
        monkeypatch.setattr(engine, "_force_check", lambda kernel, source: FixedError(group.rank))
        for width in (1, 1.6):  # wider by more than a factor of √2, but by less than an octave
            engine.field(torch.from_numpy(width * Y[shared.partition.own]), StudentT())
        return engine.state()

    class FixedError:
        def __init__(self, rank):
            checks[rank] += 1
            self.excess = (0.9, 1.1)[rank] * AMPLE

        def error(self, transform):
            return self.excess * allowed

    states = run_ranks(2, work)
    assert states[0] == states[1]
    assert states[0][0]["ample"] and states[0][0]["fields"] == 2
    assert checks == [1, 1]


def test_edges_of_ranks_are_those_of_one_process(X):
    P = eq.TSNE(engine="grid").problem(X).affinities
    Y = np.random.default_rng(1).normal(size=(N, 2)).astype(np.float32)

    def work(group):
        A, engine, shared = rank_parts(group, P, make_engine=torch_engine)
        own = torch.from_numpy(Y[shared.partition.own])
        psi, force = engine.edges(own, engine.placement.to_device(A), StudentT(), -1.0, potential=True)
        return float(psi), shared.gather(force)

    psi, force = eq.engines.make_engine("torch", 1, 0.01).edges(Y, P, StudentT(), -1.0, potential=True)
    for size in RANKS:
        found = run_ranks(size, work)[0]
        assert_array_equal(found[1], force)
        assert found[0] == pytest.approx(psi, rel=1e-12)


def test_sums_of_tensors():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 2)) * 10.0 ** rng.integers(-8, 8, size=(5000, 1))

    def work(group):
        from equipoise.distributed.tensor_map import TensorMap

        shared = TensorMap(group, Partition.of(group, 5000), 1)
        own = torch.from_numpy(x[shared.partition.own])
        numbers = shared.mean(own).tolist(), float(shared.total(own)), shared.spread(own), shared.squared_norm(own)
        return *numbers, shared.all_finite(own), shared.gather_tensor(own).numpy()

    results = [run_ranks(size, work) for size in (1, 2, 5, 6)]
    one = results[0][0]
    assert_allclose(one[0], x.mean(axis=0), rtol=1e-12)
    assert_allclose(one[1:4], [x.sum(), x.std(axis=0).max(), (x**2).sum()], rtol=1e-12)
    for result in results:
        for rank in result:
            assert rank[:5] == one[:5]
            assert_array_equal(rank[5], x)


def test_messages_of_tensors_and_of_arrays_give_the_same_bytes(X, tmp_path):
    path = str(tmp_path / "X.npy")
    np.save(path, X[:1500])
    function = f"{rank_functions.__file__}:fit_on_tensors"
    one = run_ranks(1, lambda group: rank_functions.fit_on_tensors(group, path, False))[0]
    for direct in (False, True):
        assert run_processes(function, 2, [path, direct])[0] == one


def test_checkpoint_and_new_rows(X, tmp_path, monkeypatch):
    path, iterations = str(tmp_path / "run.eqc"), []
    save = SharedCheckpoints.save_if_due

    def noted(checkpoints, iteration):
        iterations.append(iteration)
        save(checkpoints, iteration)

    monkeypatch.setattr(SharedCheckpoints, "save_if_due", noted)

    def work(group, callbacks=(), n_iter=20):
        result = fit(eq.TSNE(**settings(n_iter), callbacks=list(callbacks)), X, group=group)
        placed = result.transform(X[:50] + 1e-3)
        return result.gather(), placed.gather()

    straight = run_ranks(2, work)[0]

    def see(iteration, loss, Y):
        assert Y.shape == (N, 2)

    run_ranks(3, lambda group: work(group, [eq.Checkpoint(path, every=15), see]))  # last saved after 15 of 20
    iterations.clear()
    resumed = run_ranks(1, lambda group: work(group, [eq.Checkpoint(path, every=15, resume=True)]))[0]
    assert iterations[0] > 15 and iterations[-1] == 20
    for found, expected in zip(resumed, straight, strict=True):
        assert_array_equal(found, expected)
    assert np.abs(straight[1] - straight[0][:50]).max() < 0.1 * np.abs(straight[0]).max()


def test_choice_of_the_backend():
    hosts = "a", "a", "b"
    assert choose_backend("auto", ["a 0", "a 1", "b 0"], hosts, True) == "nccl"
    assert choose_backend("auto", ["a 0", "a 0", "b 0"], hosts, True) == "gloo"
    assert choose_backend("auto", ["a 0", None, "b 0"], hosts, True) == "gloo"
    assert choose_backend("auto", ["a 0", "a 1", "b 0"], hosts, False) == "gloo"
    assert choose_backend("gloo", [None] * 3, hosts, True) == "gloo"
    remedy = 'use backend="gloo", or at most one rank for each GPU'
    for gpus, has_nccl, message in (
        (["a 0", "a 0", "b 0"], True, rf"needs a GPU for each rank, but ranks 0, 1 share one on a; {remedy}"),
        (["a 0", None, None], True, rf"needs a GPU for each rank, but ranks 1, 2 found none; {remedy}"),
        (["a 0", "a 1", "b 0"], False, r"this build of PyTorch has no NCCL"),
    ):
        with pytest.raises(RuntimeError, match=message):
            choose_backend("nccl", gpus, hosts, has_nccl)


def test_ranks_that_share_one_of_several_gpus_are_told():
    hosts = "a", "a", "b"
    message = r"ranks 0, 1 share one GPU on a, so messages pass through gloo; set LOCAL_RANK, or start at most one rank"
    with pytest.warns(UserWarning, match=message) as caught:
        warn_of_shared_gpus(["a 0", "a 0", "b 0"], [2, 2, 1], hosts)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_shared_gpus(["a 0", "a 0", "b 0"], [1, 1, 1], hosts)  # there is no other GPU
        warn_of_shared_gpus(["a 0", "a 1", "b 0"], [2, 2, 1], hosts)
        warn_of_shared_gpus(["a 0", "a 0", None], [2, 2, 0], hosts)  # rank 2 has no GPU anyway
        warn_of_shared_gpus([None] * 3, [0] * 3, hosts)


@pytest.mark.parametrize(("backend", "given"), [("auto", None), ("auto", ""), ("nccl", "nccl"), ("gloo", "gloo")])
def test_fit_on_gpus_uses_the_backend_of_the_environment(X, monkeypatch, backend, given):
    class Asked(Exception):
        pass

    def make_group(timeout, backend):
        raise Asked(backend)

    monkeypatch.setattr("equipoise.distributed.current.TorchGroup", make_group)
    monkeypatch.setattr("equipoise.distributed.rank_fit._tensor_device", lambda method: "cuda")
    variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    monkeypatch.delenv("EQUIPOISE_BACKEND", raising=False)
    for name, value in (variables | ({} if given is None else {"EQUIPOISE_BACKEND": given})).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Asked, match=f"^{backend}$"):
        fit(JOINT["t-SNE"], X)


def test_tensors_on_the_cpu_do_not_go_to_a_group_of_gpus():
    from equipoise.distributed.tensor_exchange import TensorExchange

    def work(group):
        exchange = TensorExchange(group)
        exchange._gpu_group = GpuGroup()
        x = torch.arange(6).reshape(3, 2) + group.rank
        sizes = [[0, 1], [1, 2]][group.rank]  # as many rows to each rank as from it
        rows = exchange.swap(x[: sum(sizes)].float(), sizes, sizes)
        return exchange.add(x).tolist(), exchange.minimum(x.float()).tolist(), len(rows)

    class GpuGroup:
        device = torch.device("cuda", 0)

        def run(self, name, *tensors, **options):
            raise AssertionError(f"{name} of a tensor on the CPU")

    total = (2 * torch.arange(6) + 1).reshape(3, 2).tolist()
    smallest = torch.arange(6.0).reshape(3, 2).tolist()
    assert run_ranks(2, work) == [(total, smallest, 1), (total, smallest, 3)]


def test_backend_from_the_environment():
    function = f"{rank_functions.__file__}:rank_and_size"
    assert run_processes(function, 2, variables={"EQUIPOISE_BACKEND": "gloo"}) == [[0, 2], [1, 2]]
    with pytest.raises(RankError, match="unknown backend 'mpi'; choose from auto, gloo, nccl"):
        run_processes(function, 2, variables={"EQUIPOISE_BACKEND": "mpi"})


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_nccl_without_a_gpu_is_refused(monkeypatch):
    from equipoise.distributed import TorchGroup
    from equipoise.distributed.launch import free_port

    for name, value in {
        "RANK": 0,
        "WORLD_SIZE": 1,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_port("127.0.0.1"),
    }.items():
        monkeypatch.setenv(name, str(value))
    with pytest.raises(RuntimeError, match="needs a GPU for each rank, but rank 0 found none"):
        TorchGroup(timeout=20, backend="nccl")
