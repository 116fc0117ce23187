"""`equipoise plot`: a picture of a map that was written before."""

from __future__ import annotations

import argparse
from typing import Any

from .._suggest import closest
from .map_files import CLASS, DrawnMap, add_coordinates, read_map
from .options import add_verb
from .outputs import tell_written, writable, write_bytes
from .pictures import Drawing, picture, picture_path

EXAMPLES = """\
  equipoise embed iris && equipoise plot iris.csv --dark
  equipoise plot iris.csv --color y1 --out iris.svg
  equipoise plot iris.csv --out iris.html"""
DRAWN = 3  # coordinates that columns without names may be


def add(verbs: Any) -> None:
    """Declare the verb."""
    line = "draw a map that was written before, as a picture or as a page"
    verb = add_verb(verbs, "plot", line, "MAP [options]", EXAMPLES, run)
    verb.add_argument(
        "map",
        metavar="MAP",
        help="a file with a map: y1, y2 …, and other columns; or a model that `embed --save` wrote",
    )
    add_coordinates(verb)
    verb.add_argument("--color", metavar="COLUMN", help="column to colour by (default: class, where there is one)")
    verb.add_argument("--title", metavar="TEXT", help="above the picture (default: NAME)")
    verb.add_argument("--dark", action="store_true", help="light on a dark ground")
    verb.add_argument(
        "--out",
        metavar="FILE",
        type=picture_path,
        help=".png, .svg, or .html to zoom, hover and search in (default: NAME-plot.png)",
    )


def run(args: argparse.Namespace) -> int:
    """Read, draw, write."""
    drawn = read_map(args.map, args.coordinates)
    _check_drawn(args.map, drawn)
    out = args.out or writable(f"{drawn.name}-plot.png")
    names = drawn.columns or tuple(f"y{c + 1}" for c in range(drawn.Y.shape[1]))
    columns = {**drawn.others, **dict(zip(names, drawn.Y.T, strict=True))}
    color = (CLASS if CLASS in columns else None) if args.color is None else args.color
    if color is not None and color not in columns:
        near = closest(color, columns)
        what = f"there are {', '.join(columns)}" if near is None else f"did you mean {near!r}?"
        raise ValueError(f"{args.map} has no column {color!r}; {what}")
    title = args.title or (drawn.name if color in (None, CLASS) else f"{drawn.name}, {color}")
    write_bytes(out, picture(out.suffix[1:].lower(), Drawing(drawn.Y, columns, color, title, args.dark)))
    tell_written([out])
    return 0


def _check_drawn(source: str, drawn: DrawnMap) -> None:
    d = drawn.Y.shape[1]
    if d > DRAWN and not drawn.columns and drawn.kept is None:
        raise ValueError(
            f"{source} has {d} columns without names, and a map has 1 to {DRAWN}; make one with `equipoise embed"
            f" {source}`, or name the columns y1, y2 … if they are the coordinates of one"
        )
