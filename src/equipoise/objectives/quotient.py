"""The loss of LLE and Laplacian eigenmaps, written as attraction and repulsion.

It is a quadratic form of a map whose spread is fixed.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import connected_components

from .._types import Array, Matrix
from ..arrays.csr import times_map
from ..arrays.namespace import array_like, array_namespace, to_float64, to_numpy
from ..engines import Engine
from ..linalg import eigen, lanczos
from ..linalg.pca import fix_signs
from .base import Balance
from .closed_form import ClosedForm


class TraceQuotient(ClosedForm):
    """The loss E = tr(S⁻¹ UᵀAU), S = UᵀU, for maps U ⟂ t and a sparse, positive semidefinite A with A t = 0.

        ∇E = 2 (A U − U S⁻¹ UᵀAU) S⁻¹                                      docs/math.md, "Trace quotients"

    E depends only on the span of U. The first term of ∇E gives the attraction, since A comes from the data. The second
    gives the repulsion: it keeps the spread of U fixed, and for t = 1 and a centred U, u_i = (1/n) Σ_j (u_i − u_j), so
    every point repels every other. The minimum is at the eigenvectors of the smallest eigenvalues of A other than t.
    """

    def __init__(self, A: Matrix, root: Array, affinities: Matrix, device: str | None = None):
        """Take A, t (n,) as `root`, and the affinities that define A; each axis of U has the squared norm ‖t‖².

        If `device` is "cuda", the eigenvectors are computed there. Eigenvalues that are not much smaller than the
        largest, as those of a Laplacian, need few products by A.
        """
        self.A, self.root, self.device = A, root, device
        self.affinities = affinities
        self._spread = float(root @ root)
        self._null = root / np.sqrt(self._spread)
        self.components = connected_components(A, directed=False)[1]

    @cached_property
    def norm(self) -> float:
        """‖A‖₂."""
        return eigen.norm(lambda v: self.A @ v, len(self.root))

    @property
    def mass(self) -> float:  # type: ignore[override]
        """The scale of gradients, 2 ‖A‖₂ / ‖t‖: the largest attraction along one axis u of the map, with ‖u‖ = ‖t‖."""
        return 2 * self.norm / np.sqrt(self._spread)

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        U = self._centered(Y)
        xp, AU = array_namespace(U), times_map(self.A, U)
        inverse = xp.linalg.inv(U.T @ U)
        quotient = inverse @ (U.T @ AU)
        # At UᵀU = S the Hessian along the surface is 2 (A − λ) S⁻¹, and λ ≥ 0.
        curvature = 2 * self.norm * float(xp.linalg.matrix_norm(inverse, ord=2))
        attraction, repulsion = -2 * exaggeration * AU @ inverse, 2 * U @ (quotient @ inverse)
        return Balance(attraction, repulsion, float(xp.linalg.trace(quotient)), U.shape[0] * curvature / 4)

    def loss(self, U: Array) -> float:
        U = self._centered(U)
        linalg = array_namespace(U).linalg
        return float(linalg.trace(linalg.solve(U.T @ U, U.T @ times_map(self.A, U))))

    def solve(self, d: int) -> tuple[Array, Array]:
        """Return the d smallest eigenvalues of A other than that of t, and the map U (n, d) of their eigenvectors.

        If the graph of A has c components, the first c − 1 axes have the eigenvalue 0 and separate the components.
        """
        null = self._null_space(d + 1)
        separating = null[:, 1 : d + 1]
        values, V = np.zeros(separating.shape[1]), separating
        if V.shape[1] < d:
            more, W = self._bottom(null, d - V.shape[1])
            values, V = np.concatenate([values, more]), np.column_stack([V, W])
        return values, V * np.sqrt(self._spread)

    def _bottom(self, null: Array, d: int) -> tuple[Array, Array]:
        """Return the d smallest eigenvalues of A and their eigenvectors (n, d), without those in the span of `null`."""
        if self.device == "cuda" and len(self.root) > eigen.SMALL:
            try:
                return lanczos.bottom(self.A, null, d, eigen.LOOSE, self.device)
            except lanczos.NotConverged:  # then with factors of A, on the CPU
                pass
        return eigen.bottom(self.A, null, d)

    def minimum_loss(self, values: Array) -> float:
        return float(values.sum())

    def start(self, d: int, rng: np.random.RandomState) -> Array:
        """Return a map (n, d) of normal random numbers; the geometry scales it to the spread ‖t‖² of each axis."""
        return rng.standard_normal((len(self.root), d))

    def aligned(self, U: Array) -> tuple[Array, Array]:
        """Return the Ritz values of A in the span of U, ascending, and U rotated to the Ritz vectors."""
        values, V = array_namespace(U).linalg.eigh(U.T @ times_map(self.A, U) / self._spread)
        return to_numpy(values), U @ V

    def _centered(self, U: Array) -> Array:
        """Return the component of U orthogonal to t, in float64."""
        U = to_float64(U)
        null = array_like(U, self._null)
        return U - null[:, None] * (null @ U)

    def _null_space(self, maximum: int) -> Array:
        """Return up to `maximum` orthonormal null vectors of A, as columns.

        Column 0 is t/‖t‖. Column i ≥ 1 separates the i-th largest connected component from all smaller components,
        and is 0 on all larger components.
        """
        sizes = np.bincount(self.components)
        if len(sizes) == 1:
            return self._null[:, None]
        order = np.argsort(-sizes, kind="stable")
        parts = np.zeros((len(self.root), min(len(sizes), maximum)))
        parts[:, 0] = self.root
        for column, part in enumerate(order[: parts.shape[1] - 1], 1):
            members = self.components == part
            parts[members, column] = self.root[members]
        return fix_signs(np.linalg.qr(parts)[0])
