"""Stability as a picture: where points move from run to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...views.small_map import class_colors, draw_map
from ...views.style import COLORS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..stability import Stability

SHOWN = 4  # runs drawn beside the mean; chosen


def stability_figure(found: Stability, labels: Any = None) -> Figure:
    """Return the mean map coloured by variation, its distribution, and some runs laid over it.

    The runs are coloured by class, or without labels by where a point is on average, from left to right.
    """
    figure: Figure = new_figure(figsize=(12, 6), dpi=150)
    grid = figure.add_gridspec(2, 4, width_ratios=[1, 1, 1, 1])
    top = max(1.0, float(np.nanmax(found.variation)))
    mean = figure.add_subplot(grid[:, :2])
    order = np.argsort(np.nan_to_num(found.variation, nan=-1.0))  # the restless on top, where they are seen
    dots = draw_map(mean, found.mean[order], found.variation[order], f"mean of {len(found.maps)} runs", "viridis")
    dots.set_clim(0, top)
    figure.colorbar(dots, ax=mean, orientation="horizontal", shrink=0.6, label="variation: 0 same place, 1 anywhere")
    colors: Any = class_colors(labels) if labels is not None else found.mean[:, 0]
    places = [grid[row, column] for row in range(2) for column in (2, 3)]
    shown = found.maps[: SHOWN - 1]
    for r, (place, Y) in enumerate(zip(places, shown, strict=False)):
        draw_map(figure.add_subplot(place), Y, colors, f"run {r + 1}", None if labels is not None else "cividis")
    axes = figure.add_subplot(places[len(shown)])
    axes.hist(found.variation[np.isfinite(found.variation)], bins=np.linspace(0, top, 41).tolist(), color=COLORS[0])
    axes.set_xlabel("variation")
    axes.set_ylabel("points")
    axes.set_xlim(0, top)
    axes.spines[["top", "right"]].set_visible(False)
    q50 = float(np.nanmedian(found.variation))
    figure.suptitle(
        f"{found.name}: {found.causes}\nmedian variation {q50:.3f}, neighbours kept {np.nanmean(found.kept):.0%}",
        fontsize=10,
    )
    return figure
