"""`equipoise transform`: place new rows in the map of a saved method."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .._plural import plural
from ..progress import shown
from .annotated_output import annotated_output
from .console import Console
from .options import add_source, add_verb
from .outputs import add_outputs, choose_outputs, report_written
from .read_table import read_like
from .saved_model import load_model
from .write_map import write_outputs

EXAMPLES = """\
  equipoise embed iris --save iris.eq
  equipoise transform iris.eq iris --out new"""


def add(verbs: Any) -> None:
    """Add the verb `transform` to the command line."""
    line = "place new rows in the map of a saved method"
    verb = add_verb(verbs, "transform", line, "MODEL DATA [options]", EXAMPLES, run)
    verb.add_argument("model", metavar="MODEL", help="file written by `equipoise embed --save`")
    add_source(verb)
    add_outputs(verb)


def run(args: argparse.Namespace) -> int:
    """Load the method, place the rows and write the map."""
    model = load_model(args.model)
    method = model.method
    dataset = read_like(args, model.columns, model.preparation, method.get_params().get("metric"))
    outputs = choose_outputs(args, dataset.name)
    into = annotated_output(args, outputs, method, dataset.X.shape[0], is_prepared=True)
    console = Console(sys.stderr if outputs.to_stdout else sys.stdout)
    kind = type(method).__name__
    with shown():
        Y = method.transform(dataset.X)
    geometry = getattr(method, "geometry_", None)
    write_outputs(outputs, Y, dataset, f"{dataset.name}, {kind}", over=method.embedding_, geometry=geometry, into=into)
    console.print(f"{dataset.name}: {plural(len(Y), 'row')} placed among {len(method.embedding_):,}; {kind}")
    report_written(outputs.files, console.print)
    return 0
