"""`equipoise compare`: several maps of the same data in one table."""

from __future__ import annotations

import argparse
from typing import Any

from ..evaluate import compare
from ..progress import shown
from .maps import class_of_each, read_maps
from .options import add_data, add_measuring, add_verb, read_data
from .pictures import add_figure, save_figure

EXAMPLES = """\
  equipoise embed iris --out tsne.csv && equipoise embed iris --method pca --out pca.csv
  equipoise compare iris tsne.csv pca.csv --figure maps.png"""


def add(verbs: Any) -> None:
    """Declare the verb."""
    line = "measure several maps of the same data side by side"
    verb = add_verb(verbs, "compare", line, "DATA MAP MAP … [options]", EXAMPLES, run)
    add_data(verb)
    verb.add_argument("maps", metavar="MAP", nargs="+", help="files with maps: y1, y2 …, a row for each row of DATA")
    add_measuring(verb, 15)
    add_figure(verb)


def run(args: argparse.Namespace) -> int:
    """Print the table, and write its figure."""
    dataset, maps = read_data(args), read_maps(args.maps)
    labels = class_of_each(dataset, *maps.values())
    drawn = {name: one.Y for name, one in maps.items()}
    with shown():
        comparison = compare(dataset.X, drawn, labels, k=args.k, metric=args.metric)
    print(comparison)
    save_figure(args, comparison.figure)
    return 0
