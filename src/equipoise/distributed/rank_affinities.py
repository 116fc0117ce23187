"""How the methods compute affinities and losses over ranks: one function per family of methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._types import Array, Matrix
from ..affinities.builders import RECALL, width
from ..affinities.fuzzy import memberships
from ..affinities.locally_linear import lle_weights
from ..affinities.perplexity import conditional_sparse, resolve_perplexity
from ..arrays.csr import with_values
from ..kernels import Kernel
from ..methods.double import DKLLE
from ..methods.sne import SNE, NeighborEmbedding
from ..methods.umap import UMAP
from ..neighbors.search import MIN_RECALL
from ..neighbors.vectors import is_euclidean
from ..objectives import DoubleKernelLLE, Objective
from .affinities import NewNeighbors, conditional_of_ranks, fuzzy_union_of_ranks, squared_rows
from .group import Group
from .halo import Halo
from .neighbors import RankNeighbors
from .rank_matrix import add_transpose, rows_of_equal_length
from .reconstruction import lle_matrix_of_ranks, weights_of_ranks
from .shared_map import SharedMap
from .underflowing_rows import SharedConditionalKL

TWO_POINTS = np.array([[0.0, 0.5], [0.5, 0.0]])  # affinities, to ask a method for its loss


class RankLoss(NamedTuple):
    """The loss of a method on one rank."""

    objective: Objective
    symmetric: Matrix  # nonnegative affinities (own, halo.size), for the spectral initial map
    halo: Halo


class Recipe(Protocol):
    """How a method computes its loss from the neighbours of the rows of all ranks."""

    recall: float  # that the neighbour search must reach

    def loss(self, found: RankNeighbors, shared: SharedMap, kernel: Kernel) -> RankLoss:
        """Return the loss of the own rows; all ranks call this function."""
        ...

    def new_neighbors(self, n: int) -> int:
        """Return the number of neighbours of a new row among n fitted rows."""
        ...

    def new_affinities(self, found: NewNeighbors, fetch_rows: Callable[[Array], Array], n_threads: int) -> Matrix:
        """Return the affinities of new rows, CSR (m, n), whose columns are positions; all ranks call this function.

        `fetch_rows` returns the fitted rows at some positions, ascending; all ranks call it too.
        """
        ...


@singledispatch
def recipe(method: Any, n: int) -> Recipe:
    """Return how a method computes its loss for n points; raise ValueError if it cannot over ranks."""
    raise ValueError(f"{type(method).__name__} does not run over ranks; use a method of the SNE family, UMAP or DKLLE")


def _refuse(method: Any, **expected: Any) -> None:
    """Raise ValueError if a parameter has another value than the one that works over ranks."""
    for name, value in expected.items():
        found = getattr(method, name)
        if not (found is value or (isinstance(found, type(value)) and found == value)):
            raise ValueError(
                f"{name}={found!r} is not supported over ranks; use {name}={value!r}, or fit on one machine"
            )


@recipe.register
def _(method: NeighborEmbedding, n: int) -> Recipe:
    _refuse(method, affinity="gaussian", h=None, g=None)
    if not hasattr(method.objective_on(TWO_POINTS), "over"):
        name, remedy = (
            ("alpha", "alpha < 1") if hasattr(method, "alpha") else ("divergence", "a divergence with a limit")
        )
        raise ValueError(
            f"{name}={getattr(method, name)!r} compares all pairs, which is not supported over ranks; use {remedy}"
        )
    return Joint(method, n)


@recipe.register
def _(method: SNE, n: int) -> Recipe:
    _refuse(method, affinity="gaussian", h=None, g=None)
    return Conditional(method, n)


@recipe.register
def _(method: UMAP, n: int) -> Recipe:
    _refuse(method, affinity="fuzzy")
    return FuzzyUnion(method)


@recipe.register
def _(method: DKLLE, n: int) -> Recipe:
    _refuse(method, bandwidth=np.inf, **({} if is_euclidean(method.metric) else {"metric": "euclidean"}))
    return Reconstruction(method)


class Joint:
    """Joint affinities (P + Pᵀ)/2n of a given perplexity, with the divergence of the method."""

    recall = MIN_RECALL

    def __init__(self, method: NeighborEmbedding, n: int):
        self.method, self.perplexities = method, resolve_perplexity(method.perplexity, n)

    def loss(self, found: RankNeighbors, shared: SharedMap, kernel: Kernel) -> RankLoss:
        S = self._sums(found, shared)[1]
        S.data /= np.float32(2 * found.partition.n)
        halo = Halo(shared.group, found.partition, S.indices)
        P = halo.localized(S)
        objective: Any = self.method.objective_on(P)
        return RankLoss(objective.over(shared), P, halo)

    def new_neighbors(self, n: int) -> int:
        return width(self.perplexities, n)

    def new_affinities(self, found: NewNeighbors, fetch_rows: Callable[[Array], Array], n_threads: int) -> Matrix:
        D2 = squared_rows(found)
        if len(found.rows):
            D2 = conditional_sparse(D2, self.perplexities, np.float64, n_threads)[0]
        return D2

    def _sums(self, found: RankNeighbors, shared: SharedMap) -> tuple[Matrix, Matrix]:
        """Return the own rows of the conditional affinities P and of P + Pᵀ."""
        group: Group = shared.group
        with group.stage("affinities"):
            P = conditional_of_ranks(group, found, self.perplexities, shared.n_threads)
            return P, add_transpose(group, found.partition, P)


class Conditional(Joint):
    """Conditional affinities of a given perplexity, each row with its own normalisation."""

    def loss(self, found: RankNeighbors, shared: SharedMap, kernel: Kernel) -> RankLoss:
        P, S = self._sums(found, shared)
        halo = Halo(shared.group, found.partition, S.indices)
        A = halo.localized(S)
        return RankLoss(SharedConditionalKL.of_sums(halo.localized(P), A, kernel, shared), A, halo)


class FuzzyUnion:
    """UMAP's memberships."""

    recall = RECALL

    def __init__(self, method: UMAP):
        self.method = method

    def loss(self, found: RankNeighbors, shared: SharedMap, kernel: Kernel) -> RankLoss:
        k = min(int(self.method.n_neighbors), found.partition.n)
        mu = fuzzy_union_of_ranks(shared.group, found, k, shared.n_threads).own
        halo = Halo(shared.group, found.partition, mu.indices)
        local = halo.localized(mu)
        return RankLoss(self.method.objective_on(local).over(shared), local, halo)  # type: ignore[attr-defined]

    def new_neighbors(self, n: int) -> int:
        return min(int(self.method.n_neighbors), n) - 1

    def new_affinities(self, found: NewNeighbors, fetch_rows: Callable[[Array], Array], n_threads: int) -> Matrix:
        D2 = squared_rows(found)
        if len(found.rows):
            D2 = memberships(D2, found.indices.shape[1] + 1, np.float64, n_threads)
        return D2


