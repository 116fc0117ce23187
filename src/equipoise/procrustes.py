"""Procrustes: maps laid over one another by a shift, a rotation or reflection, and their size (docs/math.md, 20)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ._types import Array
from ._warn import warn
from .linalg.blas import one_blas_thread

ROUNDS = 100  # of superposition, at most; chosen
SETTLED = 1e-3  # root mean square move of the mean map, in radii of the map, below which it stands; chosen


@dataclass(frozen=True)
class Similarity:
    """y ↦ s (y − a) R + b, R orthogonal (d, d): shapes stay as they are."""

    a: Array  # (d,)
    b: Array  # (d,)
    R: Array  # (d, d)
    s: float

    def __call__(self, Y: Array) -> Array:
        """Return the points Y (m, d) where the similarity puts them."""
        return self.s * (np.asarray(Y, dtype=np.float64) - self.a) @ self.R + self.b


def fit_similarity(Y: Array, target: Array) -> Similarity:
    """Return what lays Y (n, d) over `target` (n, d) at the target's size, min_R Σ_i ‖s (y_i − a) R + b − t_i‖².

    R = U Vᵀ for (Y − a)ᵀ (T − b) = U Σ Vᵀ (Schönemann 1966), a and b are the centres, and s is the ratio of the radii.
    The s of least squares would shrink a map the more the less it agrees, and so hide how much that is.
    """
    (Y, a, size), (T, b, wanted) = _centred(Y), _centred(target)
    with one_blas_thread():
        U, _, Vt = linalg.svd(Y.T @ T)
    return Similarity(a, b, U @ Vt, wanted / size)


def disagreement(Y: Array, target: Array) -> float:
    """Return √(1 − R), R = Σ σ_j / (‖Y‖ ‖T‖): 0 for one shape, near 1 for maps that have nothing in common.

    It is the root mean square variation of two maps (docs/math.md, section 20); 1 − R² is SciPy's disparity.
    """
    (Y, _, size), (T, _, wanted) = _centred(Y), _centred(target)
    with one_blas_thread():
        correlation = linalg.svdvals(Y.T @ T).sum() / (len(Y) * size * wanted)
    return float(np.sqrt(max(0.0, 1 - correlation)))


def superimpose(maps: Array) -> Array:
    """Return maps (m, n, d) laid over their common mean, whose radius is 1: generalised Procrustes (Gower 1975).

    Rows of NaN are points that a map does not have; it is laid over the mean of the others by the points it has. The
    first map is the first mean, and the next ones join it one by one; then all are laid over the mean of all until it
    settles.
    """
    maps = np.array(maps, dtype=np.float64)
    there = ~np.isnan(maps[:, :, 0])
    aligned = np.full_like(maps, np.nan)
    aligned[0] = maps[0]
    for r in range(1, len(maps)):
        aligned[r] = _laid_over(maps[r], mean_map(aligned[:r]), there[r], r)
    mean = _normalized(mean_map(aligned))
    for _ in range(ROUNDS):
        for r in range(len(maps)):
            aligned[r] = _laid_over(maps[r], mean, there[r], r)
        before, mean = mean, _normalized(mean_map(aligned))
        if np.sqrt(np.nanmean(((mean - before) ** 2).sum(axis=1))) < SETTLED:
            return aligned
    warn(
        f"the mean of the maps still moves after {ROUNDS} rounds of superposition: they have little in common",
    )
    return aligned


def mean_map(maps: Array) -> Array:
    """Return the mean place (n, d) of each point over the maps (m, n, d) that have it, NaN where none has."""
    there = ~np.isnan(maps[:, :, :1])
    count = there.sum(axis=0)
    return np.where(count > 0, np.where(there, maps, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def variation(maps: Array) -> Array:
    """Return v_i = √(Σ_r ‖y_i^r − ȳ_i‖² / (m_i − 1)) over the maps (m, n, d) that have point i, NaN for fewer than 2.

    Of superimposed maps: 0 for a point in the same place in each, and about 1 for points that are anywhere.
    """
    count = (~np.isnan(maps[:, :, 0])).sum(axis=0)
    moved = np.nansum(((maps - mean_map(maps)) ** 2).sum(axis=2), axis=0)
    return np.where(count > 1, np.sqrt(moved / np.maximum(count - 1, 1)), np.nan)


def _centred(Y: Array) -> tuple[Array, Array, float]:
    """Return Y about its centre, the centre, and the radius √(Σ ‖y − a‖² / n)."""
    Y = np.asarray(Y, dtype=np.float64)
    centre = Y.mean(axis=0)
    Y = Y - centre
    size = float(np.sqrt((Y**2).sum() / len(Y)))
    if size == 0:
        raise ValueError("all points of a map are in one place: it has no shape to compare")
    return Y, centre, size


def _normalized(mean: Array) -> Array:
    mean = mean - np.nanmean(mean, axis=0)
    return mean / np.sqrt(np.nanmean((mean**2).sum(axis=1)))


def _laid_over(Y: Array, mean: Array, there: Array, r: int) -> Array:
    shared = there & ~np.isnan(mean[:, 0])
    if shared.sum() <= Y.shape[1]:
        raise ValueError(
            f"map {r} has {int(shared.sum())} points in common with the others, and {Y.shape[1] + 1} or more are needed"
            " to lay one over the other; let each have more of the points"
        )
    return fit_similarity(Y[shared], mean[shared])(Y)
