"""Draw a figure of how far points move between runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._types import Array
from ...views.small_map import class_colors, draw_map
from ...views.style import COLORS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = 4  # small panels: three runs and the histogram; chosen


def stability_figure(maps: Array, mean: Array, variation: Array, title: str, labels: Any = None) -> Figure:
    """Return a figure of the mean map coloured by variation, up to three runs, and a histogram of the variation.

    Parameters
    ----------
    maps : ndarray of shape (runs, n, d)
        The aligned maps.
    mean : ndarray of shape (n, d)
        The mean map.
    variation : ndarray of shape (n,)
        How far each point moves between runs.
    title : str
    labels : array-like of shape (n,), optional
        The classes by which points are coloured in the runs; by default the colour shows the mean position from left to
        right.
    """
    figure: Figure = new_figure(figsize=(12, 6), dpi=150)
    grid = figure.add_gridspec(2, 4, width_ratios=[1, 1, 1, 1])
    top = max(1.0, float(np.nanmax(variation)))
    axes = figure.add_subplot(grid[:, :2])
    order = np.argsort(np.nan_to_num(variation, nan=-1.0))  # the largest variation on top
    dots = draw_map(axes, mean[order], variation[order], f"mean of {len(maps)} runs", "viridis")
    dots.set_clim(0, top)
    figure.colorbar(dots, ax=axes, orientation="horizontal", shrink=0.6, label="variation: 0 fixed, 1 random")
    colors: Any = class_colors(labels) if labels is not None else mean[:, 0]
    cells = [grid[row, column] for row in range(2) for column in (2, 3)]
    shown = maps[: PANELS - 1]
    for r, (cell, Y) in enumerate(zip(cells, shown, strict=False)):
        draw_map(figure.add_subplot(cell), Y, colors, f"run {r + 1}", None if labels is not None else "cividis")
    axes = figure.add_subplot(cells[len(shown)])
    axes.hist(variation[np.isfinite(variation)], bins=np.linspace(0, top, 41).tolist(), color=COLORS[0])
    axes.set_xlabel("variation")
    axes.set_ylabel("points")
    axes.set_xlim(0, top)
    axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=10)
    return figure
