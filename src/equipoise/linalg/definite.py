"""Solve A x = b for sparse, positive definite A: by sparse factors where they are small, otherwise by iterations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from .._types import Array, Matrix

# A is factorised if at most this many points are at the same graph distance from the first point. Such a level of
# points separates the graph, and the factors are dense on it: 5000 points mean 25 million entries and about 10 s. For
# wider graphs, from high-dimensional data, Lanczos runs on A itself: it needs no factors, but gaps between eigenvalues.
WIDEST = 5000
TOLERANCE = 1e-10  # of the residual of the iterations, relative to b
MAX_STEPS = 5000  # of the iterations; chosen


def factor(A: Matrix) -> Callable[[Array], Array]:
    """Return the function b ↦ A⁻¹ b, for b (n,) or (n, r), by a sparse factorisation of a positive definite CSR A."""
    # A symmetric ordering and diagonal pivots, which are safe for a definite matrix, reduce fill.
    options = {"SymmetricMode": True}
    columns = sparse.csc_matrix((A.data, A.indices, A.indptr), shape=A.shape)  # A is symmetric
    factors: Any = splu(columns, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    return factors.solve


def widest_level(A: Matrix) -> int:
    """Return the number of points in the largest level of the graph of A.

    In each connected component, level s contains the points that are s steps from the first point of the component.
    """
    component = csgraph.connected_components(A, directed=False)[1]
    first = np.unique(component, return_index=True)[1]
    steps = csgraph.dijkstra(abs(A), unweighted=True, indices=first, min_only=True).astype(np.int64)
    return int(np.bincount(component * (steps.max() + 1) + steps).max())


def solver(A: Matrix) -> Callable[[Array], Array]:
    """Return the function B ↦ A⁻¹ B, for B (n, r) and a positive definite CSR matrix A (n, n).

    A is factorised if its graph is narrow (see `WIDEST`); otherwise each call runs `conjugate_gradients`.
    """
    if widest_level(A) <= WIDEST:
        return factor(A)
    return lambda B: conjugate_gradients(A, B)


def conjugate_gradients(A: Matrix, B: Array) -> Array:
    """Return A⁻¹ B by conjugate gradients, preconditioned by the diagonal of A, for all columns of B (n, r) at once."""
    inverse, limit = 1 / A.diagonal()[:, None], TOLERANCE * np.linalg.norm(B, axis=0)
    X, R = np.zeros_like(B), B.copy()
    Z = inverse * R
    direction, rz = Z.copy(), (R * Z).sum(axis=0)
    for _ in range(MAX_STEPS):
        if (np.linalg.norm(R, axis=0) <= limit).all():
            return X
        AD = A @ direction
        curvature = (direction * AD).sum(axis=0)
        step = rz / np.where(curvature > 0, curvature, np.inf)  # a column that is solved does not move
        X += step * direction
        R -= step * AD
        Z = inverse * R
        before, rz = rz, (R * Z).sum(axis=0)
        direction = Z + rz / np.where(before > 0, before, np.inf) * direction
    raise RuntimeError(
        f"the linear system with {A.shape[0]:,} rows was not solved in {MAX_STEPS} iterations; use more landmarks or a"
        " larger n_neighbors"
    )
