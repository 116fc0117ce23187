"""Choose the points that a measure uses: all points, or a random sample if there are many."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..arrays.namespace import check_random_state

ALL = 20_000  # larger data are sampled; local measures of this many take about a second on two cores; chosen
MIN_SAMPLE = 1_000  # minimum sample size; chosen: the error of a mean over it is 1/30 of the standard deviation


def sample_points(n: int, random_state: Any) -> Array:
    """Return the indices of all n points or, if n is above ALL, the sorted indices of a random sample.

    The sample has ALL²/n points, so that a measure needs ALL² distances from the sample to all n points. If ALL²/n is
    less than MIN_SAMPLE, the sample has MIN_SAMPLE points.
    """
    if n <= ALL:
        return np.arange(n)
    return draw_points(n, max(MIN_SAMPLE, ALL * ALL // n), random_state)


def draw_points(n: int, m: int, random_state: Any) -> Array:
    """Return the indices of m of n points, drawn without replacement and sorted; all n if m ≥ n."""
    if m >= n:
        return np.arange(n)
    return np.sort(check_random_state(random_state).permutation(n)[:m])


def draw_partners(points: Array, n: int, t: int, rng: np.random.RandomState) -> Array:
    """Return t partners for each of m points, drawn with replacement from the other n − 1 points, (m, t)."""
    other = rng.randint(n - 1, size=(len(points), t))
    return other + (other >= points[:, None])
