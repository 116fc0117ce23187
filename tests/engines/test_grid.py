import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from support.cases import KERNELS, UserKernel, norm_error, relative_error

import equipoise as eq
from equipoise.engines import Exact, Grid
from equipoise.engines.mesh.plan import near_radius, split
from equipoise.engines.tables import tabulate
from equipoise.kernels import Gaussian, PowerLaw, RegularizedPowerLaw, SphericalExit, StudentT

SHARP = [PowerLaw(2.0, 0.01), RegularizedPowerLaw(0.5, 1.0), RegularizedPowerLaw(1.0, 1.0), SphericalExit(0.999, 3)]
N = 400


def cloud(rng, d, extent, n=N):
    return rng.standard_normal((n, d)) * extent / 4


@pytest.mark.parametrize("kernel", [*KERNELS, *SHARP, UserKernel()], ids=lambda k: repr(k).split(" object")[0])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_force_error_is_within_tol(rng, kernel, d):
    for extent in (1e-3, 1.0, 30.0, 1e3):
        Y = cloud(rng, d, extent)
        truth = Exact(1).field(Y, kernel)
        if not truth.gradient.any():  # all pairs are inside the cutoff of a power law: the force is 0
            continue
        for tol in (1e-1, 1e-2, 1e-3):
            field = Grid(1, tol).field(Y, kernel)
            size = np.linalg.norm(truth.gradient)
            # tol bounds the force error; Z is similar. Forces below the rounding of the potential are ignored.
            noise = 1e-9 * np.linalg.norm(truth.potential) / kernel.length
            assert np.linalg.norm(field.gradient - truth.gradient) <= tol * size + min(noise, 1e-9 * N) + 1e-30, extent
            assert_allclose(field.potential.sum(), truth.potential.sum(), rtol=5 * tol, atol=1e-30)


def tight_clusters(rng, d):
    centres = rng.uniform(-0.5, 0.5, (10, d))
    return centres[rng.integers(10, size=N)] + 0.002 * rng.standard_normal((N, d))


def heavy_tailed(rng, d):
    return np.clip(rng.standard_cauchy((N, d)), -50, 50) / 100


@pytest.mark.parametrize("shape", [tight_clusters, heavy_tailed])
@pytest.mark.parametrize("kernel", [StudentT(), StudentT(0.5), RegularizedPowerLaw(2.5, 0.1), UserKernel()], ids=repr)
@pytest.mark.parametrize("d", [2, 3])
def test_force_error_is_within_tol_for_clusters_and_outliers(rng, kernel, shape, d):
    for extent in (1.0, 10.0, 100.0):
        Y = extent * kernel.length * shape(rng, d)
        truth = Exact(1).field(Y, kernel).gradient
        for tol in (1e-1, 1e-2, 1e-3):
            assert norm_error(Grid(1, tol).field(Y, kernel).gradient, truth) <= tol, (extent, tol)


def test_tolerance_is_rechecked_as_the_map_changes(rng):
    kernel, engine = StudentT(), Grid(1, 1e-2)
    even, clumps = rng.uniform(-5, 5, (N, 2)), 10 * tight_clusters(rng, 2)
    clumps[:2] = even[:2] = [[-5, -5], [5, 5]]  # both maps have the same bounding box
    truth = Exact(1).field(clumps, kernel).gradient
    engine.field(even, kernel)
    for _ in range(50):
        last = engine.field(clumps, kernel).gradient
    assert norm_error(last, truth) <= 1e-2


def test_tolerance_is_checked_separately_for_charges(rng):
    kernel, engine, Y = StudentT(), Grid(1, 1e-2), 10 * tight_clusters(rng, 2)
    charges = np.where(np.arange(N) < 5, 1e3, 1.0)
    truth = Exact(1).field(Y, kernel, charges).gradient
    for _ in range(60):
        engine.field(Y, kernel)
        assert norm_error(engine.field(Y, kernel, charges).gradient, truth) <= 1e-2


def test_unreachable_tolerance_warns(rng, monkeypatch):
    monkeypatch.setattr("equipoise.engines.mesh.mesh_engine.LOWEST", 4)  # prevents refinement of the first mesh
    with pytest.warns(
        UserWarning, match=r"force of StudentT\(dof=1\.0\) on the mesh has a relative error of .*, more than tol=0\.01"
    ):
        Grid(1, 1e-2).field(10 * tight_clusters(rng, 2), StudentT())


