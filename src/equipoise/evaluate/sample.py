"""Which points a measure looks at: all of them, or a random sample of large data."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._types import Array

ALL = 20_000  # points up to which all are looked at, about a second for the local measures on two cores; chosen
LEAST = 1_000  # points of a sample, at least; chosen: the error of a mean over them is 1/30 of their spread


def sample_points(n: int, random_state: Any) -> Array:
    """Return all of n points, or as many, in order, as are compared with n points at the cost of ALL² distances."""
    if n <= ALL:
        return np.arange(n)
    return draw_points(n, max(LEAST, ALL * ALL // n), random_state)


def draw_points(n: int, m: int, random_state: Any) -> Array:
    """Return m of n points, or all of them if there are no more, without replacement and in order."""
    if m >= n:
        return np.arange(n)
    return np.sort(check_random_state(random_state).permutation(n)[:m])


def draw_partners(points: Array, n: int, t: int, rng: np.random.RandomState) -> Array:
    """Return t of the other n − 1 points for each of some points, (m, t), with replacement."""
    other = rng.randint(n - 1, size=(len(points), t))
    return other + (other >= points[:, None])
