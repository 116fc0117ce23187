"""Sparse matrices whose rows are divided among ranks, and sums with their transposes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..arrays.csr import make_csr, row_sums, symmetrized
from .exchange import ROUND, most_rounds
from .group import Group
from .partition import Partition


@dataclass(frozen=True, eq=False, repr=False)
class RankMatrix:
    """The rows of a square matrix that a rank owns.

    Attributes
    ----------
    partition : Partition
    own : CSR matrix, shape (count, n)
        The own rows; columns are positions, ascending in each row.
    row_sums : array of float64, shape (count,)
    total : float
        The sum of all entries of all ranks.
    """

    partition: Partition
    own: Matrix
    row_sums: Array
    total: float

    @classmethod
    def of(cls, group: Group, partition: Partition, own: Matrix) -> RankMatrix:
        """Return the matrix with own rows `own` (count, n); all ranks call this function."""
        sums = row_sums(own)
        return cls(partition, own, sums, float(partition.sum_rows(group, sums)))

    def __repr__(self) -> str:
        return f"<{self.own.shape[0]} of {self.partition.n} rows of a matrix, {self.own.nnz} entries>"


def rows_of_equal_length(values: Array, columns: Array, n: int) -> Matrix:
    """Return a CSR matrix (m, n) from values and columns, both (m, k)."""
    m, k = values.shape
    indptr = np.arange(0, m * k + 1, k, dtype=np.int64) if k else np.zeros(m + 1, np.int64)
    return make_csr(values.ravel(), columns.ravel(), indptr, (m, n))


def add_transpose(group: Group, partition: Partition, A: Matrix) -> Matrix:
    """Return the own rows of A + Aᵀ, with sorted columns, from the own rows of A, CSR (count, n) without duplicates.

    Each entry a_ij is sent to the owner of row j, in rounds of bounded size.
    """
    if group.size == 1:
        return symmetrized(A)
    first, step = partition.own.start, max(1, ROUND // 16)
    rows = [np.repeat(np.arange(A.shape[0], dtype=np.int32), np.diff(A.indptr))]
    columns, values = [A.indices[: A.nnz]], [A.data[: A.nnz]]
    for r in range(most_rounds(group, -(-A.nnz // step))):
        part = slice(min(r * step, A.nnz), min((r + 1) * step, A.nnz))
        to = partition.owner(columns[0][part])
        order = np.argsort(to, kind="stable")
        cuts = np.searchsorted(to[order], np.arange(1, group.size))
        pairs = np.column_stack([columns[0][part], rows[0][part].astype(np.int64) + first])[order]
        found = np.concatenate(group.all_to_all(np.split(pairs, cuts)))
        rows.append((found[:, 0] - first).astype(np.int32))
        columns.append(found[:, 1].astype(np.int32))
        values.append(np.concatenate(group.all_to_all(np.split(values[0][part][order], cuts))))
    total = sparse.csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=A.shape, dtype=A.dtype
    )  # sums duplicates: two terms, so that their order does not matter
    total.sort_indices()
    return total