@pytest.mark.parametrize("kernel", [StudentT(), PowerLaw(), RegularizedPowerLaw(1.0, 1.0)], ids=repr)
def test_force_error_is_within_tol_in_float32(rng, kernel):
    Y = cloud(rng, 2, 60, 2000)
    truth = Exact(1).field(Y, kernel).gradient
    assert norm_error(Grid(1, 1e-2).field(Y.astype(np.float32), kernel).gradient, truth) <= 1e-2


@pytest.mark.parametrize("extent", [1e-3, 1.0, 10.0])
def test_force_error_is_within_tol_for_many_points_on_a_small_mesh(rng, extent):
    Y = cloud(rng, 2, extent, 17_000).astype(np.float32)
    truth = Exact(2).field(Y.astype(np.float64), StudentT()).gradient
    assert norm_error(Grid(2, 1e-2).field(Y, StudentT()).gradient, truth) <= 1e-2


def test_field_of_several_charges_matches_exact(rng):
    Y, charges = cloud(rng, 2, 20), rng.uniform(0.5, 2, (N, 3))
    field, truth = Grid(1, 1e-3).field(Y, StudentT(), charges), Exact(1).field(Y, StudentT(), charges)
    assert field.potential.shape == (N, 3) and field.gradient.shape == (N, 3, 2)
    assert_allclose(field.potential, truth.potential, rtol=1e-3)
    assert norm_error(field.gradient, truth.gradient) <= 1e-3


