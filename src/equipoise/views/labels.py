"""The names of classes, each where most of its points lie and none over another."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from .column import Classes
from .style import Theme

LONGEST = 28  # characters of a name that are shown; chosen
REACH = 10  # heights of a line that a name may lie away from its place; chosen
GAP = 5.0  # pixels between two names; chosen


def hearts(points: Array, classes: Classes) -> Array:
    """Return for each class the point with the most of its class around it, (c, 2), NaN for a class without points.

    Not the mean, which may fall between two islands.
    """
    found = np.full((len(classes.names), points.shape[1]), np.nan)
    order = np.argsort(classes.codes, kind="stable")
    bounds = np.searchsorted(classes.codes[order], np.arange(len(classes.names) + 1))
    for i in range(len(classes.names)):
        rows = order[bounds[i] : bounds[i + 1]]
        if not len(rows):
            continue
        sample = points[rows[np.linspace(0, len(rows) - 1, min(len(rows), 500)).astype(int)]]
        d2 = ((sample[:, None] - sample[None]) ** 2).sum(axis=2)
        found[i] = sample[np.partition(d2, len(sample) // 2, axis=1)[:, len(sample) // 2].argmin()]
    return found


def draw_names(axes: Any, places: Array, classes: Classes, theme: Theme, taken: Array) -> int:
    """Write the names of classes at their places (c, 2), the largest class first; return how many found no room.

    The places are in the coordinates of `axes.transData`. Names stay away from one another and from the boxes `taken`
    (m, 4), in pixels. One that had to give way has a line to its place.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import withStroke

    write = axes.text2D if axes.name == "3d" else axes.text
    halo = [withStroke(linewidth=3, foreground=theme.paper)]
    sizes = np.bincount(classes.codes[classes.codes >= 0], minlength=len(classes.names))
    points = 11 if len(classes.names) <= 10 else 9 if len(classes.names) <= 30 else 7.5
    frame = axes.get_window_extent()
    left_out = 0
    for i in np.argsort(-sizes, kind="stable"):
        if not sizes[i]:
            continue
        text = write(
            0.5, 0.5, _shortened(classes.names[i]), transform=axes.transData, ha="center", va="center", color=theme.ink,
            fontsize=points, fontweight="bold", path_effects=halo, parse_math=False, zorder=6,
        )  # fmt: skip
        box = text.get_window_extent()
        wanted = axes.transData.transform(places[i])
        at = _free_place(wanted, np.array([box.width, box.height]), frame, taken)
        if at is None:
            text.remove()
            left_out += 1
            continue
        half = np.array([box.width, box.height]) / 2
        taken = np.vstack([taken, np.concatenate([at - half, at + half])])
        inverse = axes.transData.inverted()
        text.set_position(inverse.transform(at))
        if np.abs(at - wanted).max() > box.height:
            ends = np.array([inverse.transform(wanted), inverse.transform(at)])
            line = Line2D(*ends.T, color=theme.ink, linewidth=0.8, transform=axes.transData, zorder=5)
            line.set_path_effects([withStroke(linewidth=2.4, foreground=theme.paper)])
            axes.add_artist(line)
    return left_out


def _shortened(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _free_place(wanted: Array, size: Array, frame: Any, taken: Array) -> Array | None:
    """Return the middle of a box near the wanted place, within the frame and over no other box, or nothing."""
    low, high = np.array([frame.x0, frame.y0]) + size / 2, np.array([frame.x1, frame.y1]) - size / 2
    if (low > high).any():
        return None
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    for radius in np.arange(0, REACH, 0.35) * size[1]:
        tries = np.clip(wanted + radius * ring, low, high)
        free = np.ones(len(tries), bool)
        for box in taken:
            apart = (tries - size / 2 >= box[2:] + GAP) | (tries + size / 2 <= box[:2] - GAP)
            free &= apart.any(axis=1)
        if free.any():
            found: Array = tries[free][((tries[free] - wanted) ** 2).sum(axis=1).argmin()]
            return found
    return None
