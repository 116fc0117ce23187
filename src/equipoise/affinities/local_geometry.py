"""Compute the matrices of modified LLE, Hessian LLE and local tangent space alignment.

Each variant of LLE minimises tr(YᵀMY) with M = Σ_i S_iᵀ B_i S_i. S_i selects the neighbourhood of point i from the map,
and B_i measures how far the map of the neighbourhood is from a function that the variant allows (docs/math.md,
"Variants of LLE").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .._types import Array, Matrix
from ..arrays.blocks import block_bytes
from ..arrays.csr import dense
from ..arrays.memory_limits import available_memory, require_memory
from ..arrays.tiles import in_tiles
from ..linalg.pca import one_blas_thread

VARIANTS = ("standard", "modified", "hessian", "ltsa")
SMALLEST_REFLECTION = 1e-12  # length of a Householder vector below which the reflection is the identity; chosen


def smallest_neighborhood(variant: str, d: int) -> int:
    """Return the smallest number of points in a neighbourhood that determines a map of dimension d."""
    return {"modified": d + 1, "hessian": d * (d + 3) // 2 + 1, "ltsa": d + 2}.get(variant, 1)


def variant_matrix(variant: str, X: Any, neighbors: Array, d: int, reg: float) -> Matrix:
    """Return the matrix M of a variant, CSR (n, n); M 1 = 0.

    Parameters
    ----------
    variant : {"modified", "hessian", "ltsa"}
    X : array or CSR matrix of shape (n, D)
    neighbors : array of shape (n, k)
        Indices of the points in each neighbourhood. For "modified", without the point whose weights are computed.
    d : int
        Dimension of the map.
    reg : float
        Regularisation of the weights of "modified": this fraction of the trace of each local Gram matrix.
    """
    n, k = neighbors.shape
    require_memory(
        40.0 * n * (k + 1) ** 2, f"LLE(variant={variant!r})", available_memory(), "use fewer rows or n_neighbors"
    )
    with one_blas_thread():
        if variant == "modified":
            return _modified(X, neighbors, d, reg)
        return _alignment(X, neighbors, d, _hessian if variant == "hessian" else _affine)


def _alignment(X: Any, neighbors: Array, d: int, form: Callable[[Array], Array]) -> Matrix:
    """Return M for B_i = form(U_i), where the unit vectors U_i (k, d) are tangent coordinates of a neighbourhood."""
    n, k = neighbors.shape
    B = np.empty((n, k, k))

    def compute(part: slice) -> None:
        near = _rows(X, neighbors[part])
        U, _ = _left_singular(near - near.mean(axis=1, keepdims=True))
        B[part] = form(U[:, :, :d])

    in_tiles(n, k * (X.shape[1] + 3 * k), compute, block_bytes() // 8)
    return _sum(B, neighbors)


def _affine(U: Array) -> Array:
    """Return B = I − GGᵀ, G = [1/√k, U]: the squared distance to affine functions (Zhang & Zha 2004)."""
    m, k, _ = U.shape
    G = np.concatenate([np.full((m, k, 1), k**-0.5), U], axis=2)
    return np.eye(k) - G @ G.transpose(0, 2, 1)


def _hessian(U: Array) -> Array:
    """Return B = HHᵀ, the squared second derivatives (Donoho & Grimes 2003).

    H has those columns of Q in the QR decomposition of [1, U, products of two columns of U] that belong to products.
    """
    m, k, d = U.shape
    a, b = np.triu_indices(d)
    functions = np.concatenate([np.ones((m, k, 1)), U, U[:, :, a] * U[:, :, b]], axis=2)
    H = np.linalg.qr(functions)[0][:, :, d + 1 :]
    return H @ H.transpose(0, 2, 1)


def _modified(X: Any, neighbors: Array, d: int, reg: float) -> Matrix:
    """Return M of modified LLE: the squared residuals of several weight vectors per point (Zhang & Wang 2007)."""
    n, k = neighbors.shape
    V, values = np.empty((n, k, k)), np.empty((n, min(k, X.shape[1])))

    def decompose(part: slice) -> None:
        V[part], values[part] = _left_singular(_rows(X, neighbors[part]) - dense(X[part])[:, None, :])

    in_tiles(n, k * (X.shape[1] + 3 * k), decompose, block_bytes() // 8)
    used = np.arange(k) >= values.shape[1] - _small_values(values, d)[:, None]  # the vectors of small singular values
    B = np.empty((n, k + 1, k + 1))

    def compute(part: slice) -> None:
        W = _weight_vectors(V[part], values[part], used[part], reg)
        R = np.concatenate([W, -used[part].astype(np.float64)[:, None, :]], axis=1)  # residuals, with the point last
        B[part] = R @ R.transpose(0, 2, 1)

    in_tiles(n, 5 * k * k, compute, block_bytes() // 8)
    return _sum(B, np.column_stack([neighbors, np.arange(n)]))


def _small_values(values: Array, d: int) -> Array:
    """Return how many of the eigenvalues (n, m) of each point, in descending order, are noise.

    The sum of these is less than η times the sum of the others, where η is the median over all points of this ratio
    for all eigenvalues but the first d.
    """
    total = values.cumsum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # neighbours that all coincide with the point
        ratios = total[:, -1:] / total[:, :-1] - 1
        eta = np.nanmedian(values[:, d:].sum(axis=1) / values[:, :d].sum(axis=1))
    return np.asarray((ratios < eta).sum(axis=1))


def _weight_vectors(V: Array, values: Array, used: Array, reg: float) -> Array:
    """Return the weights W (m, k, k) of each point; a column that is not `used` is 0.

    W = V (I − 2 h hᵀ) + (1 − α) w 1ᵀ over the s used columns of V, with the weights w of LLE, α = ‖Vᵀ1‖/√s, and the
    unit vector h whose reflection maps Vᵀ1 to α 1, so that each column of W has the sum 1.
    """
    eigenvalues = np.zeros(V.shape[:2])
    eigenvalues[:, : values.shape[1]] = values
    trace, sums = values.sum(axis=1, keepdims=True), V.sum(axis=1)
    w = (V @ (sums / (eigenvalues + reg * np.where(trace > 0, trace, 1.0)))[:, :, None])[:, :, 0]
    w /= w.sum(axis=1, keepdims=True)
    sums = np.where(used, sums, 0.0)
    alpha = np.linalg.norm(sums, axis=1, keepdims=True) / np.sqrt(np.maximum(used.sum(axis=1, keepdims=True), 1))
    h = np.where(used, alpha - sums, 0.0)
    length = np.linalg.norm(h, axis=1, keepdims=True)
    h = np.divide(h, length, out=np.zeros_like(h), where=length > SMALLEST_REFLECTION)
    W = V - 2 * (V @ h[:, :, None]) * h[:, None, :] + ((1 - alpha) * w)[:, :, None]
    return np.where(used[:, None, :], W, 0.0)


def _rows(X: Any, neighbors: Array) -> Array:
    """Return the rows of X of each neighbour (m, k), as an array (m, k, D) in float64."""
    return np.asarray(dense(X[neighbors.ravel()]), dtype=np.float64).reshape(*neighbors.shape, X.shape[1])


def _left_singular(A: Array) -> tuple[Array, Array]:
    """Return the left singular vectors (m, k, k) of A (m, k, D), and the squares of the min(k, D) singular values."""
    if A.shape[2] < A.shape[1]:
        U, s, _ = np.linalg.svd(A)
        return U, s**2
    values, U = np.linalg.eigh(A @ A.transpose(0, 2, 1))
    return U[:, :, ::-1], np.maximum(values[:, ::-1], 0.0)


def _sum(B: Array, points: Array) -> Matrix:
    """Return Σ_i S_iᵀ B_i S_i, CSR (n, n), for the matrices B (n, k, k) of the points (n, k) that each S_i selects."""
    n, k = points.shape
    points = points.astype(np.int32 if n < 2**31 else np.int64)
    rows, columns = np.repeat(points, k, axis=1).ravel(), np.tile(points, (1, k)).ravel()
    M = sparse.csr_matrix((B.ravel(), (rows, columns)), shape=(n, n))
    M.sort_indices()
    return M
