"""Every engine implements its protocols, and every objective moves all of its arrays."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy import sparse
from support.cases import without_diagonal

from equipoise import _core
from equipoise.arrays.csr import is_on_device
from equipoise.arrays.namespace import is_tensor
from equipoise.divergences import ChiSquare, JensenShannon
from equipoise.engines import ENGINES, HOST, engine_settings, engine_state, make_engine, restore_engine
from equipoise.engines.base import Engine, Placement, Resumable, Stepper, Traits
from equipoise.engines.mesh import plan
from equipoise.engines.mesh.mesh_engine import Grid, MeshEngine
from equipoise.engines.tables import BITS
from equipoise.kernels import Gaussian, Membership, NonMembership, StudentT
from equipoise.objectives import (
    BetaDivergence,
    ConditionalKL,
    CrossEntropy,
    DenseDivergence,
    DoubleKernelLLE,
    DoubleKernelPCA,
    EffectiveCrossEntropy,
    GammaDivergence,
    JointDivergence,
    RenyiDivergence,
    StoredDivergence,
    TwoWayKL,
)
from equipoise.objectives.pair_objective import PairObjective
from equipoise.pair_losses import LogLikelihood

N = 30
ALL_ENGINES = pytest.mark.parametrize("name", [name for name in ENGINES if name != "auto"])


def make_named_engine(name):
    if name == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    return make_engine(name, 1, 0.05)


def methods(protocol):
    return {name: getattr(protocol, name) for name in members(protocol) if callable(getattr(protocol, name, None))}


def members(protocol):
    """Return the public members of a protocol, annotated attributes and members of its bases included."""
    annotated = {name for base in protocol.__mro__ for name in getattr(base, "__annotations__", ())}
    return {name for name in {*dir(protocol), *annotated} if not name.startswith("_")}


def graph(seed=0):
    A = without_diagonal(sparse.random(N, N, 0.2, format="csr", dtype=np.float32, random_state=seed))
    return A / A.sum()


@ALL_ENGINES
def test_every_engine_implements_the_protocols(name):
    one = make_named_engine(name)
    assert isinstance(one.traits, Traits) and one.traits.name == name
    parts = [(one, Engine), (one.placement, Placement), (one.stepper, Stepper)]
    for part, protocol in [*parts, (one, Resumable)] if isinstance(one, Resumable) else parts:
        assert all(hasattr(part, member) for member in members(protocol))
        for method, promised in methods(protocol).items():
            found = list(inspect.signature(getattr(part, method)).parameters)
            assert found == list(inspect.signature(promised).parameters)[1:], (method, found)
    assert isinstance(engine_settings(one), dict) and one.placement.device == "cpu"
    assert isinstance(one, Resumable) == (name in ("grid", "sampled", "torch"))


def test_protocols_list_their_methods():
    assert set(methods(Engine)) == {"edges", "field", "freeze", "edges_to"}
    assert members(Engine) == {*methods(Engine), "placement", "stepper", "traits", "pairs"}
    assert members(Placement) == {"to_device", "indices_where", "column_points", "concurrently", "device", "sums"}
    assert members(Stepper) == {"replay_steps", "free_buffers"}
    assert members(Resumable) == {"settings", "state", "restore"}
    assert Traits._fields == ("name", "dtype", "needs_sparse_P", "gains_from_locality")


@ALL_ENGINES
def test_restore_recovers_the_state(name, rng):
    one, other = make_named_engine(name), make_named_engine(name)
    one.field(rng.standard_normal((200, 2)).astype(np.float32), StudentT())
    restore_engine(other, engine_state(one))
    assert engine_state(other) == engine_state(one)
    assert bool(engine_state(one)) == (name in ("grid", "torch"))
    if not engine_state(one):
        with pytest.raises(ValueError, match=r"must be empty for engine=.*, which has no state"):
            restore_engine(other, [{"level": 1}])


@ALL_ENGINES
def test_placement_moves_arrays_to_the_device(name, rng):
    one, Y = make_named_engine(name), rng.standard_normal((5, 2))
    placed = one.placement.to_device(Y, one.traits.dtype)
    assert str(placed.dtype).endswith(np.dtype(one.traits.dtype).name)
    np.testing.assert_array_equal(np.asarray(placed), Y.astype(one.traits.dtype))
    assert one.placement.to_device(placed) is placed
    np.testing.assert_array_equal(one.placement.indices_where(placed[:, 0] > 0), np.flatnonzero(Y[:, 0] > 0))
    assert one.placement.concurrently(lambda: 1, lambda: 2) == (1, 2)
    assert one.stepper.replay_steps(None, "key", type("State", (), {"U": placed}), 10, 0.0) == 0
    one.stepper.free_buffers()


def test_torch_engine_is_not_a_subclass_of_grid():
    Torch = type(make_named_engine("torch"))
    assert issubclass(Torch, MeshEngine) and issubclass(Grid, MeshEngine) and not issubclass(Torch, Grid)


def objectives():
    P, apart = graph(), NonMembership(1.6, 0.9, 0.01)
    P = ((P + P.T) / 2).tocsr()
    dense = np.random.default_rng(0).random((N, N)) + 0.1
    return [
        JointDivergence(P, StudentT(), 1.0),
        JointDivergence(P, StudentT(), 0.5),
        ConditionalKL(graph(1), Gaussian()),
        CrossEntropy(P, Membership(1.6, 0.9), apart),
        EffectiveCrossEntropy(P, Membership(1.6, 0.9), apart, 5),
        PairObjective(P, StudentT(), LogLikelihood(), 5),
        DenseDivergence(dense / dense.sum(), StudentT(), ChiSquare()),
        RenyiDivergence(P, StudentT(), 0.5),
        StoredDivergence(P, StudentT(), JensenShannon()),
        BetaDivergence(P, StudentT(), 2.0),
        GammaDivergence(P, StudentT(), 1.0),
        TwoWayKL(P, StudentT(), (0.5, 0.5), 0.1),
        DoubleKernelLLE(graph(2), Gaussian()),
        DoubleKernelPCA(P, Gaussian()),
    ]


@pytest.mark.parametrize("objective", objectives(), ids=lambda objective: type(objective).__name__)
def test_objective_to_moves_all_arrays(objective):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    moved = objective.to(make_named_engine("torch").placement)
    arrays = [
        name for name, value in vars(objective).items() if isinstance(value, np.ndarray) or sparse.issparse(value)
    ]
    assert arrays and type(moved) is type(objective) and set(vars(moved)) == set(vars(objective))
    for name, value in vars(objective).items():
        moved_value = getattr(moved, name)
        if name not in arrays:
            assert moved_value is value
        elif sparse.issparse(value):
            assert is_on_device(moved_value)
            np.testing.assert_allclose(moved_value.host().toarray(), value.toarray(), rtol=1e-6)
        else:
            assert is_tensor(moved_value)
            np.testing.assert_allclose(moved_value.numpy(), value, rtol=1e-6)
    for a in arrays:  # shared matrices stay shared
        for b in arrays:
            assert (getattr(moved, a) is getattr(moved, b)) == (getattr(objective, a) is getattr(objective, b))
    back = moved.to(HOST)
    assert not any(is_tensor(value) for value in vars(back).values())


@pytest.mark.parametrize("objective", objectives(), ids=lambda objective: type(objective).__name__)
def test_objective_to_host_copies_nothing(objective):
    same = objective.to(HOST)
    assert all(getattr(same, name) is value for name, value in vars(objective).items())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MESH_ORDER", plan.ORDER),
        ("MESH_PADDING", plan.PADDING),
        ("FIXED_POINT_BITS", plan.FIXED_POINT_BITS),
        ("VECTOR_BYTES", plan.VECTOR_BYTES),
        ("TABLE_BITS", BITS),
    ],
)
def test_constants_match_the_core(name, value):
    assert getattr(_core, name) == value


def test_spline_values_at_nodes():
    particle_mesh = pytest.importorskip("equipoise.engines.torch.particle_mesh", reason="PyTorch is not installed")
    at_zero = particle_mesh.spline()[0][0]  # weights of the ORDER nodes around a point at offset 0 from its node
    middle = plan.ORDER // 2 - 1
    expected = [plan.SPLINE[abs(j - middle)] if abs(j - middle) < len(plan.SPLINE) else 0.0 for j in range(plan.ORDER)]
    np.testing.assert_allclose(at_zero, expected, atol=1e-15)
