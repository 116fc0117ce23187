"""`equipoise compare`: several maps of the same data in one table."""

from __future__ import annotations

import argparse
from typing import Any

from ..evaluate import compare
from ..progress import shown
from .evaluation_data import add_measuring, read_measured
from .map_files import class_of_each, read_maps
from .options import add_verb
from .outputs import tell_written
from .pictures import add_figure, save_figure

EXAMPLES = """\
  equipoise embed iris --out tsne.csv && equipoise embed iris --method pca --out pca.csv
  equipoise compare iris tsne.csv pca.csv --figure maps.png"""


def add(verbs: Any) -> None:
    """Declare the verb."""
    line = "measure several maps of the same data side by side"
    verb = add_verb(verbs, "compare", line, "DATA MAP MAP … [options]", EXAMPLES, run)
    add_measuring(verb, "maps", "+")
    add_figure(verb)


def run(args: argparse.Namespace) -> int:
    """Print the table, and write its figure."""
    maps = read_maps(args.maps, args.coordinates)
    measured = read_measured(args, maps)
    labels = class_of_each(measured.dataset, *maps.values())
    drawn = {name: one.Y for name, one in maps.items()}
    with shown():
        comparison = compare(measured.dataset.X, drawn, labels, k=args.k or "auto", metric=measured.metric)
    written = save_figure(args, comparison.figure)
    print(f"data                {measured.about}\n\n{comparison}")
    tell_written(written)
    return 0
