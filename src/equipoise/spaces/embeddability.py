"""Can a metric space be embedded in ℝᵏ, and how well can any map represent it? (docs/math.md, section 18)"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from .._plural import plural
from .._types import Array
from ..arrays.memory_limits import available_memory, require_memory
from ..arrays.namespace import is_integer, require
from ..linalg.pca import on_one_blas_thread
from .base import MetricSpace
from .distortion_bounds import limited_distortion, unlimited_distortion
from .simple import distance_matrix_of
from .stress_bounds import EPS, centered_gram, lower_bounds

MAX_POINTS = 4000  # all eigenvectors of a matrix of this size take about half a minute on one core; chosen
ROUNDING = 1e-12  # relative error of distances in float64, with the rounding of their eigenvalues; chosen
SINGLE = 1e-6  # the same in float32; chosen


@dataclass(frozen=True)
class Embeddability:
    """How well a finite metric space fits into ℝᵈ, whatever the map; bool(result) is True if some ℝᵏ fits exactly.

    Every bound is a theorem about all maps, not the value of one map; the minimum may be larger than the bound.

    Attributes
    ----------
    n : int
        Number of points.
    eigenvalues : ndarray of shape (n,)
        Eigenvalues of −½ C D² C, descending, D² being the squared distances and C = I − 11ᵀ/n.
    rounding : float
        Size up to which an eigenvalue may differ from 0 by the errors of the distances.
    min_dimension : int or None
        The smallest k for which ℝᵏ contains the space, up to rounding; None if no ℝᵏ does.
    dimensions : ndarray of int, shape (m,)
        The numbers of dimensions 1, …, max_components of the bounds below.
    stress : ndarray of shape (m,)
        Lower bounds on Σ_{i<j} (d_Y − D)² of every map in that many dimensions.
    normalised_stress : ndarray of shape (m,)
        √(stress / Σ_{i<j} D²); also bounds the stress of a map multiplied by the best factor.
    distortion : ndarray of shape (m,)
        Lower bounds on the largest d_Y/D times the largest D/d_Y.
    any_stress, any_normalised_stress, any_distortion : float
        The same for maps in any number of dimensions: 0, 0 and 1 if the space embeds isometrically.
    """

    n: int
    eigenvalues: Array = field(repr=False)
    rounding: float
    min_dimension: int | None
    dimensions: Array = field(repr=False)
    stress: Array
    normalised_stress: Array
    distortion: Array
    any_stress: float
    any_normalised_stress: float
    any_distortion: float

    def __bool__(self) -> bool:
        return self.min_dimension is not None

    @property
    def most_negative(self) -> float:
        """The smallest eigenvalue."""
        return float(self.eigenvalues[-1])

    def __str__(self) -> str:
        largest, lowest = float(self.eigenvalues[0]), self.most_negative
        points = plural(self.n, "point")
        if self.min_dimension is not None:
            fewest = plural(self.min_dimension, "dimension")
            first = f"{points}: embeds isometrically in {fewest}, and in no fewer"
            spectrum = f"no eigenvalue below {-self.rounding:.1g}, the rounding error"
        else:
            first = f"{points}: embeds isometrically in no Euclidean space"
            spectrum = f"one at {lowest:.4g}, below the rounding error {-self.rounding:.1g}"
        lines = [
            first,
            f"eigenvalues of -1/2 C D^2 C: from {largest:.4g} down; {spectrum}",
            "",
            "No map can do better than:",
            f"{'dimensions':>10}   {'stress':>10}   {'normalised':>10}   {'distortion':>10}",
        ]
        rows = zip(
            [*map(str, self.dimensions), "any"],
            [*self.stress, self.any_stress],
            [*self.normalised_stress, self.any_normalised_stress],
            [*self.distortion, self.any_distortion],
            strict=True,
        )
        lines += [f"{d:>10}   {stress:>10.4g}   {normal:>10.4f}   {c:>10.4f}" for d, stress, normal, c in rows]
        return "\n".join(lines)


def embeddability(space: Any, max_components: int = 3, *, tol: float | None = None) -> Embeddability:
    """Test whether a metric space embeds isometrically in some ℝᵏ, and bound the stress and distortion of every map.

    A finite metric space is that of points in ℝᵏ if and only if −½ C D² C, with C = I − 11ᵀ/n, has no negative
    eigenvalue; the number of positive ones is the smallest k (Schoenberg 1935). The bounds are derived in docs/math.md,
    eq. (E2) to (E10). They hold for every symmetric matrix of nonnegative numbers.

    The bounds on raw stress and distortion of a subset also hold for the whole space.

    Parameters
    ----------
    space : MetricSpace or array-like of shape (n, n)
        A space, or a matrix of distances. At most 4,000 points.
    max_components : int, default=3
        The bounds are computed for maps in 1, 2, …, max_components dimensions, and for any number of dimensions.
    tol : float, optional
        Relative error of the distances. By default 1e-12, or 1e-6 for a matrix in float32.

    Returns
    -------
    Embeddability

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import spaces
    >>> found = spaces.embeddability([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]])  # on a sphere
    >>> bool(found), round(found.most_negative, 3), round(found.any_stress, 4), round(found.any_distortion, 4)
    (False, -0.25, 0.0279, 1.118)
    """
    if not (is_integer(max_components) and max_components >= 1):
        raise ValueError(f"max_components must be an integer >= 1, got {max_components!r}")
    if tol is not None:
        require(tol, "tol", "between 0 and 0.1", lambda x: 0 <= x <= 0.1)
    D, relative = _distances(space, tol)
    return _embeddability(D, relative, np.arange(1, max_components + 1))


@on_one_blas_thread
def stress_bound(space: MetricSpace, d: int) -> float:
    """Return the lower bound on the normalised stress of maps in d dimensions; 0 if all distances are 0."""
    D, relative = _distances(space, None)
    D = D / (float(D.max()) or 1.0)
    return float(_stress_bounds(D, _Spectrum(D, relative), np.array([d]))[1][0])


class _Spectrum:
    """Eigenvalues of the centred Gram matrix of D², ascending.

    Attributes
    ----------
    relative : float
        Relative error of the distances, including the rounding of the eigenvalues.
    rounding : float
        With τ = `relative`, ‖δB‖ ≤ ½ ‖δ(D²)‖_F ≤ τ (1 + τ/2) ‖D²‖_F bounds the error of each eigenvalue (Weyl).
    values : ndarray of shape (n,)
        The eigenvalues, those up to `rounding` replaced by 0.
    exact : ndarray of shape (n,)
        The computed eigenvalues.
    """

    def __init__(self, D: Array, relative: float):
        d2 = np.square(D)
        self.relative = relative + len(D) * EPS
        self.rounding = self.relative * (1 + self.relative / 2) * float(np.linalg.norm(d2))
        self._gram = centered_gram(d2)
        self.exact = linalg.eigvalsh(self._gram)
        self.values = np.where(np.abs(self.exact) > self.rounding, self.exact, 0.0)

    @cached_property
    def vectors(self) -> Array | None:
        """The eigenvectors (n, n) if there are negative eigenvalues, else None."""
        return linalg.eigh(self._gram)[1] if self.values[0] < 0 else None


@on_one_blas_thread
def _embeddability(D: Array, relative: float, dimensions: Array) -> Embeddability:
    unit = float(D.max()) or 1.0  # squares of distances neither overflow nor underflow
    D = D / unit
    spectrum = _Spectrum(D, relative)
    values, S = spectrum.values, unit**2 * float(np.square(D).sum()) / 2
    any_stress, stress = _stress_bounds(D, spectrum, dimensions)
    any_distortion, distortion = 1.0, np.ones(len(dimensions))
    if D.any():
        certain = 1 - 2 * spectrum.relative  # errors of the distances change a distortion by this factor
        any_distortion = max(1.0, unlimited_distortion(D, values, spectrum.vectors) * certain)
        distortion = np.maximum(limited_distortion(D, dimensions) * certain, any_distortion)
        if values[0] >= 0:  # no distortion where the space fits
            distortion[dimensions >= (values > 0).sum()] = 1.0
    return Embeddability(
        n=len(D),
        eigenvalues=unit**2 * spectrum.exact[::-1],
        rounding=unit**2 * spectrum.rounding,
        min_dimension=None if values[0] < 0 else int((values > 0).sum()),
        dimensions=dimensions,
        stress=np.square(stress) * S,
        normalised_stress=stress,
        distortion=np.maximum.accumulate(distortion[::-1])[::-1],  # fewer dimensions are no better
        any_stress=any_stress**2 * S,
        any_normalised_stress=any_stress,
        any_distortion=float(any_distortion),
    )


def _stress_bounds(D: Array, spectrum: _Spectrum, dimensions: Array) -> tuple[float, Array]:
    """Return lower bounds on √(stress/S) for maps in any number of dimensions, and in each of `dimensions`.

    √stress is the Euclidean distance from D, as a vector of pairs, to the distances of a map; errors of D change it by
    at most `spectrum.relative` √S.
    """
    S = float(np.square(D).sum()) / 2
    if not S > 0:
        return 0.0, np.zeros(len(dimensions))
    unlimited, limited = lower_bounds(D, spectrum.values, spectrum.vectors, dimensions)
    bounds = np.maximum(np.sqrt(np.append(limited, unlimited) / S) - spectrum.relative, 0.0)
    if spectrum.values[0] >= 0:  # the space fits into this many dimensions
        bounds[:-1][dimensions >= (spectrum.values > 0).sum()] = 0.0
    bounds = np.maximum.accumulate(bounds[::-1])[::-1]  # fewer dimensions are no better
    return float(bounds[-1]), bounds[:-1]


def _distances(space: Any, tol: float | None) -> tuple[Array, float]:
    """Return the distances (n, n) of a space or matrix, and their relative error."""
    n = space.n if isinstance(space, MetricSpace) else len(space) if hasattr(space, "__len__") else 0
    if n > MAX_POINTS:
        raise ValueError(
            f"embeddability needs all eigenvectors of a matrix of {n:,} rows, and is limited to {MAX_POINTS:,} points;"
            " pass spaces.Restriction(space, spaces.farthest_points(space, 1000)[0]), whose bounds on raw stress and"
            " distortion also hold for the whole space"
        )
    require_memory(48.0 * n * n, f"the eigenvectors of {n:,} points", available_memory(), "use fewer points")
    if isinstance(space, MetricSpace) and n < 2:
        raise ValueError(f"space has {plural(n, 'point')}; at least 2 are needed to compare distances")
    if tol is None:
        tol = SINGLE if getattr(space, "dtype", None) == np.float32 else ROUNDING
    return distance_matrix_of(space, "space"), tol
