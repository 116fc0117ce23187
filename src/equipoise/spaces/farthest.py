"""Farthest-point sampling: choose a few points that represent all points of a metric space."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._plural import plural
from .._types import Array
from ..arrays.namespace import check_random_state, is_integer
from .base import MetricSpace, check_space


def farthest_points(space: MetricSpace, m: int, random_state: Any = 0) -> tuple[Array, Array]:
    """Return m points of a space, each as far as possible from the points before it, and their distances to all points.

    The first is the farthest from a random point. Balls of radius 2 r around the m points cover the space, if r is the
    smallest radius with which balls around the best m points would cover it (Gonzalez 1985). Only the distances from
    m + 1 points are computed.

    Parameters
    ----------
    space : MetricSpace
    m : int
        Number of points.
    random_state : int, RandomState or None, default=0

    Returns
    -------
    points : array of int64, shape (m,)
        Indices of the points, in the order of their selection.
    distances : array of float64, shape (m, n)
        Distances from these points to all points.
    """
    check_space(space, "space")
    if not (is_integer(m) and 1 <= m <= space.n):
        raise ValueError(f"m must be an integer between 1 and the number of points of the space, {space.n}, got {m!r}")
    first = int(check_random_state(random_state).randint(space.n))
    points, rows = np.empty(m, np.int64), np.empty((m, space.n))
    gap = space.distances([first])[0]  # distance of each point from the nearest landmark
    for k in range(m):
        points[k] = gap.argmax()
        if k and gap[points[k]] == 0:
            raise ValueError(
                f"m={m} points cannot be selected: the space has only {plural(k, 'distinct point')}; use at most {k}"
            )
        rows[k] = space.distances(points[k : k + 1])[0]
        gap = rows[0].copy() if k == 0 else np.minimum(gap, rows[k], out=gap)
    return points, rows