@pytest.mark.parametrize("kernel", [StudentT(), RegularizedPowerLaw(1.0, 1.0)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mesh_engine_is_identical_for_any_number_of_threads(rng, kernel, dtype):
    Y = cloud(rng, 2, 300, 20_000).astype(dtype)
    one, two, four = (Grid(threads, 0.05).field(Y, kernel) for threads in (1, 2, 4))
    for other in (two, four):
        assert one.potential.tobytes() == other.potential.tobytes()
        assert one.gradient.tobytes() == other.gradient.tobytes()


@pytest.mark.parametrize("kernel", [*KERNELS, UserKernel()], ids=lambda k: repr(k).split(" object")[0])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_tabulated_edges_match_exact(rng, kernel, d):
    Y = (3 * rng.standard_normal((200, d))).astype(np.float32)
    A = sparse.random(200, 200, 0.1, format="csr", random_state=0, dtype=np.float32)
    for b in (-1.0, -0.75, -0.2):
        psi, force = Grid(2, 0.05).edges(Y, A, kernel, b, potential=True)
        psi0, truth = Exact(1).edges(Y.astype(np.float64), A, kernel, b, potential=True)
        assert relative_error(force, truth) <= 2e-5
        assert_allclose(psi, psi0, rtol=2e-5, atol=2e-5 * A.sum())
        assert relative_error(Grid(1, 0.05).edges(Y, A, kernel, b, potential=False)[1], truth) <= 2e-5


def test_near_field_vanishes_beyond_its_radius():
    kernel, a = RegularizedPowerLaw(1.0, 1.0), 3.0
    part = split(kernel, a)
    d2 = np.linspace(1e-6, 16, 2000)
    line = kernel.value(np.array(a * a)) + kernel.slope(np.array(a * a)) * (d2 - a * a)
    assert_allclose(part.near(d2)[:20], (kernel.value(d2) - line)[:20], rtol=1e-5)  # kernel minus its tangent
    assert not part.near(d2[d2 >= a * a]).any() and not part.near_slope(d2[d2 >= a * a]).any()
    step = 1e-6
    inside = d2[(d2 > 0.01) & (d2 < a * a)]
    difference = (part.near(inside + step) - part.near(inside - step)) / (2 * step)
    assert_allclose(part.near_slope(inside), difference, atol=1e-6)


def test_near_field_contains_the_kink():
    for tol in (1e-1, 1e-3):
        assert near_radius(PowerLaw(2.0, 1.0), tol, 2, 0.01) > 2


def test_tables_represent_a_jump_in_slope():
    kernel = PowerLaw(2.0, 0.3)
    table = tabulate(kernel.value, kernel.slope, 1e-3, 1e3, kernel.kink)
    i = np.flatnonzero(np.abs(np.diff(table.segments[:, 1])) > 1)[0]
    assert not table.segments[i, 1:].any() and table.segments[i + 1, 1] < -100


@pytest.mark.parametrize("kernel", [*KERNELS, *SHARP, UserKernel()], ids=lambda k: repr(k).split(" object")[0])
def test_tables_match_value_and_slope(kernel):
    table = tabulate(kernel.value, kernel.slope, 1e-3, 1e3, kernel.kink)
    v0, s0, s1, s2 = table.segments[:-1].astype(np.float64).T
    nodes = (np.arange(table.first, table.first + len(table.segments)) << 17).astype(np.int32).view(np.float32)
    nodes = nodes.astype(np.float64) / table.scale
    start, width, unit = nodes[:-1], np.diff(nodes), np.array(1.01 * kernel.length**2)
    for f in (0.2, 0.4, 0.8):
        d2 = start + f * width
        k = v0 + width * (s0 * f + s1 * f**2 / 2 + s2 * f**3 / 3)
        assert_allclose(k, kernel.value(d2), rtol=2e-6, atol=2e-6 * kernel.value(unit))
        slope, r = s0 + s1 * f + s2 * f**2, np.sqrt(d2)
        pull = np.abs(kernel.slope(unit)) * kernel.length
        assert_allclose(slope * r, kernel.slope(d2) * r, rtol=2e-6, atol=2e-6 * pull)
    assert not table.segments[-1, 2:].any()  # constant slope in the last segment


def test_growing_map_reuses_transforms(rng):
    engine, shape = Grid(1, 0.05), rng.standard_normal((300, 2))
    transforms = set()
    for extent in np.geomspace(1, 50, 200):
        engine.field(extent * shape, StudentT())
        transforms |= set(engine._transforms)
    assert len(transforms) <= 60  # 50-fold growth is 23 mesh sizes along each of two axes, each checked once


@pytest.mark.parametrize(
    "method",
    [
        eq.TSNE(),
        eq.GSNE(),
        pytest.param(eq.SymmetricSNE(kernel=UserKernel()), marks=pytest.mark.slow),
        eq.SphericalSNE(),
    ],
    ids=repr,
)
def test_mesh_map_is_as_good_as_the_exact_map(method):
    X = eq.data.load("digits").X[:400]
    method.set_params(random_state=0, engine="grid", perplexity=10)
    fitted = method.fit(X)
    assert sparse.issparse(fitted.affinities_) and fitted.engine_ == "grid"
    exact = method.problem(X)
    exact.engine = Exact(1)
    # The loss includes the error of Z, which is largest for the sharp kernel on the sphere.
    assert fitted.loss_ == pytest.approx(exact.loss(fitted.embedding_.astype(np.float64)), rel=0.03)
    assert fitted.loss_ <= 1.06 * exact.loss(exact.optimize().astype(np.float64))


def test_sparse_graph_of_all_neighbors_equals_the_dense_problem(rng):
    X, Y = rng.standard_normal((40, 4)), rng.standard_normal((40, 2))
    dense = eq.TSNE(perplexity=13, engine="exact").problem(X)
    sparse_ = eq.TSNE(perplexity=13, engine="grid", tol=1e-3).problem(X)
    assert sparse_.affinities.nnz == 40 * 39
    assert_allclose(sparse_.affinities.toarray(), dense.affinities, rtol=1e-5, atol=1e-10)
    assert sparse_.loss(Y) == pytest.approx(dense.loss(Y), rel=1e-3)


def test_gaussian_on_a_wide_map_is_computed_by_the_near_field(rng):
    centers = cloud(rng, 2, 1e4)  # pairs of points, far from all other pairs
    Y = np.vstack([centers, centers + rng.uniform(-1, 1, centers.shape)])
    truth = Exact(1).field(Y, Gaussian())
    assert np.median(truth.potential) > 0.1
    field = Grid(1, 1e-2).field(Y, Gaussian())
    assert relative_error(field.potential, truth.potential) <= 1e-2
    assert np.linalg.norm(field.gradient - truth.gradient) <= 1e-2 * np.linalg.norm(truth.gradient)
