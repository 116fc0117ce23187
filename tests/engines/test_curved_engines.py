"""Edges and fields on the torus and in the hyperbolic plane: every engine against the reference."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from support.cases import KERNELS, UserKernel, relative_error, without_diagonal

from equipoise import _core
from equipoise.engines import Exact, Reference, choose_engine, make_engine
from equipoise.engines.curved_exact import CurvedEdges
from equipoise.engines.mesh.plan import split
from equipoise.engines.mesh.polar_mesh import (
    MARGIN,
    PolarPlan,
    PolarSource,
    PolarTransform,
    collocation,
    polar_near_table,
    polar_plan,
)
from equipoise.engines.mesh.torus_mesh import TorusPlan, fold, torus_plan, unfold
from equipoise.geometry import HyperbolicPairs, TorusPairs, UserGeometry
from equipoise.kernels import Gaussian, Kernel, PowerLaw, RegularizedPowerLaw, StudentT

N = 130
SPACES = [TorusPairs((7.0, 5.0)), TorusPairs((6.0,)), TorusPairs((4.0, 5.0, 6.0)), HyperbolicPairs(2.0)]


def points(pairs, rng, n=N, scale=1.0):
    d = len(pairs.period) if isinstance(pairs, TorusPairs) else 2
    return scale * rng.standard_normal((n, d)) * 3


def weights(rng, n=N):
    A = sparse.random(n, n, 26 / n, format="csr", random_state=np.random.default_rng(1))
    return without_diagonal(A + A.T)


@pytest.mark.parametrize("pairs", SPACES, ids=str)
def test_exact_engine_agrees_with_the_reference(pairs, rng):
    Y, A, c = points(pairs, rng), weights(rng), rng.uniform(size=(N, 2))
    reference = Reference(pairs)
    for dtype, tol in ((np.float64, 1e-11), (np.float32, 1e-4)):
        exact = make_engine("exact", 2, 0.01, pairs=pairs)
        Z, W = Y.astype(dtype), A.astype(dtype)
        for kernel in (*KERNELS, UserKernel()):
            for b in (-1.0, -0.5, 0.0):
                psi, force = reference.edges(Y, A, kernel, b, potential=True)
                for B in (W, W.toarray()):
                    found = exact.edges(Z, B, kernel, b, potential=True)
                    assert abs(found[0] - psi) <= tol * abs(psi)
                    assert relative_error(found[1], force) < tol
                assert np.isnan(exact.edges(Z, W, kernel, b, potential=False)[0])
                to = exact.edges_to(Z[:9], Z, W[:9], kernel, b)
                assert relative_error(to, reference.edges_to(Y[:9], Y, A[:9], kernel, b)) < 1e-4
            for mine, true in (
                (exact.field(Z, kernel, c), reference.field(Y, kernel, c)),
                (exact.freeze(Z, kernel)(Z[:9]), reference.freeze(Y, kernel)(Y[:9])),
            ):
                assert relative_error(mine.potential, true.potential) < tol
                assert relative_error(mine.gradient, true.gradient) < tol


@pytest.mark.parametrize("pairs", SPACES, ids=str)
def test_edges_of_stored_pairs_agree_with_the_reference(pairs, rng):
    Y, A = points(pairs, rng).astype(np.float32), weights(rng).astype(np.float32)
    edges, reference = CurvedEdges(2, pairs), Reference(pairs)
    for kernel in (StudentT(), Gaussian(), RegularizedPowerLaw(3.0, 0.1), UserKernel()):
        for b in (-1.0, -0.5):
            for potential in (False, True):
                psi, force = reference.edges(Y, A, kernel, b, potential=potential)
                found = edges.edges(Y, A, kernel, b, potential=potential)
                assert_allclose(found[0], psi, rtol=1e-4)
                assert relative_error(found[1], force) < 1e-4


@pytest.mark.parametrize("pairs", [TorusPairs((70.0, 50.0)), HyperbolicPairs(7.0)], ids=str)
def test_results_do_not_depend_on_threads(pairs, rng):
    Y, A = points(pairs, rng, 2000, 3.0).astype(np.float32), weights(rng, 2000).astype(np.float32)
    for kernel in (StudentT(), RegularizedPowerLaw(3.0, 0.1)):
        for name in ("exact", "grid"):
            one, two = (make_engine(name, n, 0.01, pairs=pairs) for n in (1, 2))
            for a, b in zip(one.field(Y, kernel), two.field(Y, kernel), strict=True):
                assert_array_equal(a, b)
            assert_array_equal(*(e.edges(Y, A, kernel, -1.0, potential=False)[1] for e in (one, two)))


@pytest.mark.parametrize("radius", [3.0, 40.0, 1e9])
@pytest.mark.parametrize("reach", [0.5, 4.0, 30.0])
def test_near_pairs_agree_with_the_reference(radius, reach, rng):
    n, pairs = 700, HyperbolicPairs(radius)
    largest = min(8 * radius, 40.0)
    Y = disk(radius, largest, rng, n) if radius < 1e3 else rng.standard_normal((n, 2)) * 10
    Y[0], Y[1:4] = 0, Y[4]
    Y = Y.astype(np.float32)
    for targets, c in ((Y, np.ones((n, 1))), (Y[::5] * np.float32(0.97), rng.uniform(size=(n, 3)))):
        table = polar_near_table(StudentT(), reach, pairs)
        found = [(np.zeros((len(targets), c.shape[1])), np.zeros((len(targets), c.shape[1], 2))) for _ in range(2)]
        for threads, out in enumerate(found, 1):
            _core.polar_near(pairs.native(), *table, reach, targets, Y, c, *out, threads)
        d2, v = pairs.between(targets[:, None].astype(float), Y.astype(float))
        near = split(StudentT(), reach)
        assert_allclose(found[0][0], near.near(d2) @ c, rtol=1e-4, atol=1e-5)
        force = np.einsum("ij,ijk,jq->iqk", near.near_slope(d2), v, c)
        assert relative_error(found[0][1], force) < 2e-4
        for one, two in zip(*found, strict=True):
            assert_array_equal(one, two)


def test_edges_far_from_the_origin_keep_their_digits(rng):
    pairs = HyperbolicPairs(32.0)
    Y = rng.standard_normal((N, 2)) * 0.5 / np.sinh(8) * 8 + [250, 30]  # 8 radii from the origin, of width 0.5 there
    Y[:, 0] += 0.5 * rng.standard_normal(N)
    Y, A = Y.astype(np.float32), weights(rng).astype(np.float32)
    true = Reference(pairs).edges(Y.astype(float), A, StudentT(), -1.0, potential=False)[1]
    assert relative_error(CurvedEdges(1, pairs).edges(Y, A, StudentT(), -1.0, potential=False)[1], true) < 1e-4


def disk(R, largest, rng, n):
    """Return n points uniform in a hyperbolic disk."""
    r = R * np.arccosh(1 + rng.uniform(size=n) * (np.cosh(largest / R) - 1))
    t = rng.uniform(0, 2 * np.pi, n)
    return np.stack([r * np.cos(t), r * np.sin(t)], axis=1)


@pytest.mark.parametrize(
    "kernel", [StudentT(), Gaussian(), PowerLaw(), RegularizedPowerLaw(3.0, 0.1), UserKernel()], ids=str
)
def test_force_on_the_meshes_is_within_tol(kernel, rng):
    n = 1500
    cases = [
        (TorusPairs((40.0, 30.0)), rng.uniform(0, 1, (n, 2)) * [40, 30]),
        (TorusPairs((40.0, 30.0)), 20 + rng.standard_normal((n, 2))),  # a patch, on a flat mesh
        (TorusPairs((60.0,)), rng.uniform(0, 60, (n, 1))),
        (HyperbolicPairs(6.0), disk(6.0, 20.0, rng, n)),
        (HyperbolicPairs(6.0), disk(6.0, 2.0, rng, n)),
        (HyperbolicPairs(500.0), disk(500.0, 30.0, rng, n)),
    ]
    charges = rng.uniform(0.5, 1.5, (n, 2))
    for pairs, Y in cases:
        true = make_engine("exact", 2, 0.01, pairs=pairs).field(Y.astype(np.float32), kernel, charges)
        for tol in (0.05, 0.01):
            found = make_engine("grid", 2, tol, pairs=pairs).field(Y.astype(np.float32), kernel, charges)
            assert np.linalg.norm(found.gradient - true.gradient) <= tol * np.linalg.norm(true.gradient), (pairs, tol)
            assert_allclose(found.potential.sum(axis=0), true.potential.sum(axis=0), rtol=5 * tol)


@pytest.mark.parametrize("pairs", [TorusPairs((40.0, 30.0)), HyperbolicPairs(6.0)], ids=str)
@pytest.mark.parametrize("tol", [0.05, 0.01, 0.001])
def test_meshes_are_within_tol_of_the_reference(pairs, tol, rng):
    n = 1200
    Y = disk(6.0, 20.0, rng, n) if isinstance(pairs, HyperbolicPairs) else rng.uniform(0, 1, (n, 2)) * pairs.period
    Y, A = Y.astype(np.float32), weights(rng, n).astype(np.float32)
    mesh, reference = make_engine("grid", 2, tol, pairs=pairs), make_engine("reference", 1, tol, pairs=pairs)
    found, true = mesh.field(Y, StudentT()), reference.field(Y, StudentT())
    assert np.linalg.norm(found.gradient - true.gradient) <= tol * np.linalg.norm(true.gradient)
    assert_allclose(found.potential.sum(), true.potential.sum(), rtol=tol)
    edges = [engine.edges(Y, A, StudentT(), -1.0, potential=False)[1] for engine in (mesh, reference)]
    assert relative_error(*edges) < 1e-5


@pytest.mark.parametrize("pairs", [TorusPairs((30.0, 30.0)), HyperbolicPairs(6.0)], ids=str)
def test_frozen_fields_at_new_points(pairs, rng):
    Y = (disk(6.0, 15.0, rng, 800) if isinstance(pairs, HyperbolicPairs) else rng.uniform(0, 30, (800, 2))).astype("f4")
    true = make_engine("exact", 2, 0.01, pairs=pairs).freeze(Y, StudentT())(Y[:50] * 0.9)
    found = make_engine("grid", 2, 0.01, pairs=pairs).freeze(Y, StudentT())(Y[:50] * 0.9)
    assert_allclose(found.potential, true.potential, rtol=0.02)
    assert relative_error(found.gradient, true.gradient) < 0.05


@pytest.mark.parametrize("reach", [0.0, 3.0])
def test_polar_mesh_converges(reach, rng):
    pairs, Y = HyperbolicPairs(4.0), disk(4.0, 9.0, rng, 200)
    d2, v = pairs.between(Y[:, None], Y[None])
    force = 2 * (StudentT().slope(d2)[..., None] * v).sum(axis=1)
    errors = []
    for h, angles in ((0.5, 512), (0.25, 1024)):
        plan = PolarPlan(h, int(np.ceil(9 / h)) + 2 * MARGIN + 1, 3, angles, reach, np.float64)
        source = PolarSource(Y, None, 4.0)
        phi, found = PolarTransform(StudentT(), plan, 4.0).solve(source, 1)(Y)
        assert_allclose(phi[:, 0], StudentT().value(d2).sum(axis=1), rtol=0.01)
        errors.append(np.linalg.norm(found[:, 0] - force) / np.linalg.norm(force))
    assert errors[1] < errors[0] / 8 and errors[1] < 2e-3


def test_field_at_the_origin_of_the_polar_mesh(rng):
    pairs, Y = HyperbolicPairs(4.0), disk(4.0, 9.0, rng, 300)
    at = np.array([[0.0, 0.0], [1e-6, 0.0], [0.0, -1e-3]])
    source = PolarSource(Y, None, 4.0)
    transform = PolarTransform(StudentT(), polar_plan(StudentT(), 1e-3, 300, float(source.high[0]), 4.0), 4.0)
    true = Reference(pairs).freeze(Y, StudentT())(at)
    phi, force = transform.solve(source, 1)(at)
    assert_allclose(phi[:, 0], true.potential, rtol=1e-3)
    assert relative_error(force[:, 0], true.gradient) < 0.02


def test_collocation_reproduces_lines():
    x = np.arange(12.0)
    assert_allclose(collocation(12) @ (3 + 2 * x), 3 + 2 * x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_positions_and_gradients_on_a_polar_mesh(dtype, rng):
    h, angles, centre = 0.3, 480, 0.02 * 0.3
    t = np.concatenate([np.arange(33) / 16 * np.pi, rng.uniform(0, 2 * np.pi, 100)])
    Y = (rng.uniform(0, 9, (len(t), 1)) * np.stack([np.cos(t), np.sin(t)], axis=1)).astype(dtype)
    Y[:5] = [[0, 0], [1e-30, 0], [-2, 0], [0, -3], [0.001, -0.002]]
    x, y = Y.T.astype(float)
    r, t = np.hypot(x, y), np.arctan2(y, x) % (2 * np.pi)
    nodes = np.empty_like(Y)
    _core.polar_nodes(h, angles, Y, nodes, 2)
    assert_allclose(nodes, np.stack([r / h, t / (2 * np.pi) * angles], axis=1), rtol=2 * np.finfo(dtype).eps)
    e = np.where(r > 0, [x, y] / np.where(r > 0, r, 1), [[1], [0]])
    gradient = rng.standard_normal((len(Y), 3, 2))
    along, across = gradient[..., 0] / h, gradient[..., 1] * (angles / (2 * np.pi) / np.maximum(r, centre))[:, None]
    expected = along[..., None] * e.T[:, None] + across[..., None] * np.stack([-e[1], e[0]], axis=1)[:, None]
    for threads in (1, 3):
        turned = gradient.copy()
        _core.polar_gradient(h, angles, centre, Y, turned, threads)
        assert_allclose(turned, expected, rtol=1e-12, atol=1e-12)


def test_folding_is_the_transpose_of_unfolding(rng):
    inner, outer = rng.standard_normal((4, 9)), rng.standard_normal((4, 14))
    assert_allclose((fold(outer.copy(), 1) * inner).sum(), (outer * unfold(inner, 1)).sum())


def test_a_patch_on_the_torus_uses_a_flat_mesh():
    assert not isinstance(torus_plan(StudentT(), 0.01, 1000, (50.0, 50.0), (20.0, 24.0)), TorusPlan)
    assert isinstance(torus_plan(StudentT(), 0.01, 1000, (50.0, 50.0), (20.0, 25.0)), TorusPlan)


@pytest.mark.parametrize("pairs", [TorusPairs((30.0, 30.0)), HyperbolicPairs(6.0)], ids=str)
@pytest.mark.parametrize("name", ["exact", "grid"])
def test_engines_survive_pickling(pairs, name, rng):
    Y = points(pairs, rng, 1200).astype(np.float32)
    engine = make_engine(name, 1, 0.01, pairs=pairs)
    engine.field(Y, StudentT())
    again = pickle.loads(pickle.dumps(engine))
    assert_array_equal(again.field(Y, StudentT()).gradient, engine.field(Y, StudentT()).gradient)
    assert again.pairs == pairs


def test_choice_of_engine_in_curved_spaces():
    torus, user = TorusPairs((5.0, 5.0)), UserGeometry(object()).pairs
    assert [choose_engine("auto", n, 2, False, torus) for n in (100, 10**5)] == ["exact", "grid"]
    assert choose_engine("auto", 10**5, 2, True, torus) == choose_engine("auto", 10**5, 2, False, user) == "exact"
    assert choose_engine("auto", 10**5, 4, False, TorusPairs((5.0,) * 4)) == "exact"
    assert isinstance(make_engine("reference", 1, 0.01, pairs=torus), Reference)
    for name in ("sampled", "torch"):
        with pytest.raises(ValueError, match=f"engine='{name}' works in flat space and on the sphere only; use.*grid"):
            choose_engine(name, 100, 2, False, torus)
    with pytest.raises(ValueError, match=r'1, 2 or 3 dimensions, not 4; use engine="exact"$'):
        choose_engine("grid", 100, 4, False, TorusPairs((5.0,) * 4))
    with pytest.raises(ValueError, match='"grid" has no mesh for this geometry; use engine="exact" or "reference"'):
        choose_engine("grid", 100, 2, False, user)


def test_wrong_shapes_are_refused(rng):
    pairs = TorusPairs((5.0, 5.0))
    exact = make_engine("exact", 1, 0.01, pairs=pairs)
    with pytest.raises(ValueError, match=r"A must have shape \(3, 3\)"):
        exact.edges(np.zeros((3, 2)), sparse.csr_matrix((2, 2)), StudentT(), -1.0, potential=False)
    with pytest.raises(ValueError, match="one column per dimension"):
        exact.field(np.zeros((3, 3)), StudentT())


class Bump(Kernel):
    """A kernel without compiled code and with a kink."""

    kink = 1.0

    def value(self, d2):
        return np.where(d2 < 1, 2 - d2, 1 / np.maximum(d2, 1.0))

    def slope(self, d2):
        return np.where(d2 < 1, -1.0, -1 / np.maximum(d2, 1.0) ** 2)


def test_flat_spaces_of_large_size_agree_with_flat_engines(rng):
    Y, A = rng.standard_normal((60, 2)), weights(rng, 60)
    for kernel in (StudentT(), Bump()):
        flat = Exact(1)
        for pairs in (TorusPairs((1e4, 1e4)), HyperbolicPairs(1e5)):
            curved = make_engine("exact", 1, 0.01, pairs=pairs)
            assert relative_error(curved.field(Y, kernel).gradient, flat.field(Y, kernel).gradient) < 1e-8
            a, b = (e.edges(Y, A, kernel, -1.0, potential=True) for e in (curved, flat))
            assert_allclose(a[0], b[0], rtol=1e-8)
            assert relative_error(a[1], b[1]) < 1e-8
