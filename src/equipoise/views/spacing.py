"""Some of many points, so that what is drawn at them does not overlap."""

from __future__ import annotations

import numpy as np

from .._types import Array


def thin(points: Array, side: float) -> Array:
    """Return the rows of points (n, 2) around which squares of a side do not overlap, as many as a greedy choice gives.

    The order of choice is random with a fixed seed, so that it does not favour the first rows.
    """
    cells: dict[tuple[int, int], list[int]] = {}
    grid = np.floor(points / side).astype(np.int64).tolist()
    places = points.tolist()
    chosen = []
    for row in np.random.RandomState(0).permutation(len(points)).tolist():
        (x, y), (a, b) = places[row], grid[row]
        near = (other for i in (a - 1, a, a + 1) for j in (b - 1, b, b + 1) for other in cells.get((i, j), ()))
        if all(abs(places[other][0] - x) >= side or abs(places[other][1] - y) >= side for other in near):
            cells.setdefault((a, b), []).append(row)
            chosen.append(row)
    return np.sort(np.array(chosen, dtype=np.int64))
