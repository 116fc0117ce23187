"""LLE and Laplacian eigenmaps as attraction and repulsion: the least of tr(YᵀMY) at a fixed spread of the map."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from .. import eigen
from .._types import Array, Matrix
from ..engines import Engine
from ..kernels import Kernel
from .base import Balance
from .gram import Linear


class TraceQuotient:
    """E = tr(S⁻¹ UᵀAU), S = UᵀU, for a sparse A ≥ 0 with A t = 0, over U ⟂ t: the loss sees the span of U alone.

        ∇E = 2 (A U − U S⁻¹ UᵀAU) S⁻¹                                      docs/math.md, "Trace quotients"

    The first term attracts: A holds the wishes of the data. The second is the force of the constraint, and repels:
    for t = 1 and a centred U, U_i = (1/n) Σ_j (u_i − u_j), every point pushes every other away.
    Least at the eigenvectors of the smallest eigenvalues of A beyond that of t.
    """

    kernel: Kernel = Linear()

    def __init__(self, A: Matrix, root: Array, affinities: Matrix):
        """`root` (n,) is t, with ‖t‖² the spread of each axis of U; `affinities` is what A was made from."""
        self.A, self.root = A, root
        self.affinities = affinities
        self._null = root / np.linalg.norm(root)
        self._spread = float(root @ root)
        self.norm = eigen.norm(lambda v: A @ v, A.shape[0])
        self.mass = 2 * self.norm / np.sqrt(self._spread)  # ‖∇E‖ of one axis that is not an eigenvector at all

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        U = np.asarray(Y, dtype=np.float64)
        U = U - np.outer(self._null, self._null @ U)
        inverse = np.linalg.inv(U.T @ U)
        AU = self.A @ U
        quotient = inverse @ (U.T @ AU)
        attraction, repulsion = -2 * exaggeration * AU @ inverse, 2 * U @ (quotient @ inverse)
        curvature = 2 * self.norm * float(np.linalg.norm(inverse, 2))  # the Hessian is 2 (A − λ) S⁻¹ there
        return Balance(attraction, repulsion, float(np.trace(quotient)), len(U) * curvature / 4)

    def solve(self, d: int) -> tuple[Array, Array]:
        """Return the d smallest eigenvalues of A beyond that of t, and U."""
        values, V = eigen.bottom(self.A, self.root, d)
        return values, V * np.sqrt(self._spread)

    def permuted(self, order: Array) -> TraceQuotient:
        raise TypeError("a trace quotient needs no order of the points")

    def freeze(self, Y: Array, engine: Engine) -> Callable[[Array, Matrix], Array]:
        raise TypeError("new points are placed in closed form")

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        """With p the affinity of the pair, and Z standing for n / λ, λ the quotient along the pair."""
        return 2 * p * r, 2 / Z * r


def normalized_laplacian(W: Matrix) -> tuple[Matrix, Array]:
    """Return I − D^(−1/2) W D^(−1/2), CSR, and the roots √D_ii of the row sums of symmetric weights W (n, n)."""
    root = np.sqrt(np.asarray(W.sum(axis=1)).ravel())
    scale = sparse.diags(1 / root)
    return (sparse.identity(W.shape[0], format="csr") - scale @ W @ scale).tocsr(), root
