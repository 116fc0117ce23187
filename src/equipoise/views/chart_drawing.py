"""Draw the frame of a curved space, and shortest paths between points, on the axes of a plot."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from .charts import STRIP, Chart
from .style import Theme

PATH = 40  # positions along a shortest path; chosen
WIDTH = 0.7  # of a path, in points; chosen


def draw_frame(axes: Any, chart: Chart, theme: Theme) -> None:
    """Draw the square of a torus, with equal arrowheads on edges that meet, the rim of the disk, or an ellipse."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Polygon

    above = chart.period is not None  # the square divides the points from those of the strip
    for line in chart.outline():
        name = "square" if chart.period is not None else "rim" if chart.disk else "ellipse"
        style: dict[str, Any] = {"edgecolor": theme.muted, "linewidth": 1.0, "zorder": 3 if above else 1}
        axes.add_patch(Polygon(line, closed=True, fill=False, gid=name, **style))
    for head in chart.arrowheads():
        axes.add_patch(Polygon(head, closed=True, facecolor=theme.muted, edgecolor=theme.muted, zorder=3))
    if lines := chart.graticule():
        axes.add_collection(LineCollection(lines, colors=theme.missing, linewidths=0.7, zorder=0.5, gid="graticule"))


def strip_boxes(axes: Any, chart: Chart) -> Array:
    """Return the strip around the square of a torus, (4, 4): left, bottom, right, top in pixels; (0, 4) without one."""
    if chart.period is None:
        return np.empty((0, 4))
    (a, b), (width, height) = STRIP * chart.period, chart.period
    low = [(-a, -b), (-a, -b), (width, -b), (-a, height)]
    high = [(0, height + b), (width + a, 0), (width + a, height + b), (width + a, height + b)]
    return np.hstack([axes.transData.transform(corners) for corners in (low, high)])


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
