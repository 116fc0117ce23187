"""`equipoise evaluate`: how far a map of some data can be trusted."""

from __future__ import annotations

import argparse
from typing import Any

from ..evaluate import evaluate
from ..progress import shown
from .maps import class_of_each, read_map
from .options import add_data, add_measuring, add_verb, read_data
from .outputs import need_pages, writable, write_bytes
from .pictures import add_figure, save_figure

EXAMPLES = """\
  equipoise embed iris && equipoise evaluate iris iris.csv
  equipoise evaluate iris iris.csv --html iris-report.html"""


def add(verbs: Any) -> None:
    """Declare the verb."""
    line = "tell how far a map can be trusted, in numbers and in words"
    verb = add_verb(verbs, "evaluate", line, "DATA MAP [options]", EXAMPLES, run)
    add_data(verb)
    verb.add_argument("map", metavar="MAP", help="a file with the map: y1, y2 …, a row for each row of DATA")
    add_measuring(verb, 15)
    verb.add_argument("--html", metavar="FILE", type=writable, help="write a page on which points can be clicked")
    add_figure(verb)


def run(args: argparse.Namespace) -> int:
    """Print the report, and write its page and figure."""
    if args.html is not None:
        need_pages()
    dataset, drawn = read_data(args), read_map(args.map)
    with shown():
        report = evaluate(dataset.X, drawn.Y, class_of_each(dataset, drawn), k=args.k, metric=args.metric)
    print(report)
    if args.html is not None:
        write_bytes(args.html, str(report.to_html()).encode())
    save_figure(args, report.figure)
    return 0
