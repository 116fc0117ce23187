"""Descent over ranks: the same bytes for any number of them, and the forces of the engines of one process."""

from itertools import groupby

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.shared_problems import assert_field_is_within_tol, fit_over_ranks, rank_parts
from support.thread_ranks import ThreadGroup, run_ranks

import equipoise as eq
from equipoise import _core
from equipoise.arrays.csr import make_csr, with_values
from equipoise.distributed import fit
from equipoise.distributed.partition import Partition
from equipoise.distributed.rank_problem import SharedCheckpoints, shared_geometry
from equipoise.distributed.rank_spectral import eigenmap
from equipoise.distributed.shared_map import SharedMap
from equipoise.engines import Grid
from equipoise.engines.mesh import mesh_engine
from equipoise.geometry import Torus
from equipoise.initialize.spectral import spectral
from equipoise.kernels import Gaussian, PowerLaw, StudentT
from equipoise.objectives import ConditionalKL, DoubleKernelLLE

pytestmark = pytest.mark.ranks
RANKS = 1, 2, 3, 4
N = 3500  # four blocks of rows


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(8, 6))
    return centres[np.sort(rng.integers(8, size=N))] + rng.normal(size=(N, 6))


METHODS = {
    "t-SNE": eq.TSNE(n_iter=60, random_state=0, engine="grid"),
    "t-SNE in 3-D": eq.TSNE(3, n_iter=12, random_state=0, engine="grid", tol=0.1),
    "t-SNE in 1-D": eq.TSNE(1, n_iter=40, random_state=0, engine="grid"),
    "g-SNE": eq.GSNE(alpha=-0.5, beta=2.5, n_iter=40, random_state=0, engine="grid"),
    "p-SNE": eq.PowerSNE(n_iter=30, random_state=0, engine="grid"),
    "UMAP": eq.UMAP(n_iter=40, random_state=0, engine="grid"),
    "intended UMAP": eq.UMAP(loss="intended", n_iter=30, random_state=0, engine="grid"),
}


@pytest.mark.parametrize("name", METHODS)
def test_maps_have_the_same_bytes_for_any_number_of_ranks(X, name):
    method = METHODS[name]
    single = method.problem(X)
    results = {size: fit_over_ranks(size, single, lambda A, sums: method.objective_on(A).over(sums)) for size in RANKS}
    for size in RANKS[1:]:
        assert_array_equal(results[size][0], results[1][0])
        assert_array_equal(results[size][1], results[1][1])
    single.optimize()
    assert_allclose(results[1][1][-1, 1], single.loss_curve[-1, 1], rtol=0.005)


def test_sne_and_double_kernel_lle_over_ranks(X):
    sne, lle = eq.SNE(n_iter=20, random_state=0, engine="grid"), eq.DKLLE(n_iter=20, random_state=0, engine="grid")

    def of_sne(A, sums):
        return ConditionalKL.of_sums(A, with_values(A, 2 * A.data), sne.output_kernel(), sums)

    def of_lle(A, sums):
        return DoubleKernelLLE.of_rows(A, lle.output_kernel(), sums)

    for method, objective in ((sne, of_sne), (lle, of_lle)):
        single = method.problem(X)
        if method is sne:  # symmetric rows, so that P + Pᵀ = 2 P
            single.objective = sne.objective_on((single.affinities + single.affinities.T) / 2)
        one, three = (fit_over_ranks(size, single, objective) for size in (1, 3))
        assert_array_equal(one[0], three[0])
        single.optimize()
        assert_allclose(one[1][-1, 1], single.loss_curve[-1, 1], rtol=0.005)


def test_number_of_threads_does_not_change_the_map(X):
    method = eq.TSNE(n_iter=30, random_state=0, engine="grid")
    single = method.problem(X)
    maps = [
        fit_over_ranks(2, single, lambda A, sums: method.objective_on(A).over(sums), n_threads)[0]
        for n_threads in (1, 2, 3)
    ]
    assert_array_equal(maps[0], maps[1])
    assert_array_equal(maps[0], maps[2])


@pytest.mark.parametrize("kernel", [StudentT(), Gaussian(), PowerLaw(2.0, 0.5)], ids=str)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_field_of_ranks_is_within_tol_of_the_reference(kernel, d):
    assert_field_is_within_tol(kernel, 2500, d, 4)


