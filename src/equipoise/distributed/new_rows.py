"""Places new rows in a map that several ranks share (docs/math.md, section 11)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array, Matrix
from ..arrays.csr import make_csr
from ..engines import engine_state, restore_engine
from ..linalg.pca import on_one_blas_thread
from ..methods.estimator import check_placed
from ..objectives.base import FrozenForce
from ..optimize.placement import FrozenForces, place
from .affinities import NewNeighbors
from .exact_scan import SearchedRows, nearest_rows
from .exchange import ROUND, fetch, most_rounds
from .partition import Partition
from .principal import PrincipalAxes
from .rank_affinities import Recipe
from .rank_engine import RankGrid
from .rank_problem import SharedProblem
from .row_sources import open_rows
from .row_vectors import read_rows, stored_dtype


class TablePlacement:
    """Places the rows of other tables in a fitted map, from what the ranks keep of the fit.

    A rank keeps its own rows of the table, of the map and of the affinities, and the mesh of the whole map.

    Parameters
    ----------
    problem : SharedProblem
        After its optimisation.
    engine : RankGrid
        The engine that computes the forces on new points.
    fitted : SearchedRows
        The rows of the fitted table, reduced to principal components if `axes` are given.
    recipe : Recipe
    axes : PrincipalAxes or None
    n_columns : int
        Number of columns of the fitted table.
    """

    def __init__(
        self,
        problem: SharedProblem,
        engine: RankGrid,
        fitted: SearchedRows,
        recipe: Recipe,
        axes: PrincipalAxes | None,
        n_columns: int,
    ):
        self.problem, self.engine, self.fitted, self.recipe = problem, engine, fitted, recipe
        self._axes, self._n_columns = axes, n_columns
        self._Y, self._engine_state = problem.geometry.work(problem.Y), engine_state(engine)
        self._frozen: FrozenForce | None = None

    @on_one_blas_thread
    def place(self, data: Any, key: str | None) -> tuple[Array, Array, Partition]:
        """Return the positions (m, d) of the new rows that this rank reads, their indices, and who reads which rows."""
        group, source = self.problem.shared.group, open_rows(data, key=key, min_rows=1)
        if source.shape[1] != self._n_columns:
            raise ValueError(
                f"{source.name} has {source.shape[1]:,} columns, but the fitted table has {self._n_columns:,}; pass the"
                " columns of the fitted table"
            )
        table, k = Partition.of(group, source.shape[0]), self.recipe.new_neighbors(self.fitted.partition.n)
        own = table.own
        step = max(1, ROUND // (group.size * (8 * self.fitted.rows.shape[1] + 32 * k)))
        Y = np.empty((table.count, self._Y.shape[1]), self._Y.dtype)
        with group.stage("transform"):
            group.require_equal("the shape of the table", list(source.shape))
            force = self._force()
            for r in range(most_rounds(group, -(-table.count // step))):
                part = slice(min(own.start + r * step, own.stop), min(own.start + (r + 1) * step, own.stop))
                rows = self._read(source, part)
                Y[part.start - own.start : part.stop - own.start] = self._place_rows(rows, k, force)
            check_placed(Y, own.start)
        return Y, np.arange(own.start, own.stop), table

    def _read(self, source: Any, part: slice) -> Array:
        """Return new rows, reduced as the fitted rows are."""
        empty = part.start == part.stop  # this rank has read all its rows
        rows = np.empty((0, self._n_columns), stored_dtype(source)) if empty else read_rows(source, part)
        if self._axes is not None:
            rows = self._axes.scores(rows).astype(self.fitted.rows.dtype)
        self.fitted.vectors.vectors(rows, part.start)  # raises for a row that has no direction
        return rows

    def _force(self) -> FrozenForce:
        """Return the force of the map on new points, computed at the first call; all ranks call this method."""
        if self._frozen is None:
            problem = self.problem
            restore_engine(self.engine, self._engine_state)
            self._frozen = problem.objective.freeze(self._Y, self.engine, problem.schedule.exaggeration)
        return self._frozen

    def _place_rows(self, rows: Array, k: int, force: FrozenForce) -> Array:
        """Return the positions (m, d) of some new rows; all ranks call this method."""
        problem, fitted = self.problem, self.fitted
        group, partition = problem.shared.group, fitted.partition
        indices, d2 = nearest_rows(group, fitted, rows, k)
        found = NewNeighbors(partition, rows, indices, fitted.vectors.distances(d2))
        fetch_rows = lambda positions: fetch(group, partition, fitted.rows, positions)  # noqa: E731
        P = self.recipe.new_affinities(found, fetch_rows, fitted.n_threads)
        positions, P = _local(P)
        near = fetch(group, partition, self._Y, positions)
        if not len(rows):
            return self._Y[:0]
        stiffness = problem.objective.mass * max(1.0, problem.schedule.exaggeration)
        forces = FrozenForces(force, P, near, problem.objective.kernel.length)
        U = place(forces, problem.geometry, partition.n, stiffness)
        twins = np.flatnonzero(found.distances[:, 0] == 0)
        U[twins] = problem.geometry.map(near)[np.searchsorted(positions, indices[twins, 0])]
        return U


def _local(P: Matrix) -> tuple[Array, Matrix]:
    """Return the columns of CSR P that have entries, int64 and ascending, and P with these columns only."""
    columns, which = np.unique(P.indices, return_inverse=True)
    shape = P.shape[0], len(columns)
    return columns.astype(np.int64), make_csr(P.data, which.reshape(-1), P.indptr, shape)
