"""The two maps of the page: their plots, and the models by which studio.js learns of their points."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array
from ...data import Dataset
from ...evaluate.figures.shading import UNMEASURED
from ...views.plane import in_plane
from ...views.style import COLORS, dot_size
from ..session.worker import Shot
from .panel import Panel
from .trust_colors import TrustColors

NONE = np.empty(0, np.uint8)


class Maps:
    """Panels, and what goes to and fro: places with every frame, in one buffer a map; colours when they change."""

    def __init__(self) -> None:
        from bokeh.models import ColumnDataSource, CustomJS, Div

        self.panels = (Panel("a"), Panel("b"))
        self.points = ColumnDataSource(name="points", data={})  # x, y, x, y … in float32, for each map that is shown
        self.colors = ColumnDataSource(name="colors", data={"a": NONE, "b": NONE}, tags=list(COLORS))
        self.rows = ColumnDataSource(name="rows", data={"label": NONE}, tags=[dot_size(1), []])
        self.chosen = ColumnDataSource(name="chosen")  # the point whose forces are shown
        self.clicks = ColumnDataSource(name="clicks")  # the point that was clicked, or −1
        self.ack = ColumnDataSource(name="ack")  # how many frames the browser has drawn; none in a hidden tab
        news = {self.points: "data", self.colors: "data", self.rows: "data", self.chosen: "tags"}
        for model, attribute in news.items():
            event = "frame" if model is self.points else "changed"
            code = f"document.dispatchEvent(new CustomEvent('{event}'))"
            model.js_on_change(attribute, CustomJS(code=code))
        models: list[Any] = [*news, self.clicks, self.ack]
        self.holder = Div(visible=False, tags=models)  # never seen; by it the page knows these models

    def load(self, dataset: Dataset) -> None:
        """Make room for the points of another data set."""
        n = len(dataset.X)
        labels = np.zeros(n) if dataset.labels is None else np.asarray(dataset.labels)
        self.points.data = {}
        self.chosen.tags = []
        self.rows.tags = [dot_size(n), list(dataset.classes) if dataset.labels is not None else []]
        self.rows.data = {"label": labels.astype(np.int32)}
        for panel in self.panels:
            panel.clear()

    def draw(self, shot: Shot) -> None:
        """Show a frame of each run."""
        planes = [in_plane(frame.Y)[0] for frame in shot.frames]
        chosen = [] if shot.point is None else [shot.point]
        if self.chosen.tags != chosen:
            self.chosen.tags = chosen
        shown = self.panels[: len(planes)]
        for panel, frame, plane, forces in zip(shown, shot.frames, planes, shot.forces, strict=False):
            panel.draw(frame, plane, chosen[0], forces)
        if not chosen:
            for panel in shown:
                panel.clear()
        places = {panel.name: plane.astype(np.float32).ravel() for panel, plane in zip(shown, planes, strict=True)}
        self.points.data = places

    def color_by_class(self, dataset: Dataset) -> None:
        number = np.zeros(len(dataset.X)) if dataset.labels is None else np.asarray(dataset.labels)
        codes = (number % len(COLORS)).astype(np.uint8)
        self._color([codes, codes], COLORS)

    def color_by_trust(self, colors: list[TrustColors]) -> None:
        codes = [trust.codes for trust in colors]
        self._color([codes[0], codes[-1]], (*colors[0].shading.colors, UNMEASURED))

    def _color(self, codes: list[Array], palette: tuple[str, ...]) -> None:
        self.colors.tags = list(palette)
        self.colors.data = {panel.name: code for panel, code in zip(self.panels, codes, strict=True)}