def test_every_rank_keeps_the_same_record_of_the_tolerance(monkeypatch):
    monkeypatch.setattr(mesh_engine, "AMPLE", 1.0)
    rng = np.random.default_rng(0)
    n = 2500
    P = eq.TSNE(perplexity=5, engine="grid").problem(rng.normal(size=(n, 3))).affinities
    Y = rng.normal(size=(n, 2)).astype(np.float32)

    def work(group):
        _, engine, shared = rank_parts(group, P, tol=10.0)
        for width in (1, 1.4):
            engine.field((width * Y)[shared.partition.own], StudentT())
        return engine.state()

    states = run_ranks(3, work)
    assert states[0] == states[1] == states[2] == run_ranks(1, work)[0]
    assert states[0][0]["ample"]  # so that the flag is compared where it is set


def test_edges_of_ranks_are_those_of_the_grid(X):
    P = eq.TSNE(engine="grid").problem(X).affinities
    Y = np.random.default_rng(1).normal(size=(N, 2)).astype(np.float32)

    def work(group):
        A, engine, shared = rank_parts(group, P)
        psi, force = engine.edges(Y[shared.partition.own], A, StudentT(), -1.0, potential=True)
        return psi, shared.gather(force)

    psi, force = Grid(1, 0.01).edges(Y, P, StudentT(), -1.0, potential=True)
    for size in RANKS:
        found = run_ranks(size, work)[0]
        assert_array_equal(found[1], force)
        assert found[0] == pytest.approx(psi, rel=1e-12)


def test_sums_add_blocks_in_order():
    """Eq. (P1) of docs/math.md."""
    x = np.random.default_rng(0).normal(size=5000) * 10.0 ** np.random.default_rng(1).integers(-8, 8, size=5000)
    block = Partition(5000, 1).block
    parts = [np.add.reduce(x[start : start + block]) for start in range(0, 5000, block)]
    expected = float(np.add.accumulate(parts)[-1])

    def work(group):
        shared = SharedMap(group, Partition.of(group, 5000), 2)
        return shared.total(x[shared.partition.own])

    assert [run_ranks(size, work)[0] for size in (1, 2, 5)] == [expected] * 3


def test_integer_charges_add_up_to_those_of_all_points():
    rng = np.random.default_rng(0)
    for dtype, d in ((np.float32, 2), (np.float64, 3), (np.float32, 1)):
        Y, charges = rng.uniform(0, 20, size=(5000, d)).astype(dtype), rng.uniform(0, 1, size=(5000, 2))
        size = np.full(d, 32)
        mesh = _core.Mesh(np.full(d, -4.0), 1.0, size)
        nodes = 2 * int(size.prod()) + _core.MESH_PADDING

        def spread(rows, Y=Y, charges=charges, mesh=mesh, nodes=nodes):
            grid = np.full(nodes, 7, np.int64)
            _core.spread_integers(mesh, Y[rows], charges[rows], 2.0**24, grid, 2)
            return grid

        whole = spread(slice(None))
        assert_array_equal(spread(slice(0, 1234)) + spread(slice(1234, None)), whole)
        floats = np.empty(nodes, dtype)
        _core.spread(mesh, Y, charges, floats, 1)
        own = slice(0, -_core.MESH_PADDING)
        assert_allclose(whole[own] / 2.0**24, floats[own], atol=1e-4)


def test_steps_in_the_core_are_those_of_the_optimiser():
    rng = np.random.default_rng(0)
    n, d = 2100, 2
    E, half = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    U, velocity = (rng.normal(size=(n, d)).astype(np.float32) for _ in range(2))
    gain, sums = np.ones((n, d), np.float32), np.empty((3, d))
    expected = [velocity.copy(), gain.copy()]
    rates = 0.1, 0.8, 0.2, 0.8, 0.5, 0.01, 5.0
    _core.momentum_step(-(2.0 * E - 3.0 * (2 * half)), *expected, *rates)
    moved = U + expected[0]
    _core.move_rows(E, half, 2.0, -3.0, *rates, U, velocity, gain, sums, 2)
    assert_array_equal(velocity, expected[0])
    assert_array_equal(gain, expected[1])
    assert_array_equal(U, moved)
    assert_allclose(sums.sum(axis=0), U.astype(np.float64).sum(axis=0), rtol=1e-12)
    boxes = np.empty((3, 2, d), np.float32)
    _core.shift_rows(np.array([1, -2], np.float32), U, boxes, 2)
    assert_array_equal(U, moved - np.array([1, -2], np.float32))
    assert_array_equal(boxes[:, 0].min(axis=0), U.min(axis=0))
    assert_array_equal(boxes[:, 1].max(axis=0), U.max(axis=0))


