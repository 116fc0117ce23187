"""A map as one self-contained page: to look around in, to search, and to select points from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from .._atomic import atomic_write
from .._types import Array
from .coloring import limits, ramp, shades
from .column import Classes, Column, read_column
from .inline import as_json, bokeh_scripts, filled, packed, plot_json, script
from .labels import hearts
from .plane import check_map, in_plane
from .style import DARK, LIGHT, Theme, dot_size
from .thumbnails import check_images

THEMES = {"light": LIGHT, "dark": DARK}
COLORED = 200  # different texts from which a column is an identifier, which no colour can show; chosen
HEAVY = 256 * 2**20  # bytes of images that a page may hold, before they are compressed; chosen


@dataclass(frozen=True, repr=False)
class Page:
    """A page: `save(path)` writes it, `html` is its text, and a notebook shows it."""

    html: str
    n: int

    def save(self, path: str | Path) -> None:
        """Write the page to a file, which opens without a network."""
        with atomic_write(path) as file:
            file.write(self.html.encode())

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="a map of {self.n:,} points" '
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
    dark: bool = False,
) -> Page:
    """Return a page of the map Y (n, d) that shows a point under the mouse, finds points, and saves selected ones.

    Parameters
    ----------
    Y : the map (n, d), or a fitted method, which stands for its `embedding_`
    color : a value for each point, as in `plot`, or the name of a column of the table
    names : names of the classes that `color` numbers from 0
    table : data frame, or column name → values (n,): what is told of a point, searched, saved, and coloured by
    images : (n, height, width) grey or (n, height, width, 3), uint8 or between 0 and 1, shown with a point

    Numbers are held in float32, so that saved ones have seven digits; whole numbers and text are held as they are.
    """
    scripts = bokeh_scripts("page()", "bokeh")
    Y = check_map(Y)
    columns = _columns(table, len(Y))
    first = -1
    if isinstance(color, str):
        if color not in columns:
            known = f"; there are: {', '.join(columns)}" if columns else ", since there is no table"
            raise ValueError(f"color is {color!r}, which is no column of the table{known}")
        if names is not None:
            columns[color] = read_column(table[color], len(Y), color, names)
        first = list(columns).index(color)
    elif color is not None:
        column = read_column(color, len(Y), "color", names)
        if getattr(color, "name", None) is None:
            column = replace(column, name="class" if isinstance(column, Classes) else "value")
        columns = {column.name: column, **{name: other for name, other in columns.items() if name != column.name}}
        first = 0
    elif names is not None:
        raise ValueError("names belong to classes; give the class of each point as color")
    points, layout = in_plane(Y)
    facts = {
        "x": packed(points[:, 0].astype(np.float32)),
        "y": packed(points[:, 1].astype(np.float32)),
        "columns": [_column(column, points, number == first) for number, column in enumerate(columns.values())],
        "color": first,
        "size": dot_size(len(Y)),
        "image": None if images is None else _images(check_images(images, len(Y))),
        "themes": {key: _theme(theme) for key, theme in THEMES.items()},
    }
    html = filled(
        "page",
        __package__,
        title=escape(title or f"A map of {len(Y):,} point{'s' * (len(Y) > 1)}"),
        theme="dark" if dark else "light",
        themes=_css(),
        bokeh=scripts,
        note=escape(layout and f"What is drawn is {layout}."),
        facts=as_json(facts),
        dots=script("dots"),
        map=plot_json(_plot(), "plot"),
    )
    return Page(html, len(Y))


def _columns(table: Any, n: int) -> dict[str, Column]:
    """Return the columns of a table by name."""
    if table is None:
        return {}
    keys = table.keys() if isinstance(table, Mapping) else getattr(table, "columns", None)
    if keys is None:
        raise ValueError(f"table must be a data frame or a mapping of names to values, got {type(table).__name__}")
    found = {str(key): read_column(table[key], n, f"table[{key!r}]") for key in keys}
    return {name: replace(column, name=name) for name, column in found.items()}


def _column(column: Column, points: Array, chosen: bool) -> dict[str, Any]:
    """Return what the script of the page has to know of a column; of many classes only the chosen one has colours."""
    facts: dict[str, Any]
    if not isinstance(column, Classes):
        low, high = limits(column)
        whole = column.whole and bool(np.isfinite(column.values).all()) and np.abs(column.values).max() < 2**31
        kind = np.int32 if whole else np.float64 if column.whole else np.float32
        facts = {"name": column.name, "kind": "number", "whole": column.whole, "colored": True}
        return facts | {"values": packed(column.values.astype(kind)), "low": low, "high": high}
    count = len(column.names)
    colored = chosen or count <= COLORED
    facts = {"name": column.name, "kind": "class", "names": column.names, "colored": colored}
    facts["values"] = packed(column.codes.astype(np.int8 if count < 128 else np.int16 if count < 2**15 else np.int32))
    if colored:
        places = hearts(points, column)
        facts["hearts"] = [[None if np.isnan(x) else float(x) for x in place] for place in places]
        facts["shades"] = shades(column, places).tolist()
    return facts


def _images(images: Array) -> dict[str, Any]:
    if images.nbytes > HEAVY:
        raise ValueError(
            f"images of {images.nbytes / 2**20:,.0f} MB are too much for a page, which takes {HEAVY // 2**20} MB;"
            " make them smaller, as in images[:, ::2, ::2], or show fewer points"
        )
    height, width = images.shape[1:3]
    channels = images.shape[3] if images.ndim == 4 else 1
    return {"height": height, "width": width, "channels": channels, "pixels": packed(images)}


def _theme(theme: Theme) -> dict[str, Any]:
    return asdict(theme) | {"ramp": ramp(theme)}


def _css() -> str:
    """Return the colours of the themes as variables of CSS."""
    rules = []
    for key, theme in THEMES.items():
        parts = f"--paper: {theme.paper}; --ink: {theme.ink}; --soft: {theme.soft}; --line: {theme.missing}"
        rules.append(f"[data-theme={key}] {{ color-scheme: {key}; {parts}; }}")
    return "\n".join(rules)


def _plot() -> Any:
    """Return the plot of the page: its tools and the names of classes; the points lie below it, drawn by its script."""
    from bokeh.models import ColumnDataSource, CustomJS
    from bokeh.plotting import figure

    plot: Any = figure(
        name="plot",
        sizing_mode="stretch_both",
        x_range=(0, 1),
        y_range=(0, 1),
        tools="pan,lasso_select,box_select,wheel_zoom",
        active_drag="pan",
        active_scroll="wheel_zoom",
        toolbar_location="above",
        background_fill_color=None,
        border_fill_color=None,
    )
    plot.axis.visible = False
    plot.grid.visible = False
    plot.toolbar.logo = None
    names = ColumnDataSource(name="names", data={"x": [], "y": [], "text": []})
    plot.text(
        "x", "y", "text", source=names, name="words", text_align="center", text_baseline="middle",
        text_font_style="bold", text_font_size="13px", background_fill_alpha=0.75, padding=2, border_radius=3,
    )  # fmt: skip
    events = {
        "mousemove": ("over", "[cb_obj.x, cb_obj.y, cb_obj.sx, cb_obj.sy]"),
        "mouseleave": ("over", "[null, null, 0, 0]"),
        "selectiongeometry": ("lasso", "cb_obj.geometry"),
    }
    for event, (name, detail) in events.items():
        when = "if (cb_obj.final) " if name == "lasso" else ""
        code = f"{when}document.dispatchEvent(new CustomEvent('{name}', {{detail: {detail}}}))"
        plot.js_on_event(event, CustomJS(code=code))
    return plot
