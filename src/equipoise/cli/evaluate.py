"""`equipoise evaluate`: measure how far a map can be trusted."""

from __future__ import annotations

import argparse
from typing import Any

from ..evaluate import evaluate
from ..progress import shown
from .evaluation_data import add_evaluation_options, read_evaluation_data
from .map_files import known_classes, read_map, unlabelled
from .options import add_verb
from .outputs import report_written, require_bokeh, writable, write_bytes
from .pictures import add_figure, save_figure

EXAMPLES = """\
  equipoise embed iris && equipoise evaluate iris iris.csv
  equipoise evaluate iris iris.csv --html iris-report.html
  equipoise embed iris --geometry torus:60 && equipoise evaluate iris iris.csv --geometry torus:60
  equipoise embed wine --standardize --save wine.eq && equipoise evaluate wine wine.eq"""


def add(verbs: Any) -> None:
    """Add the verb `evaluate` to the command line."""
    line = "measure how far a map can be trusted"
    verb = add_verb(verbs, "evaluate", line, "DATA MAP [options]", EXAMPLES, run)
    add_evaluation_options(verb, "map", None)
    verb.add_argument("--html", metavar="FILE", type=writable, help="write an interactive report")
    add_figure(verb)


def run(args: argparse.Namespace) -> int:
    """Print the report, and write its HTML page and its figure if these are requested."""
    if args.html is not None:
        require_bokeh()
    loaded = read_map(args.map, args.coordinates)
    evaluated = read_evaluation_data(args, {args.map: loaded})
    labels = known_classes(evaluated.dataset, loaded)
    k = "auto" if args.k is None else args.k
    with shown():
        options = {"k": k, "metric": evaluated.metric, "geometry": args.geometry}
        report = evaluate(evaluated.dataset.X, loaded.measured, labels, **options)
    if args.html is not None:
        write_bytes(args.html, str(report.to_html()).encode())
    written = [*([] if args.html is None else [args.html]), *save_figure(args, report.figure)]
    classes = f"classes             {unlabelled(labels)}\n" * bool(unlabelled(labels))
    print(
        f"data                {evaluated.about}\n{classes}\n{report}"
    )  # last, because the reader of a pipe may close it early
    report_written(written)
    return 0
