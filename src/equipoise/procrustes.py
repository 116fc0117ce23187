"""Procrustes alignment: superimpose maps by translation, rotation, reflection and scale (docs/math.md, section 20)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from ._plural import plural
from ._types import Array
from ._warn import warn
from .arrays.namespace import check_finite
from .data.checks.maps import check_map
from .linalg.pca import one_blas_thread

ROUNDS = 100  # maximum number of iterations of `superimpose`; chosen
CONVERGED = 1e-3  # root mean square change of the mean map, relative to its radius; chosen


@dataclass(frozen=True)
class Similarity:
    """The similarity transformation y ↦ s (y − a) R + b with R orthogonal (d, d)."""

    a: Array  # (d,)
    b: Array  # (d,)
    R: Array  # (d, d)
    s: float

    def __call__(self, Y: Array) -> Array:
        """Return the images (m, d) of the points Y (m, d)."""
        with one_blas_thread():
            return self.s * (np.asarray(Y, dtype=np.float64) - self.a) @ self.R + self.b


def fit_similarity(Y: Array, target: Array) -> Similarity:
    """Return the similarity that aligns Y (n, d) with `target` T (n, d).

    The similarity is y ↦ s (y − a) R + b, where a and b are the centroids of Y and T. The radius of a map is the root
    mean square distance of its points from the centroid; s is the radius of T divided by the radius of Y. A
    least-squares s would shrink maps that agree poorly, and hide the disagreement. R minimises
    Σ_i ‖s (y_i − a) R + b − t_i‖²: R = U Vᵀ for the singular value decomposition (Y − a)ᵀ (T − b) = U Σ Vᵀ
    (Schönemann 1966).
    """
    (Y, a, radius), (T, b, target_radius) = _center_both(Y, target)
    with one_blas_thread():
        U, _, Vt = linalg.svd(Y.T @ T)
        R = U @ Vt
    return Similarity(a, b, R, target_radius / radius)


def disagreement(Y: Array, target: Array) -> float:
    """Return how much two maps differ after alignment: 0 for the same shape, near 1 for unrelated maps.

    The result is √(1 − R), where R = Σ σ_j / (‖Y‖ ‖T‖) and σ_j are the singular values of YᵀT, for centred Y (n, d) and
    `target` T (n, d). It is the root mean square over the points of `variation` for the two aligned maps (docs/math.md,
    section 20). 1 − R² is the disparity of `scipy.spatial.procrustes`.
    """
    (Y, _, radius), (T, _, target_radius) = _center_both(Y, target)
    with one_blas_thread():
        correlation = linalg.svdvals(Y.T @ T).sum() / (len(Y) * radius * target_radius)
    return float(np.sqrt(max(0.0, 1 - correlation)))


def superimpose(maps: Array) -> Array:
    """Return maps (m, n, d) aligned with their mean map, which has radius 1: generalised Procrustes (Gower 1975).

    A row of NaN marks a point missing from a map; that map is aligned by its other points. Each map is first aligned
    with the mean of the preceding maps. Then all maps are aligned with their common mean, repeatedly, until that mean
    converges; if it does not within ROUNDS iterations, a warning is issued.
    """
    maps = np.array(maps, dtype=np.float64)
    if maps.ndim != 3 or 0 in maps.shape:
        raise ValueError(f"maps must have shape (m, n, d) with at least one map and one point, got {maps.shape}")
    present = ~np.isnan(maps[:, :, 0])
    for r, Y in enumerate(maps):
        check_finite(np.where(present[r, :, None], Y, 0.0), f"map {r}", power=2)
        if present[r].sum() > Y.shape[1]:
            _require_shape(Y[present[r]], f"map {r}")
    aligned = np.full_like(maps, np.nan)
    aligned[0] = maps[0]
    for r in range(1, len(maps)):
        aligned[r] = _align(maps[r], mean_map(aligned[:r]), present[r], r)
    mean = _normalize(mean_map(aligned))
    for _ in range(ROUNDS):
        for r in range(len(maps)):
            aligned[r] = _align(maps[r], mean, present[r], r)
        before, mean = mean, _normalize(mean_map(aligned))
        if np.sqrt(np.nanmean(((mean - before) ** 2).sum(axis=1))) < CONVERGED:
            return aligned
    warn(
        f"the mean of the maps has not converged after {ROUNDS} iterations; the maps have little in common, so do not"
        " rely on their alignment",
    )
    return aligned


def mean_map(maps: Array) -> Array:
    """Return the mean position (n, d) of each point over the maps (m, n, d) that contain it; NaN if none does."""
    present = ~np.isnan(maps[:, :, :1])
    count = present.sum(axis=0)
    return np.where(count > 0, np.where(present, maps, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def variation(maps: Array) -> Array:
    """Return the variation v_i (n,) of the position of each point over maps (m, n, d).

    v_i = √(Σ_r ‖y_i^r − ȳ_i‖² / (m_i − 1)), where r runs over the m_i maps that contain point i; NaN if m_i < 2. For
    superimposed maps, v_i is 0 for a point with a fixed position and about 1 for a random position.
    """
    count = (~np.isnan(maps[:, :, 0])).sum(axis=0)
    squared = np.nansum(((maps - mean_map(maps)) ** 2).sum(axis=2), axis=0)
    return np.where(count > 1, np.sqrt(squared / np.maximum(count - 1, 1)), np.nan)


def _center_both(Y: Any, target: Any) -> tuple[tuple[Array, Array, float], tuple[Array, Array, float]]:
    """Check that two maps have the same shape, and centre each; return the results of `_center`."""
    Y = check_map(Y)
    target = check_map(target, "target", Y.shape)
    _require_shape(Y, "Y")
    _require_shape(target, "target")
    return _center(Y), _center(target)


def _center(Y: Array) -> tuple[Array, Array, float]:
    """Return Y − a, the centroid a, and the radius √(Σ ‖y − a‖² / n)."""
    centroid = Y.mean(axis=0)
    Y = Y - centroid
    return Y, centroid, float(np.sqrt((Y**2).sum() / len(Y)))


def _require_shape(Y: Array, name: str) -> None:
    if not (np.square(Y - Y.mean(axis=0)).any() and np.ptp(Y, axis=0).any()):
        raise ValueError(
            f"all points of {name} are at the same position, so they have no shape to align; use another map"
        )


def _normalize(mean: Array) -> Array:
    """Return the mean map with centroid 0 and radius 1."""
    mean = mean - np.nanmean(mean, axis=0)
    return mean / np.sqrt(np.nanmean((mean**2).sum(axis=1)))


def _align(Y: Array, mean: Array, present: Array, r: int) -> Array:
    """Return map number r, Y (n, d), aligned with the mean map by the points that both contain."""
    shared = present & ~np.isnan(mean[:, 0])
    if shared.sum() <= Y.shape[1]:
        raise ValueError(
            f"map {r} has only {plural(int(shared.sum()), 'point')} in common with the mean of the maps aligned so far,"
            f" too few to align it; at least {Y.shape[1] + 1} are needed, so leave this map out or use maps that share"
            " more points"
        )
    _require_shape(Y[shared], f"map {r} that also occur in other maps")
    return fit_similarity(Y[shared], mean[shared])(Y)
