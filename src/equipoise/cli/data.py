"""`equipoise data`: the bundled data sets and toy shapes, all or one."""

from __future__ import annotations

import argparse
import inspect
import sys
import textwrap
from typing import Any

import numpy as np

from .._suggest import did_you_mean
from ..data import DATASETS, load
from ..data.toys import TOYS
from .console import WIDTH
from .options import add_verb

EXAMPLES = """\
  equipoise data
  equipoise data swiss_roll"""
SHOWN = 12  # classes named one by one


def add(verbs: Any) -> None:
    """Declare the verb."""
    verb = add_verb(
        verbs, "data", "list the bundled data sets and toy shapes, or describe one", "[NAME]", EXAMPLES, run
    )
    verb.add_argument("name", metavar="NAME", nargs="?", help="the one to describe")


def run(args: argparse.Namespace) -> int:
    """Print the list, or what is known of one data set."""
    if args.name is None:
        width = max(map(len, DATASETS))
        for name, description in DATASETS.items():
            line = f"{name:{width}s} {description}"
            print(textwrap.fill(line, WIDTH, subsequent_indent=" " * (width + 1)) if sys.stdout.isatty() else line)
        return 0
    if args.name not in DATASETS:
        what = did_you_mean(args.name, DATASETS, "`equipoise data` lists them")
        raise ValueError(f"no data set is called {args.name!r}; {what}")
    print(_description(args.name))
    return 0


def _description(name: str) -> str:
    dataset = load(name)
    n, D = dataset.X.shape
    lines = [f"{name}: {DATASETS[name]}", ""]
    if name in TOYS:
        lines += [textwrap.fill(_of_the_maker(name), WIDTH), ""]
    lines += [f"rows       {n:,}", f"columns    {D:,}", f"values     {dataset.X.min():g} to {dataset.X.max():g}"]
    if dataset.labels is not None:
        counts = np.bincount(dataset.labels, minlength=len(dataset.classes))
        named = [f"{label} {count:,}" for label, count in zip(dataset.classes, counts, strict=True)]
        more = [f"and {len(named) - SHOWN} more"] if len(named) > SHOWN else []
        text = ", ".join(named[:SHOWN] + more)
        lines.append(textwrap.fill(f"classes    {text}", WIDTH, subsequent_indent=" " * 11))
    lines += ["", f"equipoise embed {name}", f'equipoise.data.load("{name}")']
    return "\n".join(lines)


def _of_the_maker(name: str) -> str:
    """Return the docstring of the function that makes a toy, without its verb."""
    return " ".join((inspect.getdoc(TOYS[name].make) or "").split()).removeprefix("Return ")