class Reconstruction:
    """The matrix M = (I − W)ᵀ(I − W) of locally linear weights W."""

    recall = MIN_RECALL

    def __init__(self, method: DKLLE):
        self.method = method

    def loss(self, found: RankNeighbors, shared: SharedMap, kernel: Kernel) -> RankLoss:
        group, partition = shared.group, found.partition
        W = weights_of_ranks(group, found, reg=self.method.reg)
        M = lle_matrix_of_ranks(group, partition, W).own.astype(np.float32)
        edges = add_transpose(group, partition, with_values(W, np.ones(W.nnz, np.float32)))
        halo = Halo(group, partition, np.concatenate([M.indices, edges.indices]))
        objective = DoubleKernelLLE.of_rows(halo.localized(M), kernel, shared)
        return RankLoss(objective, halo.localized(edges), halo)

    def new_neighbors(self, n: int) -> int:
        return min(int(self.method.n_neighbors), n - 1)

    def new_affinities(self, found: NewNeighbors, fetch_rows: Callable[[Array], Array], n_threads: int) -> Matrix:
        near, (m, k), n = np.unique(found.indices), found.indices.shape, found.partition.n
        X = fetch_rows(near)
        if not m:
            return rows_of_equal_length(np.empty((0, k)), found.indices, n)
        W = lle_weights(X, np.searchsorted(near, found.indices), rows=found.rows, reg=self.method.reg)
        return rows_of_equal_length(W.data.reshape(m, k), near[W.indices].reshape(m, k), n)
