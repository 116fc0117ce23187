"""One map in the page: its points, the forces on the chosen one, and its title."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array
from ..plane import in_plane
from ..style import COLORS
from .forces import Forces
from .history import Frame

MANY = 2000  # points from which they are small squares, which a canvas fills faster than disks; chosen
GPU = 20_000  # points from which WebGL draws them: without a graphics card it is slower than a canvas below
LONGEST = 0.16  # of the wider side of the map: the longer of the two arrows
# P. Tol, "Colour Schemes", 2021, the vibrant scheme.
ATTRACTION, REPULSION = "#0077bb", "#cc3311"
EMPTY = {"x": [-1, 1], "y": [-1, 1], "code": [-1, -1], "row": [0, 0], "label": ["", ""]}  # a range, and no colour
NOTHING: dict[str, list[float]] = {"x0": [], "y0": [], "x1": [], "y1": []}


class Panel:
    """A figure of a moving map. Only x and y travel with a frame, as float32."""

    def __init__(self, name: str):
        from bokeh.models import (
            Arrow,
            Column,
            ColumnDataSource,
            DataRange1d,
            Div,
            HoverTool,
            LinearColorMapper,
            VeeHead,
        )
        from bokeh.plotting import figure

        self.plane = np.zeros((0, 2))
        self.source = ColumnDataSource(name=f"points {name}", data=EMPTY)
        self.mapper = LinearColorMapper(
            name=f"mapper {name}", palette=list(COLORS), low=-0.5, high=9.5, low_color="#ffffff00"
        )
        self.plot: Any = figure(
            name=f"map {name}",
            sizing_mode="stretch_both",
            min_width=200,
            tools="pan,wheel_zoom,box_zoom,reset",
            active_scroll="wheel_zoom",
            match_aspect=True,
            x_range=DataRange1d(range_padding=0.06),
            y_range=DataRange1d(range_padding=0.06),
            output_backend="canvas",
        )
        self.plot.toolbar.logo = None
        self.plot.toolbar.autohide = True
        self.plot.axis.visible = False
        self.plot.grid.visible = False
        self.plot.outline_line_color = "#dfe2ea"
        # Beside the figure, which would be laid out anew for every change of its own title.
        self.title = Div(name=f"title {name}", render_as_text=True, text="", styles={"font-weight": "600"})
        self.column = Column(children=[self.title, self.plot], sizing_mode="stretch_both", spacing=2)
        self.pulls = ColumnDataSource(name=f"pulls {name}", data={**NOTHING, "alpha": []})
        lines = self.plot.segment(
            "x0", "y0", "x1", "y1", source=self.pulls, line_color=ATTRACTION, line_alpha="alpha", line_width=1
        )
        self.dots = self.plot.scatter(
            "x", "y", source=self.source, size=6, color={"field": "code", "transform": self.mapper}, line_color=None
        )
        self.chosen = ColumnDataSource(name=f"chosen {name}", data={"x": [], "y": []})
        ring = self.plot.scatter("x", "y", source=self.chosen, size=13, color=None, line_color="black", line_width=2)
        self.arrows = ColumnDataSource(name=f"arrows {name}", data={**NOTHING, "color": []})
        head = VeeHead(size=11, line_color="color", fill_color="color")
        self.plot.add_layout(
            Arrow(
                x_start="x0", y_start="y0", x_end="x1", y_end="y1", source=self.arrows, end=head, line_color="color",
                line_width=3,
            )
        )  # fmt: skip
        self.plot.x_range.renderers = self.plot.y_range.renderers = [self.dots]
        lines.level = "underlay"
        ring.level = "overlay"
        self.plot.add_tools(HoverTool(renderers=[self.dots], tooltips=[("row", "@row"), ("class", "@label")]))

    def load(self, labels: Array, codes: Array) -> None:
        """Make room for the points of another data set, all at the origin."""
        n = len(codes)
        self.source.data = {
            "x": np.zeros(n, np.float32),
            "y": np.zeros(n, np.float32),
            "code": codes,
            "row": np.arange(n, dtype=np.int32),
            "label": labels,
        }
        self.dots.glyph.marker = "square" if n > MANY else "circle"
        self.plot.output_backend = "webgl" if n > GPU else "canvas"
        self.dots.glyph.size = float(np.clip(220 / np.sqrt(n), 2.0, 8.0))
        self.dots.glyph.fill_alpha = 0.85 if n < 20_000 else 0.5

    def draw(self, frame: Frame, title: str, point: int | None, forces: Forces | None) -> None:
        """Show a frame."""
        self.plane = in_plane(frame.Y)[0]
        x, y = self.plane.T.astype(np.float32)
        self.source.data.update(x=np.ascontiguousarray(x), y=np.ascontiguousarray(y))
        self.title.text = title
        if point is None or forces is None:
            if len(self.chosen.data["x"]):
                self.chosen.data = {"x": [], "y": []}
                self.arrows.data = {**NOTHING, "color": []}
                self.pulls.data = {**NOTHING, "alpha": []}
            return
        here = self.plane[point]
        self.chosen.data = {"x": here[:1], "y": here[1:]}
        ends = np.array([self._end(frame.Y[point], F) for F in forces[:2]])
        steps = ends - here
        longest = float(np.linalg.norm(steps, axis=1).max())
        if longest > 0:
            steps *= LONGEST * float(np.ptp(self.plane, axis=0).max()) / longest
        x1, y1 = (here + steps).T
        start = {"x0": np.full(2, here[0]), "y0": np.full(2, here[1])}
        self.arrows.data = {**start, "x1": x1, "y1": y1, "color": [ATTRACTION, REPULSION]}
        to = self.plane[forces.near]
        self.pulls.data = {
            "x0": np.full(len(to), here[0]),
            "y0": np.full(len(to), here[1]),
            "x1": to[:, 0],
            "y1": to[:, 1],
            "alpha": 0.15 + 0.55 * forces.affinities / forces.affinities.max(initial=1e-300),
        }

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

    def nearest(self, x: float, y: float) -> int | None:
        """Return the point at a place in the plane, or None where there is none near."""
        if not (len(self.plane) and np.isfinite(x) and np.isfinite(y)):
            return None
        d2 = ((self.plane - (x, y)) ** 2).sum(axis=1)
        i = int(d2.argmin())
        return i if d2[i] <= (0.04 * float(np.ptp(self.plane, axis=0).max())) ** 2 else None
