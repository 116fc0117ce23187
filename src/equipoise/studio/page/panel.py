"""One map in the page: its plot, the forces on the chosen point, and its title."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array
from ...views.plane import in_plane
from ..session.forces import Forces
from ..session.history import Frame

CURVES = {"a": "#332288", "b": "#b35806"}  # of the losses of the two maps and of their titles
LONGEST = 0.16  # of the wider side of the map: the longer of the two arrows
# P. Tol, "Colour Schemes", 2021, the vibrant scheme.
ATTRACTION, REPULSION = "#0077bb", "#cc3311"
NOTHING: dict[str, list[float]] = {"x0": [], "y0": [], "x1": [], "y1": []}


class Panel:
    """A plot with the tools and the arrows of a map; its points lie below it, drawn by studio.js."""

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
        self.plot.outline_line_color = None  # the page draws it: Bokeh strokes the last arrow with it
        self.title = Div(
            name=f"title {name}", render_as_text=True, text="", styles={"font-weight": "600", "color": CURVES[name]}
        )
        self.pulls = ColumnDataSource(name=f"pulls {name}", data={**NOTHING, "alpha": []})
        self.plot.segment(
            "x0", "y0", "x1", "y1", source=self.pulls, line_color=ATTRACTION, line_alpha="alpha", line_width=1
        )
        self.arrows = ColumnDataSource(name=f"arrows {name}", data={**NOTHING, "color": []})
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
            "reset": ("whole map", f"'{name}'"),
        }
        for event, (said, detail) in events.items():
            code = f"document.dispatchEvent(new CustomEvent('{said}', {{detail: {detail}}}))"
            self.plot.js_on_event(event, CustomJS(code=code))

    def draw(self, frame: Frame, plane: Array, point: int, forces: Forces) -> None:
        """Show what acts on a point of a frame that is drawn at `plane` (n, 2)."""
        here = plane[point]
        ends = np.array([self._end(frame.Y[point], F) for F in forces[:2]])
        steps = ends - here
        longest = float(np.linalg.norm(steps, axis=1).max())
        if longest > 0:
            steps *= LONGEST * float(np.ptp(plane, axis=0).max()) / longest
        x1, y1 = (here + steps).T
        start = {"x0": np.full(2, here[0]), "y0": np.full(2, here[1])}
        self.arrows.data = {**start, "x1": x1, "y1": y1, "color": [ATTRACTION, REPULSION]}
        to = plane[forces.near]
        self.pulls.data = {
            "x0": np.full(len(to), here[0]),
            "y0": np.full(len(to), here[1]),
            "x1": to[:, 0],
            "y1": to[:, 1],
            "alpha": 0.25 + 0.6 * forces.affinities / forces.affinities.max(initial=1e-300),
        }

    def clear(self) -> None:
        """Show no forces."""
        if len(self.arrows.data["x0"]):
            self.arrows.data = {**NOTHING, "color": []}
            self.pulls.data = {**NOTHING, "alpha": []}

    @staticmethod
    def _end(y: Array, F: Array) -> Array:
        """Return where a point would be drawn after a small step along a force; the plane itself for a flat map."""
        if len(y) == 2:
            return np.asarray(in_plane((y + F)[None])[0][0])
        size = max(float(np.linalg.norm(F)), 1e-300)
        moved = y + 1e-3 * F / size
        ends = in_plane((moved / np.linalg.norm(moved))[None])[0][0]
        here = in_plane(y[None])[0][0]
        return np.asarray(here + (ends - here) / 1e-3 * size)
