"""Places new points in a finished map so that residuals of their distances are small (docs/math.md, section 14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._types import Array
from ..arrays.blocks import FIXED_ENTRIES

FIRST, LATER = 25, 8  # iterations for p = 2, and for each later power; chosen
DAMPING = 1e-3  # of the first step, relative to the mean curvature; usual (Nocedal & Wright 2006, 10.3)
TINY = 1e-18  # lower bound of a distance in the map


@dataclass(frozen=True)
class Residuals:
    """Residuals of m new points Y (m, d) to fixed points T (k, d) with positive dissimilarities `delta` (m, k).

    The residual e is d − δ ("absolute"), (d − δ)/δ ("relative") or log(d/δ) ("logarithmic").
    """

    delta: Array
    T: Array
    residual: str

    def at(self, Y: Array, p: int) -> tuple[Array, Array, Array]:
        """Return the p-norm of the residuals of each point, and the gradient and curvature that a Newton step needs.

        The second and third result, (m, d) and (m, d, d), are Σ u e e′ and (p − 1) Σ u e′ e′ᵀ: the gradient and the
        Gauss-Newton approximation of the Hessian, up to the same factor, with u = |e|^{p−2} up to a factor.
        """
        difference = Y[:, None, :] - self.T
        d = np.maximum(np.sqrt(np.square(difference).sum(axis=2)), TINY)
        if self.residual == "logarithmic":
            e, slope = np.log(d / self.delta), 1 / d
        else:
            e, slope = d - self.delta, np.ones_like(d)
            if self.residual == "relative":
                e, slope = e / self.delta, 1 / self.delta
        largest = np.maximum(np.abs(e).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        x = np.abs(e) / largest
        u = x ** (p - 2)
        norm = largest[:, 0] * (np.square(x) * u).sum(axis=1) ** (1 / p)
        slopes = difference * (slope / d)[:, :, None]  # e′
        gradient = np.einsum("mk,mkc->mc", u * e, slopes)
        return norm, gradient, (p - 1) * np.einsum("mkc,mke->mce", u[:, :, None] * slopes, slopes)


def refine_placement(
    Y: Array, distances: Callable[[slice], Array], T: Array, residual: str, doublings: int = 1
) -> Array:
    """Return positions (m, d) of new points that minimise a norm of the residuals of each point separately.

    The steps are those of Levenberg and Marquardt, each of which decreases the norm of its point. A point at
    dissimilarity 0 from a fitted point keeps its position.

    Parameters
    ----------
    Y : ndarray of shape (m, d)
        Initial positions.
    distances : callable
        Returns the dissimilarities (rows, k) from a slice of new points to the fitted points.
    T : ndarray of shape (k, d)
        Positions of the fitted points.
    residual : {"absolute", "relative", "logarithmic"}
    doublings : int, default=1
        The p-norms with p = 2, 4, …, 2^doublings are minimised one after another.
    """
    T, result = np.asarray(T, dtype=np.float64), Y.copy()
    height = max(1, FIXED_ENTRIES // (4 * T.size))
    for start in range(0, len(Y), height):
        rows = slice(start, min(start + height, len(Y)))
        delta = np.asarray(distances(rows), dtype=np.float64)
        new = np.flatnonzero((delta > 0).all(axis=1))
        if new.size:
            residuals = Residuals(delta[new], T, residual)
            result[start + new] = _minimize(residuals, result[start + new].astype(np.float64), doublings)
    return result


def _minimize(residuals: Residuals, Y: Array, doublings: int) -> Array:
    eye = np.eye(Y.shape[1])
    for stage in range(1, doublings + 1):
        damping = np.full(len(Y), DAMPING)
        norm, gradient, curvature = residuals.at(Y, 2**stage)
        for _ in range(FIRST if stage == 1 else LATER):
            mean = np.trace(curvature, axis1=1, axis2=2) / len(eye)
            damped = curvature + (damping * mean + np.finfo(np.float64).tiny)[:, None, None] * eye
            trial = Y - np.linalg.solve(damped, gradient[:, :, None])[:, :, 0]
            found = residuals.at(trial, 2**stage)
            better = found[0] < norm
            Y[better] = trial[better]
            for old, new in zip((norm, gradient, curvature), found, strict=True):
                old[better] = new[better]
            damping = np.where(better, damping / 3, damping * 4)
    return Y
