"""Rules by which methods compute affinities: the rows p_{j|i} for the fitted points and for new points."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import entry_rows, is_on_device, make_csr, on_host
from ..arrays.namespace import to_numpy
from ..inputs import FromSpace, Input
from ..kernels import Gaussian as GaussianKernel
from ..neighbors.vectors import is_euclidean
from ..progress import stage
from . import fuzzy, perplexity
from .bandwidth import Bandwidth
from .locally_linear import lle_weights, lle_weights_from_distances

# UMAP has few neighbours, so each counts: on MNIST, 70,000 points, the 10-NN accuracy of its maps was 0.966, 0.973,
# 0.975 and 0.975 at a recall of 0.952, 0.990, 0.997 and 0.999 (measured).
RECALL = 0.997
MOST = 20_000  # largest n for weights under a non-Euclidean metric, which need all distances: 3.2 GB
WIDTH = 3  # k_x is stored for WIDTH · n_neighbors neighbours of a point, as for t-SNE; chosen


class Neighborhoods(Protocol):
    """Interface of a rule that computes affinities. Parameters with the value "auto" have already been replaced."""

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        """Return the affinities p_{j|i}, (n, n), and the recall of the neighbour search.

        If `few` is True, the result is CSR: it contains all precomputed affinities, or, if affinities are computed from
        distances, only those of the nearest neighbours of each point. If `few` is False, the result can be dense.
        """
        ...

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        """Return p_{j|i} for new rows i and fitted points j, CSR (m, n), and the twins (m,) of the new rows.

        The twin of a row is the index of the fitted point that equals it, or −1 if there is none.
        """
        ...


@tagged("methods.neighborhoods.Gaussian")
@dataclass(frozen=True)
class Gaussian:
    """Affinities p_{j|i} ∝ exp(−d²_ij / 2σ_i²) of a given perplexity, or their mean over several perplexities."""

    perplexities: Array
    n_threads: int

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        if few:
            D2, recall = data.neighbors(width(self.perplexities, data.n - 1), self.n_threads)
            return perplexity.conditional(D2, self.perplexities, dtype, self.n_threads), recall
        if (X := data.points) is not None:
            return perplexity.conditional_of_points(X, self.perplexities, dtype, self.n_threads), data.recall
        return perplexity.conditional(data.squared(), self.perplexities, dtype, self.n_threads), data.recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        nearby = data.nearest(X, width(self.perplexities, data.n), self.n_threads)
        with warnings.catch_warnings():  # the fit has already warned about duplicates
            warnings.simplefilter("ignore", UserWarning)
            return perplexity.conditional(nearby.d2, self.perplexities, np.float64, self.n_threads), nearby.twins


@tagged("methods.neighborhoods.Uniform")
@dataclass(frozen=True)
class Uniform:
    """Affinities p_{j|i} = 1/k on the k nearest neighbours, where k is the rounded perplexity.

    With several perplexities, the affinities are averaged.
    """

    perplexities: Array
    n_threads: int

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        D2, recall = data.neighbors(int(max(1, np.rint(self.perplexities.max()))), self.n_threads)
        return perplexity.uniform(D2, self.perplexities, dtype), recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        nearby = data.nearest(X, width(self.perplexities, data.n), self.n_threads)
        return perplexity.uniform(nearby.d2, self.perplexities, np.float64), nearby.twins


@tagged("methods.neighborhoods.Fuzzy")
@dataclass(frozen=True)
class Fuzzy:
    """UMAP's affinities: the fuzzy union μ of the memberships of points in neighbourhoods of k points.

    If `labels` are given, affinities between different classes are reduced (see `fuzzy.intersected`).
    """

    k: int
    n_threads: int
    labels: Array | None = None  # integers, −1 for a missing label
    target_weight: float = 0.5

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        if (P := data.affinities) is not None:
            largest = float(P.max())
            W, recall = sparse.csr_matrix(P / largest if largest > 0 else P, dtype=dtype), 1.0
        else:
            D2, recall = data.neighbors(self.k - 1, self.n_threads, RECALL)
            W = fuzzy.memberships(D2, self.k, dtype, self.n_threads)
        mu = fuzzy.fuzzy_union(W, self.n_threads)
        if self.labels is not None:
            mu = fuzzy.intersected(mu, self.labels, self.target_weight)
        if mu.nnz == 0:
            raise ValueError(
                f"the neighbour graph has no edges left with target_weight={self.target_weight:g}, because no two"
                " neighbours share a label; lower target_weight"
            )
        return mu, recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        if (P := data.affinities) is not None:
            W = sparse.csr_matrix(X, dtype=np.float64) / float(P.max())  # the scale of the fit
            return W, np.full(X.shape[0], -1)
        nearby = data.nearest(X, self.k - 1, self.n_threads)
        return fuzzy.memberships(nearby.d2, self.k, np.float64, self.n_threads), nearby.twins


@tagged("methods.neighborhoods.Given")
@dataclass(frozen=True)
class Given:
    """Precomputed affinities, scaled by the function `scaled`: `of_rows` or `of_total` in perplexity.py."""

    scaled: Callable[[Matrix, type[np.floating]], Matrix]

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        if (P := data.affinities) is None:
            raise TypeError(
                f'affinity="precomputed" requires affinities (n, n) as X, but X was read as {type(data).__name__};'
                " pass affinities, or omit affinity"
            )
        return self.scaled(sparse.csr_matrix(P) if few else P, dtype), 1.0

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        return perplexity.of_rows(sparse.csr_matrix(X), np.float64), np.full(X.shape[0], -1)


def width(perplexities: Array, maximum: int) -> int:
    """Return the number of neighbours per row: 3 times the largest perplexity, but at most `maximum`.

    Beyond 3 · perplexity neighbours, p_{j|i} is negligible (van der Maaten 2014).
    """
    return min(maximum, int(np.ceil(3 * perplexities.max())))


@tagged("methods.kernel_neighborhoods.LocallyLinear")
class LocallyLinear:
    """Affinities that are weights w_ij, Σ_j w_ij = 1, which reconstruct each point from its k nearest neighbours.

    The reconstruction is in the feature space of the kernel k_x (see `Bandwidth`), or in the space of X if its
    bandwidth σ is infinite.
    """

    def __init__(self, data: Input, bandwidth: Bandwidth, reg: float, n_threads: int):
        self.bandwidth, self.reg, self.n_threads = bandwidth, reg, n_threads
        _require_distances_among_neighbors(data)

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        D2, recall = data.neighbors(self.bandwidth.k, self.n_threads)
        local = isinstance(self.bandwidth.bandwidth, str)  # bandwidths of points are computed on the CPU
        W = self._weights(data, D2, self.bandwidth.fit(on_host(D2) if local else D2), None)
        return W.with_data(W.data.float()) if is_on_device(W) else W.astype(dtype), recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        if data.coordinates is None and sparse.issparse(X):
            raise ValueError(
                f"X contains only some of the distances to the {data.n:,} fitted points, but locally linear weights"
                f" need all of them; pass a dense array (m, {data.n})"
            )
        nearby = data.nearest(X, self.bandwidth.k, self.n_threads)
        return self._weights(data, nearby.d2, self.bandwidth.of_new(nearby.d2), X), nearby.twins

    def _weights(self, data: Input, d2: Matrix, sigma2: Array, new: Matrix | None) -> Matrix:
        stage("affinities")
        neighbors = d2.indices.reshape(-1, self.bandwidth.k)
        linear = self.bandwidth.bandwidth == np.inf
        kernel, scale = (None, 1.0) if linear else (GaussianKernel().value, 2 * sigma2)
        if (X := data.coordinates) is not None and is_euclidean(data.metric):
            X, rows = data.scaled(X), None if new is None else data.scaled(new)
            return lle_weights(X, neighbors, rows=rows, reg=self.reg, kernel=kernel, scale=scale)
        rows = None if new is None else data.squared_to_all(new)
        return lle_weights_from_distances(
            data.squared(), to_numpy(neighbors), rows=rows, reg=self.reg, kernel=kernel, scale=scale
        )


@tagged("methods.kernel_neighborhoods.Radial")
class Radial:
    """Affinities given by the kernel k_x = exp(−d²_ij / 2σ_iσ_j) on the data, where `bandwidth` determines the σ_i.

    With the same σ for all points, k_x is the Gaussian kernel; the product of local σ_i follows Zelnik-Manor & Perona
    2004. If `few` is True, `rows` computes the kernel for the 3k nearest neighbours of each point and symmetrises it;
    otherwise it computes the kernel for all pairs whose distance is known. The diagonal, which would be 1, is left out.
    """

    def __init__(self, bandwidth: Bandwidth, n_threads: int):
        self.bandwidth, self.n_threads = bandwidth, n_threads
        self._sigma2 = np.empty(0)
        self._width = 0

    def rows(self, data: Input, dtype: type[np.floating], *, few: bool) -> tuple[Matrix, float]:
        stage("affinities")
        self._width = min(data.n - 1, WIDTH * self.bandwidth.k) if few else data.n
        if few or data.sparse:
            d2, recall = data.neighbors(min(self._width, data.n - 1), self.n_threads)
            self._sigma2 = self.bandwidth.fit(d2)
            K = make_csr(self._value(d2, self._sigma2), d2.indices, d2.indptr, d2.shape)
            K.sort_indices()
            return sparse.csr_matrix(K.maximum(K.T), dtype=dtype), recall
        D2 = data.squared()
        self._sigma2 = self.bandwidth.fit(data.neighbors(self.bandwidth.k, self.n_threads)[0])
        sigma = np.sqrt(self._sigma2)
        K = np.exp(-D2 / (2 * np.outer(sigma, sigma)))
        np.fill_diagonal(K, 0.0)
        return np.ascontiguousarray(K, dtype=dtype), data.recall

    def new_rows(self, data: Input, X: Matrix) -> tuple[Matrix, Array]:
        nearby = data.nearest(X, self._width, self.n_threads)
        d2 = nearby.d2
        return make_csr(self._value(d2, self.bandwidth.of_new(d2)), d2.indices, d2.indptr, d2.shape), nearby.twins

    def _value(self, d2: Matrix, sigma2: Array) -> Array:
        """Return k_x at the stored entries of the squared distances d2 (m, n), whose rows have σ² = `sigma2` (m,)."""
        return np.exp(-d2.data / (2 * np.sqrt(sigma2[entry_rows(d2)] * self._sigma2[d2.indices])))


def _require_distances_among_neighbors(data: Input) -> None:
    """Raise ValueError if the distances among the neighbours of a point are not known, or need too much memory."""
    what = "locally linear weights need the distances among the neighbours of each point"
    if data.sparse:
        raise ValueError(
            f"{what}, but a sparse graph does not store them all; pass a table, or a dense distance matrix"
        )
    if isinstance(data, FromSpace) and data.n > MOST:
        raise ValueError(
            f"{what}. X is a metric space, for which the distances of all pairs are stored; this is limited to"
            f" {MOST:,} points, but X has {data.n:,}. Use spaces.Restriction to keep fewer points"
        )
    if data.coordinates is None or is_euclidean(data.metric):
        return
    name = getattr(data.metric, "__name__", data.metric)
    if data.metric == "inner_product":
        raise ValueError(
            f'{what}, but with metric="inner_product" distances from different points cannot be compared; use'
            ' metric="cosine"'
        )
    if data.n > MOST:
        raise ValueError(
            f"{what}. With metric={name} the distances of all pairs are stored; this is limited to {MOST:,} points, but"
            f' X has {data.n:,}. Use metric="euclidean", or fewer points'
        )
