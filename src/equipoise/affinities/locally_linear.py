"""Locally linear weights: every point as a mean of its neighbours, and the quadratic form of what that leaves over.

In the flow this is an affinity: neighbours → W, with M = (I − W)ᵀ(I − W) (docs/math.md, "Locally linear weights").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..arrays.csr import make_csr
from ..arrays.namespace import host, placed
from ..linalg.blas import one_blas_thread

BLOCK = 2**21  # numbers per block of gathered neighbours, 16 MB
REG = 1e-3  # of the trace of a local Gram matrix, added to its diagonal (Saul & Roweis 2003; scikit-learn's default)

KernelFunction = Callable[[Array], Array]  # k(d2), elementwise, such as `kernels.Gaussian().value`


def lle_weights(
    X: Matrix,
    neighbors: Array,
    *,
    rows: Matrix | None = None,
    reg: float = REG,
    kernel: KernelFunction | None = None,
    scale: Array | float = 1.0,
) -> Matrix:
    """Return W, CSR (m, n): the weights, Σ_j w_ij = 1, that make Σ_j w_ij φ(x_j) nearest to φ(x_i).

    `neighbors` (m, k) lists the rows of X (n, D), dense or CSR, that stand for each row; the rows are those of X itself
    or the m given as `rows`. φ(x) = x, or the feature map of k_x = kernel(d2 / scale), with one scale for all or one
    for each row. `reg`, times its trace, is added to the diagonal of each local Gram matrix.
    """
    own = X if rows is None else rows
    k, D = neighbors.shape[1], X.shape[1]
    weights = np.empty(neighbors.shape)
    scale = np.broadcast_to(np.asarray(scale, dtype=np.float64), len(neighbors))
    with one_blas_thread():
        for block in _blocks(len(neighbors), k * (D + k)):
            near = neighbors[block]
            V = _dense(X[near.ravel()]).reshape(*near.shape, D) - _dense(own[block])[:, None, :]
            G = V @ V.transpose(0, 2, 1)  # ⟨x_a − x_i, x_b − x_i⟩
            if kernel is not None:
                to = np.einsum("ijj->ij", G)
                among = np.maximum(to[:, :, None] + to[:, None, :] - 2 * G, 0.0)
                G = _feature_gram(to, among, kernel, scale[block])
            weights[block] = _solve(G, reg)
    return _csr(weights, neighbors, X.shape[0])


def lle_weights_on_device(X: Any, neighbors: Any, *, rows: Any = None, reg: float = REG) -> Matrix:
    """Return the same W from tensors X (n, D) and `rows`, for φ(x) = x; the systems are solved where X is."""
    from .locally_linear_torch import local_weights

    weights = local_weights(X, placed(X, neighbors), X if rows is None else rows, reg)
    return _csr(host(weights), host(neighbors), X.shape[0])


def lle_weights_from_distances(
    D2: Array,
    neighbors: Array,
    *,
    rows: Array | None = None,
    reg: float = REG,
    kernel: KernelFunction | None = None,
    scale: Array | float = 1.0,
) -> Matrix:
    """Return the same W from squared distances alone, D2 (n, n) and `rows` (m, n) for points beyond these n.

    ⟨x_a − x_i, x_b − x_i⟩ = ½ (d²_ia + d²_ib − d²_ab), for distances that are Euclidean in some space.
    """
    k = neighbors.shape[1]
    weights = np.empty(neighbors.shape)
    scale = np.broadcast_to(np.asarray(scale, dtype=np.float64), len(neighbors))
    with one_blas_thread():
        for block in _blocks(len(neighbors), 2 * k * k):
            near = neighbors[block]
            to = np.take_along_axis((D2 if rows is None else rows)[block], near, axis=1)
            among = D2[near[:, :, None], near[:, None, :]]
            if kernel is None:
                G = (to[:, :, None] + to[:, None, :] - among) / 2
            else:
                G = _feature_gram(to, among, kernel, scale[block])
            weights[block] = _solve(G, reg)
    return _csr(weights, neighbors, len(D2))


def lle_matrix(W: Matrix) -> Matrix:
    """Return M = (I − W)ᵀ(I − W), CSR (n, n): tr(YᵀMY) = Σ_i ‖y_i − Σ_j w_ij y_j‖², and M 1 = 0."""
    A = sparse.identity(W.shape[0], format="csr") - W
    M = sparse.csr_matrix(A.T @ A)
    M.sort_indices()
    return M


def _feature_gram(to: Array, among: Array, kernel: KernelFunction, scale: Array) -> Array:
    """Return ⟨φ_a − φ_i, φ_b − φ_i⟩ = k(0) − k_ia − k_ib + k_ab from d² to the neighbours and among them."""
    k_to = kernel(to / scale[:, None])
    k_among = kernel(among / scale[:, None, None])
    return float(kernel(np.zeros(1))[0]) - k_to[:, :, None] - k_to[:, None, :] + k_among


def _solve(G: Array, reg: float) -> Array:
    """Return the solutions w of (G + reg · tr(G) I) w = 1, each divided by its sum; all weights equal where G = 0."""
    trace = np.einsum("ijj->i", G)
    unit = np.where(trace > 0, trace, 1.0)
    G = G / unit[:, None, None]
    diagonal = np.arange(G.shape[1])
    G[:, diagonal, diagonal] += reg
    w = np.linalg.solve(G, np.ones((*G.shape[:2], 1)))[:, :, 0]
    return np.asarray(w / w.sum(axis=1, keepdims=True))


def _csr(weights: Array, neighbors: Array, n: int) -> Matrix:
    m, k = neighbors.shape
    order = np.argsort(neighbors, axis=1, kind="stable")
    columns, values = np.take_along_axis(neighbors, order, axis=1), np.take_along_axis(weights, order, axis=1)
    return make_csr(values.ravel(), columns.ravel(), np.arange(0, m * k + 1, k, dtype=np.int64), (m, n))


def _blocks(m: int, numbers: int) -> Iterator[slice]:
    """Yield slices of m rows, each row taking so many numbers."""
    step = max(1, BLOCK // max(1, numbers))
    for start in range(0, m, step):
        yield slice(start, min(start + step, m))


def _dense(rows: Matrix) -> Array:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
