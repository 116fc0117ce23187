"""Choose the colours of points, by class or by a numeric value."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from .._types import Array
from .column import Classes, Column, Numbers
from .style import COLORS, Theme

MARKS = ("o", "s", "D", "^", "v", "P")  # of matplotlib, in the order of MARK_CORNERS in dots.js; all have the same area
TAIL = 0.01  # fraction of values at either end that is clipped to the end of the colour ramp; chosen


def assign_colors(classes: Classes, centers: Array) -> Array:
    """Return the index of the colour of each class.

    The first ten classes get one colour each. More colours would be hard to tell apart, so each further class reuses
    one of the ten. For each colour, the distance in the map to the nearest class of that colour is computed; the colour
    with the largest distance is chosen. `centers` (c, d) are the centres of the c classes.
    """
    count = len(classes.names)
    colors = np.arange(count) % len(COLORS)
    for i in range(len(COLORS), count):
        d2 = ((centers[:i] - centers[i]) ** 2).sum(axis=1)
        nearest = [np.nanmin(d2[colors[:i] == color], initial=np.inf) for color in range(len(COLORS))]
        colors[i] = int(np.argmax(nearest))
    return colors


def assign_marks(colors: Array) -> Array:
    """Return the index of the mark of each class, 0 for a disk, given the indices of the colours.

    The classes that share a colour get different marks in turn, so that up to 60 classes can be told apart.
    """
    marks = np.zeros(len(colors), np.int64)
    for color in np.unique(colors):
        same = np.flatnonzero(colors == color)
        marks[same] = np.arange(len(same)) % len(MARKS)
    return marks


def point_marks(column: Column | None, n: int, centers: Array) -> Array:
    """Return the index in `MARKS` of the mark of each of n points; `centers` (c, d) are the centres of the classes."""
    if not isinstance(column, Classes):
        return np.zeros(n, np.int64)
    return np.array([*assign_marks(assign_colors(column, centers)), 0])[column.codes]


def color_limits(numbers: Numbers) -> tuple[float, float]:
    """Return the numbers that are shown in the first and the last colour of the ramp.

    These are the 1 % and 99 % quantiles, so that a few extreme values do not use up most of the colours. If the
    quantiles are equal, they are the minimum and the maximum instead.
    """
    known = numbers.values[np.isfinite(numbers.values)]
    if not len(known):
        return 0.0, 1.0
    low, high = np.quantile(known, [TAIL, 1 - TAIL])
    if low == high:
        low, high = known.min(), known.max()
    return (float(low), float(high)) if low < high else (float(low) - 0.5, float(low) + 0.5)


def color_ramp(theme: Theme) -> list[str]:
    """Return the colours for numbers from low to high, as 256 hexadecimal codes.

    The colours are evenly spaced in the part of the colour map viridis (van der Walt & Smith 2015) that is visible on
    the background of the theme.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(color) for color in colormaps["viridis"](np.linspace(*theme.ramp, 256))]


def theme_colors(theme: Theme) -> dict[str, Any]:
    """Return the colours of a theme, with the colour ramp, as a dict that can be written as JSON."""
    return asdict(theme) | {"ramp": color_ramp(theme)}


def point_colors(column: Column | None, n: int, centers: Array, theme: Theme) -> Array:
    """Return the RGB colours (n, 3) of n points; `centers` (c, d) are the centres of the classes, if any."""
    from matplotlib.colors import to_rgb

    if column is None:
        return np.tile(to_rgb(theme.colors[0]), (n, 1))
    if isinstance(column, Classes):
        table = [to_rgb(theme.colors[i]) for i in assign_colors(column, centers)]
        return np.array([*table, to_rgb(theme.missing)])[column.codes]
    low, high = color_limits(column)
    table = [to_rgb(color) for color in color_ramp(theme)]
    with np.errstate(invalid="ignore"):
        index = np.clip(256 * (column.values - low) / (high - low), 0, 255)
    index = np.where(np.isnan(column.values), 256, index).astype(np.int64)
    return np.array([*table, to_rgb(theme.missing)])[index]
