"""Kernels k(x, y) = ⟨φ(x), φ(y)⟩ on the data, for kernel PCA and kernel LLE (docs/math.md, section 15).

A kernel defines the distances ‖φ(x) − φ(y)‖² = k(x, x) + k(y, y) − 2 k(x, y) of a feature space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._suggest import did_you_mean
from .._types import Array, Matrix
from ..arrays.namespace import is_positive
from ..inputs import Input, KernelMatrix, is_space, make_input
from ..kernels import Gaussian, Kernel
from ..linalg.row_products import by_row_blocks, multiply_rows
from ..neighbors.search import nearest_in_matrix
from ..neighbors.vectors import Graph, is_euclidean, smallest
from .locally_linear import lle_weights, lle_weights_from_distances

NAMES = ("linear", "rbf", "polynomial", "precomputed")
DEGREE, OFFSET = 3, 1.0  # of the polynomial kernel, as in scikit-learn
ASYMMETRY = 1e-8  # largest |k(x, y) − k(y, x)|, relative to the largest |k|

DataKernel = Any  # a name, a Kernel of the squared distance, or a function of two tables


def is_linear(kernel: Any) -> bool:
    """Return whether the kernel is the inner product, k(x, y) = ⟨x, y⟩."""
    return isinstance(kernel, str) and kernel == "linear"


def check_feature_kernel(kernel: Any, gamma: Any) -> None:
    """Raise ValueError unless `kernel` is one of `NAMES`, a Kernel or a function, and `gamma` is positive or None."""
    if isinstance(kernel, str) and kernel not in NAMES:
        known = f"choose from {', '.join(map(repr, NAMES))}, or pass a function of two tables"
        raise ValueError(f"unknown kernel {kernel!r}; {did_you_mean(kernel, NAMES, known)}")
    if isinstance(kernel, type) or not (isinstance(kernel, str | Kernel) or callable(kernel)):
        raise ValueError(
            f"kernel must be one of {', '.join(map(repr, NAMES))}, a kernel of equipoise.kernels or a function of two"
            f" tables, got {kernel!r}"
        )
    if gamma is None:
        return
    if not is_positive(gamma):
        raise ValueError(f"gamma must be a positive number or None, got {gamma!r}")
    if not (isinstance(kernel, Kernel) or kernel in ("rbf", "polynomial")):
        name = repr(kernel) if isinstance(kernel, str) else "a function"
        raise ValueError(f"gamma={gamma:g} has no effect with kernel={name}; omit gamma")


def kernel_input(X: Any, kernel: Any, metric: Any = "euclidean") -> Input:
    """Convert X to the input of a method with a kernel other than "linear"; raise ValueError if X is unsuitable.

    Kernels of the distance, "rbf" and `Kernel`, accept every input with all distances; other kernels need a table.
    """
    if isinstance(kernel, str) and kernel == "precomputed":
        if not (isinstance(metric, str) and metric in ("euclidean", "precomputed")):
            raise ValueError(f'with kernel="precomputed" X contains the kernel; omit metric={metric!r}')
        if is_space(X):
            raise ValueError('kernel="precomputed" requires a kernel matrix (n, n), but X is a metric space')
        return KernelMatrix(X)
    data = make_input(X, metric)
    if data.sparse:
        raise ValueError("a kernel needs all distances, but X stores only some of them; pass a dense distance matrix")
    if is_radial(kernel):
        return data
    if data.coordinates is None or not is_euclidean(metric):
        name = repr(kernel) if isinstance(kernel, str) else "a function"
        raise ValueError(
            f"kernel={name} needs a table of coordinates (n, D) and no metric; for a metric space, or with a metric,"
            ' use kernel="rbf" or a kernel of equipoise.kernels, which are functions of the distance'
        )
    return data


def is_radial(kernel: Any) -> bool:
    """Return whether a kernel is a function of the distance."""
    return isinstance(kernel, Kernel) or (isinstance(kernel, str) and kernel == "rbf")


@dataclass(frozen=True)
class FeatureKernel:
    """A kernel k(x, y), with the n points to which it is applied.

    Parameters
    ----------
    data : Input
        The points, from `kernel_input`.
    kernel : str, Kernel or callable
        "rbf": exp(−γ d²). "polynomial": (γ ⟨x, y⟩ + 1)³. "precomputed": the kernel is in `data`. A Kernel: k(γ d²). A
        function: f(A, B) returns the kernel (m, n) between the rows of two tables (m, D) and (n, D).
    gamma : float or None
        γ; None is 1/D for "rbf" and "polynomial", and 1 for a Kernel.
    """

    data: Input
    kernel: Any
    gamma: float | None

    @property
    def scale(self) -> float:
        """The factor γ."""
        if self.gamma is not None:
            return float(self.gamma)
        if isinstance(self.kernel, Kernel):
            return 1.0
        if self.data.coordinates is None:
            raise ValueError('kernel="rbf" of a metric space or of distances has no default width; pass gamma')
        return 1.0 / self.data.coordinates.shape[1]

    @property
    def radial(self) -> Kernel:
        """The kernel as a function of γ d²; only if `is_radial`."""
        return self.kernel if isinstance(self.kernel, Kernel) else Gaussian()

    def matrix(self) -> Array:
        """Return the kernel (n, n) of all pairs."""
        if isinstance(self.data, KernelMatrix):
            return self.data.K
        if is_radial(self.kernel):
            return self._of_squared(self.data.squared())
        K = self.rows(self.data.coordinates)
        difference, largest = np.abs(K - K.T), float(np.abs(K).max())
        if difference.max(initial=0.0) > ASYMMETRY * largest:
            i, j = np.unravel_index(difference.argmax(), K.shape)
            raise ValueError(
                f"the kernel is not symmetric: k(x_{i}, x_{j}) = {K[i, j]:g}, but k(x_{j}, x_{i}) = {K[j, i]:g}; a"
                " kernel must be an inner product"
            )
        return (K + K.T) / 2

    def rows(self, X: Matrix) -> Array:
        """Return the kernel (m, n) between new rows X, as `data.check_new` returns them, and the n points."""
        if isinstance(self.data, KernelMatrix):
            return np.asarray(X)
        if is_radial(self.kernel):
            return self._of_squared(self.data.squared_to_all(X))
        Z: Any = self.data.coordinates
        if isinstance(self.kernel, str):
            products = multiply_rows(X, Z.T)
            return (self.scale * (products.toarray() if sparse.issparse(products) else products) + OFFSET) ** DEGREE
        return self._checked(X, Z) if sparse.issparse(X) else by_row_blocks(lambda rows: self._checked(rows, Z), X)

    def own(self, X: Any = None) -> Array:
        """Return k(x, x) of new rows X (m,), or of the n points if X is None."""
        if isinstance(self.data, KernelMatrix):
            return self.data.K.diagonal()
        if is_radial(self.kernel):
            m = self.data.n if X is None else X.shape[0]
            return np.full(m, float(self.radial.value(np.zeros(1))[0]))
        X = self.data.coordinates if X is None else X
        if isinstance(self.kernel, str):
            norms = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.square(X).sum(axis=1)
            return (self.scale * np.asarray(norms).ravel() + OFFSET) ** DEGREE
        return np.array([self._checked(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(X.shape[0])])

    def squared(self) -> Array:
        """Return ‖φ(x) − φ(y)‖² (n, n) of all pairs of points."""
        K = self.matrix()
        own = K.diagonal()
        D2 = np.maximum(own[:, None] + own - 2 * K, 0.0)
        np.fill_diagonal(D2, 0.0)
        return D2

    def squared_to_all(self, i: Array) -> Array:
        """Return ‖φ(x) − φ(y)‖² (m, n) from the points i (m,) to all points."""
        own = self.own()
        K = self.data.K[i] if isinstance(self.data, KernelMatrix) else self.rows(self.data.rows(i))
        return np.maximum(own[i, None] + own - 2 * K, 0.0)

    def squared_from_new(self, X: Matrix) -> Array:
        """Return ‖φ(x) − φ(y)‖² (m, n) from new rows X to all points; without k(x, x) if the kernel is precomputed."""
        shifted = self.own() - 2 * self.rows(X)
        return shifted if isinstance(self.data, KernelMatrix) else np.maximum(self.own(X)[:, None] + shifted, 0.0)

    def _of_squared(self, d2: Array) -> Array:
        return np.asarray(self.radial.value(self.scale * np.square(self.data.unscaled(d2))))

    def _checked(self, A: Matrix, B: Matrix) -> Array:
        """Return kernel(A, B); raise ValueError unless it is a finite array of the right shape."""
        try:
            K = np.asarray(self.kernel(A, B), dtype=np.float64)
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
            raise ValueError(
                f"the kernel fails for two tables: {error}; it must take tables A (m, D) and B (n, D) and return"
                " (m, n), as the functions of sklearn.metrics.pairwise do"
            ) from error
        if K.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"the kernel returned shape {K.shape} for tables of {A.shape[0]} and {B.shape[0]} rows; it must return"
                f" ({A.shape[0]}, {B.shape[0]})"
            )
        if not np.isfinite(K).all():
            i, j = np.argwhere(~np.isfinite(K))[0]
            raise ValueError(f"the kernel of row {i} of A and row {j} of B is {K[i, j]}; it must be finite")
        return K


def feature_weights(features: FeatureKernel, k: int, reg: float, n_threads: int) -> tuple[Matrix, float]:
    """Return the weights W (n, n) that reconstruct φ(x_i) from its k neighbours, and the recall of the search.

    W minimises Tr((I − W) K (I − W)ᵀ) with rows that sum to 1 (Draganov & Dohn 2024, section 2.1). Neighbours are those
    in the feature space. A kernel of the distance has the neighbours of the data, and needs no more pairs.
    """
    data = features.data
    if not is_radial(features.kernel):
        D2 = features.squared()
        return lle_weights_from_distances(D2, nearest_in_matrix(D2, k).indices, reg=reg), 1.0
    near, recall = data.neighbors(k, n_threads)
    return _radial_weights(features, near.indices.reshape(data.n, k), reg), recall


def new_feature_weights(features: FeatureKernel, X: Any, k: int, reg: float, n_threads: int) -> tuple[Matrix, Array]:
    """Return the weights (m, n) of new rows X, and the indices (m,) of the points that equal them, or −1."""
    data = features.data
    if isinstance(data, KernelMatrix):
        raise ValueError(
            'LLE(kernel="precomputed") cannot place new points, because their weights depend on k(x, x), which X does'
            " not contain; pass a function as kernel, and a table"
        )
    if is_radial(features.kernel):
        nearby = data.nearest(X, k, n_threads)
        return _radial_weights(features, nearby.d2.indices.reshape(-1, k), reg, X), nearby.twins
    d2 = features.squared_from_new(X)
    graph: Graph = smallest(d2, k)
    twins = np.where(d2.min(axis=1) == 0, d2.argmin(axis=1), -1)
    return lle_weights_from_distances(features.squared(), graph.indices, rows=d2, reg=reg), twins


def _radial_weights(features: FeatureKernel, neighbors: Array, reg: float, new: Any = None) -> Matrix:
    """Return the weights for a kernel of the distance: from coordinates if they are Euclidean, else from distances."""
    data, kernel, unit = features.data, features.radial.value, float(data_unit(features.data))
    scale = 1.0 / (features.scale * unit**2)
    if (X := data.coordinates) is not None and is_euclidean(data.metric):
        rows = None if new is None else data.scaled(new)
        return lle_weights(data.scaled(X), neighbors, rows=rows, reg=reg, kernel=kernel, scale=scale)
    rows = None if new is None else data.squared_to_all(new)
    return lle_weights_from_distances(data.squared(), neighbors, rows=rows, reg=reg, kernel=kernel, scale=scale)


def data_unit(data: Input) -> float:
    """Return the length of one unit of the scaled distances of an input, 1 unless they would over- or underflow."""
    return float(data.unscaled(np.ones(1))[0])
