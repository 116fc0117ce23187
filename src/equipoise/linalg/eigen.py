"""Find eigenvectors of the largest or smallest eigenvalues of symmetric matrices and operators, with limited work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from .._plural import plural
from .._types import Array, Matrix
from ..arrays.memory_limits import available_memory, require_memory
from .definite import WIDEST, factor, widest_level
from .pca import fix_signs, top_eigenvectors

SMALL = 300  # rows up to which the dense matrix is decomposed, where Lanczos is no faster; chosen
DENSE = 6000  # rows up to which a dense decomposition replaces a Lanczos run that does not converge: 288 MB; chosen
RESTARTS = 300  # maximum number of Lanczos restarts, about 20 products each: a bound on the time; chosen
# Added to the diagonal of a singular matrix before it is factorised, relative to its largest entry: above the rounding
# error of the factors, far below the requested eigenvalues. It does not change the eigenvectors.
SHIFT = 1e-11
# Rows up to which A is factorised as a dense matrix if Lanczos on A itself does not converge and memory suffices. One
# core takes 1.3 s for 5,000 rows, and time grows as n³.
DENSE_FACTOR = 40_000
LOOSE = 1e-7  # tolerance of the residuals of Lanczos on A itself, relative to ‖A‖

Product = Callable[[Array], Array]  # A v for v (n,)


def top(A: Array, d: int) -> tuple[Array, Array]:
    """Return the d largest eigenvalues, descending, of a dense symmetric A (n, n), and unit eigenvectors (n, d)."""
    n = len(A)
    if n <= SMALL or 5 * d > n:
        return top_eigenvectors(A, d)
    return top_of(lambda v: A @ v, n, d, lambda: A)


def top_of(multiply: Product, n: int, d: int, dense: Callable[[], Array]) -> tuple[Array, Array]:
    """Return the d largest eigenvalues, descending, of a symmetric operator on R^n, and unit eigenvectors (n, d).

    `dense` returns the matrix of the operator, which is decomposed if Lanczos does not converge; if n exceeds `DENSE`,
    RuntimeError is raised instead.
    """
    try:
        return _lanczos(multiply, n, d)
    except ArpackError as error:
        if n > DENSE:
            raise _not_converged(n, error) from None
    return top_eigenvectors(dense(), d)


def bottom(A: Matrix, null: Array, d: int) -> tuple[Array, Array]:
    """Return the d smallest eigenvalues of a sparse, positive semidefinite A, ascending, and unit eigenvectors (n, d).

    `null` (n, c) has orthonormal columns, and A @ null = 0; eigenvectors in the span of these columns are excluded.

    A matrix with at most `SMALL` rows, or with fewer than 5 d rows, is decomposed as a dense matrix. Otherwise Lanczos
    runs on (A + εI)⁻¹, whose eigenvalues are well separated, with a sparse factorisation of A + εI, where ε is `SHIFT`
    times the largest |A_ij|. If the sparse factors would be too large, Lanczos runs on A itself, to the tolerance
    `LOOSE`; if this run does not converge, Lanczos runs on (A + εI)⁻¹ with a dense factorisation. RuntimeError is
    raised if Lanczos does not converge and the matrix is too large to be treated as dense.
    """
    n = A.shape[0]
    if n <= SMALL or 5 * d > n:
        return _bottom_of_dense(A, null, d)
    factorize = factor
    if widest_level(A) > WIDEST:
        try:
            return _bottom_without_factors(A, null, d)
        except RuntimeError:
            if n > DENSE_FACTOR or A.dtype.itemsize * float(n) ** 2 > available_memory():
                raise
        factorize = _factor_dense
    solve = factorize(A + SHIFT * float(abs(A).max()) * sparse.identity(n, format="csr"))

    def multiply(v: Array) -> Array:
        v = solve(v - null @ (null.T @ v))
        return v - null @ (null.T @ v)

    try:
        _, V = _lanczos(multiply, n, d)
    except ArpackError as error:
        if n > DENSE:
            raise _not_converged(n, error) from None
        return _bottom_of_dense(A, null, d)
    return np.einsum("ij,ij->j", V, A @ V), V


def _bottom_of_dense(A: Matrix, null: Array, d: int) -> tuple[Array, Array]:
    """Return the result of `bottom`, computed by a decomposition of the dense matrix."""
    if (n := A.shape[0]) > SMALL:
        what = f"decomposing a dense matrix with {n:,} rows"
        require_memory(3 * 8.0 * n**2, what, available_memory(), "use fewer rows or components")
    full = A.toarray()
    full += float(abs(A).sum(axis=1).max()) * (null @ null.T)  # at least ‖A‖: the eigenvalues 0 become the largest
    values, V = linalg.eigh(full, subset_by_index=[0, d - 1])
    return values, fix_signs(V)


def _bottom_without_factors(A: Matrix, null: Array, d: int) -> tuple[Array, Array]:
    """Return the result of `bottom`, computed from the largest eigenvalues of ‖A‖ I − A with products by A only."""
    n = A.shape[0]
    largest = norm(lambda v: A @ v, n)

    def multiply(v: Array) -> Array:
        v = v - null @ (null.T @ v)
        v = largest * v - A @ v
        return v - null @ (null.T @ v)

    try:
        values, V = _lanczos(multiply, n, d, LOOSE)
    except ArpackError as error:
        raise _not_converged(n, error) from None
    return largest - values, V


def _lanczos(multiply: Product, n: int, d: int, tol: float = 0.0) -> tuple[Array, Array]:
    """Return the d largest eigenvalues, descending, of a symmetric operator on R^n, and unit eigenvectors (n, d).

    tol=0 means machine precision. ArpackError is raised if the eigenvectors do not converge.
    """
    values, V = eigsh(_operator(multiply, n), d, which="LA", v0=_start(n), tol=tol, maxiter=RESTARTS)
    order = np.argsort(-values, kind="stable")
    return values[order], fix_signs(V[:, order])


def _operator(multiply: Product, n: int) -> LinearOperator:
    """Return v ↦ multiply(v) on R^n as a SciPy operator; `multiply` always gets v as (n,), not as (n, 1)."""
    return LinearOperator((n, n), matvec=lambda v: multiply(np.asarray(v).ravel()), dtype=np.float64)


def norm(multiply: Product, n: int) -> float:
    """Return an upper bound on the largest |eigenvalue| of a symmetric operator on R^n, at most 1 % too large."""
    if n < 3:
        return float(np.linalg.norm(np.column_stack([multiply(e) for e in np.eye(n)]), 2))
    if not multiply(_start(n)).any():
        return 0.0
    operator, options = _operator(multiply, n), {"tol": 5e-3, "maxiter": RESTARTS, "return_eigenvectors": False}
    try:
        values = eigsh(operator, 1, which="LM", v0=_start(n), **options)
    except ArpackError as error:
        raise _not_converged(n, error) from None
    return 1.01 * float(np.abs(values).max())  # a Ritz value never exceeds the largest eigenvalue


def _factor_dense(A: Matrix) -> Product:
    """Return the function b ↦ A⁻¹ b, computed by a dense Cholesky factorisation of a positive definite sparse A."""
    # In place: 8 n² bytes. The time depends on n alone; that of sparse factors also depends on their number of entries.
    factor = linalg.cholesky(A.toarray(order="F"), lower=True, overwrite_a=True, check_finite=False)
    return lambda b: linalg.cho_solve((factor, True), b, check_finite=False)


def _start(n: int) -> Array:
    """Return the fixed random vector (n,) from which Lanczos starts."""
    return np.random.RandomState(0).standard_normal(n)


def _not_converged(n: int, error: Exception) -> RuntimeError:
    """Return the error for a Lanczos run that did not converge."""
    return RuntimeError(
        f"the eigenvectors of a matrix with {n:,} rows did not converge in {plural(RESTARTS, 'restart')} ({error}); the"
        ' eigenvalues may be nearly equal: use solver="flow" (classical methods), another n_neighbors, fewer'
        " n_components or a sample of the data"
    )
