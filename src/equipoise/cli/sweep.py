"""`equipoise sweep`: run a method at several values of one or two parameters."""

from __future__ import annotations

import argparse
import sys
import textwrap
from typing import Any

from sklearn.base import clone

from ..evaluate.sweep import sweep
from ..progress import shown
from .console import WIDTH, Console
from .data_lines import print_data
from .map_files import class_names, known_classes
from .method_options import SEED, add_parameters, given_parameters, make_method
from .option_values import integer
from .options import add_data, add_verb
from .outputs import report_written
from .pictures import add_figure, save_figure
from .read_table import add_missing, read_for

EXAMPLES = """\
  equipoise sweep iris --perplexity 50 15 5
  equipoise sweep iris --method umap --n-neighbors 30 10 --min-dist 0 0.5 --figure umap.png"""


def add(verbs: Any, method: str) -> None:
    """Add the verb `sweep` to the command line, with options for the parameters of one method."""
    line = "run a method at several values of one or two parameters, with scores and advice"
    verb = add_verb(verbs, "sweep", line, "DATA --PARAMETER VALUE VALUE … [options]", EXAMPLES, run)
    add_data(verb)
    add_missing(verb)
    verb.add_argument("--k", type=integer, default=10, metavar="N", help="neighbours for the scores (default: 10)")
    add_figure(verb)
    add_parameters(verb, method, several=True)


def run(args: argparse.Namespace) -> int:
    """Print scores and advice, and write the figure of all maps if --figure is given."""
    given = given_parameters(args)
    seed, *more = given.pop("random_state", [SEED])
    values = {name: several for name, several in given.items() if len(several) > 1}
    if more or not 1 <= len(values) <= 2:
        raise ValueError(
            "pass several values for one or two parameters, as in --perplexity 50 15 5, and a single value for the"
            " seed and for each other parameter"
        )
    method = make_method(args, {name: several[0] for name, several in given.items() if name not in values})
    for name, several in values.items():
        for value in several:
            clone(method).set_params(**{name: value}).check_parameters()
    table = read_for(method, args)
    dataset = table.dataset
    print_data(Console(sys.stdout), args, table, method, seed)
    labels = class_names(dataset)
    with shown():
        result = sweep(method, dataset.X, values, known_classes(dataset), k=args.k, random_state=seed)
    for line in str(result).splitlines():
        print(textwrap.fill(line, WIDTH) if line in result.sentences else line)
    report_written(save_figure(args, lambda: result.figure(labels)))
    return 0
