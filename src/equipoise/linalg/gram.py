"""Centred Gram matrices C G C of points, as operators: never formed where coordinates say the same.

C = I − 11ᵀ/n takes the mean out (docs/math.md, "Gram matrices"). What they are made from may be tensors of PyTorch: so
are maps then, and products and eigenvectors are computed where those are. Eigenvalues are arrays of NumPy always.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.namespace import host, is_tensor, maximum, moved, square_sum
from . import eigen

SIDE = 1000  # rows or columns up to which a small Gram matrix is formed, 8 MB; as in low_rank.py
MEAN = 0.9  # the part of the squares of dense coordinates that the mean may be, to stay in: one digit is lost; chosen
BLOCK = 2**22  # numbers of a block in sums over such a matrix that is not formed, 32 MB


class Gram:
    """A symmetric matrix B = C G C, (n, n), that is multiplied with maps."""

    n: int
    definite: bool  # whether no eigenvalue is negative
    source: Matrix  # what it is made from: of the kind, and at the place, that maps must be

    def times(self, V: Array) -> Array:
        """Return B V for V (n,) or (n, d)."""
        raise TypeError(f"{type(self).__name__} must define times()")

    def norm2(self) -> float:
        """Return ‖B‖²_F."""
        raise TypeError(f"{type(self).__name__} must define norm2()")

    def top(self, d: int) -> tuple[Array, Array]:
        """Return the d largest eigenvalues, falling, and their unit eigenvectors (n, d)."""
        raise TypeError(f"{type(self).__name__} must define top()")

    def rows(self, which: Array) -> Array:
        """Return rows of B, (m, n)."""
        raise TypeError(f"{type(self).__name__} must define rows()")

    def axes(self, Y: Array) -> Array:
        """Return the solution Y (n, d) as a linear function of what the matrix was made from."""
        raise TypeError(f"{type(self).__name__} must define axes()")

    def place(self, new: Matrix, axes: Array) -> Array:
        """Return the places (m, d) of new points under that function."""
        raise TypeError(f"{type(self).__name__} must define place()")

    def norm(self) -> float:
        """Return the spectral norm ‖B‖₂, to one percent, from above."""
        return eigen.norm(self.product, self.n)

    def product(self, V: Array) -> Array:
        """Return B V as an array of NumPy, for one, wherever B is."""
        return host(self.times(moved(self.source, V)))


@tagged("gram.Inner")
class Inner(Gram):
    """B held as it is: −½ C D2 C from squared distances (n, n) (Torgerson 1952)."""

    definite = False

    def __init__(self, D2: Any):
        self.n = len(D2)
        self.B = D2 * -0.5
        self._means = self.B.mean(axis=0)
        self._mean = float(self._means.mean())
        self.B -= self._means
        self.B -= self.B.mean(axis=1, keepdims=True)

    @property
    def source(self) -> Matrix:
        return self.B

    def times(self, V: Array) -> Array:
        return self.B @ V

    def norm2(self) -> float:
        return square_sum(self.B)

    def top(self, d: int) -> tuple[Array, Array]:
        return _top(self.B, d)

    def rows(self, which: Array) -> Array:
        return self.B[which]

    def axes(self, Y: Array) -> Array:
        return over(Y, squares(Y))

    def place(self, new: Matrix, axes: Array) -> Array:
        """From squared distances (m, n) to all points: Gower's formula (1968)."""
        K = -0.5 * new
        return (K - K.mean(axis=1, keepdims=True) - self._means + self._mean) @ axes

    def squared(self, which: Array) -> Array:
        """Return the squared distances (m, n) from some points to all: B_ii + B_jj − 2 B_ij."""
        own = self.B.diagonal()
        return host(maximum(own[which, None] + own - 2 * self.B[which], 0.0))


