"""Write a report as a self-contained page: map coloured by trust, neighbours of a clicked point, and two plots."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..._types import Array
from ...views.charts import Chart, find_geometry, make_flat_chart
from ...views.inline import as_json, bokeh_scripts, plot_json, render_page
from ...views.style import COLORS, LIGHT
from ..map_measures import MapMeasures
from ..reading import READ, Reading
from ..report_table import as_html, report_rows
from .report_figure import PALE
from .shading import UNMEASURED, Shading, shadings
from .shepard import distance_bands, sample_pairs

PIXELS = 600  # width and height of the map
# P. Tol, "Colour Schemes", 2021, the vibrant scheme, with a darker teal; the three also have different shapes.
FALSE, MISSING, KEPT = "#cc3311", "#00796b", "#000000"
MAX_ON_CANVAS = 5000  # maximum number of points drawn without WebGL; chosen


def fidelity_page(report: MapMeasures, readings: Sequence[Reading], subtitle: str, footer: str) -> str:
    """Return the page of a report as HTML.

    Parameters
    ----------
    report : MapMeasures
        The measures of the map, which the table and the plots show.
    readings : sequence of Reading
        The sentences about what can be read from the map.
    subtitle, footer : str
        The text below the title, and the text at the end of the page.
    """
    bokeh = bokeh_scripts("to_html()", "bokeh", "bokeh-gl")
    colorings = shadings(report)
    chart = make_flat_chart(report.Y, find_geometry(report.space))
    layout = chart.note
    plots = {"map": _map(report, chart, colorings), "shepard": _shepard(report), "recall": _recall(report)}
    items = "".join(
        f'<li><span class="verdict {reading.verdict.replace(" ", "-")}">{_verdict_label(reading.verdict)}</span>'
        f"<span><b>{escape(reading.about)}</b>{escape(reading.text)}</span></li>"
        for reading in readings
    )
    parts = {
        "title": escape(f"Fidelity of a map of {report.n:,} points"),
        "subtitle": escape(subtitle),
        "readings": items,
        "table": as_html(*report_rows(report)),
        "layout": escape(layout and f"This plot shows {layout}."),
        "last": str(report.n - 1),
        "footer": escape(footer),
        "facts": as_json(_facts(report, chart, colorings)),
        **{name: plot_json(plot, name) for name, plot in plots.items()},
    }
    return render_page("fidelity", __package__, {"bokeh": bokeh}, parts)


def _verdict_label(verdict: str) -> str:
    return "reliable" if verdict == READ else verdict


def _facts(report: MapMeasures, chart: Chart, colorings: dict[str, Shading]) -> dict[str, Any]:
    """Return the data that the JavaScript of the page needs."""
    return {
        "n": report.n,
        "k": report.k,
        "measured": len(report.points),
        "unmeasured": UNMEASURED if len(report.points) < report.n else "",
        "pixels": PIXELS,
        "period": None if chart.period is None else chart.period.tolist(),
        "classes": list(colorings["class"].names) if "class" in colorings else [],
        "colors": {"false": FALSE, "missing": MISSING},
        "shadings": {
            key: {
                "title": shading.title,
                "hint": shading.hint,
                "colors": shading.colors,
                "names": shading.names,
                "shares": shading.shares(),
            }
            for key, shading in colorings.items()
        },
    }


def _map(report: MapMeasures, chart: Chart, colorings: dict[str, Shading]) -> Any:
    from bokeh.models import ColumnDataSource, HoverTool, LinearColorMapper
    from bokeh.plotting import figure

    points, extent = chart.points, chart.extent
    low, high = extent.min(axis=0), extent.max(axis=0)
    middle, half = (low + high) / 2, 0.53 * float((high - low).max())
    plot: Any = figure(
        name="plot",
        frame_width=PIXELS,
        frame_height=PIXELS,
        x_range=(middle[0] - half, middle[0] + half),
        y_range=(middle[1] - half, middle[1] + half),
        tools="pan,wheel_zoom,box_zoom,reset,save",
        active_scroll="wheel_zoom",
        output_backend="webgl" if report.n > MAX_ON_CANVAS else "canvas",
    )
    _hide_axes(plot)
    size = float(np.clip(220 / np.sqrt(len(report.points)), 3.0, 8.0))
    label = _class_indices(report)
    measured = np.zeros(report.n, bool)
    measured[report.points] = True
    others = np.flatnonzero(~measured).astype(np.int32)
    # The code of a point is the index of its colour, −1 for points that were not measured.
    mapper = LinearColorMapper(
        name="mapper", palette=list(colorings["trust"].colors), low=-0.5, high=3.5, low_color=UNMEASURED
    )
    color = {"field": "code", "transform": mapper}
    unknown = np.full(len(others), -1, np.int8)
    drawn: Any = ColumnDataSource(name="others", data=_positions(points, others, label) | {"code": unknown})
    plot.scatter("x", "y", source=drawn, size=2.5, color=color, line_color=None, alpha=0.6)
    _frame(plot, chart, color, size, label)

    columns = _positions(points, report.points.astype(np.int32), label)
    columns |= {"trust": report.trust, "continuity": report.continuity_of_points, "kept": report.kept}
    columns = {name: _compact(values) for name, values in columns.items()}
    columns |= {f"{key}_code": shading.codes for key, shading in colorings.items()}
    source: Any = ColumnDataSource(name="points", data=columns | {"code": colorings["trust"].codes})
    shown = plot.scatter(
        "x", "y", source=source, size=size, color=color, line_color=None, alpha=0.85, nonselection_alpha=0.22
    )
    hover = [("row", "@row"), ("trust", "@trust{0.000}"), ("continuity", "@continuity{0.000}"), ("kept", "@kept{0%}")]
    plot.add_tools(HoverTool(renderers=[shown], tooltips=hover))
    _overlay(plot)
    # The neighbour lists, k per point, are in a source that is not drawn; tagging the plot with it puts it on the page.
    plot.tags = [ColumnDataSource(name="lists", data=_neighbor_lists(report))]
    return plot


def _frame(plot: Any, chart: Chart, color: Any, size: float, label: Array) -> None:
    """Draw the frame of a curved space as `plot` does, and the points in the strip around the square of a torus."""
    from bokeh.models import ColumnDataSource

    for name, lines, ink in (
        ("graticule", chart.graticule(), LIGHT.missing),
        ("outline", chart.outline(), LIGHT.muted),
    ):
        xs, ys = ([line[:, c].tolist() for line in lines] for c in (0, 1))
        plot.multi_line(xs, ys, line_color=ink, line_width=1, level="underlay", name=name)
    xs, ys = ([head[:, c].tolist() for head in chart.arrowheads()] for c in (0, 1))
    plot.patches(xs, ys, color=LIGHT.muted, name="arrowheads")
    rows, positions = chart.copies()
    x, y = positions.astype(np.float32).T
    columns = {"x": np.ascontiguousarray(x), "y": np.ascontiguousarray(y), "row": rows.astype(np.int32)}
    columns |= {"label": label[rows], "code": np.full(len(rows), -1, np.int8)}  # the page sets the codes
    copies: Any = ColumnDataSource(name="copies", data=columns)
    plot.scatter("x", "y", source=copies, size=size, color=color, line_color=None, alpha=PALE)


def _overlay(plot: Any) -> None:
    """Add the markers and lines for the neighbours of a selected point, empty at first."""
    from bokeh.models import ColumnDataSource

    lines = ColumnDataSource(name="lines", data={name: [] for name in ("x0", "y0", "x1", "y1", "color")})
    plot.segment("x0", "y0", "x1", "y1", source=lines, line_color="color", line_width=1, line_alpha=0.6)
    marks = (
        ("chosen", "star", 20, "#ffd400"),
        ("kept", "circle", 7, KEPT),
        ("missing", "square", 9, MISSING),
        ("false", "triangle", 10, FALSE),
    )
    for name, marker, size, color in marks:
        source = ColumnDataSource(name=name, data={"x": [], "y": []})
        edge = "black" if name == "chosen" else "white"
        plot.scatter("x", "y", source=source, marker=marker, size=size, color=color, line_color=edge, line_width=1)


def _positions(points: Array, rows: Array, label: Array) -> dict[str, Array]:
    x, y = points[rows].astype(np.float32).T
    return {"x": np.ascontiguousarray(x), "y": np.ascontiguousarray(y), "row": rows, "label": label[rows]}


def _class_indices(report: MapMeasures) -> Array:
    """Return the class index (n,) of every row; all −1 if the report has no classes."""
    if report.labels is None:
        return np.full(report.n, -1, np.int32)
    return np.unique(np.asarray(report.labels), return_inverse=True)[1].astype(np.int32)


def _neighbor_lists(report: MapMeasures) -> dict[str, Array]:
    """Return the k nearest rows of each measured point in the map and in the data, and their ranks in the other space.

    Each array is flat, with k entries per measured point.
    """
    hoods, k = report.neighborhoods, report.k
    lists = {"in_map": hoods.near_y, "in_data": hoods.near_x, "data_rank": hoods.rank_x, "map_rank": hoods.rank_y}
    return {name: _compact(values[:, :k].ravel()) for name, values in lists.items()}


def _compact(values: Array) -> Array:
    """Return numbers as float32, uint16 or int32, to keep the page small: the neighbour lists make up half of it."""
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    return values.astype(np.uint16 if values.min(initial=0) >= 0 and values.max(initial=0) < 2**16 else np.int32)


def _hide_axes(plot: Any) -> None:
    """Hide axes and grid: the coordinates of a map have no intrinsic meaning."""
    plot.axis.visible = False
    plot.grid.visible = False
    plot.outline_line_color = "#dfe2ea"
    plot.toolbar.logo = None


def _new_plot(**options: Any) -> Any:
    """Return a Bokeh plot in the style of the page."""
    from bokeh.plotting import figure

    plot: Any = figure(height=360, sizing_mode="stretch_width", tools="pan,box_zoom,reset,save", **options)
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.outline_line_color = None
    plot.axis.axis_label_text_font_style = "normal"
    plot.axis.minor_tick_line_color = None
    plot.grid.grid_line_color = "#eceef3"
    return plot


def _shepard(report: MapMeasures) -> Any:
    d_x, d_y = report.shepard.d_x, report.shepard.d_y
    plot = _new_plot(x_axis_label="distance in the data", y_axis_label="distance in the map")
    plot.scatter(*map(_compact, sample_pairs(d_x, d_y)), size=3, color=COLORS[0], line_color=None, alpha=0.2)
    at, low, median, high = distance_bands(d_x, d_y)
    plot.varea(at, low, high, fill_color=COLORS[6], fill_alpha=0.25)
    plot.line(at, median, line_color=COLORS[6], line_width=2.5)
    plot.x_range.start = plot.y_range.start = 0
    return plot


def _recall(report: MapMeasures) -> Any:
    from bokeh.models import NumeralTickFormatter

    curve = report.recall_curve
    ks, recall = np.asarray(curve.ks, float), np.asarray(curve.recall, float)
    plot = _new_plot(
        x_axis_label="neighbours k", y_axis_label="fraction kept", x_axis_type="log", y_range=(0, 1.02), name="recall"
    )
    plot.line(ks, recall, line_color=COLORS[0], line_width=2.5, legend_label="this map")
    plot.scatter(ks, recall, size=6, color=COLORS[0])
    plot.line(ks, curve.chance, line_color="#777777", line_dash="dashed", legend_label="a random map")
    plot.legend.location = "top_left"
    plot.legend.border_line_color = None
    plot.xaxis.ticker = curve.ks.tolist()
    plot.xaxis.formatter = NumeralTickFormatter(format="0")
    plot.yaxis.formatter = NumeralTickFormatter(format="0%")
    return plot
