"""Choose landmarks, uniformly or by ridge leverage scores, and estimate the error of the approximate Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy import linalg

from .._types import Array
from ..arrays.csr import dense
from ..arrays.namespace import array_like, is_finite, is_integer, to_numpy
from .gram import Factor
from .nystrom import ROUNDING, Landmarks

SAMPLINGS = ("uniform", "leverage")
PROBES = 64  # random rows on which the error of an approximation is estimated, and as many with large entries; chosen
FIRST = 10  # landmarks per dimension with which `eps` begins, and then doubles; chosen


class Approximation(Protocol):
    """An approximation G' = F Fᵀ of the Gram matrix G (n, n) of n points, from landmarks.

    `values` (r,) are the eigenvalues of the Gram matrix of the landmarks, in the order of the columns of F (n, r), and
    `diagonal` (n,) is the diagonal of G.
    """

    chosen: Array
    F: Array
    values: Array
    diagonal: Array

    def exact_rows(self, which: Array) -> Array:
        """Return the rows (q, n) of G with the indices `which`."""
        ...

    def coordinates_for(self, other: Approximation) -> Array:
        """Return F (n, r) with the origin of another approximation, so that F Fᵀ approximates the same matrix."""
        ...


class FromDistances:
    """The approximation from squared distances; `squared(i)` returns those from the points i to all points, (q, n)."""

    def __init__(self, squared: Callable[[Array], Array], chosen: Array):
        self.landmarks, self.chosen, self._squared = Landmarks(squared(chosen), chosen), chosen, squared
        self.F, self.values, self.diagonal = self.landmarks.F, self.landmarks.values, self.landmarks.diagonal

    def exact_rows(self, which: Array) -> Array:
        return self.landmarks.products_from(self._squared(which), which)

    def coordinates_for(self, other: Approximation) -> Array:
        return self.F - self.F[other.chosen].mean(axis=0)  # the origin is the mean of the landmarks


class FromRows:
    """The approximation from coordinates: the rows are projected on the span of the landmarks.

    `basis` (D, r) is an orthonormal basis of the span of the centred landmarks.
    """

    def __init__(self, exact: Factor, chosen: Array):
        self.chosen, self._exact = chosen, exact
        own = to_numpy(dense(exact.F[chosen])) - (0.0 if exact.is_centered else to_numpy(exact.mean))
        self.basis = linalg.orth(own.T)
        self.values = np.square(own @ self.basis).sum(axis=0)
        self.F = to_numpy(exact.project(array_like(exact.F, self.basis)))
        self.diagonal = exact.diagonal()

    def exact_rows(self, which: Array) -> Array:
        return to_numpy(self._exact.rows(which))

    def coordinates_for(self, other: Approximation) -> Array:
        return self.F  # the origin is the mean of all points


class Error(NamedTuple):
    """Estimates of ‖G − G'‖_F, ‖G‖_F and, if requested, ‖G − G_k‖_F for the best approximation G_k of rank k."""

    residual: float
    whole: float
    best: float = np.nan

    @property
    def relative(self) -> float:
        return self.residual / self.whole if self.whole > 0 else 0.0

    @property
    def ratio(self) -> float:
        """‖G − G'‖² / ‖G − G_k‖²; 0 if the residual is a rounding error, NaN if ‖G − G_k‖ was not requested."""
        if np.isfinite(self.best) and self.residual <= ROUNDING**0.5 * self.whole:  # eigenvalues below ROUNDING are cut
            return 0.0
        return self.residual**2 / self.best**2 if self.best != 0 else np.inf


@dataclass(frozen=True)
class LandmarkPlan:
    """How to choose landmarks for a map of dimension k.

    Parameters
    ----------
    m : int or None
        Number of landmarks; with `eps`, the largest number, None for all points.
    sampling : {"uniform", "leverage"}
    eps : float or None
        Take as many landmarks as ‖G − G'‖²_F ≤ (1 + eps) ‖G − G_k‖²_F needs; None takes m.
    k : int
        Dimension of the map.
    """

    m: int | None
    sampling: str
    eps: float | None
    k: int

    def check(self, n: int) -> None:
        """Raise unless the parameters are valid for n points."""
        if not (isinstance(self.sampling, str) and self.sampling in SAMPLINGS):
            raise ValueError(f'sampling must be "uniform" or "leverage", got {self.sampling!r}')
        if self.m is not None and (not is_integer(self.m) or not self.k < self.m <= n):
            raise ValueError(
                f"n_landmarks must be an integer above n_components={self.k} and at most n_samples={n},"
                f" or None for all points; got {self.m!r}"
            )
        if self.eps is not None and not (is_finite(self.eps) and self.eps > 0):
            raise ValueError(f"eps must be a positive number or None, got {self.eps!r}")
        if self.sampling == "leverage" and self.m is None and self.eps is None:
            raise ValueError('sampling="leverage" chooses landmarks; set n_landmarks or eps')

    @property
    def wanted(self) -> bool:
        """Whether landmarks are requested at all."""
        return self.m is not None or self.eps is not None


Sketch = Callable[[Array], Approximation]  # from the indices of landmarks


