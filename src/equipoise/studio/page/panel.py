"""Shows one map of the page: its title, its plot, and arrows for the forces on the chosen point."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array
from ...views.plane import in_plane
from ..session.history import Frame
from ..session.point_forces import Forces

CURVES = {"a": "#332288", "b": "#b35806"}  # colours of the titles and loss curves of the two maps
ARROW_LENGTH = 0.16  # length of the longer arrow, as a fraction of the larger side of the map
# P. Tol, "Colour Schemes", 2021, the vibrant scheme.
ATTRACTION, REPULSION = "#0077bb", "#cc3311"
NO_SEGMENTS: dict[str, list[float]] = {"x0": [], "y0": [], "x1": [], "y1": []}


class Panel:
    """A Bokeh plot with the tools and arrows of a map; studio.js draws the points on a canvas behind it."""

    def __init__(self, name: str):
        from bokeh.models import Arrow, ColumnDataSource, CustomJS, Div, VeeHead
        from bokeh.plotting import figure

        self.name = name
        self.plot: Any = figure(
            name=f"map {name}",
            sizing_mode="stretch_both",
            min_width=200,
            tools="pan,wheel_zoom,box_zoom,reset",
            active_scroll="wheel_zoom",
            x_range=(-1, 1),
            y_range=(-1, 1),
            background_fill_color=None,
            border_fill_color=None,
        )
        self.plot.toolbar.logo = None
        self.plot.toolbar.autohide = True
        self.plot.axis.visible = False
        self.plot.grid.visible = False
        self.plot.outline_line_color = None  # drawn by the page, because Bokeh would draw it over the last arrow
        self.title = Div(
            name=f"title {name}",
            render_as_text=True,
            text="",
            styles={"font-weight": "600", "color": f"var(--run-{name})"},
        )
        self.pulls = ColumnDataSource(name=f"pulls {name}", data={**NO_SEGMENTS, "alpha": []})
        self.plot.segment(
            "x0", "y0", "x1", "y1", source=self.pulls, line_color=ATTRACTION, line_alpha="alpha", line_width=1
        )
        self.arrows = ColumnDataSource(name=f"arrows {name}", data={**NO_SEGMENTS, "color": []})
        head = VeeHead(size=11, line_color="color", fill_color="color")
        self.plot.add_layout(
            Arrow(
                x_start="x0", y_start="y0", x_end="x1", y_end="y1", source=self.arrows, end=head, line_color="color",
                line_width=3,
            )
        )  # fmt: skip
        events = {
            "tap": ("click on map", f"['{name}', cb_obj.x, cb_obj.y]"),
            "mousemove": ("hover", f"['{name}', cb_obj.sx, cb_obj.sy]"),
            "mouseleave": ("hover", f"['{name}', null, null]"),
            "reset": ("reset view", f"'{name}'"),
        }
        for event, (custom_event, detail) in events.items():
            code = f"document.dispatchEvent(new CustomEvent('{custom_event}', {{detail: {detail}}}))"
            self.plot.js_on_event(event, CustomJS(code=code))

    def draw(self, frame: Frame, plane: Array, point: int, forces: Forces | None) -> None:
        """Draw the forces on one point of a frame; `plane` (n, 2) contains the positions of all points in the plot."""
        if forces is None:
            self.clear()
            return
        origin = plane[point]
        ends = np.array([self._end(frame.Y[point], F) for F in forces[:2]])
        steps = ends - origin
        longest = float(np.linalg.norm(steps, axis=1).max())
        if longest > 0:
            steps *= ARROW_LENGTH * float(np.ptp(plane, axis=0).max()) / longest
        x1, y1 = (origin + steps).T
        start = {"x0": np.full(2, origin[0]), "y0": np.full(2, origin[1])}
        self.arrows.data = {**start, "x1": x1, "y1": y1, "color": [ATTRACTION, REPULSION]}
        to = plane[forces.near]
        self.pulls.data = {
            "x0": np.full(len(to), origin[0]),
            "y0": np.full(len(to), origin[1]),
            "x1": to[:, 0],
            "y1": to[:, 1],
            "alpha": 0.25 + 0.6 * forces.affinities / forces.affinities.max(initial=1e-300),
        }

    def clear(self) -> None:
        """Remove the arrows and the lines to the neighbours."""
        if len(self.arrows.data["x0"]):
            self.arrows.data = {**NO_SEGMENTS, "color": []}
            self.pulls.data = {**NO_SEGMENTS, "alpha": []}

    @staticmethod
    def _end(y: Array, F: Array) -> Array:
        """Return the end of the arrow for a force F on a point y, projected onto the plane like the point."""
        if len(y) == 2:
            return np.asarray(in_plane((y + F)[None])[0][0])
        size = max(float(np.linalg.norm(F)), 1e-300)
        moved = y + 1e-3 * F / size
        ends = in_plane((moved / np.linalg.norm(moved))[None])[0][0]
        origin = in_plane(y[None])[0][0]
        return np.asarray(origin + (ends - origin) / 1e-3 * size)
