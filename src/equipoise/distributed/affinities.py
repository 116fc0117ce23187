"""Affinities of rows that are divided among ranks: t-SNE's joint probabilities and UMAP's fuzzy union."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import Array, Matrix
from ..affinities.fuzzy import fuzzy_union, memberships
from ..affinities.perplexity import conditional_sparse, warn_saturated
from ..neighbors.vectors import Graph
from ..progress import stage
from .group import Group
from .neighbors import RankNeighbors
from .partition import Partition
from .rank_matrix import RankMatrix, add_transpose


@dataclass(frozen=True, eq=False)
class NewNeighbors:
    """The fitted rows nearest to m new rows.

    Attributes
    ----------
    partition : Partition
        That of the fitted rows.
    rows : array of shape (m, D)
        The new rows.
    indices : array of int, shape (m, k)
        The positions of the nearest fitted rows, nearest first; ties by position.
    distances : array of float64, shape (m, k)
    """

    partition: Partition
    rows: Array
    indices: Array
    distances: Array


def squared_rows(found: RankNeighbors | NewNeighbors) -> Matrix:
    """Return squared distances to neighbours as CSR (count, n), whose columns are positions, nearest first in each row.

    A row whose squares would overflow or underflow is divided by its own power of two.
    """
    return Graph(found.indices, found.distances.copy()).into_squared(found.partition.n)


def conditional_of_ranks(group: Group, found: RankNeighbors, perplexities: Array, n_threads: int) -> Matrix:
    """Return the own rows of p_{j|i}, CSR (count, n), float32, each of which has the given perplexity.

    With several perplexities, the affinities are averaged.
    """
    m, k = found.indices.shape
    if perplexities.max() > k:
        raise ValueError(
            f"perplexity={perplexities.max():g} needs more than the {k} neighbours found for each row;"
            " find 3 × perplexity neighbours, or lower perplexity"
        )
    stage("affinities")
    D2 = squared_rows(found)
    P, saturated = conditional_sparse(D2, perplexities, np.float32, n_threads) if m else (D2, np.zeros(0, np.uint8))
    affected = found.ids[saturated.astype(bool)]
    count = int(group.all_reduce(np.array([len(affected)], np.int64))[0])
    first = int(group.all_reduce(np.array([affected.min(initial=found.partition.n)], np.int64), "min")[0])
    if count and group.rank == 0:
        warn_saturated(count, first, perplexities)
    return P.astype(np.float32, copy=False)


def joint_of_ranks(group: Group, found: RankNeighbors, perplexities: Array, n_threads: int = 1) -> RankMatrix:
    """Return p_ij = (p_{j|i} + p_{i|j})/2n, whose entries sum to 1, for the neighbours found by the ranks.

    Parameters
    ----------
    group : Group
    found : RankNeighbors
    perplexities : array of float64
        Perplexities over which p_{j|i} is averaged, see `affinities.perplexity.resolve_perplexity`.
    n_threads : int, default=1

    Returns
    -------
    RankMatrix
        The own rows of P, float32. They have the same bytes for any number of ranks.
    """
    with group.stage("affinities"):
        P = conditional_of_ranks(group, found, perplexities, n_threads)
        S = add_transpose(group, found.partition, P)
        S.data /= 2 * found.partition.n
        return RankMatrix.of(group, found.partition, S)


def fuzzy_union_of_ranks(group: Group, found: RankNeighbors, n_neighbors: int, n_threads: int = 1) -> RankMatrix:
    """Return UMAP's μ = w + wᵀ − w wᵀ for the neighbours found by the ranks.

    Parameters
    ----------
    group : Group
    found : RankNeighbors
    n_neighbors : int
        Number of neighbours, of which a point itself is one; at most k + 1.
    n_threads : int, default=1

    Returns
    -------
    RankMatrix
        The own rows of μ, float32. They have the same bytes for any number of ranks.
    """
    (m, k), partition = found.indices.shape, found.partition
    if n_neighbors - 1 > k:
        raise ValueError(
            f"n_neighbors={n_neighbors} needs {n_neighbors - 1} neighbours of each row, but {k} were found;"
            " find more neighbours, or lower n_neighbors"
        )
    with group.stage("affinities"):
        D2 = squared_rows(found)
        W = memberships(D2, n_neighbors, np.float32, n_threads) if m else D2.astype(np.float32)
        union = fuzzy_union(W, n_threads, lambda A, _: add_transpose(group, partition, A))
        return RankMatrix.of(group, partition, union)
