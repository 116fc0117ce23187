"""Export the map of the page as a file."""

from __future__ import annotations

import io

from ...data import Dataset
from ...data.write import WRITERS, class_column, map_columns
from ...views.page import page
from ...views.plot import plot
from ..session.history import Frame

MIME = {"csv": "text/csv; charset=utf-8", "png": "image/png", "html": "text/html; charset=utf-8"}


def export(kind: str, frame: Frame, dataset: Dataset, title: str) -> bytes:
    """Return a frame as the content of a csv, png or html file."""
    writers = {"csv": _csv, "png": _png, "html": _html}
    if kind not in writers:
        raise ValueError(f"unknown format {kind!r}; choose from {', '.join(writers)}")
    return writers[kind](frame, dataset, title)


def _csv(frame: Frame, dataset: Dataset, title: str) -> bytes:
    buffer = io.BytesIO()
    WRITERS[".csv"](buffer, frame.Y, dataset)
    return buffer.getvalue()


def _png(frame: Frame, dataset: Dataset, title: str) -> bytes:
    buffer = io.BytesIO()
    names = None if dataset.labels is None else dataset.classes
    plot(frame.Y, dataset.labels, names=names, title=title).savefig(buffer, format="png")
    return buffer.getvalue()


def _html(frame: Frame, dataset: Dataset, title: str) -> bytes:
    """Return a frame as the content of a self-contained HTML page."""
    columns = map_columns(frame.Y[:, :0], dataset)
    return page(frame.Y, class_column(columns, dataset), table=columns, title=title).html.encode()
