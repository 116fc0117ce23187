"""Find leading eigenvectors by block Lanczos with restarts and full reorthogonalisation, for arrays of any library.

This module is used on devices. On the CPU, eigen.py uses SciPy's ARPACK, which was faster there (measurements in
laplacian.py); a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._plural import plural
from .._types import Array, Matrix
from ..arrays.namespace import array_like, array_namespace, device_of, is_tensor, on_device_of, to_float64, to_numpy
from .eigen import DENSE, RESTARTS, SMALL
from .pca import fix_signs, top_eigenvectors

BASIS = 40  # minimum size of the basis: twice ARPACK's for few eigenvectors, because it grows by blocks; chosen
WIDTH = 4  # maximum width of a block; chosen
DEPENDENT = 1e-6  # smallest ratio of the pivots of a Cholesky factorisation: its square is far above rounding; chosen
EXACT = 1e-13  # tolerance of the residuals in float64, relative to the norm; products are accurate to 1e-16

Product = Callable[[Any], Any]  # A U for U (n, b)


class NotConverged(RuntimeError):
    """Lanczos did not converge within the allowed restarts."""


def top(A: Any, d: int) -> tuple[Array, Any]:
    """Return the d largest eigenvalues, descending, of a dense symmetric A (n, n), and unit eigenvectors (n, d)."""
    n = A.shape[0]
    if n <= SMALL or 5 * d > n:
        return _decompose(A, d)
    return top_of(lambda U: A @ U, n, d, A, lambda: A)


def top_of(multiply: Product, n: int, d: int, like: Any, dense: Callable[[], Any]) -> tuple[Array, Any]:
    """Return the d largest eigenvalues, descending, of a symmetric operator on R^n, and unit eigenvectors (n, d).

    Vectors have the library, the device and the precision of `like`. `dense` returns the matrix of the operator, which
    is decomposed if Lanczos does not converge; if n exceeds `DENSE`, RuntimeError is raised instead.
    """
    try:
        return lanczos(multiply, start_block(n, min(d, WIDTH), like), d, EXACT, RESTARTS)
    except NotConverged as error:
        if n > DENSE:
            raise RuntimeError(
                f'{error}; the eigenvalues may be nearly equal: use solver="flow", fewer n_components or a'
                " sample of the data"
            ) from None
    return _decompose(dense(), d)


def start_block(n: int, b: int, like: Any) -> Any:
    """Return the fixed random block (n, b) with which iterations start, with the device and precision of `like`."""
    return _constant(like, np.random.RandomState(0).standard_normal((n, b)))


def bottom(A: Matrix, null: Array, d: int, tol: float, device: str) -> tuple[Array, Array]:
    """Return the d smallest eigenvalues of a sparse A, ascending, and unit eigenvectors (n, d), found on a device.

    A (n, n) is a symmetric, positive semidefinite SciPy CSR matrix with A @ null = 0 for the orthonormal columns of
    `null` (n, c); eigenvectors in their span are excluded. Lanczos multiplies by bI − A only, where b is an upper bound
    on the eigenvalues, in float64; the residuals are at most `tol` times b. NotConverged is raised after `RESTARTS`
    restarts.
    """
    import torch

    from ..arrays.device_csr import Rows

    rows, bound = Rows.of(A, torch.device(device), torch.float64), float(abs(A).sum(axis=1).max())
    N = on_device_of(rows.data, np.ascontiguousarray(null))

    def multiply(U: Any) -> Any:
        U = U - N @ (N.T @ U)
        U = bound * U - rows @ U
        return U - N @ (N.T @ U)

    values, V = lanczos(multiply, start_block(A.shape[0], WIDTH, rows.data), d, tol, RESTARTS)
    return bound - values, to_numpy(V)


def lanczos(multiply: Product, start: Any, d: int, tol: float, restarts: int) -> tuple[Array, Any]:
    """Return the d largest eigenvalues, descending, of a symmetric operator, and unit eigenvectors (n, d).

    The basis grows by blocks as wide as `start` (n, b), so that up to b equal eigenvalues are found. Ritz vectors and
    values are the current approximations of eigenvectors and eigenvalues. A restart retains the leading Ritz vectors,
    followed by the last block (Wu & Simon 2000, here in blocks). The run has converged when the residuals are at most
    `tol` times the largest |Ritz value|; NotConverged is raised if it has not converged after `restarts` restarts.
    """
    xp = array_namespace(start)
    n, b = start.shape
    size = b * -(-max(2 * d + 1, BASIS) // b)
    V = xp.empty((size, n), dtype=start.dtype, device=device_of(start))  # orthonormal rows
    H = np.zeros((size, size))  # V A Vᵀ
    Q, retained = _qr(start)[0], 0
    for _ in range(restarts):
        for j in range(retained, size, b):
            block, basis = slice(j, j + b), V[: j + b, :]
            V[block, :] = Q.T
            residual, h = _orthogonalize(multiply(Q), basis)
            H[: j + b, block], H[block, : j + b] = h, h.T
            Q, last = _qr(residual)
            exhausted = np.abs(last.diagonal()) <= 10 * float(xp.finfo(V.dtype).eps) * np.abs(H).max()
            if exhausted.any():  # the basis is invariant under A in these directions: continue with new ones
                Q = _replace_columns(Q, exhausted, xp.roll(start, j + 1, axis=0), basis)
        values, S = np.linalg.eigh((H + H.T) / 2)
        values, S = values[::-1], S[:, ::-1]
        if (np.linalg.norm(last @ S[-b:, :d], axis=0) <= tol * np.abs(values).max()).all():
            return values[:d].copy(), fix_signs(V.T @ _constant(start, S[:, :d]))
        retained = size - b * max(1, (size - d) // (2 * b))
        V[:retained, :] = _constant(start, S[:, :retained].T) @ V
        H = np.diag(np.concatenate([values[:retained], np.zeros(size - retained)]))
    raise NotConverged(
        f"the eigenvectors of a matrix with {n:,} rows did not converge in {plural(restarts, 'restart')}"
    )


def _constant(like: Any, values: Array) -> Any:
    """Return `values` as a contiguous array with the library, the device and the precision of `like`."""
    values = np.ascontiguousarray(values)
    return array_namespace(like).asarray(array_like(like, values), dtype=like.dtype)


def _qr(U: Any) -> tuple[Any, Array]:
    """Return Q (n, b) with orthonormal columns and upper triangular R (b, b), in float64 and host memory: U = Q R.

    Householder's method takes milliseconds for long columns on a GPU. There, R is the Cholesky factor of UᵀU, and the
    procedure is repeated with Q (Yamamoto et al. 2015), unless the columns of U are nearly dependent.
    """
    xp = array_namespace(U)
    factors = _cholesky_qr(U) if is_tensor(U) and U.is_cuda else None
    if factors is None:
        Q, R = xp.linalg.qr(U)
        factors = Q, to_numpy(to_float64(R))
    return factors


def _cholesky_qr(U: Any) -> tuple[Any, Array] | None:
    """Return Q and R of `_qr` from two Cholesky factorisations; None if the columns of U are nearly dependent."""
    xp, Q, R = array_namespace(U), to_float64(U), np.eye(U.shape[1])
    for _ in range(2):
        try:
            factor = np.linalg.cholesky(to_numpy(Q.T @ Q))
        except np.linalg.LinAlgError:
            return None
        diagonal = factor.diagonal()
        if not diagonal.min() > DEPENDENT * diagonal.max():  # also if they are not numbers
            return None
        Q, R = Q @ _constant(Q, np.linalg.inv(factor).T), factor.T @ R
    return xp.astype(Q, U.dtype, copy=False), R


def _orthogonalize(U: Any, V: Any) -> tuple[Any, Array]:
    """Return the part of U (n, b) orthogonal to the rows of V, and the product V U.

    U is projected twice, which is enough for full precision (Parlett 1998, section 6.9).
    """
    h = V @ U
    U = U - V.T @ h
    correction = V @ U
    return U - V.T @ correction, to_numpy(to_float64(h + correction))


def _replace_columns(Q: Any, exhausted: Array, fresh: Any, V: Any) -> Any:
    """Return Q (n, b) with some columns replaced by the same columns of `fresh` (n, b), then orthonormalised.

    `exhausted` (b,) is True for the columns to replace. The columns of the result are orthogonal to the rows of V.
    """
    xp = array_namespace(Q)
    Q = xp.where(on_device_of(Q, exhausted), fresh, Q)
    for _ in range(2):  # a short column loses digits when it is normalised: its part along V is then not negligible
        Q = xp.linalg.qr(_orthogonalize(Q, V)[0])[0]
    return Q


def _decompose(A: Any, d: int) -> tuple[Array, Any]:
    """Return the d largest eigenvalues of a dense A, and unit eigenvectors, from a full decomposition."""
    values, V = top_eigenvectors(A, d)
    return to_numpy(values), array_namespace(A).astype(V, A.dtype, copy=False)
