"""Measure whether dense regions of the data are dense in the map."""

from __future__ import annotations

import numpy as np

from ..inputs import Input
from .distances import rank_correlation
from .measured import Measured
from .ranks import Neighborhoods


def density_correlation(data: Input, embedding: Input, hoods: Neighborhoods, k: int) -> Measured:
    """Return the rank correlation between the points' distances to their k-th neighbours in the data and in the map.

    Narayan, Berger & Cho 2021 correlate logarithms of local radii; ranks need no logarithm and allow duplicate points.
    The correlation is 0 if these distances are all equal in the data or in the map.
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
