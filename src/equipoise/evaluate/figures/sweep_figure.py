"""A sweep as a picture: small maps side by side, and their scores."""

from __future__ import annotations

from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ...procrustes import fit_similarity
from ...views.small_map import class_colors, draw_map
from ...views.style import COLORS, new_figure
from ..sweep import Sweep, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACROSS = 5  # small maps in a line; chosen
WIDTH = 30  # characters of a title that fit above a small map; seen


def sweep_figure(found: Sweep, labels: Any = None) -> Figure:
    """Return the maps side by side, each turned onto the first and at its size, and the scores of a lone parameter.

    They are coloured by class, or without labels by where a point is in the first map, from left to right.
    """
    alone = len(found.shape) == 1
    columns = min(found.shape[-1], ACROSS) if alone else found.shape[-1]
    rows = -(-len(found.maps) // columns)
    lines = max(len(wrap(label(setting), WIDTH)) for setting in found.settings)
    height = rows * (2.56 + 0.16 * lines) + (2.8 if alone else 0.4)
    figure: Figure = new_figure(figsize=(max(2.5 * columns, 7.2), height), dpi=150)
    grid = figure.add_gridspec(rows + alone, columns, height_ratios=[1] * rows + [0.9] * alone)
    colors: Any = class_colors(labels) if labels is not None else found.maps[0][:, 0]
    for i, (Y, setting) in enumerate(zip(found.maps, found.settings, strict=True)):
        kept, triplets = found.scores["neighbours"][i], found.scores["triplets"][i]
        title = f"{fill(label(setting), WIDTH)}\nneighbours {kept:.0%}\ntriplets {triplets:.2f}"
        turned = fit_similarity(Y, found.maps[0])(Y)
        axes = figure.add_subplot(grid[i // columns, i % columns])
        draw_map(axes, turned, colors, title, None if labels is not None else "cividis")
    if alone:
        _draw_scores(figure.add_subplot(grid[rows, :]), found)
    return figure


def _draw_scores(axes: Any, found: Sweep) -> None:
    """Draw every score over the values, evenly spaced in the order of the run."""
    (parameter,) = found.settings[0]
    places = np.arange(len(found.settings))
    for color, (name, values) in zip(COLORS[::2] + COLORS[1::2], found.scores.items(), strict=False):
        axes.plot(places, values, "o-", color=color, linewidth=1.5, markersize=4, label=name)
    axes.set_xticks(places, [str(setting[parameter]) for setting in found.settings])
    axes.set_xlabel(parameter)
    axes.set_ylim(None, 1.02)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
