"""`equipoise data`: list the bundled data sets and toy shapes."""

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
MAX_CLASSES = 12  # classes listed by name


def add(verbs: Any) -> None:
    """Add the verb `data` to the command line."""
    verb = add_verb(
        verbs, "data", "list the bundled data sets and toy shapes, or describe one", "[NAME]", EXAMPLES, run
    )
    verb.add_argument("name", metavar="NAME", nargs="?", help="data set to describe")


def run(args: argparse.Namespace) -> int:
    """Print the list of data sets, or the description of one of them."""
    if args.name is None:
        width = max(map(len, DATASETS))
        for name, description in DATASETS.items():
            line = f"{name:{width}s} {description}"
            print(textwrap.fill(line, WIDTH, subsequent_indent=" " * (width + 1)) if sys.stdout.isatty() else line)
        return 0
    if args.name not in DATASETS:
        suggestion = did_you_mean(args.name, DATASETS, "run `equipoise data` for a list")
        raise ValueError(f"unknown data set {args.name!r}; {suggestion}")
    print(_describe(args.name))
    return 0


def _describe(name: str) -> str:
    dataset = load(name)
    n, D = dataset.X.shape
    lines = [f"{name}: {DATASETS[name]}", ""]
    if name in TOYS:
        lines += [textwrap.fill(_toy_summary(name), WIDTH), ""]
    lines += [f"rows       {n:,}", f"columns    {D:,}", f"values     {dataset.X.min():g} to {dataset.X.max():g}"]
    if dataset.labels is not None:
        counts = np.bincount(dataset.labels, minlength=len(dataset.classes))
        sizes = [f"{label} {count:,}" for label, count in zip(dataset.classes, counts, strict=True)]
        more = [f"and {len(sizes) - MAX_CLASSES} more"] if len(sizes) > MAX_CLASSES else []
        text = ", ".join(sizes[:MAX_CLASSES] + more)
        lines.append(textwrap.fill(f"classes    {text}", WIDTH, subsequent_indent=" " * 11))
    lines += ["", f"equipoise embed {name}", f'equipoise.data.load("{name}")']
    return "\n".join(lines)


def _toy_summary(name: str) -> str:
    """Return the docstring of the function that generates a toy data set, up to its parameters and without "Return"."""
    text = (inspect.getdoc(TOYS[name].make) or "").partition("\nParameters\n")[0]
    return " ".join(text.split()).removeprefix("Return ")
