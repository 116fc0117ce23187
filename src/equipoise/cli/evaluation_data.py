"""The data that maps are measured against: prepared as it was when they were made, where that is known."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from ..data import Dataset
from ..data.read.wanted import listed
from ..saving.checkpoint import digest
from .map_files import DrawnMap, add_coordinates
from .option_values import whole_number
from .options import add_data, read_preparation, read_source
from .saved_model import Kept

METRIC = "euclidean"


@dataclass(frozen=True)
class Measured:
    """A data set as maps are measured against it, its metric, and in words what was done to it."""

    dataset: Dataset
    metric: str
    about: str


def add_measuring(verb: argparse.ArgumentParser, maps: str, nargs: str | None) -> None:
    """Add DATA with its options, the maps under the name `maps`, and what a measure of maps needs to know."""
    add_data(verb)
    verb.add_argument(
        maps,
        metavar="MAP",
        nargs=nargs,
        help="a file with a map: y1, y2 …, a row for each row of DATA; or a model that `equipoise embed --save` wrote,"
        " whose preparation and metric are then taken",
    )
    add_coordinates(verb)
    verb.add_argument(
        "--k", type=whole_number, metavar="N", help="neighbours looked at (default: 15, fewer on fewer than 31 rows)"
    )
    verb.add_argument("--metric", metavar="WORD", help=f"of the data (default: that of the model, else {METRIC})")


def read_measured(args: argparse.Namespace, maps: Mapping[str, DrawnMap]) -> Measured:
    """Return the data that the options ask for, as the saved methods among the maps had it, else as the options say."""
    kept = {name: drawn.kept for name, drawn in maps.items() if drawn.kept is not None}
    if not kept:
        source = read_source(args)
        done = read_preparation(args, source)
        hint = " (no --log1p, --standardize or --pca)" if str(done) == "as it is" else ""
        return Measured(done.apply(source), args.metric or METRIC, f"{source.name}, {done}{hint}")
    for option in ("log1p", "standardize", "pca"):
        if getattr(args, option):
            raise ValueError(f"{next(iter(kept))} keeps how its data was prepared; leave --{option} out")
    first, model = next(iter(kept.items()))
    columns = next((model.columns for model in kept.values() if model.columns), None)
    metric = args.metric or _metric(model)
    for name, other in kept.items():
        if digest(vars(other.preparation)) != digest(vars(model.preparation)):
            raise ValueError(
                f"the data of {first} was prepared in another way than that of {name} ({model.preparation};"
                f" {other.preparation}); evaluate each by itself"
            )
        if args.columns is None and columns and other.columns not in (None, columns):
            raise ValueError(
                f"{name} was made of other columns than a model before it ({listed(other.columns or ())};"
                f" {listed(columns)}); say by --columns which ones measure all"
            )
        if args.metric is None and _metric(other) != metric:
            raise ValueError(
                f"{first} was made by another metric than {name} ({metric}; {_metric(other)}); say by --metric which"
                " one measures all"
            )
    source = read_source(args, columns)
    about = f"{source.name}, {model.preparation}, as {first} keeps it"
    return Measured(model.preparation.apply(source), metric, about)


def _metric(model: Kept) -> str:
    settings = model.method.get_params()
    if settings.get("affinity") == "precomputed":
        raise ValueError("the model was made from affinities, which are no distances; say by --metric what DATA holds")
    return str(settings.get("metric", METRIC))
