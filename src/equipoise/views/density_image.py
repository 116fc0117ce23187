"""Draw the density of points as an image, for maps with too many points to draw each one."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from .._types import Array

BLUR = 0.8  # standard deviation of the Gaussian that blurs a point, in pixels; chosen
FAINT = 0.35  # minimum opacity at the centre of a point; chosen


def density_image(pixels: Array, colors: Array, shape: tuple[int, int]) -> Array:
    """Return an RGBA image (height, width, 4) of the density of points.

    A pixel has the mean colour of its points; its opacity grows with the logarithm of their number.

    Parameters
    ----------
    pixels : ndarray of shape (n, 2)
        Pixel coordinates of the points, from the lower left corner.
    colors : ndarray of shape (n, 3)
        RGB colours of the points, from 0 to 1.
    shape : (int, int)
        Height and width of the image.
    """
    height, width = shape
    column, row = np.floor(pixels).astype(np.int64).T
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    cell = (row * width + column)[inside]

    def blurred_sum(weights: Array | None) -> Array:
        counts = np.bincount(cell, weights, minlength=height * width).reshape(height, width)
        return gaussian_filter(counts.astype(np.float64), BLUR, mode="constant")

    count = blurred_sum(None)
    single = 1 / (2 * np.pi * BLUR**2)  # count at the centre of an isolated point
    visible = count > 0.1 * single
    image = np.zeros((height, width, 4))
    for channel in range(3):
        total = blurred_sum(colors[inside, channel])
        image[..., channel] = np.clip(np.divide(total, count, out=np.zeros_like(total), where=visible), 0, 1)
    full = max(float(np.quantile(count[visible], 0.995)), 2 * single) if visible.any() else 1.0
    level = np.log1p(count / single) / np.log1p(full / single)
    edge = np.clip(count / single, 0, 1)  # points fade out towards their edge
    image[..., 3] = np.where(visible, np.clip(edge * FAINT + (1 - FAINT) * level, 0, 1), 0)
    return image