def choose_landmarks(
    sketch: Sketch, n: int, plan: LandmarkPlan, rng: np.random.RandomState
) -> tuple[Approximation, Error]:
    """Return the approximation from the landmarks that the plan asks for, and its estimated error.

    With `eps`, the number of landmarks doubles until the estimated error is small enough or the largest number is
    reached. G_k is then computed from the landmarks and the rows on which the error is estimated together, so that an
    eigenvector which the landmarks miss counts.
    """
    most = n if plan.m is None else int(plan.m)
    m = most if plan.eps is None else min(most, FIRST * plan.k)
    while True:
        found, probes, error = _approximate(sketch, n, m, plan, rng)
        if plan.eps is None:
            return found, error
        better = sketch(np.union1d(found.chosen, np.concatenate(probes)))
        error = estimate_error(found, probes, _truncated(better.coordinates_for(found), plan.k))
        if error.ratio <= 1 + plan.eps or m == most:
            return found, error
        m = min(2 * m, most)


def _approximate(
    sketch: Sketch, n: int, m: int, plan: LandmarkPlan, rng: np.random.RandomState
) -> tuple[Approximation, tuple[Array, Array], Error]:
    """Return the approximation from m landmarks, the rows on which its error is estimated, and the error.

    Leverage scores are computed from uniform landmarks. These are kept if their own approximation is the better one,
    which is possible if distances are far from Euclidean.
    """
    results: list[tuple[Approximation, tuple[Array, Array], Error]] = []
    for by_leverage in (False, True) if plan.sampling == "leverage" and m < n else (False,):
        chosen = _by_leverage(results[0][0], m, plan.k, rng) if by_leverage else choose(n, m, rng)
        found = sketch(chosen)
        probes = choose_probes(found, rng)
        results.append((found, probes, estimate_error(found, probes)))
    return min(results, key=lambda result: result[2].residual)


def _by_leverage(found: Approximation, m: int, k: int, rng: np.random.RandomState) -> Array:
    """Return the sorted indices of m points, drawn with probabilities proportional to their leverage scores."""
    scores = ridge_leverage(found)
    possible = np.flatnonzero(scores)
    if len(possible) <= m:  # they represent all others exactly
        return possible if len(possible) > k else found.chosen
    return np.sort(rng.choice(len(scores), m, replace=False, p=scores / scores.sum()))


def ridge_leverage(found: Approximation, ridge: float | None = None) -> Array:
    """Return approximate ridge leverage scores (n,) of G, computed from an approximation G' = F Fᵀ.

    The score l_i = (G (G + λI)⁻¹)_ii, between 0 and 1, says how much of point i the other points cannot represent. With
    K the columns of G at the landmarks and W their Gram matrix, l_i is approximated by (G − K (W + λI)⁻¹ Kᵀ)_ii / λ
    (Musco & Musco 2017, section 4), for which the diagonal of G suffices: points that no landmark represents get a
    large score. By default, the ridge λ is tr(G − G')/m, the neglected part per landmark.
    """
    squares = np.square(found.F)
    if ridge is None:
        neglected = np.maximum(found.diagonal - squares.sum(axis=1), 0.0)
        ridge = max(float(neglected.sum()) / len(found.chosen), ROUNDING * float(found.diagonal.sum()))
    if ridge == 0:
        return np.ones(len(found.diagonal))  # all points coincide
    represented = squares @ (found.values / (found.values + ridge))
    return np.clip((found.diagonal - represented) / ridge, 0.0, 1.0)


def choose_probes(found: Approximation, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Return the indices of rows with large entries, and of 64 rows at random that are not among these.

    The first are 32 rows with the largest errors on the diagonal of G − G' and 32 with the largest diagonal entries of
    G; up to 128 points they are all rows.
    """
    n = len(found.diagonal)
    random = choose(n, min(PROBES, n), rng)
    if n <= 2 * PROBES:
        return np.arange(n), np.empty(0, np.intp)
    neglected = np.abs(found.diagonal - np.square(found.F).sum(axis=1))
    largest = [np.argsort(-size, kind="stable")[: PROBES // 2] for size in (neglected, found.diagonal)]
    large = np.union1d(*largest)
    return large, np.setdiff1d(random, large)


def estimate_error(found: Approximation, probes: tuple[Array, Array], best: Array | None = None) -> Error:
    """Return estimates of ‖G − G'‖, ‖G‖ and, given F_k (n, k) as `best`, ‖G − F_k F_kᵀ‖, in the Frobenius norm.

    The first probes count as they are, and the others, which are random, stand for all other rows: the estimates of the
    squared norms are unbiased.
    """
    n = len(found.diagonal)
    squares = np.zeros(3)
    for which, weight in ((probes[0], 1.0), (probes[1], (n - len(probes[0])) / max(len(probes[1]), 1))):
        if len(which):
            G = found.exact_rows(which)
            parts = [G - found.F[which] @ found.F.T, G, G if best is None else G - best[which] @ best.T]
            squares += weight * np.array([np.square(part).sum() for part in parts])
    residual, whole, tail = np.sqrt(squares).tolist()
    return Error(residual, whole) if best is None else Error(residual, whole, tail)


def _truncated(F: Array, k: int) -> Array:
    """Return F_k (n, k), for which F_k F_kᵀ is the best approximation of F Fᵀ of rank k."""
    V = np.linalg.eigh(F.T @ F)[1]
    return F @ V[:, -k:]


def choose(n: int, m: int, rng: np.random.RandomState) -> Array:
    """Return the sorted indices of m of n points, drawn uniformly without replacement."""
    return np.sort(rng.permutation(n)[:m])
