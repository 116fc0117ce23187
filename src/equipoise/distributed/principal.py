"""Principal components of a table whose rows are divided among ranks: a first map, and tables with fewer columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array
from ..arrays.csr import run_on_threads
from ..arrays.namespace import is_integer
from ..linalg.pca import JITTER, one_blas_thread, top_eigenvectors
from ..linalg.row_products import multiply_rows
from .exact_sum import ExactSum
from .group import Group
from .partition import Partition
from .row_vectors import RowVectors, check_source, read_rows, stored_dtype
from .survey import READ, survey


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The principal axes of the rows of all ranks, the same on all ranks.

    Attributes
    ----------
    mean : array of float64, shape (D,)
    scale : float
        Largest coordinate of a row after the mean is subtracted.
    axes : array of float64, shape (D, m)
        Unit vectors; the entry of largest magnitude of each is positive.
    variances : array of float64, shape (m,)
        Variances along the axes, descending, in units of scale².
    """

    mean: Array
    scale: float
    axes: Array
    variances: Array

    def scores(self, rows: Array) -> Array:
        """Return the coordinates (q, m) of rows (q, D) along the axes; each depends on its own row only."""
        return multiply_rows(rows - self.mean, self.axes)


@dataclass(frozen=True, eq=False)
class OwnRows:
    """The rows that a rank owns, as a source of rows numbered by position."""

    partition: Partition
    rows: Array

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, D) of the table of all ranks."""
        return self.partition.n, self.rows.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the rows."""
        return self.rows.dtype

    def read(self, start: int, stop: int) -> Array:
        """Return the rows at own positions from `start` to `stop` − 1."""
        first = self.partition.own.start
        return self.rows[start - first : stop - first]


class Principal:
    """A source of rows with m columns: the principal components of a table with more columns.

    The constructor reads the table twice, each rank a part of it; all ranks call it. Every `read` of rows reads the
    same rows of the table. So a table larger than memory can be reduced. The components have the type in which the
    rows of the table are stored, float32 or float64.

    Parameters
    ----------
    group : Group
    source : RowSource
        The table, with `shape` (n, D), `dtype` and `read(start, stop)`.
    m : int
        Number of components, from 1 to min(n, D).
    n_threads : int, default=1
        Number of threads; the result does not depend on it.

    Attributes
    ----------
    shape : tuple of int
        (n, m)
    dtype : dtype
    axes : PrincipalAxes
    """

    def __init__(self, group: Group, source: Any, m: int, n_threads: int = 1):
        check_source(source)
        if not (is_integer(m) and 1 <= m <= min(source.shape)):
            raise ValueError(
                f"m={m!r} is out of range for a table of shape {tuple(source.shape)}; use an integer from 1 to"
                f" {min(source.shape)}"
            )
        self.shape, self.dtype, self._source = (source.shape[0], int(m)), stored_dtype(source), source
        self.axes = principal_axes(group, source, int(m), n_threads)

    def read(self, start: int, stop: int) -> Array:
        """Return the components (stop − start, m) of rows of the table."""
        return self.axes.scores(read_rows(self._source, slice(start, stop))).astype(self.dtype)


def principal_axes(group: Group, source: Any, m: int, n_threads: int = 1) -> PrincipalAxes:
    """Return the first m principal axes of the rows that the ranks read together; the table is read twice.

    The covariance (D, D) is summed over blocks of rows as integers, which can be added in any order. So its bytes do
    not depend on the numbers of ranks and threads. Rank 0 computes the eigenvectors.
    """
    (n, D), vectors = source.shape, RowVectors("euclidean", source.shape[1])
    with group.stage("principal axes"), one_blas_thread():
        survey(group, source, vectors, 0, 0)
        total = ExactSum((D, D), n)
        table = Partition.of(group, n)
        for run in table.runs(8 * D, READ):
            Z = (read_rows(source, run) - vectors.center) / vectors.scale

            def add(start: int, Z: Array = Z) -> None:
                block = Z[start : start + table.block]
                total.add(block.T @ block)

            run_on_threads(add, range(0, len(Z), table.block), n_threads)
        G = total.result(group) / n
        variances, axes = _eigenvectors(G, m) if group.rank == 0 else (None, None)
        variances, axes = group.broadcast(variances), group.broadcast(axes)
    return PrincipalAxes(vectors.center, vectors.scale, axes, variances)


def _eigenvectors(G: Array, m: int) -> tuple[Array, Array]:
    values, axes = top_eigenvectors(G, m)
    return np.maximum(values, 0.0), np.ascontiguousarray(axes)


def principal_map(group: Group, partition: Partition, rows: Array, d: int, seed: int, n_threads: int = 1) -> Array:
    """Return a first map (count, d) of own rows: principal components, the first of standard deviation 1, and jitter.

    Jitter is random noise with standard deviation `JITTER`, which separates duplicates. It is drawn for each block of
    positions by a generator that depends on the seed and on the index of the block. Components beyond the rank of the
    rows are only jitter.

    Parameters
    ----------
    group : Group
    partition : Partition
    rows : array of shape (count, D)
        The rows of this rank, in the order of positions.
    d : int
    seed : int
    n_threads : int, default=1
    """
    found = principal_axes(group, OwnRows(partition, rows), min(d, *rows.shape[1:], partition.n), n_threads)
    Y, first = np.zeros((partition.count, d)), partition.own.start
    for run in partition.runs(8 * rows.shape[1], READ):
        part = slice(run.start - first, run.stop - first)
        Y[part, : found.axes.shape[1]] = found.scores(rows[part]) / found.scale
    centered = Y[:, 0] - partition.mean(group, Y[:, 0])
    spread = float(np.sqrt(partition.mean(group, np.square(centered))))
    Y = Y / spread if spread > 0 else np.zeros_like(Y)
    for (b, _), part in zip(partition.blocks(), partition.own_blocks(), strict=True):
        Y[part] += JITTER * np.random.default_rng([seed, b]).standard_normal((part.stop - part.start, d))
    return Y
