"""Find out which parts of a figure are covered by dots, images or labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array

CELL = 4  # pixels per side of a cell; chosen smaller than most dots


class Coverage:
    """Divides the axes into square cells, and stores which of them are covered by drawn objects.

    The cells are stored as a summed-area table, so that the covered fraction of any box takes four lookups.

    Parameters
    ----------
    boxes : ndarray of shape (m, 4)
        Bounding boxes of the drawn objects: left, bottom, right, top in pixels.
    frame : matplotlib Bbox
        The area of the axes in pixels.
    """

    def __init__(self, boxes: Array, frame: Any):
        self.corner = np.array([frame.x0, frame.y0])
        width, height = (int(side // CELL) + 1 for side in (frame.width, frame.height))
        low, high = (
            np.clip(((corner - self.corner) // CELL).astype(np.int64), 0, [width - 1, height - 1])
            for corner in (boxes[:, :2], boxes[:, 2:])
        )
        steps = np.zeros((width + 1, height + 1), np.int64)  # +1 where a box begins, −1 just past its end
        for sign, x, y in ((1, low, low), (-1, high + 1, low), (-1, low, high + 1), (1, high + 1, high + 1)):
            np.add.at(steps, (x[:, 0], y[:, 1]), sign)
        covered = steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] > 0
        self.sums = np.zeros((width + 1, height + 1), np.int64)
        self.sums[1:, 1:] = covered.cumsum(axis=0).cumsum(axis=1)

    def fraction(self, centers: Array, size: Array) -> Array:
        """Return the covered fraction (m,) of each box around `centers` (m, 2); all boxes have the same `size` (2,)."""
        end = np.array(self.sums.shape) - 1
        low = np.clip(((centers - size / 2 - self.corner) // CELL).astype(np.int64), 0, end - 1)
        high = np.clip(((centers + size / 2 - self.corner) // CELL).astype(np.int64) + 1, 1, end)
        covered = (
            self.sums[high[:, 0], high[:, 1]]
            - self.sums[low[:, 0], high[:, 1]]
            - self.sums[high[:, 0], low[:, 1]]
            + self.sums[low[:, 0], low[:, 1]]
        )
        fraction: Array = covered / (high - low).prod(axis=1)
        return fraction
