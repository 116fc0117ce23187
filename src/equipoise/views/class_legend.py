"""A legend of classes, for maps in which the classes mix, so that a name near some points would say little."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import KDTree

from .._types import Array
from .coloring import MARKS
from .column import Classes, Column
from .style import COLORS, Theme, add_legend, shorten

SEPARATE = 0.7  # classes mix if fewer points of a class than this, in the mean, have a neighbour of their class; chosen
MAX_LISTED = 30  # classes in the legend of a map of dots, where classes of one colour have different marks; chosen
MAX_DOTS = 100_000  # maps with more points are drawn as an image of their density, without marks; chosen
SAMPLE = 3000  # points whose nearest neighbours are compared; chosen
WIDTH = 90  # characters in a row of the legend; chosen


def needs_legend(points: Array, column: Column | None) -> bool:
    """Return whether a map (n, d) needs a legend: its classes mix, and each can be told apart by its colour and mark.

    Classes mix if, in the mean over the classes, fewer than 70 % of the points have a nearest neighbour of their class.
    """
    if not isinstance(column, Classes) or not 2 <= len(column.names) <= _limit(len(points)):
        return False
    known = np.flatnonzero(column.codes >= 0)
    if len(known) < 2:
        return False
    codes, points = column.codes[known], points[known]
    sample = np.random.RandomState(0).permutation(len(known))[:SAMPLE]
    neighbors = KDTree(points).query(points[sample], k=2)[1]
    nearest = np.where(neighbors[:, 0] == sample, neighbors[:, 1], neighbors[:, 0])  # duplicates: either comes first
    same = codes[nearest] == codes[sample]
    shares = [same[codes[sample] == i].mean() for i in np.unique(codes[sample])]
    return len(shares) > 1 and bool(np.mean(shares) < SEPARATE)


def _limit(n: int) -> int:
    """Return the maximum number of classes in the legend of a map of n points."""
    return MAX_LISTED if n <= MAX_DOTS else len(COLORS)


def draw_class_legend(
    axes: Any, points: Array, classes: Column | None, colors: Array, marks: Array, theme: Theme
) -> bool:
    """Add a legend below a map, if it needs one: the colour, mark and name of each class that has points.

    `points` (n, d) are the points, `colors` (n, 3) their colours and `marks` (n,) the indices of their marks. Return
    whether there is a legend.
    """
    from matplotlib.lines import Line2D

    if not isinstance(classes, Classes) or not needs_legend(points, classes):
        return False
    present, first = np.unique(classes.codes, return_index=True)
    names = [shorten(classes.names[i]) if i >= 0 else "no class" for i in present]
    dots = [Line2D([], [], linestyle="", marker=MARKS[marks[i]], markersize=7, color=colors[i]) for i in first]
    if present[0] < 0:  # points without a class are last
        names, dots = names[1:] + names[:1], dots[1:] + dots[:1]
    # A space before each name: matplotlib leaves out names that begin with an underscore.
    style = {"ncols": max(1, min(len(dots), WIDTH // (max(map(len, names)) + 6))), "labelcolor": theme.text}
    add_legend(axes, handles=dots, labels=[f" {name}" for name in names], handletextpad=0, **style)
    for text in axes.get_legend().get_texts():
        text.set_parse_math(False)
    return True
