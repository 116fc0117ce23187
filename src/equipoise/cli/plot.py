"""`equipoise plot`: a picture of a map that was written before."""

from __future__ import annotations

import argparse
import difflib
from typing import Any

from .maps import CLASS, read_map
from .options import add_verb
from .outputs import writable, write_bytes
from .pictures import picture, picture_path

EXAMPLES = """\
  equipoise embed iris && equipoise plot iris.csv --dark --out dark.png
  equipoise plot iris.csv --color y1 --out iris.svg
  equipoise plot iris.csv --out iris.html"""


def add(verbs: Any) -> None:
    """Declare the verb."""
    line = "draw a map that was written before, as a picture or as a page"
    verb = add_verb(verbs, "plot", line, "MAP [options]", EXAMPLES, run)
    verb.add_argument("map", metavar="MAP", help="a file with the map: y1, y2 …, and other columns")
    verb.add_argument("--color", metavar="COLUMN", help="column to colour by (default: class, where there is one)")
    verb.add_argument("--title", metavar="TEXT", help="above the picture (default: NAME)")
    verb.add_argument("--dark", action="store_true", help="light on a dark ground")
    verb.add_argument(
        "--out",
        metavar="FILE",
        type=picture_path,
        help=".png, .svg, or .html to zoom, hover and search in (default: NAME.png)",
    )


def run(args: argparse.Namespace) -> int:
    """Read, draw, write."""
    drawn = read_map(args.map)
    out = args.out or writable(f"{drawn.name}.png")
    columns = {**drawn.others, **{f"y{c + 1}": values for c, values in enumerate(drawn.Y.T)}}
    color = (CLASS if CLASS in columns else None) if args.color is None else args.color
    if color is not None and color not in columns:
        near = difflib.get_close_matches(color, columns, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(columns)}"
        raise ValueError(f"{args.map} has no column {color!r}; {hint}")
    title = args.title or (drawn.name if color in (None, CLASS) else f"{drawn.name}, {color}")
    write_bytes(out, picture(out.suffix[1:].lower(), drawn.Y, columns, color, title, args.dark))
    print(f"wrote               {out}")
    return 0
