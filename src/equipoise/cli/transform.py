"""`equipoise transform`: new rows in a map that was saved."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..progress import shown
from .console import Screen, counted
from .options import add_source, add_verb, read_source
from .outputs import add_outputs, choose_outputs, tell_written
from .saved_model import recall
from .write_map import write

EXAMPLES = """\
  equipoise embed iris --save iris.eq
  equipoise transform iris.eq iris --out new"""


def add(verbs: Any) -> None:
    """Declare the verb."""
    line = "place new rows in a map that was saved; its picture shows them over that map"
    verb = add_verb(verbs, "transform", line, "MODEL DATA [options]", EXAMPLES, run)
    verb.add_argument("model", metavar="MODEL", help="a file that `equipoise embed --save` wrote")
    add_source(verb)
    add_outputs(verb)


def run(args: argparse.Namespace) -> int:
    """Load, place, write."""
    kept = recall(args.model)
    method, dataset = kept.method, kept.preparation.apply(read_source(args, kept.columns))
    outputs = choose_outputs(args, dataset.name)
    screen = Screen(sys.stderr if outputs.map is None else sys.stdout)
    kind = type(method).__name__
    with shown():
        Y = method.transform(dataset.X)
    write(outputs, Y, dataset, f"{dataset.name}, {kind}", over=method.embedding_)
    screen.say(f"{dataset.name}: {counted(len(Y), 'row')} placed among {len(method.embedding_):,}; {kind}")
    tell_written(outputs.files, screen.say)
    return 0
