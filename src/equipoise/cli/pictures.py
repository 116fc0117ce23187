"""Pictures of maps as bytes, and figures as files."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._types import Array
from .outputs import PLOTS, writable, write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STATIC = ("png", "svg")
PLACED = "placed"  # the column of a page that tells new rows from those of the map; with a _ where it is taken


@dataclass(frozen=True)
class Drawing:
    """A map Y (n, d); `columns` (n,) by name are told of a point, the one called `color` colours it.

    `over` is the map (m, d) that its points were placed in, which lies beneath in grey.
    """

    Y: Array
    columns: dict[str, Array]
    color: str | None
    title: str
    dark: bool = False
    over: Array | None = None


def picture(format: str, drawing: Drawing) -> bytes:
    """Return a drawing as a PNG, SVG or HTML file."""
    if format == "html":
        from ..views.page import page

        drawing = drawing if drawing.over is None else _side_by_side(drawing, drawing.over)
        made = page(drawing.Y, drawing.color, table=drawing.columns, title=drawing.title, dark=drawing.dark)
        return made.html.encode()
    from ..views.plot import plot

    color = None if drawing.color is None else drawing.columns[drawing.color]
    return _as_bytes(plot(drawing.Y, color, title=drawing.title, dark=drawing.dark, over=drawing.over), format)


def _side_by_side(drawing: Drawing, over: Array) -> Drawing:
    """Return a drawing whose points follow those beneath, of which nothing is known: they are grey."""
    columns, color = drawing.columns, drawing.color
    if color is None:
        color = PLACED
        while color in columns:
            color += "_"
        columns = {color: np.full(len(drawing.Y), "new", dtype=object), **columns}
    unknown = np.full(len(over), None, dtype=object)
    return replace(
        drawing,
        Y=np.vstack([over, drawing.Y]),
        columns={name: np.concatenate([unknown, values.astype(object)]) for name, values in columns.items()},
        color=color,
        over=None,
    )


def add_figure(verb: argparse.ArgumentParser) -> None:
    """Add the option that names the file of a figure."""
    verb.add_argument("--figure", metavar="FILE", type=_figure_path, help="write a figure of it, .png or .svg")


def save_figure(args: argparse.Namespace, make: Callable[[], Figure]) -> list[Path]:
    """Make and write the figure that the command line asks for, if it does; return its file."""
    if args.figure is None:
        return []
    write_bytes(args.figure, _as_bytes(make(), args.figure.suffix[1:].lower()))
    return [args.figure]


def picture_path(text: str) -> Path:
    """Return the path of a picture that can be written; for options."""
    return _path(text, PLOTS)


def _figure_path(text: str) -> Path:
    return _path(text, STATIC)


def _path(text: str, formats: tuple[str, ...]) -> Path:
    if not text.lower().endswith(tuple(f".{format}" for format in formats)):
        raise argparse.ArgumentTypeError(f"{text!r} must end in .{' or .'.join(formats)}")
    return writable(text)


def _as_bytes(figure: Figure, format: str) -> bytes:
    """Return a figure as a PNG or SVG file, the same bytes for the same figure."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "equipoise"}):
        figure.savefig(buffer, format=format, metadata={"Date": None} if format == "svg" else None)
    return buffer.getvalue()
