import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from support.cases import KERNELS, UserKernel, relative_error

from equipoise import _core
from equipoise.engines import ENGINES, Exact, Reference, choose_engine, make_engine
from equipoise.kernels import Gaussian, Kernel, PowerLaw, RegularizedPowerLaw, SphericalExit, StudentT

POWERS = (-1.0, -0.99, -0.75, 0.0, 0.5)
TOLERANCE = {np.float32: 5e-6, np.float64: 5e-14}  # measured over n, d and the spread of Y: at most 3.7e-6 and 1.3e-14
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda dtype: dtype.__name__)
ANY_KERNEL = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def antiderivative_of_power(k, e):
    """Return ψ with dψ/dk = k^(e−1) and the engines' constant of integration."""
    return math.log(k) if e == 0 else (k**e - 1) / e if abs(e) < 1 / 16 else k**e / e


def graph(rng, n):
    """Return random weights in CSR: 12 neighbours per row, up to 290 (more than one tile) in row 0, none in row 1."""
    counts = np.full(n, 12)
    counts[:2] = min(n - 1, 290), 0
    columns = [np.sort(rng.permutation(np.delete(np.arange(n), i))[:count]) for i, count in enumerate(counts)]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    values = rng.random(indptr[-1])
    return sparse.csr_matrix((values / values.sum(), np.concatenate(columns), indptr), shape=(n, n))


def weights(rng, n):
    A = rng.random((n, n))
    return A / A.sum()


def assert_same_edges(result, truth, tolerance, total=1.0):
    (psi, force), (true_psi, true_force) = result, truth
    assert relative_error(force, true_force) <= tolerance
    # Ψ sums terms of both signs: where they cancel, the error is relative to a tenth of the total weight.
    assert abs(psi - true_psi) <= tolerance * max(abs(true_psi), 0.1 * total)


@DTYPES
@ANY_KERNEL
@pytest.mark.parametrize(("n", "d"), [(61, 1), (300, 2), (61, 3), (61, 5)])
@pytest.mark.parametrize("form", [weights, graph], ids=["dense", "graph"])
def test_exact_edges_match_the_reference(rng, kernel, dtype, n, d, form):
    A, Y = form(rng, n), rng.standard_normal((n, d)).astype(dtype)
    for b in POWERS:
        truth = Reference().edges(Y, A, kernel, b, potential=True)
        for single in (A, A.astype(np.float32)):
            tolerance = TOLERANCE[np.float32 if single.dtype == np.float32 else dtype]
            assert_same_edges(Exact(2).edges(Y, single, kernel, b, potential=True), truth, tolerance)


@DTYPES
@ANY_KERNEL
@pytest.mark.parametrize(("n", "d"), [(61, 1), (300, 2), (61, 3), (61, 5), (256, 2)])
def test_exact_field_matches_the_reference(rng, kernel, dtype, n, d):
    Y = rng.standard_normal((n, d)).astype(dtype)
    for charges in (None, rng.random(n), rng.standard_normal((n, 3))):
        result, truth = Exact(2).field(Y, kernel, charges), Reference().field(Y, kernel, charges)
        assert result.potential.shape == ((n,) if charges is None else charges.shape)
        assert result.gradient.shape == (*result.potential.shape, d)
        assert relative_error(result.potential, truth.potential) <= TOLERANCE[dtype]
        assert relative_error(result.gradient, truth.gradient) <= TOLERANCE[dtype]


@DTYPES
@pytest.mark.parametrize("spread", [1e-4, 0.1, 10.0, 1e3])
def test_exact_matches_the_reference_at_every_scale_of_the_map(rng, dtype, spread):
    Y, A = (spread * rng.standard_normal((100, 2))).astype(dtype), graph(rng, 100)
    for kernel in (StudentT(), StudentT(0.5), RegularizedPowerLaw(3.0, 0.1), RegularizedPowerLaw(1.2, 0.5)):
        truth = Reference().edges(Y, A, kernel, -0.75, potential=True)
        assert_same_edges(Exact(2).edges(Y, A, kernel, -0.75, potential=True), truth, TOLERANCE[dtype])
        result, truth = Exact(2).field(Y, kernel), Reference().field(Y, kernel)
        assert relative_error(result.potential, truth.potential) <= TOLERANCE[dtype]
        assert relative_error(result.gradient, truth.gradient) <= 4 * TOLERANCE[dtype]  # the sum nearly cancels


