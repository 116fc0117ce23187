"""Choose points that are far enough apart to draw arrows or images at them without overlap."""

from __future__ import annotations

import numpy as np

from .._types import Array


def spaced_rows(points: Array, side: float) -> Array:
    """Return sorted indices of rows of `points` (n, 2) around which squares of width `side` do not overlap.

    Points are chosen greedily in a random order with a fixed seed, so that early rows are not favoured.
    """
    cells: dict[tuple[int, int], list[int]] = {}
    grid = np.floor(points / side).astype(np.int64).tolist()
    positions = points.tolist()
    chosen = []
    for row in np.random.RandomState(0).permutation(len(points)).tolist():
        (x, y), (a, b) = positions[row], grid[row]
        near = (other for i in (a - 1, a, a + 1) for j in (b - 1, b, b + 1) for other in cells.get((i, j), ()))
        if all(abs(positions[other][0] - x) >= side or abs(positions[other][1] - y) >= side for other in near):
            cells.setdefault((a, b), []).append(row)
            chosen.append(row)
    return np.sort(np.array(chosen, dtype=np.int64))
