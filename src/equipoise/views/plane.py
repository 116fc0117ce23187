"""Project maps to the plane, to draw them."""

from __future__ import annotations

import numpy as np

from .._types import Array
from ..linalg.pca import top_eigenvectors


def on_sphere(Y: Array) -> bool:
    """Return whether Y (n, d) has three dimensions and all its points lie on the unit sphere."""
    return Y.shape[1] == 3 and np.allclose(np.linalg.norm(Y, axis=1), 1, atol=1e-4)


def in_plane(Y: Array) -> tuple[Array, str]:
    """Return a map Y (n, d) as points (n, 2), and a description of the projection, empty for d = 2.

    The points of a 1-D map get random heights, maps on a sphere use the equal-area cylindrical projection, and other
    maps are projected to their first two principal components.
    """
    Y = np.asarray(Y, dtype=np.float64)
    n, d = Y.shape
    if d == 2:
        return Y, ""
    if d == 1:
        height = 0.1 * np.ptp(Y) * np.random.RandomState(0).uniform(-1, 1, n)
        return np.column_stack([Y[:, 0], height]), "a map on a line; heights are random"
    if on_sphere(Y):
        longitude = np.arctan2(Y[:, 1], Y[:, 0])
        return np.column_stack([longitude, Y[:, 2]]), "a sphere, unrolled; the left and right edges meet"
    centered = Y - Y.mean(axis=0)
    axes = top_eigenvectors(centered.T @ centered, 2)[1]
    return centered @ axes, f"the first two principal components of a map in {d} dimensions"
