"""Draw figures of one report, and of several reports side by side."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...views.chart_drawing import draw_frame
from ...views.charts import find_geometry, make_flat_chart
from ...views.style import COLORS, LIGHT, add_legend, as_text, hide_axes, new_figure
from ..map_measures import MapMeasures
from .shading import UNMEASURED, shadings
from .shepard import distance_bands, sample_pairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PALE = 0.3  # opacity of the repeated points around a torus; chosen


def report_figure(report: MapMeasures) -> Figure:
    """Return a figure of the map coloured by trust, the Shepard diagram and the recall curve."""
    figure = new_figure(figsize=(13, 5.6), dpi=110)
    left, right = figure.subfigures(1, 2, width_ratios=(1.05, 1))
    axes = left.subplots()
    _draw_map(axes, report)
    axes.set_title(f"trustworthiness {float(report.trustworthiness):.3f}")
    add_legend(axes, **_legend(report), ncols=4, title="trust per point")
    top, bottom = right.subplots(2, 1)
    _draw_shepard(top, report)
    _draw_recall(bottom, {"this map": report})
    result: Figure = figure
    return result


def comparison_figure(reports: Mapping[str, MapMeasures]) -> Figure:
    """Return a figure of several maps, coloured by trust, and of their recall curves in one plot."""
    plots = len(reports) + 1
    columns = min((3, 4, 2), key=lambda width: -plots % width)  # the fewest empty cells
    rows = -(-plots // columns)
    figure: Figure = new_figure(figsize=(4.3 * columns, 4.3 * rows + 0.4), dpi=110)
    cells = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (name, report) in zip(cells, reports.items(), strict=False):
        _draw_map(axes, report)
        title = as_text(f"{name}\ntrust {float(report.trustworthiness):.3f}, kept {float(report.recall):.0%}")
        axes.set_title(title, parse_math=False)
    _draw_recall(cells[len(reports)], reports)
    for axes in cells[plots:]:
        axes.axis("off")
    report = next(iter(reports.values()))
    figure.legend(**_legend(report), loc="outside lower center", ncols=4, title="trust per point", frameon=False)
    return figure


def as_image(figure: Figure) -> str:
    """Return a figure as an HTML <img> element with inline data."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    text = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="the map and its measures" style="max-width: 100%" src="data:image/png;base64,{text}">'


def _draw_map(axes: Any, report: MapMeasures) -> None:
    chart = make_flat_chart(report.Y, find_geometry(report.space))
    draw_frame(axes, chart, LIGHT)
    shading = shadings(report)["trust"]
    size = float(np.clip(6000 / report.n, 1.0, 14.0))
    hide_axes(axes)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(chart.note)
    if len(report.points) < report.n:
        axes.scatter(*chart.points.T, s=size, color=UNMEASURED, linewidths=0)
    colors = np.full(report.n, UNMEASURED)
    colors[report.points] = np.array(shading.colors)[shading.codes]
    # Draw the least trusted points last, on top of the others.
    rows = report.points[np.argsort(shading.codes, kind="stable")]
    axes.scatter(*chart.points[rows].T, s=size, c=colors[rows], linewidths=0)
    rows, copies = chart.copies()
    if len(rows):
        axes.scatter(*copies.T, s=size, c=colors[rows], alpha=PALE, linewidths=0)


def _legend(report: MapMeasures) -> dict[str, Any]:
    from matplotlib.lines import Line2D

    shading = shadings(report)["trust"]
    dots = [Line2D([], [], marker="o", linestyle="", color=color) for color in shading.colors]
    return {"handles": dots, "labels": list(shading.names), "handletextpad": 0.1}


def _draw_shepard(axes: Any, report: MapMeasures) -> None:
    d_x, d_y = report.shepard.d_x, report.shepard.d_y
    axes.scatter(*sample_pairs(d_x, d_y), s=3, color=COLORS[0], alpha=0.2, linewidths=0)
    at, low, median, high = distance_bands(d_x, d_y)
    axes.fill_between(at, low, high, color=COLORS[6], alpha=0.25, linewidth=0)
    axes.plot(at, median, color=COLORS[6], linewidth=2)
    axes.set_xlabel("distance in the data")
    axes.set_ylabel("distance in the map")
    axes.set_title(f"distances: rank correlation {float(report.shepard.correlation):.2f}")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_recall(axes: Any, reports: Mapping[str, MapMeasures]) -> None:
    lines = []
    for i, report in enumerate(reports.values()):
        curve = report.recall_curve
        lines += axes.plot(curve.ks, curve.recall, "o-", color=COLORS[i % len(COLORS)], markersize=4)
    lines += axes.plot(curve.ks, curve.chance, "--", color="#777777")
    axes.set_xscale("log")
    axes.set_xticks(curve.ks, [str(k) for k in curve.ks])
    axes.minorticks_off()
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("neighbours k")
    axes.set_ylabel("fraction kept")
    axes.set_title("neighbours kept")
    # The legend is below the plot so that it covers no curve.
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 2}
    legend = axes.legend(lines, [str(i) for i in range(len(lines))], frameon=False, fontsize=8, **place)
    for text, name in zip(legend.get_texts(), [*reports, "a random map"], strict=True):
        text.set(text=as_text(name), parse_math=False)  # matplotlib would hide a name that begins with _
    axes.spines[["top", "right"]].set_visible(False)
