"""The colours of the widget: a small integer per point, and a legend that says what the integers mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array
from ..coloring import assign_colors, assign_marks, color_limits
from ..column import Classes, Column, Numbers
from ..labels import class_centers
from .cell_texts import DIGITS, date_texts

STEPS = 255  # colours of the ramp; the code 255 is a missing value


def color_codes(column: Column | None, n: int) -> Array:
    """Return the code of each of n points, unsigned integers; the largest of their type is a missing value.

    The code of a class is its index. Numbers are divided into 255 steps between the colour limits.
    """
    if column is None:
        return np.zeros(n, np.uint8)
    if isinstance(column, Classes):
        count = len(column.names)
        kind = np.uint8 if count < 2**8 else np.uint16 if count < 2**16 else np.uint32
        return column.codes.astype(kind)  # −1 becomes the largest
    low, high = color_limits(column)
    with np.errstate(invalid="ignore"):
        step = np.clip(np.floor(STEPS * (column.values - low) / (high - low)), 0, STEPS - 1)
    return np.where(np.isnan(column.values), STEPS, step).astype(np.uint8)


def legend_facts(column: Column | None) -> dict[str, Any]:
    """Return the legend of a column, as a dict that can be written as JSON."""
    if column is None:
        return {"kind": "none"}
    if isinstance(column, Classes):
        sizes = np.bincount(column.codes[column.codes >= 0], minlength=len(column.names))
        return {"kind": "class", "name": column.name, "names": list(column.names), "sizes": sizes.tolist()}
    return {"kind": "number", "name": column.name, "ends": [_limit_text(column, end) for end in color_limits(column)]}


def class_positions(column: Column | None, points: Array) -> dict[str, Any]:
    """Return the centres of the classes in a map (n, 2), null where a class is empty, their colours and their marks.

    Colours and marks are indices. All depend on the map: classes beyond the tenth take the colour of a class that is
    far away.
    """
    if not isinstance(column, Classes):
        return {"centers": [], "colors": [], "marks": []}
    centers = class_centers(points, column)
    positions = [None if np.isnan(center).any() else center.tolist() for center in centers]
    colors = assign_colors(column, centers)
    return {"centers": positions, "colors": colors.tolist(), "marks": assign_marks(colors).tolist()}


def _limit_text(column: Numbers, value: float) -> str:
    if column.dates:
        return date_texts(np.array([value]), 10)[0]
    return f"{round(value) if column.integral else value:.{DIGITS}g}"
