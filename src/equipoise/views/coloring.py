"""The colours of points by their classes or by a quantity."""

from __future__ import annotations

import numpy as np

from .._types import Array
from .column import Classes, Column, Numbers
from .style import COLORS, Theme

TAIL = 0.01  # share of the points at either end of a quantity that get the colour of the end; chosen


def shades(classes: Classes, hearts: Array) -> Array:
    """Return which of the ten colours each class has.

    The first ten have one each. More cannot be told apart by everybody, so that every further class shares a colour:
    the one whose classes, by their `hearts` (c, 2), are farthest away in the map.
    """
    count = len(classes.names)
    found = np.arange(count) % len(COLORS)
    for i in range(len(COLORS), count):
        d2 = ((hearts[:i] - hearts[i]) ** 2).sum(axis=1)
        nearest = [np.nanmin(d2[found[:i] == color], initial=np.inf) for color in range(len(COLORS))]
        found[i] = int(np.argmax(nearest))
    return found


def limits(numbers: Numbers) -> tuple[float, float]:
    """Return the values that the two ends of the ramp stand for."""
    known = numbers.values[np.isfinite(numbers.values)]
    if not len(known):
        return 0.0, 1.0
    low, high = np.quantile(known, [TAIL, 1 - TAIL])
    if low == high:
        low, high = known.min(), known.max()
    return (float(low), float(high)) if low < high else (float(low) - 0.5, float(low) + 0.5)


def ramp(theme: Theme) -> list[str]:
    """Return 256 colours from low to high: viridis (van der Walt & Smith 2015), less what the paper would swallow."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(color) for color in colormaps["viridis"](np.linspace(*theme.ramp, 256))]


def row_colors(column: Column | None, n: int, hearts: Array, theme: Theme) -> Array:
    """Return the colour (n, 3) of each of n points."""
    from matplotlib.colors import to_rgb

    if column is None:
        return np.tile(to_rgb(theme.colors[0]), (n, 1))
    if isinstance(column, Classes):
        table = [to_rgb(theme.colors[i]) for i in shades(column, hearts)]
        return np.array([*table, to_rgb(theme.missing)])[column.codes]
    low, high = limits(column)
    table = [to_rgb(color) for color in ramp(theme)]
    with np.errstate(invalid="ignore"):
        place = np.clip(256 * (column.values - low) / (high - low), 0, 255)
    place = np.where(np.isnan(column.values), 256, place).astype(np.int64)
    return np.array([*table, to_rgb(theme.missing)])[place]
