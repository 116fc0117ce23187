"""Draw a figure of a sweep: the maps side by side, and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._types import Array
from ...procrustes import fit_similarity
from ...views.small_map import class_colors, draw_map
from ...views.style import COLORS, new_figure
from ..advice import describe_setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 5  # maximum number of maps in a row; chosen
TITLE_WIDTH = 30  # characters per line of a title above a map; measured


def sweep_figure(
    maps: Sequence[Array],
    settings: Sequence[Mapping[str, Any]],
    shape: tuple[int, ...],
    scores: Mapping[str, Array],
    labels: Any = None,
) -> Figure:
    """Return a figure of all maps, aligned with the first, and a plot of the scores if only one parameter varies.

    Parameters
    ----------
    maps : sequence of ndarray of shape (n, d)
    settings : sequence of mappings
        The parameters of each map.
    shape : tuple of int
        Number of values of each parameter.
    scores : mapping of str to ndarray
        The scores of each map.
    labels : array-like of shape (n,), optional
        The classes by which points are coloured; by default the colour shows the position in the first map from left to
        right.
    """
    single = len(shape) == 1
    columns = min(shape[-1], COLUMNS) if single else shape[-1]
    rows = -(-len(maps) // columns)
    lines = max(len(wrap(describe_setting(setting), TITLE_WIDTH)) for setting in settings)
    height = rows * (2.56 + 0.16 * lines) + (2.8 if single else 0.4)
    figure: Figure = new_figure(figsize=(max(2.5 * columns, 7.2), height), dpi=150)
    grid = figure.add_gridspec(rows + single, columns, height_ratios=[1] * rows + [0.9] * single)
    colors: Any = class_colors(labels) if labels is not None else maps[0][:, 0]
    for i, (Y, setting) in enumerate(zip(maps, settings, strict=True)):
        kept, triplets = scores["neighbours"][i], scores["triplets"][i]
        title = f"{fill(describe_setting(setting), TITLE_WIDTH)}\nneighbours {kept:.0%}\ntriplets {triplets:.2f}"
        aligned = fit_similarity(Y, maps[0])(Y)
        axes = figure.add_subplot(grid[i // columns, i % columns])
        draw_map(axes, aligned, colors, title, None if labels is not None else "cividis")
    if single:
        _draw_scores(figure.add_subplot(grid[rows, :]), settings, scores)
    return figure


def _draw_scores(axes: Any, settings: Sequence[Mapping[str, Any]], scores: Mapping[str, Array]) -> None:
    """Plot every score against the values of the parameter, evenly spaced in the order of the runs."""
    (parameter,) = settings[0]
    positions = np.arange(len(settings))
    for color, (name, values) in zip(COLORS[::2] + COLORS[1::2], scores.items(), strict=False):
        axes.plot(positions, values, "o-", color=color, linewidth=1.5, markersize=4, label=name)
    axes.set_xticks(positions, [str(setting[parameter]) for setting in settings])
    axes.set_xlabel(parameter)
    axes.set_ylim(None, 1.02)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
