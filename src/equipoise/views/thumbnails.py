"""Draw images instead of dots (Lin et al. 2024, Fig. 8 and 17), as many as fit without overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from .grid import fills_grid
from .spacing import spaced_rows

CELL = 0.92  # side of an image in a cell of a grid; chosen


def check_images(images: Any, n: int) -> Array:
    """Return the images of n points as uint8, (n, height, width) in grey or (n, height, width, 3) in RGB.

    Floats from 0 (black) to 1 (white) are converted.
    """
    images = np.asarray(images)
    if images.ndim not in (3, 4) or len(images) != n or (images.ndim == 4 and images.shape[3] != 3):
        raise ValueError(
            f"images must have shape ({n}, height, width) or ({n}, height, width, 3), got {images.shape};"
            " reshape images that are stored as flat rows of pixels"
        )
    if images.dtype == np.uint8:
        return images
    low, high = float(images.min()), float(images.max())
    if not (low >= 0 and high <= 1):
        raise ValueError(
            f"images must be uint8 or between 0 and 1, got {images.dtype} from {low:g} to {high:g}; rescale them"
        )
    return np.round(255 * images.astype(np.float32)).astype(np.uint8)


def default_side(points: Array) -> float:
    """Return the side of a square image at each of the points (n, 2).

    In the cells of a grid the side is 0.92. Elsewhere it is extent/(2√n), so that n images would cover a quarter of a
    square with the larger side `extent` of the map, limited to the range from extent/32 to extent/8.
    """
    if fills_grid(points):
        return CELL
    extent = float(np.ptp(points, axis=0).max()) or 1.0
    return extent * float(np.clip(0.5 / np.sqrt(len(points)), 1 / 32, 1 / 8))


def draw_images(axes: Any, points: Array, images: Array, size: float | None, colors: Array | None) -> Array:
    """Draw images at as many of the points as fit, and return their bounding boxes (m, 4) in pixels.

    `size` is the side of an image in points of 1/72 inch; by default `default_side`. `colors` (n, 3) are those of the
    frames, if there are any.
    """
    side = default_side(points)
    if size is not None:
        x0, x1 = axes.get_xlim()
        side = size * axes.figure.dpi / 72 * (x1 - x0) / axes.get_window_extent().width
    rows = _draw_framed(axes, points, images, side, colors)
    corners = (axes.transData.transform(points[rows] + sign * side / 2) for sign in (-1, 1))
    return np.column_stack(list(corners))


def _draw_framed(axes: Any, points: Array, images: Array, side: float, colors: Array | None) -> Array:
    """Draw images at as many of the points (n, 2) as fit, framed in `colors` (n, 3) if given; return the rows drawn."""
    from matplotlib.collections import PolyCollection
    from matplotlib.image import AxesImage

    height, width = images.shape[1:3]
    half = 0.5 * side * np.array([width, height]) / max(width, height)
    rows = spaced_rows(points, side)
    for row in rows.tolist():
        (x0, y0), (x1, y1) = points[row] - half, points[row] + half
        picture = AxesImage(axes, extent=(x0, x1, y0, y1), origin="upper", cmap="gray", zorder=3)
        picture.set_data(images[row])
        picture.set_clim(0, 255)
        axes.add_image(picture)
    if colors is not None:
        corners = points[rows, None] + half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        axes.add_collection(PolyCollection(list(corners), facecolors="none", edgecolors=colors[rows], zorder=3.5))
    return rows
