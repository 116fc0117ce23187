"""Compute weights that reconstruct every point as a weighted mean of its neighbours, and the squared residuals.

The weights form a matrix W, and the sum of the squared residuals of a map Y is tr(YᵀMY) with M = (I − W)ᵀ(I − W)
(docs/math.md, "Locally linear weights").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..arrays.blocks import FIXED_TILE, block_bytes
from ..arrays.csr import dense, is_on_device, make_csr
from ..arrays.namespace import (
    array_like,
    array_namespace,
    at_least,
    device_of,
    is_numpy,
    is_tensor,
    on_device_of,
    to_numpy,
)
from ..arrays.tiles import in_tiles
from ..linalg.pca import one_blas_thread

TOO_SMALL = "reg={:g} is too small: the neighbours of a point are linearly dependent; increase reg"
REG = 1e-3  # relative to the trace of a local Gram matrix (Saul & Roweis 2003; scikit-learn's default)

KernelFunction = Callable[[Any], Any]  # k(d2), elementwise, such as `kernels.Gaussian().value`


def lle_weights(
    X: Any,
    neighbors: Any,
    *,
    rows: Any = None,
    reg: float = REG,
    kernel: KernelFunction | None = None,
    scale: Array | float = 1.0,
) -> Matrix:
    """Return the weights w_ij of neighbours j, Σ_j w_ij = 1, that minimise ‖φ(x_i) − Σ_j w_ij φ(x_j)‖²; see `kernel`.

    Parameters
    ----------
    X : array, tensor or CSR matrix of shape (n, D)
        The linear systems for the weights are solved on the device of X.
    neighbors : array or tensor of shape (m, k)
        Indices in X of the neighbours of each row.
    rows : array, tensor or CSR matrix of shape (m, D), default=None
        The rows x_i to be reconstructed; by default, those of X.
    reg : float, default=1e-3
        Regularisation: each local Gram matrix G is replaced by G + reg · tr(G) I.
    kernel : callable, default=None
        Function of squared distances: φ is the feature map of k_x = kernel(d2 / scale). By default, φ(x) = x.
    scale : float or array of shape (m,), default=1.0
        Divisor of the squared distances: one for all rows, or one per row.

    Returns
    -------
    W : CSR matrix of shape (m, n)
        On the device of X if X is a tensor and `rows` is None, otherwise in host memory.
    """
    own = X if rows is None else rows
    near = on_device_of(X, neighbors)
    (m, k), D = near.shape, X.shape[1]
    weights = array_namespace(near).empty((m, k), dtype=array_namespace(near).float64, device=device_of(near))
    scale = np.broadcast_to(np.asarray(scale, dtype=np.float64), m)

    def solve(part: slice) -> None:
        xp = array_namespace(weights)
        V = xp.reshape(_dense(X[xp.reshape(near[part, :], (-1,))]), (-1, k, D)) - _dense(own[part])[:, None, :]
        G = V @ xp.matrix_transpose(V)  # ⟨x_a − x_i, x_b − x_i⟩
        if kernel is not None:
            to = xp.linalg.diagonal(G)
            among = at_least(to[:, :, None] + to[:, None, :] - 2 * G, 0.0)
            G = _feature_gram(to, among, kernel, array_like(G, scale[part]))
        weights[part, :] = _solve(G, reg)

    with one_blas_thread():
        in_tiles(m, k * (D + k), solve, block_bytes() // 8 if is_numpy(X) else FIXED_TILE // 2)
    if rows is None and is_tensor(X):
        return _csr_on_device(weights, near)
    return _csr(to_numpy(weights), to_numpy(neighbors), X.shape[0])


def lle_weights_from_distances(
    D2: Array,
    neighbors: Array,
    *,
    rows: Array | None = None,
    reg: float = REG,
    kernel: KernelFunction | None = None,
    scale: Array | float = 1.0,
) -> Matrix:
    """Return the weights W of `lle_weights`, computed from squared distances D2 (n, n) instead of coordinates.

    To reconstruct new points, pass their squared distances to the n points as `rows` (m, n). Without a kernel, inner
    products are computed as ⟨x_a − x_i, x_b − x_i⟩ = ½ (d²_ia + d²_ib − d²_ab), which holds for distances that are
    Euclidean in some space.
    """
    m, k = neighbors.shape
    weights = np.empty((m, k))
    scale = np.broadcast_to(np.asarray(scale, dtype=np.float64), m)

    def solve(part: slice) -> None:
        near = neighbors[part]
        to = np.take_along_axis((D2 if rows is None else rows)[part], near, axis=1)
        among = D2[near[:, :, None], near[:, None, :]]
        if kernel is None:
            G = (to[:, :, None] + to[:, None, :] - among) / 2
        else:
            G = _feature_gram(to, among, kernel, scale[part])
        weights[part] = _solve(G, reg)

    with one_blas_thread():
        in_tiles(m, 2 * k * k, solve, block_bytes() // 8)
    return _csr(weights, neighbors, len(D2))


def lle_matrix(W: Matrix) -> Matrix:
    """Return M = (I − W)ᵀ(I − W), CSR (n, n): tr(YᵀMY) = Σ_i ‖y_i − Σ_j w_ij y_j‖², and M 1 = 0.

    M is in host memory or on a device, like W; on a device it is in float64.
    """
    if not bool(array_namespace(W.data).isfinite(W.data).all()):
        raise ValueError("the weights of the neighbours are not finite: reg is too small for these data; increase reg")
    if is_on_device(W):
        from ..arrays.device_gram import minus_identity_gram

        return minus_identity_gram(W)
    A = sparse.identity(W.shape[0], format="csr") - W
    M = sparse.csr_matrix(A.T @ A)
    M.sort_indices()
    return M


def _feature_gram(to: Any, among: Any, kernel: KernelFunction, scale: Any) -> Any:
    """Return ⟨φ_a − φ_i, φ_b − φ_i⟩ = k(0) − k_ia − k_ib + k_ab for all neighbours a and b of each point i.

    `to` (m, k) contains the squared distances d²_ia, and `among` (m, k, k) the squared distances d²_ab.
    """
    k_to = kernel(to / scale[:, None])
    k_among = kernel(among / scale[:, None, None])
    return float(kernel(np.zeros(1))[0]) - k_to[:, :, None] - k_to[:, None, :] + k_among


def _solve(G: Any, reg: float) -> Any:
    """Return the solutions w (m, k) of (G + reg · tr(G) I) w = 1, each divided by its sum; equal weights if G = 0."""
    xp, k = array_namespace(G), G.shape[1]
    like = {"dtype": G.dtype, "device": device_of(G)}
    # The order of summation decides the last digit: einsum and sums along rows for NumPy, column by column otherwise.
    trace = np.einsum("ijj->i", G) if is_numpy(G) else xp.linalg.trace(G)
    G = G / xp.where(trace > 0, trace, 1.0)[:, None, None] + reg * xp.eye(k, **like)
    try:
        w = xp.linalg.solve(G, xp.ones((*G.shape[:2], 1), **like))[:, :, 0]
    except Exception as error:
        if "LinAlgError" not in type(error).__name__:  # NumPy, PyTorch and CuPy have one each
            raise
        raise ValueError(TOO_SMALL.format(reg)) from error
    total = xp.sum(w, axis=1) if is_numpy(G) else xp.sum(xp.stack([w[:, j] for j in range(k)]), axis=0)
    return w / total[:, None]


def _csr(weights: Array, neighbors: Array, n: int) -> Matrix:
    """Return the CSR matrix (m, n), with sorted columns, of the weights (m, k) of the neighbours (m, k) of each row."""
    m, k = neighbors.shape
    order = np.argsort(neighbors, axis=1, kind="stable")
    columns, values = np.take_along_axis(neighbors, order, axis=1), np.take_along_axis(weights, order, axis=1)
    return make_csr(values.ravel(), columns.ravel(), np.arange(0, m * k + 1, k, dtype=np.int64), (m, n))


def _csr_on_device(weights: Any, neighbors: Any) -> Any:
    """Return the matrix (n, n) of `_csr` on the device of the weights (n, k)."""
    from ..arrays.device_csr import Rows

    columns, order = neighbors.sort(dim=1)
    return Rows.of_neighbors(weights.gather(1, order), columns.int())


def _dense(rows: Any) -> Any:
    """Return rows, dense or sparse, as a dense array in float64."""
    rows = dense(rows)
    xp = array_namespace(rows)
    return xp.astype(rows, xp.float64, copy=False)
