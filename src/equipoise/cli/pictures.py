"""Write plots of maps, and figures of reports, to files."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Array
from .outputs import PLOTS, writable, write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STATIC = ("png", "svg")
PLACED = "placed"  # column that marks the new rows on a page; gets a _ if the name is in use


@dataclass(frozen=True)
class Drawing:
    """A map and how to draw it.

    Attributes
    ----------
    Y : ndarray of shape (n, d)
        The map.
    columns : dict of str to ndarray of shape (n,)
        Values to show for each point.
    color : str or None
        The column to colour by.
    title : str
    dark : bool, default=False
        Use a dark background; otherwise a page is dark or light like the system.
    over : ndarray of shape (m, d), optional
        The map in which the points of Y were placed. It is drawn in grey, under the points of Y.
    geometry : str or Geometry, optional
        The space of the map; flat by default.
    images : ndarray of shape (n, height, width) or (n, height, width, 3), optional
        Images to show on a page.
    """

    Y: Array
    columns: dict[str, Array]
    color: str | None
    title: str
    dark: bool = False
    over: Array | None = None
    geometry: Any = None
    images: Array | None = None


def render(format: str, drawing: Drawing) -> bytes:
    """Return a drawing as the content of a PNG, SVG or HTML file."""
    if format == "html":
        from ..views.page import page

        drawing = drawing if drawing.over is None else with_reference(drawing, drawing.over)
        style = {
            "title": drawing.title,
            "dark": drawing.dark or None,
            "geometry": drawing.geometry,
            "images": drawing.images,
        }
        return page(drawing.Y, drawing.color, table=drawing.columns, **style).html.encode()
    from ..views.plot import plot

    color = None if drawing.color is None else drawing.columns[drawing.color]
    style = {"title": drawing.title, "dark": drawing.dark, "over": drawing.over, "geometry": drawing.geometry}
    return _as_bytes(plot(drawing.Y, color, **style), format)


def with_reference(drawing: Drawing, over: Array) -> Drawing:
    """Return a drawing with the rows of `over` before the rows of Y; the rows of `over` have no values and are grey.

    If there is no column to colour by, a new column `placed` contains "new" for the rows of Y.
    """
    columns, color = drawing.columns, drawing.color
    if color is None:
        color = PLACED
        while color in columns:
            color += "_"
        columns = {color: np.full(len(drawing.Y), "new", dtype=object), **columns}
    missing = np.full(len(over), None, dtype=object)
    return replace(
        drawing,
        Y=np.vstack([over, drawing.Y]),
        columns={name: np.concatenate([missing, values.astype(object)]) for name, values in columns.items()},
        color=color,
        over=None,
    )


def add_figure(verb: argparse.ArgumentParser) -> None:
    """Add the option --figure."""
    verb.add_argument("--figure", metavar="FILE", type=_figure_path, help="write a figure (.png or .svg)")


def save_figure(args: argparse.Namespace, make: Callable[[], Figure]) -> list[Path]:
    """Make and write the figure if --figure is given; return the files written."""
    if args.figure is None:
        return []
    write_bytes(args.figure, _as_bytes(make(), args.figure.suffix[1:].lower()))
    return [args.figure]


def picture_path(text: str) -> Path:
    """Return the path of a plot after checking that it can be written; used as an argparse type."""
    return _check_path(text, PLOTS)


def _figure_path(text: str) -> Path:
    return _check_path(text, STATIC)


def _check_path(text: str, formats: tuple[str, ...]) -> Path:
    if not text.lower().endswith(tuple(f".{format}" for format in formats)):
        raise argparse.ArgumentTypeError(f"unknown format of {text!r}; choose from .{', .'.join(formats)}")
    return writable(text)


def _as_bytes(figure: Figure, format: str) -> bytes:
    """Return a figure as the content of a PNG or SVG file; equal figures give identical files."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "equipoise"}):
        figure.savefig(buffer, format=format, metadata={"Date": None} if format == "svg" else None)
    return buffer.getvalue()
