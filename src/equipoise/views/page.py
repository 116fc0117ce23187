"""Write interactive maps as self-contained HTML pages: users can zoom, and hover over, search and select points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from .._atomic import atomic_write
from .._plural import plural
from .._types import Array
from ..data.checks.maps import check_map
from .charts import Chart, find_geometry, is_solid, make_flat_chart, sphere_points
from .coloring import assign_colors, assign_marks, color_limits, theme_colors
from .column import MAX_CLASSES, Classes, Column
from .dates import iso_length
from .inline import as_json, bokeh_scripts, encode_array, plot_json, read_script, render_page
from .labels import class_centers
from .style import THEMES, check_title, dot_size
from .table_columns import choose_color, read_columns
from .thumbnails import check_images

MAX_IMAGE_BYTES = 256 * 2**20  # uncompressed images in a page; chosen


@dataclass(frozen=True, repr=False)
class Page:
    """A self-contained HTML page; notebooks display it.

    Attributes
    ----------
    html : str
        The text of the page.
    n : int
        Number of points.
    """

    html: str
    n: int

    def save(self, path: str | Path) -> None:
        """Write the page to a file that can be opened offline.

        Parameters
        ----------
        path : str or Path
        """
        with atomic_write(path) as file:
            file.write(self.html.encode())

    def _repr_html_(self) -> str:
        # In ASCII, because a wrongly decoded script does not match its hash in the policy.
        content = escape(self.html).encode("ascii", "xmlcharrefreplace").decode()
        return (
            f'<iframe srcdoc="{content}" title="map of {self.n:,} points" '
            'style="width: 100%; height: 640px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<page of {self.n:,} points, {len(self.html.encode()) / 2**20:.1f} MB; save(path) writes it>"


def page(
    Y: Any,
    color: Any = None,
    *,
    names: Sequence[str] | None = None,
    table: Any = None,
    images: Any = None,
    title: str = "",
    dark: bool | None = None,
    geometry: Any = None,
) -> Page:
    """Return an interactive page of a map: hover over points, search them, select some and save them as CSV.

    Dates are coloured from early to late. A text column is an identifier if its number of distinct values exceeds both
    200 and half the number of points that have a value. An identifier is shown and can be searched, but cannot colour
    the points. Any other column with more than 200 classes can colour the points only if it is passed as `color`.

    Floats are stored as float32, so exported floats have seven digits; integers and text are stored exactly.

    Parameters
    ----------
    Y : array-like of shape (n, d) or fitted method
        The map, or a fitted method with the map in `embedding_`.
    color : array-like of shape (n,) or str, optional
        One value per point, as in `plot`, or the name of a column of `table`.
    names : sequence of str, optional
        Names of the classes 0, 1, …, if `color` contains integers.
    table : data frame or mapping of str to array-like of shape (n,), optional
        Columns to show for a point, to search, to export and to colour by.
    images : array-like of shape (n, height, width) or (n, height, width, 3), optional
        Grey or RGB images, uint8 or between 0 and 1, shown for the point under the mouse.
    title : str, default=""
    dark : bool, optional
        Whether the background is dark; by default as in the system of the reader, who can choose the other one.
    geometry : {"plane", "sphere", "torus", "hyperbolic"} or Geometry, optional
        The space of the map, as in `plot`; by default that of the fitted method Y. A torus repeats itself on all sides.
        In the Poincaré disk of the hyperbolic plane, a click on a point moves it to the centre. A sphere is a globe
        that turns when it is dragged; its points are exported as unit vectors. A map in three dimensions turns as well.

    Returns
    -------
    page : Page
    """
    bokeh = bokeh_scripts("page()", "bokeh")
    space, Y = find_geometry(geometry, Y), check_map(Y)
    check_title(title)
    theme = _theme_name(dark)
    columns = read_columns(table, len(Y), "table")
    columns, color_index = choose_color(color, names, columns, table, len(Y), "table")
    chart = make_flat_chart(Y, space)
    globe, solid = sphere_points(Y, space), None
    points, layout = chart.points, "a globe; drag to turn it" if globe is not None else chart.note
    if globe is None and is_solid(Y, space):
        globe, solid = _unit_ball(np.asarray(Y, dtype=np.float64))
        layout = "three dimensions; drag to turn them"
    notes = [f"This plot shows {layout}."] if layout else []
    notes += ["Click a point to move it to the centre."] if chart.disk else []
    chosen = list(columns.values())[color_index] if color_index >= 0 else None
    if isinstance(chosen, Classes) and chosen.is_identifier:
        notes.append(f"{chosen.name} has {len(chosen.names):,} different values, too many for colours.")
        color_index = -1
    facts = {
        "x": encode_array(points[:, 0].astype(np.float32)),
        "y": encode_array(points[:, 1].astype(np.float32)),
        "columns": [_column_facts(column, chart, globe, i == color_index) for i, column in enumerate(columns.values())],
        "period": None if chart.period is None else chart.period.tolist(),
        "cut": None if chart.cut is None else chart.cut.tolist(),
        "disk": chart.disk,
        "globe": None if globe is None else encode_array(globe.astype(np.float32)),
        "solid": solid,
        "color": color_index,
        "size": dot_size(len(Y)),
        "image": None if images is None else _images(check_images(images, len(Y))),
        "themes": {key: theme_colors(theme) for key, theme in THEMES.items()},
    }
    parts = {
        "title": escape(title or f"Map of {plural(len(Y), 'point')}"),
        "theme": theme,
        "themes": _css(),
        "note": escape(" ".join(notes)),
        "facts": as_json(facts),
        "map": plot_json(_plot(globe is not None), "plot"),
    }
    own = "\n".join(
        read_script(name) for name in ("color_scheme", "colors", "summary", "picture", "plot_keys", "keyboard")
    )
    curved = read_script("curved") + read_script("solid")
    scripts = {"bokeh": bokeh, "dots": read_script("dots"), "curved": curved, "parts": own}
    html = render_page("page", __package__, scripts, parts)
    return Page(html, len(Y))


def _unit_ball(Y: Array) -> tuple[Array, dict[str, Any]]:
    """Return the points Y (n, 3) in the unit ball, and the centre and radius that map them back."""
    center = (Y.min(axis=0) + Y.max(axis=0)) / 2 if len(Y) else np.zeros(3)
    radius = float(np.linalg.norm(Y - center, axis=1).max(initial=0)) or 1.0
    return (Y - center) / radius, {"center": center.tolist(), "radius": radius}


def _theme_name(dark: Any) -> str:
    if not (dark is None or isinstance(dark, bool | np.bool_)):
        raise ValueError(f"dark must be True, False or None, got {dark!r}")
    return "system" if dark is None else "dark" if dark else "light"


def _column_facts(column: Column, chart: Chart, globe: Array | None, chosen: bool) -> dict[str, Any]:
    """Return a column as a dict that can be written as JSON for the script of the page.

    A column with more than MAX_CLASSES classes gets colours only if it is `chosen` to colour the points.
    """
    facts: dict[str, Any]
    if not isinstance(column, Classes):
        low, high = color_limits(column)
        if column.dates:
            facts = {"name": column.name, "kind": "number", "iso": iso_length(column.values), "colored": True}
            return facts | {"values": encode_array(column.values), "low": low, "high": high}
        as_int32 = column.integral and bool(np.isfinite(column.values).all()) and np.abs(column.values).max() < 2**31
        kind = np.int32 if as_int32 else np.float64 if column.integral else np.float32
        facts = {"name": column.name, "kind": "number", "integral": column.integral, "colored": True}
        return facts | {"values": encode_array(column.values.astype(kind)), "low": low, "high": high}
    count = len(column.names)
    colored = chosen or count <= MAX_CLASSES
    facts = {"name": column.name, "kind": "class", "names": column.names, "colored": colored}
    code_type = np.int8 if count < 128 else np.int16 if count < 2**15 else np.int32
    facts["values"] = encode_array(column.codes.astype(code_type))
    if colored:
        centers = class_centers(chart.points, column, chart.period)
        facts["centers"] = _positions(centers)
        if globe is not None:
            facts["sphere_centers"] = _positions(class_centers(globe, column))
        colors = assign_colors(column, centers)
        facts["color_indices"], facts["marks"] = colors.tolist(), assign_marks(colors).tolist()
    return facts


def _positions(centers: Array) -> list[list[float | None]]:
    """Return the centres of classes for JSON; those of classes without points are null."""
    return [[None if np.isnan(x) else float(x) for x in center] for center in centers]


def _images(images: Array) -> dict[str, Any]:
    """Return the images as a dict that can be written as JSON for the script of the page."""
    if images.nbytes > MAX_IMAGE_BYTES:
        raise ValueError(
            f"images need {images.nbytes / 2**20:,.0f} MB, but a page can contain at most {MAX_IMAGE_BYTES // 2**20} MB"
            " of images; make them smaller, as in images[:, ::2, ::2], or show fewer points"
        )
    height, width = images.shape[1:3]
    channels = images.shape[3] if images.ndim == 4 else 1
    return {"height": height, "width": width, "channels": channels, "pixels": encode_array(images)}


def _css() -> str:
    """Return the colours of the themes as CSS variables; the theme "system" has those that the system prefers."""
    rules = []
    for key, theme in THEMES.items():
        colors = {"background": theme.background, "text": theme.text, "muted": theme.muted, "line": theme.missing}
        parts = "; ".join(f"--{name}: {color}" for name, color in colors.items())
        rule = f"{{ color-scheme: {key}; {parts}; }}"
        rules.append(f"[data-theme={key}] {rule}")
        rules.append(f"@media (prefers-color-scheme: {key}) {{ [data-theme=system] {rule} }}")
    return "\n".join(rules)


def _plot(globe: bool) -> Any:
    """Return a Bokeh plot with the tools and the class names; dots.js draws the points on a canvas behind it.

    On a globe no tool is active at first, so that dragging turns it.
    """
    from bokeh.models import ColumnDataSource
    from bokeh.plotting import figure

    plot: Any = figure(
        name="plot",
        sizing_mode="stretch_both",
        x_range=(0, 1),
        y_range=(0, 1),
        tools="pan,lasso_select,box_select,wheel_zoom",
        active_drag=None if globe else "pan",
        active_scroll="wheel_zoom",
        toolbar_location="above",
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,  # drawn by the page, because Bokeh would also draw it around the last class name
    )
    plot.axis.visible = False
    plot.grid.visible = False
    plot.toolbar.logo = None
    graticule = ColumnDataSource(name="graticule", data={"xs": [], "ys": []})  # of a globe
    plot.multi_line("xs", "ys", source=graticule, name="faint", line_width=1)
    frame = ColumnDataSource(name="frame", data={"xs": [], "ys": []})  # of a curved space
    plot.multi_line("xs", "ys", source=frame, name="edge", line_width=1)
    names = ColumnDataSource(name="names", data={"x": [], "y": [], "text": []})
    plot.text(
        "x", "y", "text", source=names, name="words", text_align="center", text_baseline="middle",
        text_font_style="bold", text_font_size="13px", background_fill_alpha=0.75, padding=2, border_radius=3,
    )  # fmt: skip
    return plot
