"""Fit a method over ranks: neighbours, affinities, an initial map and the descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from .._warn import warn
from ..arrays.namespace import is_integer
from ..data.checks.maps import check_map
from ..engines import choose_device
from ..linalg.pca import JITTER
from ..methods.embedding import Embedding
from ..methods.estimator import report_remaining_gain
from ..methods.fit_plan import FitPlan
from ..optimize.rules import GradientDescent, Momentum
from ..saving.checkpoint import fingerprint
from .current import current_group
from .exact_scan import OwnVectors
from .group import Group
from .neighbors import RankNeighbors, Resources, find_neighbors
from .new_rows import TablePlacement
from .partition import Partition
from .principal import Principal, principal_map
from .rank_affinities import RankLoss, Recipe, recipe
from .rank_engine import RankGrid
from .rank_gpu import use_own_gpu
from .rank_map import RankMap
from .rank_problem import SharedProblem, check_geometry, shared_geometry
from .rank_spectral import eigenmap
from .row_source import RowSource
from .row_sources import open_rows
from .row_vectors import check_metric_of_ranks
from .shared_map import SharedMap

MAY_DIFFER = ("callbacks", "n_jobs", "verbose")  # parameters that ranks may set as they like


def fit(
    method: Embedding,
    data: Any,
    *,
    group: Group | None = None,
    key: str | None = None,
    n_columns: int | None = None,
    row_memory: int | None = None,
) -> RankMap:
    """Fit a method to a table that the ranks read in blocks of rows, and return the own part of the map.

    All ranks call this function with the same arguments. The map has the same bytes for any number of ranks and of
    threads. Neighbours, affinities and the points are divided among the ranks; no rank holds the whole table.

    Parameters
    ----------
    method : Embedding
        A method of the SNE family, UMAP or DKLLE, in 1 to 3 dimensions, with engine="auto" or "grid". It is not
        changed. `n_jobs` is the number of threads of each rank.
    data : array, path or object
        The table, see `open_rows`.
    group : Group, optional
        The ranks; by default those that the environment describes (`current_group`), or this process alone.
    key : str, optional
        Which array of AnnData or of a Zarr group, or which column of vectors of a Parquet file; see `open_rows`.
    n_columns : int, optional
        Reduce the table to this number of principal components while it is read, for example 50 for thousands of genes.
        By default, all columns are used.
    row_memory : int, optional
        Bytes of rows that a rank holds in memory; more are kept in a temporary file. By default, all are in memory.

    Returns
    -------
    RankMap

    Raises
    ------
    ValueError
        If the method or one of its parameters is not supported over ranks, or the table is invalid.
    RankError
        If another rank failed.

    Examples
    --------
    A script for `torchrun --nproc-per-node 4 script.py`:

    >>> import equipoise as eq
    >>> result = eq.distributed.fit(eq.TSNE(random_state=0), "big.zarr", n_columns=50)  # doctest: +SKIP
    >>> result.write("map.zarr")  # doctest: +SKIP
    """
    device = _tensor_device(method)
    group = current_group(group, default="auto" if device == "cuda" else "gloo")
    if device == "cuda":
        use_own_gpu(group.rank)
    source = open_rows(data, key=key)
    n, D = source.shape
    plan, made = check_fit(method, n)
    seed = _shared_seed(method, group)
    parameters = {name: value for name, value in method.get_params(deep=False).items() if name not in MAY_DIFFER}
    group.require_equal("the method", repr(type(method)(**parameters)))
    group.require_equal("the device of PyTorch", device)
    group.require_equal("the shape of the table", [n, D])
    _require_same_rows(group, source)
    reduced = None if n_columns is None else Principal(group, source, n_columns, plan.n_threads)
    table: Any = source if reduced is None else reduced
    found = find_neighbors(
        group, table, plan.n_neighbors, method.metric, min_recall=made.recall,
        resources=Resources(plan.n_threads, row_memory, device),
    )  # fmt: skip
    shared = _shared_map(group, found.partition, plan.n_threads, device)
    with group.stage("affinities"):
        loss = made.loss(found, shared, plan.kernel)
    Y0 = _initial_map(method, plan, found, loss, shared, seed)
    grid = RankGrid(shared, loss.halo, plan.n_threads, method.tol)
    engine = grid if device is None else _torch_engine(grid, shared, device)
    with group.stage("initial map"):
        problem = SharedProblem(
            loss.objective, shared_geometry(plan.geometry, shared), engine, Y0, plan.schedule, plan.rule, found.recall,
            shared=shared, ids=found.ids,
        )  # fmt: skip
    problem.optimize(callbacks=method.callbacks)
    if group.rank == 0:
        report_remaining_gain(problem, method.n_iter, method.verbose)
    rows = OwnVectors(found.partition, found.rows, found.vectors, plan.n_threads)
    axes = None if reduced is None else reduced.axes
    return RankMap.of(problem, found.ids, TablePlacement(problem, grid, rows, made, axes, D))


def check_fit(method: Any, n: int) -> tuple[FitPlan, Recipe]:
    """Return the plan of a fit of n points and how its loss is computed.

    Raise ValueError if the method or one of its parameters does not work over ranks.
    """
    if not isinstance(method, Embedding):
        raise ValueError(f"method must be a method of attraction and repulsion such as TSNE(), got {method!r}")
    if method.engine not in ("auto", "grid", "torch"):
        raise ValueError(f'engine={method.engine!r} does not run over ranks; use engine="auto" or engine="torch"')
    if (excess := method.n_columns - 3) > 0:
        raise ValueError(
            f"n_components={method.n_components} is too large over ranks, which use a mesh in at most 3 dimensions; use"
            f" at most {method.n_components - excess}"
        )
    check_metric_of_ranks(method.metric)
    plan = method.fit_plan(n)
    check_geometry(plan.geometry)
    if type(plan.rule) not in (Momentum, GradientDescent):  # others use sums over all points
        raise ValueError(f"optimizer={plan.rule!r} is not supported over ranks; use Momentum() or GradientDescent()")
    if not (method.random_state is None or is_integer(method.random_state)):
        raise ValueError(f"random_state must be an integer or None over ranks, got {method.random_state!r}")
    return plan, recipe(method, n)


def _tensor_device(method: Any) -> str | None:
    """Return "cuda" or "cpu" if a method computes with PyTorch, and None if it does not."""
    engine, device = choose_device(getattr(method, "engine", "auto"), getattr(method, "device", "auto"))
    return device if engine == "torch" else None


def _shared_map(group: Group, partition: Partition, n_threads: int, device: str | None) -> SharedMap:
    """Return the sums over the map, for tensors if it is on a device of PyTorch."""
    if device is None:
        return SharedMap(group, partition, n_threads)
    from .tensor_map import TensorMap  # PyTorch is optional, and slow to import

    return TensorMap(group, partition, n_threads)


def _torch_engine(grid: RankGrid, shared: Any, device: str) -> Any:
    """Return the engine of a rank in PyTorch for the same map as an engine on the CPU."""
    from .rank_torch import RankTorch

    return RankTorch(shared, grid.halo, grid.n_threads, grid.tol, device)


def _require_same_rows(group: Group, source: RowSource) -> None:
    """Raise ValueError that names the ranks if they have opened tables with other values; three rows are compared."""
    if group.size > 1:
        with group.stage("opening the table"):
            compared = sorted({0, source.shape[0] // 2, source.shape[0] - 1})
            rows = [np.ascontiguousarray(source.read(i, i + 1)) for i in compared]
            group.require_equal(f"the content of the table (hash of rows {compared})", fingerprint(*rows))


def _shared_seed(method: Embedding, group: Group) -> int:
    """Return the seed of a method; if it has none, one that rank 0 draws for all ranks."""
    seed = method.random_state
    drawn = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else int(seed)
    return int(group.broadcast_value(drawn))


def _initial_map(
    method: Embedding, plan: FitPlan, found: RankNeighbors, loss: RankLoss, shared: SharedMap, seed: int
) -> Array:
    """Return the own rows (own, d) of the initial map."""
    init, d, partition = method.init, method.n_columns, found.partition
    if not isinstance(init, str):
        return check_map(init, "init", (partition.n, d))[found.ids]
    with shared.group.stage("initial map"):
        Y = None
        if init == "spectral":
            Y = _spectral_map(loss, shared, d, seed)
        elif init == "random":
            Y = _random_map(partition, d, seed)
        if Y is None:
            Y = principal_map(shared.group, partition, found.rows, d, seed, plan.n_threads)
    return plan.geometry.start(Y * (plan.kernel.spread * plan.kernel.length))


def _spectral_map(loss: RankLoss, shared: SharedMap, d: int, seed: int) -> Array | None:
    """Return the eigenmap of the affinities with standard deviation 1 along the first axis; None if there is none."""
    Y = eigenmap(loss.symmetric, loss.halo, shared, d)
    if Y is None:
        if shared.group.rank == 0:
            warn('the neighbour graph is not connected; the initial map is that of init="pca"')
        return None
    Y = Y - shared.mean(Y)
    spread = float(np.sqrt(shared.columns(Y[:, :1] ** 2)[0] / shared.partition.n))
    return Y / spread + JITTER * _normal(shared.partition, d, seed)


def _random_map(partition: Partition, d: int, seed: int) -> Array:
    """Return own points that are uniform in a ball with standard deviation 1 along each axis, drawn block by block."""
    direction = _normal(partition, d, seed)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    rows = [np.random.default_rng([seed, b, 1]).uniform(size=(s.stop - s.start, 1)) for b, s in partition.blocks()]
    radius = np.concatenate(rows) if rows else np.empty((0, 1))
    return direction * radius ** (1 / d) * np.sqrt(d + 2)


def _normal(partition: Partition, d: int, seed: int) -> Array:
    """Return normal random numbers (own, d), drawn block by block."""
    rows = [np.random.default_rng([seed, b]).standard_normal((s.stop - s.start, d)) for b, s in partition.blocks()]
    return np.concatenate(rows) if rows else np.empty((0, d))
