"""Leading eigenvectors of symmetric matrices and operators, to the last digits, with a bound on the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu

from .._types import Array, Matrix

SMALL = 300  # rows up to which all of a matrix is decomposed: Lanczos gains nothing there; chosen
DENSE = 6000  # rows up to which a dense decomposition stands in where Lanczos does not converge: 288 MB; chosen
RESTARTS = 300  # of Lanczos, at most, each some 20 products: a bound on the time; chosen
# Added to the diagonal before a singular matrix is inverted, as a part of its largest entry: above the rounding of its
# factors, and far below the eigenvalues that are asked for. It moves no eigenvector.
SHIFT = 1e-11
# Points at one number of steps from a first one, at most, for a factorisation: they part the graph in two, and its
# factors hold all pairs of such a set. 5000 are 25 million numbers, and some ten seconds. Beyond, as in large graphs of
# data of high dimension, Lanczos works on A itself: it needs gaps between the eigenvalues, not memory.
WIDEST = 5000
LOOSE = 1e-7  # residual of those eigenvectors, as a part of the norm of A

Product = Callable[[Array], Array]  # A v for v (n,)


def top(A: Array, d: int) -> tuple[Array, Array]:
    """Return the d largest eigenvalues, falling, of a dense symmetric A (n, n), and their unit eigenvectors (n, d)."""
    n = len(A)
    if n <= SMALL or 5 * d > n:
        values, V = linalg.eigh(A, subset_by_index=[n - d, n - 1])
        return values[::-1], signed(V[:, ::-1])
    return top_of(lambda v: A @ v, n, d, lambda: A)


def top_of(multiply: Product, n: int, d: int, dense: Callable[[], Array]) -> tuple[Array, Array]:
    """Return the same for an operator; `dense` makes its matrix, for the case that Lanczos does not converge."""
    operator = LinearOperator((n, n), matvec=lambda v: multiply(np.asarray(v).ravel()), dtype=np.float64)
    try:
        values, V = eigsh(operator, d, which="LA", v0=_start(n), maxiter=RESTARTS)
    except ArpackError as error:
        if n > DENSE:
            raise _stuck(n, error) from None
        values, V = linalg.eigh(dense(), subset_by_index=[n - d, n - 1])
    order = np.argsort(-values, kind="stable")
    return values[order], signed(V[:, order])


def bottom(A: Matrix, null: Array, d: int) -> tuple[Array, Array]:
    """Return the d smallest eigenvalues of a sparse A ≥ 0, rising, and their unit eigenvectors (n, d), leaving out
    `null` (n, c), orthonormal and with A null = 0.

    Lanczos on the inverse of A + εI, from a factorisation: small eigenvalues that lie close together are far apart
    there. The null vectors are projected out of every product. Where the factors would be too large, on A itself.
    """
    n = A.shape[0]
    shift = SHIFT * float(abs(A).max())

    def dense() -> Array:
        full = A.toarray()
        full += float(abs(A).sum(axis=1).max()) * (null @ null.T)  # ‖A‖ ≤ this: from 0 to the far end
        return full

    if n <= SMALL or 5 * d > n:
        values, V = linalg.eigh(dense(), subset_by_index=[0, d - 1])
        return values, signed(V)
    if _widest_level(A) > WIDEST:
        return _bottom_without_factors(A, null, d)
    solve = _factor(A + shift * sparse.identity(n, format="csr"))

    def multiply(v: Array) -> Array:
        v = solve(v - null @ (null.T @ v))
        return v - null @ (null.T @ v)

    operator = LinearOperator((n, n), matvec=lambda v: multiply(np.asarray(v).ravel()), dtype=np.float64)
    try:
        inverse, V = eigsh(operator, d, which="LA", v0=_start(n), maxiter=RESTARTS)
        order = np.argsort(-inverse, kind="stable")
        V = V[:, order]
        return np.einsum("ij,ij->j", V, A @ V), signed(V)
    except ArpackError as error:
        if n > DENSE:
            raise _stuck(n, error) from None
    values, V = linalg.eigh(dense(), subset_by_index=[0, d - 1])
    return values, signed(V)


def _bottom_without_factors(A: Matrix, null: Array, d: int) -> tuple[Array, Array]:
    """The same, as the largest eigenvalues of ‖A‖ I − A, which takes products alone."""
    n = A.shape[0]
    largest = norm(lambda v: A @ v, n)

    def multiply(v: Array) -> Array:
        v = v - null @ (null.T @ v)
        v = largest * v - A @ v
        return v - null @ (null.T @ v)

    operator = LinearOperator((n, n), matvec=lambda v: multiply(np.asarray(v).ravel()), dtype=np.float64)
    try:
        values, V = eigsh(operator, d, which="LA", v0=_start(n), tol=LOOSE, maxiter=RESTARTS)
    except ArpackError as error:
        raise _stuck(n, error) from None
    order = np.argsort(-values, kind="stable")
    return largest - values[order], signed(V[:, order])


def _widest_level(A: Matrix) -> int:
    """Return the largest number of points that are equally many steps from the first one in the graph of A."""
    steps = csgraph.dijkstra(abs(A), unweighted=True, indices=0)
    return int(np.bincount(steps[np.isfinite(steps)].astype(np.int64)).max())


def norm(multiply: Product, n: int) -> float:
    """Return the largest |eigenvalue| of an operator on R^n, to one percent, from above but for the last digits."""
    if n < 3:
        return float(np.linalg.norm(np.column_stack([multiply(e) for e in np.eye(n)]), 2))
    if not multiply(_start(n)).any():
        return 0.0
    operator = LinearOperator((n, n), matvec=lambda v: multiply(np.asarray(v).ravel()), dtype=np.float64)
    try:
        values = eigsh(operator, 1, which="LM", v0=_start(n), tol=5e-3, maxiter=RESTARTS, return_eigenvectors=False)
    except ArpackError as error:
        raise _stuck(n, error) from None
    return 1.01 * float(np.abs(values).max())  # a Ritz value is never above the largest


def signed(V: Any) -> Any:
    """Return V, an array or a tensor, with the largest entry of every column positive: eigenvectors have no sign."""
    largest = V[abs(V).argmax(axis=0), list(range(V.shape[1]))]
    return V * (1 - 2 * (largest < 0))


def _factor(A: Matrix) -> Product:
    """Return the solution of A x = b as a function, from a factorisation of a positive definite sparse A."""
    # An ordering for symmetric patterns and pivots from the diagonal, which a definite matrix allows: less fill.
    options = {"SymmetricMode": True}
    columns = sparse.csc_matrix((A.data, A.indices, A.indptr), shape=A.shape)  # A is its own transpose
    factors: Any = splu(columns, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    return factors.solve


def _start(n: int) -> Array:
    return np.random.RandomState(0).standard_normal(n)


def _stuck(n: int, error: Exception) -> RuntimeError:
    return RuntimeError(
        f"the eigenvectors of {n} points did not converge in {RESTARTS} restarts ({error}); their eigenvalues may be"
        " all alike: use other neighbours, fewer n_components, or a sample of the data"
    )
