"""Problems of a map that several ranks share, from the affinities, schedule and initial map of one process."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

import equipoise as eq
from equipoise.arrays.csr import make_csr
from equipoise.distributed.halo import Halo
from equipoise.distributed.partition import Partition
from equipoise.distributed.rank_engine import RankGrid
from equipoise.distributed.rank_fit import fit
from equipoise.distributed.rank_problem import SharedProblem, shared_geometry
from equipoise.distributed.shared_map import SharedMap
from equipoise.engines import Reference
from equipoise.geometry import Flat
from support.thread_ranks import run_ranks


def own_rows(P, partition):
    part = P[partition.own].tocsr()
    return make_csr(part.data, part.indices, part.indptr, part.shape)


def grid_engine(group, partition, halo, n_threads, tol):
    return RankGrid(SharedMap(group, partition, n_threads), halo, n_threads, tol)


def torch_engine(group, partition, halo, n_threads, tol):
    """Return the engine of one rank in PyTorch on the CPU."""
    from equipoise.distributed.rank_torch import RankTorch
    from equipoise.distributed.tensor_map import TensorMap

    return RankTorch(TensorMap(group, partition, n_threads), halo, n_threads, tol, "cpu")


def rank_parts(group, P, tol=0.01, n_threads=1, make_engine=grid_engine):
    """Return what a rank needs of symmetric affinities P: its rows with local columns, its engine, and its sums."""
    partition = Partition.of(group, P.shape[0])
    A = own_rows(P, partition)
    halo = Halo(group, partition, A.indices)
    engine = make_engine(group, partition, halo, n_threads, tol)
    return halo.localized(A), engine, engine.shared


def shared_problem(group, single, objective, n_threads=1, make_engine=grid_engine):
    """Return the problem of one rank for the affinities, the schedule and the initial map of a problem."""
    A, engine, shared = rank_parts(group, single.affinities, single.engine.tol, n_threads, make_engine)
    own = shared.partition.own
    return SharedProblem(
        objective(A, shared), shared_geometry(Flat(), shared), engine, single.Y0[own], single.schedule, single.rule,
        shared=shared, ids=np.arange(own.start, own.stop),
    )  # fmt: skip


def fit_over_ranks(size, single, objective, n_threads=1, make_engine=grid_engine, **options):
    """Return the whole map and the curve of the loss."""

    def work(group):
        problem = shared_problem(group, single, objective, n_threads, make_engine)
        problem.optimize(**options)
        return problem.whole_map(), problem.loss_curve

    return run_ranks(size, work)[0]


def assert_same_bytes(method, X, sizes):
    """Fit a method over several numbers of ranks; return the map and the curve of the loss, which must be the same."""

    def work(group):
        result = fit(method, X, group=group)
        return result.gather(), result.loss_curve

    first, *others = (run_ranks(size, work)[0] for size in sizes)
    for other in others:
        assert_array_equal(other[0], first[0])
        assert_array_equal(other[1], first[1])
    return first


def assert_field_is_within_tol(kernel, n, d, width, make_engine=grid_engine, on_device=np.asarray):
    """Check the field of charges at points of one and two ranks, of an engine with a tolerance of 0.01."""
    rng = np.random.default_rng(d)
    Y, charges = (width * rng.normal(size=(n, d))).astype(np.float32), rng.uniform(0.1, 3, size=(n, 2))
    P = eq.TSNE(perplexity=5, engine="grid").problem(rng.normal(size=(n, 3))).affinities

    def work(group):
        _, engine, shared = rank_parts(group, P, make_engine=make_engine)
        own = shared.partition.own
        field = engine.field(on_device(Y[own]), kernel, on_device(charges[own]))
        return shared.gather(field.potential), shared.gather(field.gradient)

    truth = Reference().field(Y.astype(np.float64), kernel, charges)
    one, two = run_ranks(1, work)[0], run_ranks(2, work)[0]
    assert_array_equal(one[0], two[0])
    assert_array_equal(one[1], two[1])
    error = np.linalg.norm(one[1] - truth.gradient) / np.linalg.norm(truth.gradient)
    assert error < 0.012  # tol, at points that were not checked
    assert_allclose(one[0].sum(axis=0), truth.potential.sum(axis=0), rtol=5e-3)
