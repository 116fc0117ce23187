"""Draw an ellipse at each of several points of a map."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array


def draw_ellipses(axes: Any, centers: Array, directions: Array, half_axes: Array, values: Array) -> Any:
    """Draw ellipses coloured by `values` (m,) and return them, a matplotlib collection.

    Parameters
    ----------
    axes : matplotlib Axes
    centers : ndarray of shape (m, 2)
    directions : ndarray of shape (m, 2, 2)
        Unit vectors along the two axes of each ellipse, as columns.
    half_axes : ndarray of shape (m, 2)
        Half lengths of these axes, in the units of the map.
    values : ndarray of shape (m,)
    """
    from matplotlib.collections import EllipseCollection

    angles = np.degrees(np.arctan2(directions[:, 1, 0], directions[:, 0, 0]))
    ellipses = EllipseCollection(
        2 * half_axes[:, 0], 2 * half_axes[:, 1], angles, units="xy", offsets=centers,
        offset_transform=axes.transData, array=values, edgecolors="#1d2230", linewidths=0.5, zorder=3,
    )  # fmt: skip
    axes.add_collection(ellipses)
    return ellipses
