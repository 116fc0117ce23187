"""Locally linear weights of rows that are divided among ranks, and the matrix M = (I − W)ᵀ(I − W)."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..affinities.locally_linear import REG, KernelFunction, check_weights, lle_weights
from .exchange import ROUND, fetch, most_rounds, send
from .group import Group
from .neighbors import RankNeighbors
from .partition import Partition
from .rank_matrix import RankMatrix, rows_of_equal_length


def weights_of_ranks(
    group: Group,
    found: RankNeighbors,
    *,
    reg: float = REG,
    kernel: KernelFunction | None = None,
    scale: Array | float = 1.0,
) -> Matrix:
    """Return the own rows of the weights W, CSR (count, n), that reconstruct each row from its neighbours.

    The rows of neighbours are fetched from their owners for some rows at a time.

    Parameters
    ----------
    group : Group
    found : RankNeighbors
    reg, kernel : float, callable
        See `lle_weights`.
    scale : float or array of shape (count,), default=1.0
        Divisor of the squared distances: one for all rows, or one per own row.
    """
    (m, k), D = found.indices.shape, found.rows.shape[1]
    scale = np.broadcast_to(np.asarray(scale, dtype=np.float64), m)
    columns, values = np.empty((m, k), np.int64), np.empty((m, k))
    step = max(1, 4 * ROUND // (8 * k * D))
    with group.stage("locally linear weights"):
        for r in range(most_rounds(group, -(-m // step))):
            part = slice(min(r * step, m), min((r + 1) * step, m))
            near = np.unique(found.indices[part])
            X = fetch(group, found.partition, found.rows, near)
            if part.start < part.stop:
                listed, rows = np.searchsorted(near, found.indices[part]), found.rows[part]
                W = lle_weights(X, listed, rows=rows, reg=reg, kernel=kernel, scale=scale[part])
                columns[part] = near[W.indices].reshape(-1, k)
                values[part] = W.data.reshape(-1, k)
    return rows_of_equal_length(values, columns, found.partition.n)


def lle_matrix_of_ranks(group: Group, partition: Partition, W: Matrix) -> RankMatrix:
    """Return M = (I − W)ᵀ(I − W) from the own rows of W, CSR (count, n), with equally many entries in each row.

    Row p of M is Σ_i a_ip a_i with A = I − W. Each rank receives the rows a_i with an entry in one of its columns, and
    adds their products in the order of i. So M has the same bytes for any number of ranks.
    """
    n, m = partition.n, W.shape[0]
    with group.stage("locally linear matrix"):
        check_weights(W)
        k = int(group.all_reduce(np.array([W.nnz // max(m, 1)], np.int64), "max")[0])
        own = np.arange(partition.own.start, partition.own.stop, dtype=np.int64)
        columns = np.column_stack([own, W.indices.reshape(m, k).astype(np.int64)])
        values = np.column_stack([np.ones(m), -W.data.reshape(m, k)])
        order = np.argsort(columns, axis=1)
        columns, values = np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)
        owners = partition.owner(columns)
        sent = [np.flatnonzero((owners == rank).any(axis=1)) for rank in range(group.size)]
        to, which = np.repeat(np.arange(group.size), [len(rows) for rows in sent]), np.concatenate(sent)
        columns, values = send(group, to, [columns[which], values[which]])
        A = rows_of_equal_length(values, columns, n)
        M = _own_columns(columns, values, partition).T.tocsr() @ A
        M.sort_indices()
        return RankMatrix.of(group, partition, M)


def _own_columns(columns: Array, values: Array, partition: Partition) -> Matrix:
    """Return the columns that this rank owns of a matrix with entries `values` (m, k) in `columns`, CSR (m, count)."""
    keep = (columns >= partition.own.start) & (columns < partition.own.stop)
    indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    return sparse.csr_matrix(
        (values[keep], columns[keep] - partition.own.start, indptr), shape=(len(columns), partition.count)
    )
