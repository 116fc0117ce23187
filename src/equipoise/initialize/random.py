"""Random initial maps."""

from __future__ import annotations

import numpy as np

from .._types import Array


def random_ball(n: int, d: int, rng: np.random.RandomState) -> Array:
    """Return n points (n, d), uniform in a ball (in 2-D a disk) with standard deviation 1 along each axis."""
    direction = rng.standard_normal((n, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    radius = rng.uniform(size=(n, 1)) ** (1 / d)
    return direction * radius * np.sqrt(d + 2)  # a unit ball has variance 1/(d+2) along each axis
