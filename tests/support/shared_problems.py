"""Problems of a map that several ranks share, from the affinities, schedule and initial map of one process."""

from __future__ import annotations

import numpy as np

from equipoise.arrays.csr import make_csr
from equipoise.distributed.halo import Halo
from equipoise.distributed.partition import Partition
from equipoise.distributed.rank_engine import RankGrid
from equipoise.distributed.rank_problem import SharedProblem, shared_geometry
from equipoise.distributed.shared_map import SharedMap
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
