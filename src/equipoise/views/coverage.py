"""How much of a picture is covered: by dots, or by images."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array

CELL = 4  # pixels of a cell that is covered or not; chosen: less than most dots have


class Ink:
    """What is drawn in a frame, in cells of a few pixels, summed so that a box is judged at once."""

    def __init__(self, boxes: Array, frame: Any):
        """Take boxes (m, 4) of what is drawn, left, bottom, right, top, in pixels."""
        self.corner = np.array([frame.x0, frame.y0])
        width, height = (int(side // CELL) + 1 for side in (frame.width, frame.height))
        low, high = (
            np.clip(((corner - self.corner) // CELL).astype(np.int64), 0, [width - 1, height - 1])
            for corner in (boxes[:, :2], boxes[:, 2:])
        )
        steps = np.zeros((width + 1, height + 1), np.int64)  # +1 where a box begins, −1 behind its end
        for sign, x, y in ((1, low, low), (-1, high + 1, low), (-1, low, high + 1), (1, high + 1, high + 1)):
            np.add.at(steps, (x[:, 0], y[:, 1]), sign)
        black = steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] > 0
        self.sums = np.zeros((width + 1, height + 1), np.int64)
        self.sums[1:, 1:] = black.cumsum(axis=0).cumsum(axis=1)

    def share(self, middles: Array, size: Array) -> Array:
        """Return which share (m,) of boxes of one size, around middles (m, 2), is covered."""
        most = np.array(self.sums.shape) - 1
        low = np.clip(((middles - size / 2 - self.corner) // CELL).astype(np.int64), 0, most - 1)
        high = np.clip(((middles + size / 2 - self.corner) // CELL).astype(np.int64) + 1, 1, most)
        covered = (
            self.sums[high[:, 0], high[:, 1]]
            - self.sums[low[:, 0], high[:, 1]]
            - self.sums[high[:, 0], low[:, 1]]
            + self.sums[low[:, 0], low[:, 1]]
        )
        share: Array = covered / (high - low).prod(axis=1)
        return share
