"""`equipoise evaluate`: how far a map of some data can be trusted."""

from __future__ import annotations

import argparse
from typing import Any

from ..evaluate import evaluate
from ..progress import shown
from .evaluation_data import add_measuring, read_measured
from .map_files import class_of_each, read_map
from .options import add_verb
from .outputs import need_pages, tell_written, writable, write_bytes
from .pictures import add_figure, save_figure

EXAMPLES = """\
  equipoise embed iris && equipoise evaluate iris iris.csv
  equipoise evaluate iris iris.csv --html iris-report.html
  equipoise embed wine --standardize --save wine.eq && equipoise evaluate wine wine.eq"""


def add(verbs: Any) -> None:
    """Declare the verb."""
    line = "tell how far a map can be trusted, in numbers and in words"
    verb = add_verb(verbs, "evaluate", line, "DATA MAP [options]", EXAMPLES, run)
    add_measuring(verb, "map", None)
    verb.add_argument("--html", metavar="FILE", type=writable, help="write a page on which points can be clicked")
    add_figure(verb)


def run(args: argparse.Namespace) -> int:
    """Print the report, and write its page and figure."""
    if args.html is not None:
        need_pages()
    drawn = read_map(args.map, args.coordinates)
    measured = read_measured(args, {args.map: drawn})
    labels = class_of_each(measured.dataset, drawn)
    with shown():
        report = evaluate(measured.dataset.X, drawn.Y, labels, k=args.k or "auto", metric=measured.metric)
    if args.html is not None:
        write_bytes(args.html, str(report.to_html()).encode())
    written = [*([] if args.html is None else [args.html]), *save_figure(args, report.figure)]
    print(f"data                {measured.about}\n\n{report}")  # last: whoever reads it may leave after a line
    tell_written(written)
    return 0
