"""The Gromov-Wasserstein distance between two finite metric spaces, without a given correspondence of their points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from .._types import Array
from ..arrays.namespace import is_integer
from ..linalg.pca import on_one_blas_thread
from .simple import distance_matrix_of
from .transport import Transport, monotone_coupling, quantile_pieces, squared_wasserstein, transport

ROUNDING = 1e-14  # of the lower bounds, relative to the largest distance; chosen
CONVERGED = 1e-10  # relative decrease of the cost at which the descent stops; chosen


@dataclass(frozen=True)
class GromovWasserstein:
    """The distance of two spaces by the best coupling that was found, with bounds that hold for every coupling.

    float(result) is the distance. The minimum over all couplings lies between `lower_bound` and `distance`.

    Attributes
    ----------
    distance : float
        ½ (Σ |A_ik − B_jl|² T_ij T_kl)^½ for the coupling T, eq. (E11).
    coupling : ndarray of shape (n, m)
        How much of each point of the first space corresponds to each point of the second; row sums 1/n, column sums
        1/m.
    eccentricity_bound, distances_bound, local_bound : float
        The first, second and third lower bound of Mémoli 2011: from the distributions of the points' mean squared
        distances, of all distances, and of the distances from each point.
    """

    distance: float
    coupling: Array = field(repr=False)
    eccentricity_bound: float
    distances_bound: float
    local_bound: float

    @property
    def lower_bound(self) -> float:
        """The largest of the three lower bounds."""
        return max(self.eccentricity_bound, self.distances_bound, self.local_bound)

    @property
    def assignment(self) -> Array:
        """For each point of the first space, the point of the second to which most of it corresponds, (n,)."""
        return self.coupling.argmax(axis=1)

    def __float__(self) -> float:
        return self.distance

    def __str__(self) -> str:
        n, m = self.coupling.shape
        return (
            f"spaces of {n} and {m} points: Gromov-Wasserstein distance at most {self.distance:.6g}, at least"
            f" {self.lower_bound:.6g}"
        )


def gromov_wasserstein(A: Any, B: Any, *, max_iter: int = 200) -> GromovWasserstein:
    """Return the Gromov-Wasserstein distance of two spaces, and the coupling of their points that attains it.

    The distance is the minimum of ½ (Σ |d_A(i, k) − d_B(j, l)|² T_ij T_kl)^½ over the couplings T, matrices with row
    sums 1/n and column sums 1/m (Mémoli 2011); 0 if the spaces are isometric. Conditional gradients with exact line
    search find a local minimum from each of three starts, the couplings of the first and third lower bound and the
    product coupling, and the lowest is returned. The result is deterministic. Each step takes O(n² m + n m²) time.

    Parameters
    ----------
    A, B : MetricSpace or array-like of shape (n, n) and (m, m)
        Two spaces, or two matrices of distances. All points of a space have the same weight.
    max_iter : int, default=200
        Maximum number of steps from each start.

    Returns
    -------
    GromovWasserstein

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import spaces
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> float(spaces.gromov_wasserstein(spaces.Euclidean(X), spaces.Euclidean(X[::-1])))
    0.0
    """
    if not (is_integer(max_iter) and max_iter >= 1):
        raise ValueError(f"max_iter must be an integer >= 1, got {max_iter!r}")
    return _solve(distance_matrix_of(A, "A"), distance_matrix_of(B, "B"), max_iter)


@on_one_blas_thread
def _solve(A: Array, B: Array, max_iter: int) -> GromovWasserstein:
    unit = max(float(A.max()), float(B.max())) or 1.0
    A, B = A / unit, B / unit
    eccentricities = [np.sqrt(np.square(D).mean(axis=1)) for D in (A, B)]
    local = _local_transport(A, B)
    n, m = len(A), len(B)
    starts = (local.coupling, monotone_coupling(*eccentricities), np.full((n, m), 1 / (n * m)))
    cost, T = min((_descend(A, B, T, max_iter) for T in starts), key=lambda found: found[0])
    bounds = (squared_wasserstein(*eccentricities), squared_wasserstein(A.ravel(), B.ravel()), local.lower_bound)
    certain = [unit / 2 * max(0.0, float(np.sqrt(max(0.0, bound))) - ROUNDING) for bound in bounds]
    return GromovWasserstein(unit / 2 * float(np.sqrt(cost)), T, *certain)


def _local_transport(A: Array, B: Array) -> Transport:
    """Return the transport for the cost W₂² of the distances from i and the distances from j (Mémoli's third bound)."""
    i, j, lengths = quantile_pieces(len(A), len(B))
    weights = np.sqrt(lengths)
    rows, columns = np.sort(A, axis=1)[:, i] * weights, np.sort(B, axis=1)[:, j] * weights
    return transport(cdist(rows, columns, "sqeuclidean"))


def _descend(A: Array, B: Array, T: Array, max_iter: int) -> tuple[float, Array]:
    """Return a local minimum of Σ |A_ik − B_jl|² T_ij T_kl, and the coupling, by conditional gradients from T.

    With marginals fixed the cost is a constant − 2 ⟨T, A T B⟩. A step goes to the point of lowest cost between T and
    the coupling that minimises the linearised cost.
    """
    constant = float(np.square(A).mean() + np.square(B).mean())
    ATB = A @ T @ B
    cost = constant - 2 * float((T * ATB).sum())
    for _ in range(max_iter):
        step = transport(-ATB).coupling - T
        change = A @ step @ B
        slope, curvature = -4 * float((step * ATB).sum()), -2 * float((step * change).sum())
        if slope >= 0:
            break
        length = min(1.0, -slope / (2 * curvature)) if curvature > 0 else 1.0
        T, ATB = T + length * step, ATB + length * change
        before, cost = cost, constant - 2 * float((T * ATB).sum())
        if before - cost <= CONVERGED * constant:
            break
    return _exact_cost(A, B, T, cost), np.maximum(T, 0.0)


def _exact_cost(A: Array, B: Array, T: Array, cost: float) -> float:
    """Return the cost of T; of an assignment without the cancellation that hides a cost near 0."""
    columns = T.argmax(axis=1)
    if len(A) == len(B) and len(np.unique(columns)) == len(A) and np.abs(T.max(axis=1) * len(A) - 1).max() < 1e-9:
        return float(np.square(A - B[np.ix_(columns, columns)]).mean())
    return max(0.0, cost)