@tagged("gram.Factor")
class Factor(Gram):
    """B = C F Fᵀ C for coordinates F (n, r), dense or CSR; a product costs O(n r) and B is never formed."""

    definite = True

    def __init__(self, F: Matrix):
        self.n = F.shape[0]
        self.mean = F.mean(axis=0) if is_tensor(F) else np.asarray(F.mean(axis=0)).ravel()
        # The mean is taken out of products, and no second copy of F is held, unless it is what F mostly consists of:
        # then too many digits would cancel.
        leave = sparse.issparse(F) or self.n * float(self.mean @ self.mean) <= MEAN * square_sum(F)
        self.F = F if leave else F - self.mean
        self._shift = self.mean if leave else None  # what F still holds of the mean

    @property
    def source(self) -> Matrix:
        return self.F

    def project(self, V: Array) -> Array:
        """Return C F V."""
        result = self.F @ V
        return result if self._shift is None else result - self._shift @ V

    def project_back(self, V: Array) -> Array:
        """Return Fᵀ C V."""
        result = self.F.T @ V
        if self._shift is None:
            return result
        sums = moved(V, np.ones(self.n)) @ V
        return result - (self._shift[:, None] * sums if V.ndim == 2 else self._shift * sums)

    def axes(self, Y: Array) -> Array:
        return over(self.project_back(Y), squares(Y))

    def place(self, new: Matrix, axes: Array) -> Array:
        """From coordinates (m, r)."""
        return new @ axes - self.mean @ axes

    def times(self, V: Array) -> Array:
        return self.project(self.project_back(V))

    def norm2(self) -> float:
        """‖C F Fᵀ C‖ = ‖Fᵀ C F‖, summed over blocks of columns of whichever is smaller."""
        wide = self.F.shape[1] > self.n
        size = min(self.F.shape)
        if not wide and size <= SIDE:
            return float((self.scatter**2).sum())
        product = self.times if wide else self._scattered
        total = 0.0
        step = max(1, BLOCK // size)
        for start in range(0, size, step):
            unit = np.zeros((size, min(step, size - start)))
            unit[np.arange(start, start + unit.shape[1]), np.arange(unit.shape[1])] = 1.0
            total += float((product(moved(self.F, unit)) ** 2).sum())
        return total

    def trace(self) -> float:
        """Return Σ ‖x_i − x̄‖²."""
        if self.F.shape[1] <= min(self.n, SIDE):
            return float(self.scatter.trace())
        whole = self.F.multiply(self.F).sum() if sparse.issparse(self.F) else square_sum(self.F)
        return float(whole) - (0.0 if self._shift is None else self.n * float(self._shift @ self._shift))

    def top(self, d: int) -> tuple[Array, Array]:
        values, V = self.directions(d)
        return values, over(self.project(V), np.sqrt(np.maximum(values, 0.0)))

    def directions(self, d: int) -> tuple[Array, Any]:
        """Return the d largest eigenvalues of Fᵀ C F, falling, and their unit eigenvectors (r, d)."""
        n, r = self.F.shape
        if r <= min(n, SIDE) or (r <= n and not sparse.issparse(self.F) and 5 * d > r):
            return _top(self.scatter, d)
        if n <= SIDE:
            values, U = _top(self.times(moved(self.F, np.eye(n))), d)
            V = self.project_back(U)
            return values, over(V, np.linalg.norm(host(V), axis=0))
        if is_tensor(self.F):
            from .lanczos import top_of

            return top_of(self._scattered, r, d, self.F, lambda: self.scatter)
        return eigen.top_of(self._scattered, r, d, lambda: self.scatter)

    def _scattered(self, V: Any) -> Any:
        """Return Fᵀ C F V."""
        return self.project_back(self.project(V))

    @cached_property
    def scatter(self) -> Any:
        """Fᵀ C F, (r, r)."""
        S = dense(self.F.T @ self.F)
        return S if self._shift is None else S - self.n * (self._shift[:, None] * self._shift)

    def rows(self, which: Array) -> Array:
        own = dense(self.F[which])
        return self.project((own if self._shift is None else own - self._shift).T).T


def dense(A: Matrix) -> Array:
    """Return A with its zeros."""
    return A.toarray() if sparse.issparse(A) else A


def squares(Y: Any) -> Array:
    """Return Σ_i y_i² of every column of Y (n, d), (d,), as an array of NumPy."""
    return host(Y.square().sum(axis=0)) if is_tensor(Y) else np.einsum("ij,ij->j", Y, Y)


def over(V: Array, lengths: Array) -> Array:
    """Return V with every column divided by its length, and 0 where that is 0."""
    return V / moved(V, np.where(lengths > 0, lengths, np.inf))


def _top(A: Any, d: int) -> tuple[Array, Any]:
    """Return eigenvalues and eigenvectors as eigen.top does, where A is."""
    if not is_tensor(A):
        return eigen.top(A, d)
    from .lanczos import top

    return top(A, d)