@pytest.mark.parametrize("kernel", [*KERNELS, UserKernel()], ids=repr)
def test_reference_matches_a_double_loop(rng, kernel):
    n, d = 7, 2
    Y, A, c = rng.standard_normal((n, d)), rng.random((n, n)), rng.random(n)
    S = sparse.csr_matrix(np.where(np.eye(n) + (A < 0.4), 0.0, A))
    field = Reference().field(Y, kernel, c)
    for i in range(n):
        potential, gradient = 0.0, [0.0] * d
        for j in set(range(n)) - {i}:
            diff = [float(Y[i, axis] - Y[j, axis]) for axis in range(d)]
            d2 = np.array([sum(x * x for x in diff)])
            potential += c[j] * kernel.value(d2)[0]
            gradient = [g + 2 * c[j] * kernel.slope(d2)[0] * x for g, x in zip(gradient, diff, strict=True)]
        assert_allclose(field.potential[i], potential, rtol=1e-13)
        assert_allclose(field.gradient[i], gradient, rtol=1e-12, atol=1e-14)
    for b in POWERS:
        for B, dense in ((A, A), (S, S.toarray())):
            psi, force = 0.0, np.zeros((n, d))
            for i in range(n):
                for j in set(range(n)) - {i}:
                    d2 = ((Y[i] - Y[j]) ** 2).sum(keepdims=True)
                    k, slope = float(kernel.value(d2)[0]), float(kernel.slope(d2)[0])
                    psi += dense[i, j] * antiderivative_of_power(k, b + 1)
                    force[i] += dense[i, j] * k**b * slope * (Y[i] - Y[j])
            result = Reference().edges(Y, B, kernel, b, potential=True)
            assert_allclose(result[0], psi, rtol=1e-12, atol=1e-14)
            assert_allclose(result[1], force, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("engine", [Reference(), Exact(2)], ids=["reference", "exact"])
def test_force_does_not_depend_on_the_potential_flag(rng, engine):
    Y = rng.standard_normal((50, 2)).astype(np.float32)
    for form in (weights, graph):
        A = form(rng, 50)
        for b in (-1.0, -0.75):
            psi, force = engine.edges(Y, A, StudentT(), b, potential=False)
            assert np.isnan(psi)
            assert_array_equal(force, engine.edges(Y, A, StudentT(), b, potential=True)[1])


def test_user_kernel_gives_the_reference_result_in_float64(rng):
    Y = rng.standard_normal((300, 2))
    for form in (weights, graph):
        A = form(rng, 300)
        result, truth = (e.edges(Y, A, UserKernel(), -0.5, potential=True) for e in (Exact(2), Reference()))
        assert result[0] == truth[0]
        assert_array_equal(result[1], truth[1])
    charges = rng.random((300, 2))
    for result, truth in zip(
        Exact(2).field(Y, UserKernel(), charges), Reference().field(Y, UserKernel(), charges), strict=True
    ):
        assert_array_equal(result, truth)


def test_user_copy_of_a_built_in_kernel_gives_the_same_forces(rng):
    class Twin(Kernel):
        def value(self, d2):
            return (1 + d2 / 2) ** -1.5

        def slope(self, d2):
            return -0.75 * (1 + d2 / 2) ** -2.5

    Y, A = rng.standard_normal((80, 3)), graph(rng, 80)
    assert_same_edges(
        Exact(1).edges(Y, A, Twin(), -0.5, potential=True),
        Exact(1).edges(Y, A, StudentT(2.0), -0.5, potential=True),
        1e-13,
    )
    for twin, built_in in zip(Exact(1).field(Y, Twin()), Exact(1).field(Y, StudentT(2.0)), strict=True):
        assert relative_error(twin, built_in) < 1e-13


@DTYPES
@pytest.mark.parametrize("engine", [Reference(), Exact(2)], ids=["reference", "exact"])
@pytest.mark.parametrize(
    "kernel", [RegularizedPowerLaw(2.0, 1e-12), SphericalExit(0.9999, 3), PowerLaw(2.0, 1e-6)], ids=repr
)
def test_self_pairs_are_excluded(engine, kernel, dtype):
    # k(0) = 1e12: a single self term in Φ would dominate the sum.
    line = np.arange(9.0).reshape(-1, 1)
    d2 = (line - line.T) ** 2
    k = np.where(d2 == 0, 0.0, kernel.value(d2))
    slope = np.where(d2 == 0, 0.0, kernel.slope(d2))
    field = engine.field(line.astype(dtype), kernel)
    assert_allclose(field.potential, k.sum(axis=1), rtol=TOLERANCE[dtype])
    assert relative_error(field.gradient, 2 * (slope * (line - line.T)).sum(axis=1, keepdims=True)) <= TOLERANCE[dtype]
    A = np.ones((9, 9))  # the diagonal is ignored
    psi, _ = engine.edges(line.astype(dtype), A, kernel, 0.0, potential=True)
    assert_allclose(psi, k.sum(), rtol=TOLERANCE[dtype])


@DTYPES
@pytest.mark.parametrize("engine", [Reference(), Exact(2)], ids=["reference", "exact"])
@pytest.mark.parametrize("kernel", [*KERNELS, RegularizedPowerLaw(0.5, 1.0)], ids=repr)
def test_coincident_points_add_potential_but_no_force(rng, engine, kernel, dtype):
    Y = np.zeros((20, 2), dtype)
    k0 = kernel.value(np.zeros(1))[0]
    field = engine.field(Y, kernel)
    assert_allclose(field.potential, np.full(20, 19 * k0), rtol=TOLERANCE[dtype])
    assert_array_equal(field.gradient, np.zeros((20, 2)))
    for A in (weights(rng, 20), graph(rng, 20)):
        for b in POWERS:
            psi, force = engine.edges(Y, A, kernel, b, potential=True)
            total = A.sum() - A.diagonal().sum()
            psi0 = antiderivative_of_power(k0, b + 1)
            assert_allclose(psi, total * psi0, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
            assert_array_equal(force, np.zeros((20, 2)))
    Y[10:] = 1.0  # two heaps: only the other heap exerts a force
    gradient = engine.field(Y, kernel).gradient
    slope = kernel.slope(np.full(1, 2.0))[0]
    assert_allclose(gradient[:10], np.full((10, 2), -20 * slope), rtol=TOLERANCE[dtype])
    assert_allclose(gradient[10:], np.full((10, 2), 20 * slope), rtol=TOLERANCE[dtype])


@DTYPES
@pytest.mark.parametrize(
    "kernel", [Gaussian(), StudentT(), StudentT(3.0), PowerLaw(), RegularizedPowerLaw(3.0, 0.1)], ids=repr
)
def test_exact_engine_is_identical_for_any_number_of_threads(rng, kernel, dtype):
    Y, charges = rng.standard_normal((300, 2)).astype(dtype), rng.random((300, 2))
    dense, csr = weights(rng, 300), graph(rng, 300)

    def all_results(n_threads):
        engine = Exact(n_threads)
        parts = [*engine.field(Y, kernel), *engine.field(Y, kernel, charges)]
        for A in (dense, csr, dense.astype(np.float32)):
            for b in (-1.0, -0.75):
                psi, force = engine.edges(Y, A, kernel, b, potential=True)
                parts += [np.array(psi), force]
        return b"".join(part.tobytes() for part in parts)

    assert all_results(1) == all_results(2) == all_results(3)


def test_choose_engine_and_make_engine():
    assert {"auto", "reference", "exact", "grid", "sampled"} <= set(ENGINES)
    for name in ENGINES:
        assert name == "auto" or make_engine(choose_engine(name, 100, 2, False), 2, 0.05).traits.name == name
    assert make_engine("exact", 3, 0.05).n_threads == 3
    assert [choose_engine("auto", n, 2, False) for n in (100, 10**6)] == ["exact", "grid"]
    assert [choose_engine("auto", n, 4, False) for n in (100, 10**6)] == ["exact", "sampled"]
    assert choose_engine("auto", 10**6, 4, True) == choose_engine("auto", 10**6, 2, True) == "exact"
    with pytest.raises(ValueError, match=r"unknown engine 'magic'; choose from 'auto', 'reference', 'exact'"):
        choose_engine("magic", 100, 2, False)
    with pytest.raises(ValueError, match=r'1, 2 or 3 dimensions, not 4; use engine="sampled", or "exact"'):
        choose_engine("grid", 100, 4, False)
    with pytest.raises(ValueError, match=r'engine="sampled" sums a sample of the pairs.*use engine="exact"'):
        choose_engine("sampled", 100, 4, True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_instruction_set_does_not_change_the_result(rng, dtype):
    Y = (3 * rng.standard_normal((300, 2))).astype(dtype)
    A = rng.random((300, 300)).astype(dtype)
    graph = sparse.random(300, 300, 0.1, format="csr", random_state=0, dtype=dtype)
    engine, seen = Exact(1), []
    for base in (True, False):
        _core.use_base_instruction_set(base)
        try:
            parts = [*engine.field(Y, KERNELS[0]), engine.edges(Y, A, KERNELS[-1], -0.75, potential=True)[1]]
            parts.append(engine.edges(Y, graph, KERNELS[1], -1.0, potential=True)[1])
            seen.append((_core.instruction_set(), b"".join(part.tobytes() for part in parts)))
        finally:
            _core.use_base_instruction_set(False)
    assert seen[0][0] == "base"
    assert seen[0][1] == seen[1][1]


def test_field_and_edges_check_array_shapes():
    Y, kernel = np.zeros((5, 2)), _core.Kernel.gaussian()
    with pytest.raises(ValueError, match=r"charges must have shape \(n, m\)"):
        _core.field(kernel, np.ones((3, 1)), Y, np.empty((5, 1)), np.empty((5, 1, 2)), 1)
    with pytest.raises(ValueError, match=r"potential must have shape \(n_targets, m\)"):
        _core.field(kernel, np.ones((5, 1)), Y, np.empty((4, 1)), np.empty((5, 1, 2)), 1)
    with pytest.raises(ValueError, match=r"half_gradient must have shape"):
        _core.field(kernel, np.ones((5, 1)), Y, np.empty((5, 1)), np.empty((5, 1, 1)), 1)
    with pytest.raises(ValueError, match=r"A must have shape \(n, n\)"):
        _core.edges_dense(kernel, -1.0, np.zeros((4, 4)), Y, np.empty(0), np.empty((5, 2)), 1)
    with pytest.raises(ValueError, match=r"force must have shape \(n, d\)"):
        _core.edges_dense(kernel, -1.0, np.zeros((5, 5)), Y, np.empty(0), np.empty((4, 2)), 1)
    empty = _core.Csr(np.zeros(3, np.int64), np.zeros(0, np.int32), 5)
    with pytest.raises(ValueError, match=r"A must have shape \(n, n\)"):
        _core.edges_sparse(kernel, -1.0, empty, np.zeros(0), Y, np.empty(0), np.empty((5, 2)), 1)
    with pytest.raises(ValueError, match=r"P must have shape \(n, n\)"):
        _core.conditional_points(Y, np.ones(1), np.empty((4, 4)), np.empty(5, np.uint8), 1)
    with pytest.raises(ValueError, match="A must have shape"):
        Exact(1).edges(Y, np.zeros((4, 4)), KERNELS[0], -1.0, potential=False)


MESH = np.zeros(2), 1.0, np.array([8, 8])  # origin, h, size
PADDING = _core.MESH_PADDING


@pytest.mark.parametrize(
    ("Y", "charges", "grid", "message"),
    [
        ((5, 3), (5, 1), 64 + PADDING, "Y must have one column per axis"),
        ((5, 2), (4, 1), 64 + PADDING, r"charges must have shape \(n, m\)"),
        ((5, 2), (5, 2), 64 + PADDING, r"grid must have m \* nodes \+ MESH_PADDING elements"),
        ((5, 2), (5, 1), 64, r"grid must have m \* nodes \+ MESH_PADDING elements"),
    ],
)
def test_spread_checks_array_shapes(Y, charges, grid, message):
    with pytest.raises(ValueError, match=message):
        _core.spread(_core.Mesh(*MESH), np.zeros(Y), np.ones(charges), np.empty(grid), 1)


@pytest.mark.parametrize(
    ("Y", "grid", "potential", "gradient", "message"),
    [
        ((5, 1), 64 + PADDING, (5, 1), (5, 1, 1), "Y must have one column per axis"),
        ((5, 2), 64, (5, 1), (5, 1, 2), r"grid must have m \* nodes \+ MESH_PADDING elements"),
        ((5, 2), 128 + PADDING, (5, 1), (5, 2, 2), r"grid must have m \* nodes \+ MESH_PADDING elements"),
        ((5, 2), 64 + PADDING, (4, 1), (5, 1, 2), r"potential must have shape \(n_targets, m\)"),
        ((5, 2), 64 + PADDING, (5, 1), (4, 1, 2), "half_gradient must have shape"),
    ],
)
def test_gather_checks_array_shapes(Y, grid, potential, gradient, message):
    with pytest.raises(ValueError, match=message):
        _core.gather(_core.Mesh(*MESH), np.zeros(Y), np.zeros(grid), np.empty(potential), np.empty(gradient), 1)


@pytest.mark.parametrize(
    ("targets", "Y", "charges", "potential", "gradient", "message"),
    [
        ((4, 3), (5, 3), (5, 1), (4, 1), (4, 1, 3), "Y must have one column per axis"),
        ((4, 3), (5, 2), (5, 1), (4, 1), (4, 1, 2), r"targets must have shape \(n_targets, d\)"),
        ((4, 2), (5, 2), (4, 1), (4, 1), (4, 1, 2), r"charges must have shape \(n, m\)"),
        ((4, 2), (5, 2), (5, 1), (5, 1), (4, 1, 2), r"potential must have shape \(n_targets, m\)"),
        ((4, 2), (5, 2), (5, 2), (4, 2), (4, 1, 2), "half_gradient must have shape"),
    ],
)
def test_near_checks_array_shapes(targets, Y, charges, potential, gradient, message):
    table = np.zeros((1, 4), np.float32), 0, 1.0  # segments, first, scale
    out = np.empty(potential), np.empty(gradient)
    with pytest.raises(ValueError, match=message):
        _core.near(_core.Mesh(*MESH), *table, np.zeros(targets), np.zeros(Y), np.ones(charges), *out, 1)


def test_pair_distances_checks_array_shapes():
    X, neighbors, rows = np.zeros((5, 3)), np.zeros((5, 2), np.int32), np.arange(5, dtype=np.int32)
    with pytest.raises(ValueError, match=r"neighbors must have shape \(n, k\)"):
        _core.pair_distances(X, neighbors[:4], rows, np.empty((5, 2)), 1)
    with pytest.raises(ValueError, match="distances must have the shape"):
        _core.pair_distances(X, neighbors, rows, np.empty((5, 1)), 1)
    with pytest.raises(ValueError, match="rows must be rows of X"):
        _core.pair_distances(X, neighbors, np.full(5, 5, np.int32), np.empty((5, 2)), 1)


@pytest.mark.parametrize(
    ("indptr", "columns", "values", "targets", "force", "message"),
    [
        ([0, 2], 5, 2, (2, 2), (2, 2), r"A must have shape \(n_targets, n\)"),
        ([0, 1, 2], 4, 2, (2, 2), (2, 2), r"A must have shape \(n_targets, n\)"),
        ([0, 1, 2], 5, 1, (2, 2), (2, 2), "values must have one element per entry of A"),
        ([0, 1, 2], 5, 2, (2, 3), (2, 3), r"targets must have shape \(n_targets, d\)"),
        ([0, 1, 2], 5, 2, (2, 2), (2, 1), r"force must have shape \(n_targets, d\)"),
    ],
)
def test_edges_to_checks_array_shapes(indptr, columns, values, targets, force, message):
    A = _core.Csr(np.array(indptr), np.zeros(2, np.int32), columns), np.zeros(values, np.float32)
    targets, Y = np.zeros(targets, np.float32), np.zeros((5, 2), np.float32)
    with pytest.raises(ValueError, match=message):
        _core.edges_to(_core.Kernel.gaussian(), *A, targets, Y, np.empty(force), 1)


def test_subclass_of_a_built_in_kernel_uses_its_own_formulas(rng):
    class Heavy(StudentT):
        def value(self, d2):
            return (1 + d2) ** -0.3

        def log_slope(self, d2):
            return -0.3 / (1 + d2)

    Y = rng.standard_normal((20, 2))
    own, reference = Exact(1).field(Y, Heavy()), Reference().field(Y, Heavy())
    np.testing.assert_array_equal(own.potential, reference.potential)
