"""Whether crowded places of the data are crowded in the map."""

from __future__ import annotations

import numpy as np

from ..inputs import Input
from .distances import rank_correlation
from .measured import Measured
from .ranks import Neighborhoods


def density_correlation(data: Input, drawn: Input, hoods: Neighborhoods, k: int) -> Measured:
    """Return the rank correlation, over points, of the distance to the k-th neighbour in the data and in the map.

    Narayan, Berger & Cho 2021 correlate logarithms of a local radius; ranks need no logarithm and bear coinciding
    points. 0 if one side has the same spacing everywhere.
    """
    points = hoods.points
    r_x, r_y = (
        source.pairs(points, near[:, k - 1].astype(np.int64))
        for source, near in ((data, hoods.near_x), (drawn, hoods.near_y))
    )
    rho = rank_correlation(r_x, r_y)
    m, n = len(points), hoods.n
    # As in `shepard`, for a sample without replacement.
    error = 0.0 if m == n else (1 - rho**2) * np.sqrt((1 + rho**2 / 2) / (m - 3) * (1 - m / n))
    return Measured(rho, error, points)
