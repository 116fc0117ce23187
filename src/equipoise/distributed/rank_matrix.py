"""Sparse matrices whose rows are divided among ranks, and sums with their transposes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..arrays.csr import entry_rows, make_csr, row_sums, shorten
from .exchange import ROUND, most_rounds
from .group import Group
from .partition import Partition

SUMMED_ROWS = 4096  # rows added to those of the transpose at a time; chosen


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
    T = _transposed(group, partition, A)
    indptr = np.zeros(A.shape[0] + 1, np.int64)
    indices, values = np.empty(A.nnz + T.nnz, np.int32), np.empty(A.nnz + T.nnz, A.dtype)
    for first in range(0, A.shape[0], SUMMED_ROWS):
        parts = [M[first : first + SUMMED_ROWS] for M in (A, T)]
        rows, columns = np.concatenate([entry_rows(M) for M in parts]), np.concatenate([M.indices for M in parts])
        shape = parts[0].shape
        both = sparse.csr_matrix((np.concatenate([M.data for M in parts]), (rows, columns)), shape=shape)
        both.sort_indices()  # duplicates are summed: two terms, so that their order does not matter
        start = indptr[first]
        indices[start : start + both.nnz], values[start : start + both.nnz] = both.indices, both.data
        indptr[first + 1 : first + 1 + shape[0]] = start + both.indptr[1:]
    size = int(indptr[-1])
    result = make_csr(shorten(values, size), shorten(indices, size), indptr, A.shape)
    result.has_sorted_indices = True
    return result


def _transposed(group: Group, partition: Partition, A: Matrix) -> Matrix:
    """Return the own rows of Aᵀ, CSR (count, n), from the own rows of A."""
    first, step, size = partition.own.start, max(1, ROUND // 16), A.nnz
    leaving = np.bincount(partition.owner(A.indices[:size]), minlength=group.size)
    arriving = int(sum(count[0] for count in group.all_to_all(list(leaving.astype(np.int64)[:, None]))))
    rows, columns, values = np.empty(arriving, np.int32), np.empty(arriving, np.int32), np.empty(arriving, A.dtype)
    done = 0
    for r in range(most_rounds(group, -(-size // step))):
        part = slice(min(r * step, size), min((r + 1) * step, size))
        to = partition.owner(A.indices[part])
        order = np.argsort(to, kind="stable")
        cuts = np.searchsorted(to[order], np.arange(1, group.size))
        row = np.searchsorted(A.indptr, np.arange(part.start, part.stop), side="right") - 1
        pairs = np.column_stack([A.indices[part].astype(np.int64), first + row])[order]
        found = np.concatenate(group.all_to_all(np.split(pairs, cuts)))
        at = slice(done, done + len(found))
        rows[at], columns[at] = found[:, 0] - first, found[:, 1]
        values[at] = np.concatenate(group.all_to_all(np.split(A.data[part][order], cuts)))
        done = at.stop
    return sparse.csr_matrix((values, (rows, columns)), shape=A.shape)
