"""Draw isolines on a map, and surfaces with isolines in a parallel projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Array
from .coloring import color_ramp
from .style import LIGHT, Theme, hide_axes

if TYPE_CHECKING:
    from ..spaces import GraphIsolines, Isolines

WIDTH = 1.4  # of a line, in points; chosen
DOT = 3.0  # diameter of a crossing on the edge of a graph, in points; chosen


def level_colors(levels: Array, theme: Theme = LIGHT) -> Array:
    """Return a colour (k, 3) for each level, dark to bright with the distance."""
    from matplotlib.colors import to_rgba_array

    ramp = to_rgba_array(color_ramp(theme))[:, :3]
    span = float(levels.max() - levels.min()) or 1.0
    places = (levels - levels.min()) / span * (len(ramp) - 1)
    return np.asarray(ramp[places.round().astype(int)])


def draw_isolines(axes: Any, isolines: Isolines | GraphIsolines, points: Array, theme: Theme = LIGHT) -> None:
    """Draw isolines on the axes of a map with these points (n, 2): polylines, or dots on the edges of a graph."""
    if hasattr(isolines, "lines"):
        draw_lines(axes, isolines.lines, isolines.levels, theme)
    else:
        draw_crossings(axes, isolines.crossings(points), isolines.level, isolines.levels, theme)


def draw_lines(axes: Any, lines: Sequence[Sequence[Array]], levels: Array, theme: Theme = LIGHT) -> None:
    """Draw polylines on 2-D axes, in a colour for each level.

    Parameters
    ----------
    axes : matplotlib Axes
    lines : sequence of k sequences of arrays, shape (m, 2) each
        The polylines of each level, as in `spaces.Isolines.lines`.
    levels : ndarray of shape (k,)
    theme : Theme, default=LIGHT
    """
    from matplotlib.collections import LineCollection

    for polylines, color in zip(lines, level_colors(levels, theme), strict=True):
        axes.add_collection(LineCollection(list(polylines), colors=[color], linewidths=WIDTH, zorder=3))


def draw_crossings(axes: Any, points: Array, level: Array, levels: Array, theme: Theme = LIGHT) -> None:
    """Draw a dot at each of the `points` (m, d) where a level crosses an edge; `level` (m,) is the level of each."""
    colors = level_colors(levels, theme)[level]
    axes.scatter(*points.T, s=DOT**2, c=colors, linewidths=0, zorder=3)


def draw_surface(axes: Any, vertices: Array, faces: Array, colors: Array, lines: Sequence[Array] = ()) -> None:
    """Draw a surface in a parallel projection, from the farthest triangle to the nearest, with lines on it.

    Parameters
    ----------
    axes : matplotlib Axes
        2-D axes.
    vertices : ndarray of shape (n, 3)
        Coordinates to the right, upwards, and towards the viewer.
    faces : ndarray of int, shape (m, 3)
    colors : ndarray of shape (m, 3)
        Colours of the triangles, darkened by their angle to the viewer.
    lines : sequence of arrays, shape (k, 3) each
        Polylines on the surface, in the same coordinates; parts behind the surface are hidden.
    """
    from matplotlib.collections import PolyCollection

    corners = vertices[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    facing = np.abs(normal[:, 2]) / np.maximum(np.linalg.norm(normal, axis=1), 1e-12)
    paint = colors * (0.35 + 0.65 * facing)[:, None]
    size = float(np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1).mean())
    segments = [np.stack([line[:-1], line[1:], line[:-1]], axis=1) for line in lines if len(line) > 1]
    ink = np.concatenate([np.empty((0, 3, 3)), *segments])
    shapes = np.concatenate([corners, ink])
    depth = np.append(corners[:, :, 2].mean(axis=1), ink[:, :, 2].mean(axis=1) + size)
    edges = np.concatenate([paint, np.full((len(ink), 3), 0.1)])
    widths = np.repeat([0.2, WIDTH], [len(corners), len(ink)])
    order = np.argsort(depth, kind="stable")
    axes.add_collection(
        PolyCollection(
            list(shapes[order][:, :, :2]), facecolors=edges[order], edgecolors=edges[order], linewidths=widths[order]
        )
    )
    axes.set_aspect("equal")
    axes.autoscale()
    hide_axes(axes)
