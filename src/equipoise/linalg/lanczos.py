"""Leading eigenvectors on a device: block Lanczos with restarts, every vector orthogonal to all that are kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from .._types import Array
from .eigen import DENSE, RESTARTS, SMALL, signed

BASIS = 40  # vectors held, at least: twice what ARPACK takes for few eigenvectors, as they come in blocks; chosen
WIDTH = 4  # of a block, at most; chosen
EXACT = 1e-13  # residual of the eigenvectors in float64, as a part of the norm; rounding is 1e-16 for each product

Product = Callable[[torch.Tensor], torch.Tensor]  # A U for U (n, b)


class NotConverged(RuntimeError):
    """Lanczos came to the end of its restarts."""


def top(A: torch.Tensor, d: int) -> tuple[Array, torch.Tensor]:
    """Return the d largest eigenvalues, falling, of a dense symmetric A (n, n), and their unit eigenvectors (n, d)."""
    n = len(A)
    if n <= SMALL or 5 * d > n:
        return _all(A, d)
    return top_of(lambda U: A @ U, n, d, A, lambda: A)


def top_of(
    multiply: Product, n: int, d: int, like: torch.Tensor, dense: Callable[[], torch.Tensor]
) -> tuple[Array, torch.Tensor]:
    """Return the same for an operator on vectors that are where and as precise as `like`; `dense` makes its matrix, for
    the case that Lanczos does not converge."""
    try:
        return lanczos(multiply, start_of(n, min(d, WIDTH), like), d, EXACT, RESTARTS)
    except NotConverged as error:
        if n > DENSE:
            raise RuntimeError(
                f"{error}; their eigenvalues may be all alike: use fewer n_components, or a sample of the data"
            ) from None
    return _all(dense(), d)


def start_of(n: int, b: int, like: torch.Tensor) -> torch.Tensor:
    """Return the fixed block of vectors (n, b) that iterations begin with, where and as precise as `like` is."""
    return like.new_tensor(np.random.RandomState(0).standard_normal((n, b)))


def lanczos(multiply: Product, start: torch.Tensor, d: int, tol: float, restarts: int) -> tuple[Array, torch.Tensor]:
    """Return the d largest eigenvalues, falling, of a symmetric operator, and their unit eigenvectors (n, d).

    A block of vectors at a time, as wide as `start` (n, b): an eigenvalue is found as often as it occurs, up to b
    times. At a restart the leading Ritz vectors are kept, and the last block follows them (Wu & Simon 2000, in blocks).
    It ends when the residuals are at most `tol` times the largest |Ritz value|.
    """
    n, b = start.shape
    size = b * -(-max(2 * d + 1, BASIS) // b)
    V = start.new_empty((size, n))  # orthonormal rows
    H = np.zeros((size, size))  # V A Vᵀ
    Q, kept = torch.linalg.qr(start)[0], 0
    for _ in range(restarts):
        for j in range(kept, size, b):
            here, so_far = slice(j, j + b), V[: j + b]
            V[here] = Q.T
            rest, h = _without(multiply(Q), so_far)
            H[: j + b, here], H[here, : j + b] = h, h.T
            Q, R = torch.linalg.qr(rest)
            left = R.double().cpu().numpy()
            spent = np.abs(left.diagonal()) <= 10 * torch.finfo(V.dtype).eps * np.abs(H).max()
            if spent.any():  # V holds all that A makes of some of it: go on with anything beyond
                Q = _renewed(Q, spent, torch.roll(start, j + 1, dims=0), so_far)
        values, S = np.linalg.eigh((H + H.T) / 2)
        values, S = values[::-1], S[:, ::-1]
        if (np.linalg.norm(left @ S[-b:, :d], axis=0) <= tol * np.abs(values).max()).all():
            return values[:d].copy(), signed(V.T @ start.new_tensor(S[:, :d].copy()))
        kept = size - b * max(1, (size - d) // (2 * b))
        V[:kept] = start.new_tensor(S[:, :kept].T.copy()) @ V
        H = np.diag(np.concatenate([values[:kept], np.zeros(size - kept)]))
    raise NotConverged(f"the eigenvectors of {n} points did not converge in {restarts} restarts")


def _without(U: torch.Tensor, V: torch.Tensor) -> tuple[torch.Tensor, Array]:
    """Return the part of U (n, b) orthogonal to the rows of V, and V U; twice is enough (Parlett 1998, section 6.9)."""
    h = V @ U
    U = U - V.T @ h
    again = V @ U
    return U - V.T @ again, (h + again).double().cpu().numpy()


def _renewed(Q: torch.Tensor, spent: Array, fresh: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """Return Q (n, b) with other vectors for those that are spent, orthonormal and orthogonal to the rows of V."""
    Q = torch.where(torch.as_tensor(spent, device=Q.device), fresh, Q)
    for _ in range(2):  # what rounding left of V in a column is as large as what its length was divided by
        Q = torch.linalg.qr(_without(Q, V)[0])[0]
    return Q


def _all(A: torch.Tensor, d: int) -> tuple[Array, torch.Tensor]:
    values, V = torch.linalg.eigh(A)
    return values.flip(0)[:d].cpu().numpy(), signed(V.flip(1)[:, :d])
