"""A map of any dimension laid out in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..arrays.namespace import host
from ..data.checks.table import check_finite


def check_map(Y: Any) -> Array:
    """Return a map (n, d), or the one of a fitted method, in float64, or say what is wrong with it."""
    Y = np.asarray(host(getattr(Y, "embedding_", Y)), dtype=np.float64)
    if Y.ndim != 2 or 0 in Y.shape:
        raise ValueError(f"Y must be a map (n, d) with a row for each point, got shape {Y.shape}")
    check_finite(Y, "Y")
    return Y


def on_sphere(Y: Array) -> bool:
    """Return whether the points of Y (n, 3) lie on the unit sphere."""
    return Y.shape[1] == 3 and np.allclose(np.linalg.norm(Y, axis=1), 1, atol=1e-4)


def in_plane(Y: Array) -> tuple[Array, str]:
    """Return Y (n, d) as points (n, 2), and what was done to it in words, nothing for d = 2.

    1-D maps get a random height, spheres are unrolled by the equal-area cylinder, and of other maps one sees the plane
    of the first two principal components.
    """
    Y = np.asarray(Y, dtype=np.float64)
    n, d = Y.shape
    if d == 2:
        return Y, ""
    if d == 1:
        height = 0.1 * np.ptp(Y) * np.random.RandomState(0).uniform(-1, 1, n)
        return np.column_stack([Y[:, 0], height]), "a map on a line; the height of a point means nothing"
    if on_sphere(Y):
        return np.column_stack([np.arctan2(Y[:, 1], Y[:, 0]), Y[:, 2]]), "a sphere, unrolled; left and right edge meet"
    centered = Y - Y.mean(axis=0)
    axes = np.linalg.eigh(centered.T @ centered)[1][:, :-3:-1]
    return centered @ axes, f"a map in {d} dimensions, seen from its broadest side"
