"""Read and prepare the data from which maps were made, in order to evaluate the maps."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._names import list_names
from ..data import Dataset
from ..evaluate.checks import precomputed_input
from ..inputs.make import check_metric_name
from ..saving.checkpoint import fingerprint
from .geometry_option import add_geometry
from .map_files import MapFile, add_coordinates
from .option_values import integer
from .options import add_data
from .read_table import read_like, read_table
from .saved_model import SavedModel

METRIC = "euclidean"


@dataclass(frozen=True)
class EvaluationData:
    """A prepared data set, its metric, and a description of the data and their preparation."""

    dataset: Dataset
    metric: Any
    about: str


def add_evaluation_options(verb: argparse.ArgumentParser, maps: str, nargs: str | None) -> None:
    """Add DATA with its options, the argument named `maps`, --coordinates, --geometry, --k and --metric."""
    add_data(verb)
    verb.add_argument(
        maps,
        metavar="MAP",
        nargs=nargs,
        help="file with a map in the columns y1, y2, …, one row per row of DATA; or a model from `embed --save`: then"
        " DATA is prepared as for the model, and the default metric is that of the model",
    )
    add_coordinates(verb)
    several = "each map without one, or one space per map, in the order of the maps"
    add_geometry(verb, "the map" if nargs is None else several, nargs)
    verb.add_argument(
        "--k",
        type=integer,
        metavar="N",
        help="number of neighbours (default: 15, or fewer if there are fewer than 31 rows)",
    )
    verb.add_argument("--metric", metavar="WORD", help=f"metric of the data (default: that of the model, or {METRIC})")


def read_evaluation_data(args: argparse.Namespace, maps: Mapping[str, MapFile]) -> EvaluationData:
    """Read and prepare the data.

    If there are saved methods among the maps, the data are prepared as they were for fitting these methods; otherwise,
    as the options say.
    """
    if args.metric is not None:
        check_metric_name(args.metric, pairs=True)
    models = {name: loaded.model for name, loaded in maps.items() if loaded.model is not None}
    if not models:
        table = read_table(args, args.metric or METRIC)
        hint = " (no --log1p, --standardize or --pca)" if table.preparation.is_identity else ""
        return EvaluationData(table.dataset, table.metric, f"{table.dataset.name}, {table.preparation}{hint}")
    for option in ("normalize-total", "log1p", "standardize", "pca"):
        if getattr(args, option.replace("-", "_")):
            raise ValueError(
                f"the saved method {next(iter(models))} already defines the preparation of its data; omit --{option}"
            )
    first, model = next(iter(models.items()))
    with_columns = next((name for name, other in models.items() if other.columns), first)
    columns = models[with_columns].columns
    metric = args.metric or _metric(model)
    for name, other in models.items():
        if fingerprint(vars(other.preparation)) != fingerprint(vars(model.preparation)):
            raise ValueError(
                f"{first} and {name} were fitted to differently prepared data ({model.preparation};"
                f" {other.preparation}); evaluate them separately"
            )
        if args.columns is None and columns and other.columns not in (None, columns):
            raise ValueError(
                f"{with_columns} and {name} were fitted to different columns ({list_names(columns)};"
                f" {list_names(other.columns or ())}); choose the columns for all with --columns"
            )
        if args.metric is None and _metric(other) != metric:
            raise ValueError(
                f"{first} and {name} were fitted with different metrics ({metric}; {_metric(other)}); choose one for"
                " all with --metric"
            )
    dataset = read_like(args, columns, model.preparation, metric)
    return EvaluationData(dataset, metric, f"{dataset.name}, {model.preparation}, as for {first}")


def _metric(model: SavedModel) -> Any:
    if (found := precomputed_input(model.method)) is not None:
        raise ValueError(
            f"a model given as MAP was fitted to {found[1]}, not to distances, so the metric of DATA is unknown; choose"
            " it, as in --metric euclidean"
        )
    return model.method.get_params().get("metric", METRIC)