def test_eigenmap_of_ranks_is_that_of_one_process(X):
    P = eq.UMAP().problem(np.random.default_rng(2).uniform(size=(2600, 3)) * [3, 1.6, 1]).affinities

    def work(group):
        A, engine, shared = rank_parts(group, P)
        Y = eigenmap(A, engine.halo, shared, 2)
        return None if Y is None else shared.gather(Y)

    one, three = run_ranks(1, work)[0], run_ranks(3, work)[0]
    assert_array_equal(one, three)
    truth = spectral(P, 2, None)
    for c in range(2):
        assert abs(np.corrcoef(one[:, c], truth[:, c])[0, 1]) > 0.999


def test_graph_with_two_components_has_no_eigenmap(X):
    P = eq.TSNE(perplexity=5, engine="grid").problem(X[:1200]).affinities.tolil()
    P[:600, 600:], P[600:, :600] = 0, 0
    P = P.tocsr()
    P = make_csr(P.data, P.indices, P.indptr, P.shape)
    assert run_ranks(2, lambda group: eigenmap(*_eigenmap_arguments(group, P)))[0] is None


def _eigenmap_arguments(group, P):
    A, engine, shared = rank_parts(group, P)
    return A, engine.halo, shared, 2


def test_checkpoint_is_resumed_by_another_number_of_ranks(X, tmp_path, monkeypatch):
    method = eq.TSNE(n_iter=60, random_state=0, engine="grid")
    single = method.problem(X)
    objective = lambda A, sums: method.objective_on(A).over(sums)  # noqa: E731
    straight = fit_over_ranks(2, single, objective)[0]
    path, iterations = tmp_path / "run.eqc", []
    with pytest.raises(KeyboardInterrupt):
        fit_over_ranks(3, single, objective, callbacks=[eq.Checkpoint(path, every=15), interrupt_at_50])
    save = SharedCheckpoints.save_if_due

    def noted(checkpoints, iteration):
        iterations.append(iteration)
        save(checkpoints, iteration)

    monkeypatch.setattr(SharedCheckpoints, "save_if_due", noted)
    resumed = fit_over_ranks(1, single, objective, callbacks=[eq.Checkpoint(path, every=15, resume=True)])[0]
    assert 45 < iterations[0] <= 50 and iterations[-1] == 60  # saved after 45
    assert_array_equal(resumed, straight)


def interrupt_at_50(iteration, loss, Y):
    assert len(Y) == N
    if iteration >= 50:
        raise KeyboardInterrupt


def test_a_fit_names_its_stages(X, monkeypatch):
    stages, share = [], ThreadGroup._share

    def noted(group, value):
        if group.rank == 0:
            stages.append(group.current_stage)
        return share(group, value)

    def compare_arguments(group):
        result = fit(eq.TSNE(perplexity=5, n_iter=2, init="random", random_state=0, engine="grid"), X, group=group)
        return result.gather()

    monkeypatch.setattr(ThreadGroup, "_share", noted)
    run_ranks(2, compare_arguments)
    assert [name for name, _ in groupby(stages)] == [
        *("compare_arguments", "opening the table", "neighbours", "affinities", "initial map", "descent"),
        "gathering the map",
    ]


def test_callback_on_rank_0_sees_the_whole_map_and_stops_all_ranks(X):
    method = eq.TSNE(n_iter=120, random_state=0, engine="grid")
    single, seen = method.problem(X), []

    def stop(iteration, loss, Y):
        seen.append((iteration, Y.shape))
        return iteration >= 50

    _, curve = fit_over_ranks(3, single, lambda A, sums: method.objective_on(A).over(sums), callbacks=[stop])
    assert seen == [(0, (N, 2)), (50, (N, 2))]
    assert curve[-1, 0] == 50


def test_unsupported_geometry_is_refused(X):
    with pytest.raises(ValueError, match=r"geometry=Torus.* is not supported over ranks; use geometry=\"plane\""):
        shared_geometry(Torus(10.0), None)
