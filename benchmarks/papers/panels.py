"""Maps side by side in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from PIL import Image
from sklearn.decomposition import PCA

from equipoise.views.style import COLORS, hide_axes, new_figure

WIDTH = 2.5  # of a panel, in inches
DPI = 100


def draw_maps(
    maps: Sequence[tuple[str, np.ndarray]], labels: Sequence[np.ndarray], file: Path, columns: int | None = None
) -> None:
    """Write a picture of maps (title, Y), each coloured by its classes. Three-dimensional maps are unit vectors and
    are drawn in Mollweide's projection."""
    columns = columns or len(maps)
    rows = -(-len(maps) // columns)
    figure = new_figure(figsize=(WIDTH * columns, (WIDTH + 0.35) * rows), dpi=DPI)
    for i, ((title, Y), y) in enumerate(zip(maps, labels, strict=True)):
        size = float(np.clip(4000 / len(Y), 0.6, 8.0))
        axes: Any
        if Y.shape[1] == 3:
            axes = figure.add_subplot(rows, columns, i + 1, projection="mollweide")
            axes.set_xticklabels([])
            axes.set_yticklabels([])
            axes.grid(True, color="#e0e0e0", linewidth=0.5)
            Y = np.column_stack([np.arctan2(Y[:, 1], Y[:, 0]), np.arcsin(np.clip(Y[:, 2], -1, 1))])
        else:
            axes = figure.add_subplot(rows, columns, i + 1)
            axes.set_aspect("equal", adjustable="datalim")
            hide_axes(axes)
        axes.scatter(*Y.T, s=size, c=colors(y), linewidths=0)
        axes.set_title(title, fontsize=9)
    save(figure, file)


def save(figure: Any, file: Path) -> None:
    """Write a figure in 128 colours: a third of the size, without visible difference."""
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    Image.fromarray(np.ascontiguousarray(pixels)).quantize(128).save(file, optimize=True)


def colors(labels: np.ndarray) -> Any:
    """Return a colour per point: the package's palette for up to ten classes, otherwise a colour map."""
    values, number = np.unique(labels, return_inverse=True)
    if len(values) <= len(COLORS):
        return [COLORS[i] for i in number]
    return matplotlib.colormaps["nipy_spectral"](0.05 + 0.9 * number / (len(values) - 1))


def draw_images(maps: Sequence[tuple[str, np.ndarray]], images: np.ndarray, file: Path, side: int = 18) -> None:
    """Write a picture of maps (title, Y) with images as points, dark on white, `side` pixels each.

    The maps are rotated to their principal axes.
    """
    extent = 640  # pixels across a panel
    canvases = [_canvas(PCA(2).fit_transform(Y), _resize(images, side), extent) for _, Y in maps]
    height = max(len(canvas) for canvas in canvases)
    figure = new_figure(figsize=(extent / DPI * len(maps), height / DPI + 0.3), dpi=DPI)
    for axes, canvas, (title, _) in zip(np.ravel(figure.subplots(1, len(maps))), canvases, maps, strict=True):
        axes.imshow(canvas, cmap="gray_r", vmin=0, vmax=255, interpolation="none")
        axes.set_title(title, fontsize=10)
        hide_axes(axes)
    save(figure, file)


def _canvas(Y: np.ndarray, small: np.ndarray, extent: int) -> np.ndarray:
    """Return a picture with an image at each point; the dark pixels of later images cover earlier ones."""
    side = small.shape[1]
    low, high = Y.min(axis=0), Y.max(axis=0)
    corners = ((Y - low) * (extent - side) / (high - low).max()).astype(int)
    canvas = np.zeros((corners[:, 1].max() + side, extent), np.uint8)
    for (x, y), image in zip(corners, small, strict=True):
        place = canvas[len(canvas) - side - y : len(canvas) - y, x : x + side]
        np.copyto(place, image, where=image > 0)
    return canvas


def _resize(images: np.ndarray, side: int) -> np.ndarray:
    """Return the images resized to `side` pixels by nearest-neighbour sampling."""
    at = (np.arange(side) + 0.5) / side
    return images[:, (at * images.shape[1]).astype(int)][:, :, (at * images.shape[2]).astype(int)]
