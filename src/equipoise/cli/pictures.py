"""Pictures of maps as bytes, and figures as files."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .._types import Array
from .outputs import PLOTS, writable, write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STATIC = ("png", "svg")


def picture(format: str, Y: Array, columns: dict[str, Array], color: str | None, title: str, dark: bool) -> bytes:
    """Return a map Y (n, d) as a PNG, SVG or HTML file; `columns` (n,) by name are told of a point, one colours it."""
    if format == "html":
        from ..views.page import page

        return page(Y, color, table=columns, title=title, dark=dark).html.encode()
    from ..views.plot import plot

    return _as_bytes(plot(Y, None if color is None else columns[color], title=title, dark=dark), format)


def add_figure(verb: argparse.ArgumentParser) -> None:
    """Add the option that names the file of a figure."""
    verb.add_argument("--figure", metavar="FILE", type=_figure_path, help="write a figure of it, .png or .svg")


def save_figure(args: argparse.Namespace, make: Callable[[], Figure]) -> None:
    """Make and write the figure that the command line asks for, if it does."""
    if args.figure is not None:
        write_bytes(args.figure, _as_bytes(make(), args.figure.suffix[1:].lower()))


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
