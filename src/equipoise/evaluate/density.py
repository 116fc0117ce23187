"""Measure whether dense regions of the data are dense in the map."""

from __future__ import annotations

import numpy as np

from ..inputs import Input
from .distances import rank_correlation
from .measured import Measured
from .ranks import Neighborhoods


def density_correlation(data: Input, embedding: Input, hoods: Neighborhoods, k: int) -> Measured:
    """Return the rank correlation between the points' distances to their k-th neighbours in the data and in the map.

    The distance to the k-th neighbour is small where points are dense. Narayan, Berger & Cho 2021 correlate logarithms
    of such radii; ranks need no logarithm, so radii of 0 between duplicate points are allowed. The correlation is 0 if
    all points have the same radius in the data, or all have the same radius in the map.
    """
    points = hoods.points
    r_x, r_y = (
        source.pairs(points, near[:, k - 1].astype(np.int64))
        for source, near in ((data, hoods.near_x), (embedding, hoods.near_y))
    )
    rho = rank_correlation(r_x, r_y)
    m, n = len(points), hoods.n
    # The standard error of `shepard`, corrected for sampling without replacement.
    error = 0.0 if m == n else (1 - rho**2) * np.sqrt((1 + rho**2 / 2) / (m - 3) * (1 - m / n))
    return Measured(rho, error, points)
