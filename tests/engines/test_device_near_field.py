"""The near field of the torch engine: the mesh with near pairs matches direct sums, in PyTorch and in Triton.

The Triton kernels run on a GPU or with Triton's interpreter, see test_triton.py.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from support.cases import norm_error

from equipoise.engines import Exact, Grid
from equipoise.engines.mesh.plan import Plan, split
from equipoise.kernels import PowerLaw, RegularizedPowerLaw, StudentT

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from equipoise.engines.torch import device_plan  # noqa: E402
from equipoise.engines.torch.device_arrays import DeviceSource  # noqa: E402
from equipoise.engines.torch.engine import Torch  # noqa: E402
from equipoise.engines.torch.near_field import NearField  # noqa: E402

TOL = 0.01
GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
SHARP = [PowerLaw(), PowerLaw(3.0, 0.5), RegularizedPowerLaw(2.5, 0.3)]
runs_triton = pytest.mark.skipif(
    not GPU and os.environ.get("TRITON_INTERPRET") != "1", reason="no GPU, and TRITON_INTERPRET=1 is not set"
)


def clustered(n, d, extent, rng):
    """Return points of which half form ten tight clusters."""
    Y = extent * rng.uniform(-1, 1, (n, d))
    Y[: n // 2] = Y[rng.integers(10, size=n // 2)] + 0.02 * extent * rng.standard_normal((n // 2, d))
    return Y.astype(np.float32)


@pytest.fixture
def near_fields_for_few_points(monkeypatch):
    monkeypatch.setattr(device_plan, "SORTING", 1.0)
    device_plan.device_plan.cache_clear()
    yield
    device_plan.device_plan.cache_clear()


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kernel", SHARP, ids=repr)
@pytest.mark.usefixtures("near_fields_for_few_points")
def test_mesh_with_near_pairs_matches_the_exact_field(kernel, d):
    rng = np.random.default_rng(0)
    n, extent = 3000, {1: 200.0, 2: 40.0, 3: 12.0}[d] * kernel.length
    Y, charges = clustered(n, d, extent, rng), rng.standard_normal((n, 2))
    engine = Torch(1, TOL, "cpu")
    for c in (None, charges):
        found, truth = engine.field(Y, kernel, c), Exact(1).field(Y.astype(np.float64), kernel, c)
        assert norm_error(found.gradient, truth.gradient) <= TOL
        assert norm_error(found.potential, truth.potential) <= TOL
    radii = [of.radius for _, of in engine._transforms if of != device_plan.DIRECT]
    assert (radii and all(r > 0 for r in radii)) or kernel.kink == 0


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("m", [0, 2])
def test_near_sums_match_the_core(d, m, rng):
    Y, T = (rng.uniform(-6, 6, (n, d)).astype(np.float32) for n in (900, 90))
    charges = None if m == 0 else rng.standard_normal((900, m)).astype(np.float32)
    of = Plan(0.75, (40,) * d, 3.0, np.float32)
    for targets in (Y, T):
        on_torch = near_sums(StudentT(), of, Y, charges, targets if targets is T else None, torch.device("cpu"))
        truth = near_truth(StudentT(), of.radius, Y, charges, targets)
        assert norm_error(on_torch[0], truth[0]) <= 2e-6 and norm_error(on_torch[1], truth[1]) <= 2e-6


def near_sums(kernel, of, Y, charges, T, device):
    """Return the near part of Φ and of ∇Φ at targets T, or at the points themselves if T is None."""
    near = NearField(kernel, of, device)
    source = DeviceSource(
        torch.from_numpy(Y).to(device), None if charges is None else torch.from_numpy(charges).to(device)
    )
    targets = None if T is None else torch.from_numpy(T).to(device)
    phi, gradient = near.sums(near.sort(source), targets, source.box)
    return phi.cpu().numpy(), gradient.cpu().numpy()


def near_truth(kernel, radius, Y, charges, T):
    """Return the sums of `near_sums`, over all pairs in float64."""
    part, c = split(kernel, radius), np.ones((len(Y), 1)) if charges is None else charges.astype(np.float64)
    diff = T.astype(np.float64)[:, None] - Y.astype(np.float64)[None]
    d2 = (diff**2).sum(axis=2)
    value = part.near(d2)
    if T is Y:
        np.fill_diagonal(value, 0.0)
    return value @ c, 2 * np.einsum("ij,jm,ijd->imd", part.near_slope(d2), c, diff)


@runs_triton
@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")  # the interpreter warns
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("m", [0, 2])
def test_near_sums_in_triton_match_pytorch(d, m, rng, monkeypatch):
    from equipoise.engines.torch import near_triton

    if not GPU:  # take the way of a GPU, in the interpreter

        def sums(near, cells, T, box):
            return near_triton.sums(near, cells, T, cells.cell if T is None else near.cells_of(T, box))

        monkeypatch.setattr(NearField, "sums", sums)
        monkeypatch.setattr(NearField, "cells_of", near_triton.cells)
    Y, T = clustered(203, d, 6.0, rng), rng.uniform(-8, 8, (9, d)).astype(np.float32)
    charges = None if m == 0 else rng.standard_normal((203, m)).astype(np.float32)
    of = Plan(0.75, (20,) * d, 2.0, np.float32)
    for targets in (Y, T):
        found = near_sums(StudentT(), of, Y, charges, targets if targets is T else None, DEVICE)
        truth = near_truth(StudentT(), of.radius, Y, charges, targets)
        assert norm_error(found[0], truth[0]) <= 5e-6 and norm_error(found[1], truth[1]) <= 5e-6


def test_a_target_sums_alone_whatever_the_other_targets(rng):
    Y, T = clustered(700, 2, 10.0, rng), rng.uniform(-12, 12, (60, 2)).astype(np.float32)
    of = Plan(0.75, (40, 40), 3.0, np.float32)
    together = near_sums(PowerLaw(), of, Y, None, T, torch.device("cpu"))
    for part in (slice(0, 1), slice(7, 31)):
        alone = near_sums(PowerLaw(), of, Y, None, T[part].copy(), torch.device("cpu"))
        for found, same in zip(alone, together, strict=True):
            np.testing.assert_array_equal(found, same[part])


def test_kinked_kernels_have_a_near_field_from_a_number_of_points_on():
    span = (80.0, 80.0)
    assert device_plan.device_plan(PowerLaw(), TOL, 3000, span) == device_plan.DIRECT
    plan = device_plan.device_plan(PowerLaw(), TOL, 70_000, span)
    assert plan.radius > PowerLaw().r0 and plan.h < plan.radius
    smooth = device_plan.device_plan(StudentT(), TOL, 70_000, span)
    assert smooth.radius == 0 and smooth.h > 0
    wide = device_plan.device_plan(StudentT(), TOL, 70_000, (300.0, 300.0, 300.0))
    assert wide.radius > 0 and np.prod(wide.size) < device_plan.NODES


def test_large_field_matches_the_mesh_on_the_cpu():
    Y = clustered(5000, 2, 30.0, np.random.default_rng(0))
    found, same = Torch(1, TOL, "cpu").field(Y, PowerLaw()), Grid(1, 1e-4).field(Y, PowerLaw())
    assert norm_error(found.gradient, same.gradient) <= TOL and norm_error(found.potential, same.potential) <= TOL
