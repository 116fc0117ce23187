"""Triton kernels for more than three dimensions against their PyTorch equivalents; see test_triton.py on how to run."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import sparse
from support.cases import relative_error

import equipoise as eq
from equipoise.engines.tables import edge_table, kernel_table
from equipoise.kernels import Gaussian, RegularizedPowerLaw, StudentT

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is installed only with GPU builds of PyTorch")
GPU = torch.cuda.is_available()
if not GPU and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("no GPU, and TRITON_INTERPRET=1 is not set", allow_module_level=True)

from equipoise.arrays.device_csr import Rows  # noqa: E402
from equipoise.engines.torch import partners, wide_triton  # noqa: E402
from equipoise.engines.torch.device_arrays import DeviceSource  # noqa: E402
from equipoise.engines.torch.edges import stored_edges  # noqa: E402
from equipoise.engines.torch.engine import GraphStepper  # noqa: E402
from equipoise.engines.torch.lookup import Lookup  # noqa: E402
from equipoise.engines.torch.partners import Partners  # noqa: E402
from equipoise.engines.torch.replay import CudaGraph  # noqa: E402

HOST, DEVICE = torch.device("cpu"), torch.device("cuda" if GPU else "cpu")
pytestmark = [pytest.mark.gpu, *([] if GPU else [pytest.mark.filterwarnings("ignore")])]  # the interpreter warns
requires_gpu = pytest.mark.skipif(not GPU, reason="requires a GPU")


def points(n, d):
    return torch.from_numpy(np.random.default_rng(0).uniform(-2, 2, (n, d)).astype(np.float32))


@pytest.mark.parametrize("d", [4, 5, 20])
@pytest.mark.parametrize("potential", [True, False])
def test_edges_match_pytorch(d, potential):
    A = sparse.random(70, 70, 0.5, format="csr", dtype=np.float32, random_state=0)
    Y, table = points(70, d), edge_table(StudentT(), -1.0)
    psi, force = stored_edges(Y, Rows.of(A, HOST), Lookup(table, HOST), potential=potential)
    found = wide_triton.edges(Y.to(DEVICE), Rows.of(A, DEVICE), Lookup(table, DEVICE), potential)
    assert relative_error(found[1].cpu().double().numpy(), force.double().numpy()) <= 1e-6
    if potential:
        assert float(found[0]) == pytest.approx(float(psi), rel=1e-5)


@pytest.mark.parametrize("kernel", [StudentT(), StudentT(2.5), Gaussian(), RegularizedPowerLaw(3.0, 0.1)], ids=repr)
@pytest.mark.parametrize("m", [0, 2])
@pytest.mark.parametrize("n", [90, 41])  # with a sample of the offsets, and with all of them
def test_partners_match_pytorch(kernel, m, n, monkeypatch):
    monkeypatch.setattr(partners, "PARTNERS", 40)
    A = sparse.random(n, n, 0.2, format="csr", dtype=np.float32, random_state=0)
    A.data[:] = 1
    charges = None if m == 0 else torch.from_numpy(np.random.default_rng(1).random((n, m)).astype(np.float32))
    Y = points(n, 5)
    on_host = Partners(kernel, kernel_table(kernel), HOST, 3, Rows.of(A, HOST))
    on_device = Partners(kernel, kernel_table(kernel), DEVICE, 3, Rows.of(A, DEVICE))
    source = DeviceSource(Y, charges)
    potential, gradient = on_host.solve(source, 1)(source.Y)
    given = None if charges is None else charges.to(DEVICE)
    found = on_device._fused(Y.to(DEVICE), given, *on_device._sample(n))
    assert relative_error(found[0].cpu().double().numpy(), potential.double().numpy()) <= 3e-6
    assert relative_error(found[1].cpu().double().numpy(), gradient.double().numpy()) <= 3e-6


@requires_gpu
@pytest.mark.filterwarnings("ignore::equipoise.UnfinishedWarning")
@pytest.mark.parametrize("method", [eq.TSNE(5), eq.SNE(4)], ids=repr)
def test_replayed_steps_equal_single_steps(method, monkeypatch):
    X = np.random.default_rng(0).standard_normal((20_000, 10)).astype(np.float32)
    taken, run = [], CudaGraph.replay

    def counted_replay(*arguments):
        taken.append(run(*arguments))
        return taken[-1]

    monkeypatch.setattr(CudaGraph, "replay", counted_replay)
    method.set_params(engine="torch", device="cuda", random_state=0, n_iter=120, init="pca")
    replayed = method.fit_transform(X)
    assert sum(taken) > 60
    monkeypatch.setattr(GraphStepper, "replay_steps", lambda *arguments: 0)
    np.testing.assert_array_equal(method.fit_transform(X), replayed)
