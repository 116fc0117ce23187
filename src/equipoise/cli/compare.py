"""`equipoise compare`: compare several maps of the same data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from .._plural import plural
from ..evaluate import compare
from ..progress import shown
from .evaluation_data import add_evaluation_options, read_evaluation_data
from .map_files import known_classes, read_maps, unlabelled
from .options import add_verb
from .outputs import report_written
from .pictures import add_figure, save_figure

EXAMPLES = """\
  equipoise embed iris --out tsne.csv && equipoise embed iris --method pca --out pca.csv
  equipoise compare iris tsne.csv pca.csv --figure maps.png
  equipoise embed iris --geometry torus:60 --out torus.csv && equipoise embed iris --out plane.csv
  equipoise compare iris torus.csv plane.csv --geometry torus:60 plane"""


def add(verbs: Any) -> None:
    """Add the verb `compare` to the command line."""
    line = "compare several maps of the same data"
    verb = add_verb(verbs, "compare", line, "DATA MAP MAP … [options]", EXAMPLES, run)
    add_evaluation_options(verb, "maps", "+")
    add_figure(verb)


def run(args: argparse.Namespace) -> int:
    """Print the comparison, and write its figure if --figure is given."""
    maps = read_maps(args.maps, args.coordinates)
    evaluated = read_evaluation_data(args, maps)
    labels = known_classes(evaluated.dataset, *maps.values())
    measured = {name: one.measured for name, one in maps.items()}
    k = "auto" if args.k is None else args.k
    with shown():
        options = {"k": k, "metric": evaluated.metric, "geometry": _geometry(args.geometry, list(measured))}
        comparison = compare(evaluated.dataset.X, measured, labels, **options)
    written = save_figure(args, comparison.figure)
    classes = f"classes             {unlabelled(labels)}\n" * bool(unlabelled(labels))
    print(f"data                {evaluated.about}\n{classes}\n{comparison}")
    report_written(written)
    return 0


def _geometry(spaces: Sequence[Any] | None, names: Sequence[str]) -> Any:
    """Return the space of all maps, or a dictionary of one space per map."""
    if spaces is None or len(spaces) == 1:
        return spaces and spaces[0]
    if len(spaces) != len(names):
        raise ValueError(
            f"--geometry has {len(spaces)} spaces for {plural(len(names), 'map')}; pass one, or one per map"
        )
    return dict(zip(names, spaces, strict=True))
