"""Many points as a picture of their density, so that the crowded places show and none hides another."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from .._types import Array

BLUR = 0.8  # pixels that a point is spread over, as a standard deviation; chosen
FAINT = 0.35  # how much a lone point covers the paper; chosen


def density_image(pixels: Array, colors: Array, shape: tuple[int, int]) -> Array:
    """Return an image (height, width, 4) of points at pixels (n, 2), counted from the lower left.

    A pixel has the mean colour of its points, and covers the paper by the logarithm of their number.
    """
    height, width = shape
    column, row = np.floor(pixels).astype(np.int64).T
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    cell = (row * width + column)[inside]

    def spread(weights: Array | None) -> Array:
        counts = np.bincount(cell, weights, minlength=height * width).reshape(height, width)
        return gaussian_filter(counts.astype(np.float64), BLUR, mode="constant")

    count = spread(None)
    lone = 1 / (2 * np.pi * BLUR**2)  # the middle of one point
    seen = count > 0.1 * lone
    image = np.zeros((height, width, 4))
    for channel in range(3):
        total = spread(colors[inside, channel])
        image[..., channel] = np.clip(np.divide(total, count, out=np.zeros_like(total), where=seen), 0, 1)
    full = max(float(np.quantile(count[seen], 0.995)), 2 * lone) if seen.any() else 1.0
    level = np.log1p(count / lone) / np.log1p(full / lone)
    edge = np.clip(count / lone, 0, 1)  # a point fades out at its rim
    image[..., 3] = np.where(seen, np.clip(edge * FAINT + (1 - FAINT) * level, 0, 1), 0)
    return image
