"""The map of the page as a file."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from ...data import Dataset
from ..plane import in_plane
from ..scatter import scatter
from ..style import COLORS
from .history import Frame

MIME = {"csv": "text/csv; charset=utf-8", "png": "image/png", "html": "text/html; charset=utf-8"}


def class_names(dataset: Dataset) -> list[str]:
    """Return the class of every row in words, nothing without classes."""
    if dataset.labels is None:
        return [""] * len(dataset.X)
    return [dataset.classes[label] for label in dataset.labels]


def export(kind: str, frame: Frame, dataset: Dataset, title: str) -> bytes:
    """Return a frame as csv, png or html."""
    writers = {"csv": _csv, "png": _png, "html": _html}
    if kind not in writers:
        raise ValueError(f"a map is exported as {', '.join(writers)}, not {kind!r}")
    return writers[kind](frame, dataset, title)


def _csv(frame: Frame, dataset: Dataset, title: str) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    labelled = dataset.labels is not None
    writer.writerow([*(f"y{c + 1}" for c in range(frame.Y.shape[1])), *(["class"] if labelled else [])])
    for row, name in zip(frame.Y, class_names(dataset), strict=True):
        writer.writerow([*(f"{value:.8g}" for value in row), *([name] if labelled else [])])
    return buffer.getvalue().encode()


def _png(frame: Frame, dataset: Dataset, title: str) -> bytes:
    buffer = io.BytesIO()
    scatter(frame.Y, dataset.labels, dataset.classes, title).savefig(buffer, format="png")
    return buffer.getvalue()


def _html(frame: Frame, dataset: Dataset, title: str) -> bytes:
    """Return a page that needs neither network nor studio."""
    from bokeh.embed import file_html
    from bokeh.models import ColumnDataSource, HoverTool
    from bokeh.plotting import figure
    from bokeh.resources import Resources

    x, y = in_plane(frame.Y)[0].T.astype(np.float32)
    number = np.zeros(len(x), int) if dataset.labels is None else np.asarray(dataset.labels)
    columns = {"x": x, "y": y, "row": np.arange(len(x)), "class": class_names(dataset)}
    source: Any = ColumnDataSource(columns | {"color": [COLORS[i % len(COLORS)] for i in number]})
    plot: Any = figure(width=900, height=800, match_aspect=True, title=title, output_backend="webgl")
    plot.axis.visible = plot.grid.visible = False
    size = float(np.clip(220 / np.sqrt(len(x)), 2.0, 8.0))
    plot.scatter("x", "y", source=source, size=size, color="color", line_color=None)
    plot.add_tools(HoverTool(tooltips=[("row", "@row"), ("class", "@class")]))
    return str(file_html(plot, Resources(mode="inline"), title)).encode()
