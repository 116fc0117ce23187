"""Creates the plots of the two maps of the page, and the Bokeh models that send their points to studio.js."""

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

EMPTY = np.empty(0, np.uint8)


class Maps:
    """The plots of the two maps, and the Bokeh models that send their data to the browser.

    Positions are sent to the browser with each frame, colours only when they change.
    """

    def __init__(self) -> None:
        from bokeh.models import ColumnDataSource, CustomJS, Div

        self.panels = (Panel("a"), Panel("b"))
        self.points = ColumnDataSource(name="points", data={})  # x, y, x, y, … as float32, for each visible map
        self.colors = ColumnDataSource(name="colors", data={"a": EMPTY, "b": EMPTY}, tags=list(COLORS))
        self.rows = ColumnDataSource(name="rows", data={"label": EMPTY}, tags=[dot_size(1), []])
        self.chosen = ColumnDataSource(name="chosen")  # the point whose forces are drawn
        self.clicks = ColumnDataSource(name="clicks")  # the clicked point, or −1
        self.ack = ColumnDataSource(name="ack")  # number of frames drawn; hidden tabs draw none
        watched = {self.points: "data", self.colors: "data", self.rows: "data", self.chosen: "tags"}
        for model, attribute in watched.items():
            event = "frame" if model is self.points else "changed"
            code = f"document.dispatchEvent(new CustomEvent('{event}'))"
            model.js_on_change(attribute, CustomJS(code=code))
        models: list[Any] = [*watched, self.clicks, self.ack]
        self.holder = Div(visible=False, tags=models)  # an invisible element that makes the models part of the document

    def load(self, dataset: Dataset) -> None:
        """Remove the points and forces of the old data set, and send the labels of another one."""
        n = len(dataset.X)
        labels = np.zeros(n) if dataset.labels is None else np.asarray(dataset.labels)
        self.points.data = {}
        self.chosen.tags = []
        self.rows.tags = [dot_size(n), list(dataset.classes) if dataset.labels is not None else []]
        self.rows.data = {"label": labels.astype(np.int32)}
        for panel in self.panels:
            panel.clear()

    def draw(self, shot: Shot) -> None:
        """Draw the frame of each run and the forces on the selected point, if any."""
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
        positions = {panel.name: plane.astype(np.float32).ravel() for panel, plane in zip(shown, planes, strict=True)}
        self.points.data = positions

    def color_by_class(self, dataset: Dataset) -> None:
        """Colour the points by class."""
        labels = np.zeros(len(dataset.X)) if dataset.labels is None else np.asarray(dataset.labels)
        codes = (labels % len(COLORS)).astype(np.uint8)
        self._color([codes, codes], COLORS)

    def color_by_trust(self, colors: list[TrustColors]) -> None:
        """Colour the points of each map by trust."""
        codes = [trust.codes for trust in colors]
        self._color([codes[0], codes[-1]], (*colors[0].shading.colors, UNMEASURED))

    def _color(self, codes: list[Array], palette: tuple[str, ...]) -> None:
        self.colors.tags = list(palette)
        self.colors.data = {panel.name: code for panel, code in zip(self.panels, codes, strict=True)}
