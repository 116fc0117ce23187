"""Draw the frame of a curved space, and shortest paths between points, on the axes of a plot."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from .charts import Chart
from .style import Theme

ARROW = 0.022  # size of the arrowheads that mark edges which meet, as a fraction of the period; chosen
PATH = 40  # positions along a shortest path; chosen
WIDTH = 0.7  # of a path, in points; chosen


def draw_frame(axes: Any, chart: Chart, theme: Theme) -> None:
    """Draw the square of a torus, with equal arrowheads on edges that meet, or the rim of the Poincaré disk."""
    from matplotlib.patches import Circle, Polygon, Rectangle

    if chart.disk:
        axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=theme.muted, linewidth=1.0, zorder=1, gid="rim"))
    if chart.period is None:
        return
    width, height = chart.period
    style: dict[str, Any] = {"edgecolor": theme.muted, "linewidth": 1.0, "zorder": 3}
    axes.add_patch(Rectangle((0, 0), width, height, fill=False, gid="square", **style))
    size = ARROW * float(max(width, height))
    head = size * np.array([[-0.5, -0.6], [0.5, 0.0], [-0.5, 0.6]])
    marks = [((width / 2, y), head) for y in (0.0, height)]
    # Two arrowheads on the other pair of edges, as in a gluing diagram.
    marks += [((x, height / 2 + shift * size), head[:, ::-1]) for x in (0.0, width) for shift in (-0.9, 0.9)]
    for position, shape in marks:
        axes.add_patch(Polygon(shape + np.array(position), closed=True, facecolor=theme.muted, **style))


def check_edges(edges: Any, n: int) -> Array:
    """Return pairs of rows (m, 2) to connect; raise ValueError unless they are indices of n points."""
    pairs = np.asarray(edges)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"edges must be an array of integers of shape (m, 2), got {pairs.dtype} of {pairs.shape}")
    if pairs.size and not (pairs.min() >= 0 and pairs.max() < n):
        raise ValueError(f"edges must contain rows from 0 to {n - 1}, got {pairs.min()} to {pairs.max()}")
    return pairs.astype(np.int64)


def draw_edges(axes: Any, chart: Chart, Y: Array, edges: Array, theme: Theme) -> None:
    """Draw the shortest paths between the points of each of the m pairs `edges` (m, 2) of rows of a map Y."""
    lines = edge_lines(chart, Y, edges)
    if axes.name == "3d":
        from mpl_toolkits.mplot3d.art3d import Line3DCollection as Lines
    else:
        from matplotlib.collections import LineCollection as Lines
    axes.add_collection(Lines(lines, colors=theme.muted, linewidths=WIDTH, alpha=0.6, zorder=1.5, gid="edges"))


def edge_lines(chart: Chart, Y: Array, edges: Array) -> list[Array]:
    """Return the shortest paths as polylines in the drawing, broken where they leave it on one side."""
    if chart.geometry is None:
        return list(chart.points[edges])
    span = chart.period if chart.period is not None else np.array([2 * np.pi, np.inf])
    lines: list[Array] = []
    for i, j in edges:
        line = chart.place(chart.geometry.geodesic(Y[i], Y[j], PATH))
        jumps = (np.abs(np.diff(line, axis=0)) > span / 2).any(axis=1)
        lines += [part for part in np.split(line, np.flatnonzero(jumps) + 1) if len(part) > 1]
    return lines
