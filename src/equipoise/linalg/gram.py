"""Multiply by centred Gram matrices B = C G C, and find their eigenvectors (docs/math.md, "Gram matrices").

G (n, n) contains the inner products of n points, and C = I − 11ᵀ/n subtracts the mean. If the points have coordinates,
a large B is not formed. Arrays can be from NumPy, PyTorch or CuPy. Eigenvectors have the library and the device of
`Gram.source`, the array that defines B. The arguments of every method except `Gram.product` must have this library and
device. Eigenvalues are always NumPy arrays.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.blocks import FIXED_ENTRIES
from ..arrays.csr import dense
from ..arrays.namespace import (
    array_like,
    array_namespace,
    at_least,
    cast_like,
    column_squares,
    is_numpy,
    sum_squares,
    to_numpy,
)
from . import eigen
from .pca import double_center
from .row_products import multiply_rows, multiply_vector

SIDE = 1000  # rows or columns up to which the smaller Gram matrix is formed, 8 MB; as in randomized.py
MEAN = 0.9  # a dense F is centred if its mean accounts for more than this share of Σ F², a loss of one digit; chosen


class Gram:
    """Base class of operators that multiply by the centred Gram matrix B = C G C (n, n) of n points, C = I − 11ᵀ/n."""

    n: int
    definite: bool  # whether all eigenvalues are at least 0
    source: Matrix  # the array that defines B; maps must have the library and the device of this array

    def times(self, V: Array) -> Array:
        """Return B V for V (n,) or (n, d)."""
        raise TypeError(f"{type(self).__name__} must define times()")

    def norm2(self) -> float:
        """Return ‖B‖²_F."""
        raise TypeError(f"{type(self).__name__} must define norm2()")

    def top(self, d: int) -> tuple[Array, Array]:
        """Return the d largest eigenvalues, descending, and unit eigenvectors (n, d)."""
        raise TypeError(f"{type(self).__name__} must define top()")

    def rows(self, which: Array) -> Array:
        """Return the rows (m, n) of B with the indices `which` (m,)."""
        raise TypeError(f"{type(self).__name__} must define rows()")

    def axes(self, Y: Array) -> Array:
        """Return the matrix with d columns that `place` needs to position new points in the map Y (n, d)."""
        raise TypeError(f"{type(self).__name__} must define axes()")

    def place(self, new: Matrix, axes: Array) -> Array:
        """Return the positions (m, d) of new points in a map Y, where `axes` is the result of axes(Y)."""
        raise TypeError(f"{type(self).__name__} must define place()")

    def norm(self) -> float:
        """Return an upper bound on the spectral norm ‖B‖₂, at most 1 % too large."""
        return eigen.norm(self.product, self.n)

    def product(self, V: Array) -> Array:
        """Return B V as an array of the library and the device of V; the product is computed on the device of B."""
        return cast_like(V, self.times(cast_like(self.source, V)))


@tagged("gram.Inner")
class Inner(Gram):
    """The matrix B = −½ C D2 C, computed from squared distances D2 (n, n) and stored (Torgerson 1952)."""

    definite = False

    def __init__(self, D2: Any):
        self.n = D2.shape[0]
        self.B = D2 * -0.5
        self._means = double_center(self.B)
        self._mean = float(array_namespace(self._means).mean(self._means))

    @property
    def source(self) -> Matrix:
        return self.B

    def times(self, V: Array) -> Array:
        return self.B @ V

    def norm2(self) -> float:
        return sum_squares(self.B)

    def top(self, d: int) -> tuple[Array, Array]:
        return leading_eigenvectors(self.B, d)

    def rows(self, which: Array) -> Array:
        return self.B[which]

    def axes(self, Y: Array) -> Array:
        return divide_columns(Y, column_squares(Y))

    def place(self, new: Matrix, axes: Array) -> Array:
        """Return the coordinates of new points from their squared distances (m, n) to all points (Gower 1968)."""
        K = -0.5 * new
        return multiply_rows(K - K.mean(axis=1, keepdims=True) - self._means + self._mean, axes)

    def squared(self, which: Array) -> Array:
        """Return the squared distances B_ii + B_jj − 2 B_ij, (m, n), from the points `which` (m,) to all points."""
        diagonal = self.B.diagonal()
        return to_numpy(at_least(diagonal[which, None] + diagonal - 2 * self.B[which], 0.0))


@tagged("gram.Factor")
class Factor(Gram):
    """The matrix B = C F Fᵀ C of points with coordinates F (n, r), dense or CSR.

    A product with a vector costs O(n r), and a large B is not formed.
    """

    definite = True

    def __init__(self, F: Matrix):
        self.n = F.shape[0]
        self.mean = np.asarray(F.mean(axis=0)).ravel() if is_numpy(F) else array_namespace(F).mean(F, axis=0)
        # The mean is subtracted from products, without a second copy of F. If the mean dominates F, too many digits
        # would cancel, and the mean is subtracted from F itself.
        keeps_mean = sparse.issparse(F) or self.n * float(self.mean @ self.mean) <= MEAN * sum_squares(F)
        self.F = F if keeps_mean else F - self.mean
        self._shift = self.mean if keeps_mean else None  # the mean, if F still contains it

    @property
    def source(self) -> Matrix:
        return self.F

    def project(self, V: Array) -> Array:
        """Return the product C F V of the centred coordinates with V (r,) or (r, d)."""
        result = self.F @ V
        return result if self._shift is None else result - self._shift @ V

    def project_back(self, V: Array) -> Array:
        """Return the product Fᵀ C V of the transposed centred coordinates with V (n,) or (n, d)."""
        result = self.F.T @ V
        if self._shift is None:
            return result
        sums = array_like(V, np.ones(self.n)) @ V
        return result - (self._shift[:, None] * sums if V.ndim == 2 else self._shift * sums)

    def axes(self, Y: Array) -> Array:
        return divide_columns(self.project_back(Y), column_squares(Y))

    def place(self, new: Matrix, axes: Array) -> Array:
        """Return the coordinates (m, d) of new points from their data coordinates (m, r)."""
        return multiply_rows(new, axes) - multiply_vector(self.mean, axes)

    def times(self, V: Array) -> Array:
        return self.project(self.project_back(V))

    def norm2(self) -> float:
        """Return ‖B‖²_F = ‖Fᵀ C F‖²_F, computed from the smaller of the matrices B and Fᵀ C F."""
        wide = self.F.shape[1] > self.n
        size = min(self.F.shape)
        if not wide and size <= SIDE:
            return float((self.scatter**2).sum())
        product = self.times if wide else self._scatter_times
        total = 0.0
        step = max(1, FIXED_ENTRIES // size)
        for start in range(0, size, step):
            unit = np.zeros((size, min(step, size - start)))
            unit[np.arange(start, start + unit.shape[1]), np.arange(unit.shape[1])] = 1.0
            total += float((product(array_like(self.F, unit)) ** 2).sum())
        return total

    def trace(self) -> float:
        """Return the trace of B, the sum of squared distances between the rows of F and their mean."""
        if self.F.shape[1] <= min(self.n, SIDE):
            return float(self.scatter.trace())
        squares = self.F.multiply(self.F).sum() if sparse.issparse(self.F) else sum_squares(self.F)
        return float(squares) - (0.0 if self._shift is None else self.n * float(self._shift @ self._shift))

    def top(self, d: int) -> tuple[Array, Array]:
        """Return the d largest eigenvalues, descending, and unit eigenvectors (n, d).

        If an eigenvalue is 0 or negative, its eigenvector is replaced by 0.
        """
        values, V = self.directions(d)
        return values, divide_columns(self.project(V), np.sqrt(np.maximum(values, 0.0)))

    def directions(self, d: int) -> tuple[Array, Any]:
        """Return the d largest eigenvalues of Fᵀ C F, descending, and unit eigenvectors (r, d)."""
        n, r = self.F.shape
        if r <= min(n, SIDE) or (r <= n and not sparse.issparse(self.F) and 5 * d > r):
            return leading_eigenvectors(self.scatter, d)
        if n <= SIDE:
            values, U = leading_eigenvectors(self.times(array_like(self.F, np.eye(n))), d)
            V = self.project_back(U)
            return values, divide_columns(V, np.linalg.norm(to_numpy(V), axis=0))
        if is_numpy(self.F):
            return eigen.top_of(self._scatter_times, r, d, lambda: self.scatter)
        from .lanczos import top_of

        return top_of(self._scatter_times, r, d, self.F, lambda: self.scatter)

    def _scatter_times(self, V: Any) -> Any:
        """Return the product of the scatter matrix Fᵀ C F with V (r,) or (r, d)."""
        return self.project_back(self.project(V))

    @cached_property
    def scatter(self) -> Any:
        """The scatter matrix Fᵀ C F (r, r) of the coordinates F."""
        S = dense(self.F.T @ self.F)
        return S if self._shift is None else S - self.n * (self._shift[:, None] * self._shift)

    def rows(self, which: Array) -> Array:
        own = dense(self.F[which])
        return self.project((own if self._shift is None else own - self._shift).T).T


def divide_columns(V: Any, lengths: Array) -> Any:
    """Return V (n, d) with each column divided by its entry of `lengths` (d,); a column whose entry is 0 becomes 0."""
    return V / array_like(V, np.where(lengths > 0, lengths, np.inf))


def leading_eigenvectors(A: Any, d: int) -> tuple[Array, Any]:
    """Return the d largest eigenvalues, descending, of a dense symmetric A, and unit eigenvectors (n, d)."""
    if is_numpy(A):
        return eigen.top(A, d)
    from .lanczos import top

    return top(A, d)
