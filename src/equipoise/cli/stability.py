"""`equipoise stability`: run a method several times and measure how far each point moves."""

from __future__ import annotations

import argparse
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data import check_map_path, write_map
from ..evaluate.stability import stability
from ..progress import shown
from .console import WIDTH, Console
from .data_lines import print_data
from .map_files import class_names
from .method_options import SEED, add_parameters, given_parameters, make_method
from .option_values import integer, number
from .options import add_data, add_verb
from .outputs import report_written, writable
from .pictures import add_figure, save_figure
from .read_table import add_missing, read_for

EXAMPLES = """\
  equipoise stability iris
  equipoise stability iris --runs 5 --subsample 0.8 --figure iris-stability.png
  equipoise stability iris --method umap --n-neighbors 30 --out iris-stability.csv"""


def add(verbs: Any, method: str) -> None:
    """Add the verb `stability` to the command line, with options for the parameters of one method."""
    line = "run a method several times and measure how far each point moves"
    verb = add_verb(verbs, "stability", line, "DATA [options]", EXAMPLES, run)
    add_data(verb)
    add_missing(verb)
    group = verb.add_argument_group("runs")
    group.add_argument("--runs", type=integer, default=8, metavar="N", help="number of runs (default: 8)")
    group.add_argument(
        "--subsample", type=number, default=1.0, metavar="X", help="fraction of the rows in each run (default: 1)"
    )
    group.add_argument(
        "--noise",
        type=number,
        default=0.0,
        metavar="X",
        help="noise added to each column, relative to its standard deviation (default: 0)",
    )
    group.add_argument("--k", type=integer, default=10, metavar="N", help="neighbours to compare (default: 10)")
    verb.add_argument(
        "--out",
        metavar="FILE",
        type=_map_path,
        help="write the mean map, with the columns `variation` and `kept` (.csv .tsv .parquet .npy .h5ad)",
    )
    add_figure(verb)
    add_parameters(verb, method, several=False)


def run(args: argparse.Namespace) -> int:
    """Print how stable the method is; write the mean map and the figure if these are requested."""
    given = given_parameters(args)
    seed = given.pop("random_state", SEED)
    method = make_method(args, given)
    table = read_for(method, args)
    dataset = table.dataset
    print_data(Console(sys.stdout), args, table, method, seed)
    options = {"runs": args.runs, "subsample": args.subsample, "noise": args.noise, "k": args.k}
    with shown():
        result = stability(method, dataset.X, random_state=seed, **options)
    written = []
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        extra = {"variation": result.variation, "kept": result.kept, **dataset.extra}
        write_map(args.out, result.mean, replace(dataset, extra=extra))
        written.append(args.out)
    written += save_figure(args, lambda: result.figure(class_names(dataset)))
    for text in str(result).splitlines():
        print(textwrap.fill(text, WIDTH) if text in result.sentences else text)
    report_written(written)
    return 0


def _map_path(text: str) -> Path:
    """Return the path of a map after checking that it can be written; used as an argparse type."""
    try:
        check_map_path(f"map{Path(text).suffix}")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return writable(text)
