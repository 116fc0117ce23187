"""`equipoise plot`: plot a map from a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import data
from .._names import suggest_column
from .._plural import plural
from .._types import Array
from ..data import Dataset
from ..data.missing import is_frame_of_columns, side_columns
from ..data.read.selection import to_texts
from .geometry_option import add_geometry
from .map_files import MapFile, add_coordinates, class_names, read_map
from .options import add_verb, existing
from .outputs import NOTHING, PageDetails, report_written, writable, write_bytes
from .page_details import page_details
from .pictures import Drawing, picture_path, render

EXAMPLES = """\
  equipoise embed iris && equipoise plot iris.csv --dark
  equipoise plot iris.csv --color y1 --out iris.svg
  equipoise plot iris.csv --data iris --out iris.html
  equipoise embed iris --geometry torus:60 && equipoise plot iris.csv --geometry torus:60"""
MAX_UNNAMED = 3  # maximum number of unnamed columns to use as coordinates


def add(verbs: Any) -> None:
    """Add the verb `plot` to the command line."""
    line = "plot a map from a file, as an image or an interactive page"
    verb = add_verb(verbs, "plot", line, "MAP [options]", EXAMPLES, run)
    verb.add_argument(
        "map",
        metavar="MAP",
        help="file with a map in the columns y1, y2, …, and other columns; or a model from `embed --save`",
    )
    add_coordinates(verb)
    verb.add_argument("--color", metavar="COLUMN", help="column to colour by (default: the classes, if there are any)")
    verb.add_argument("--title", metavar="TEXT", help="title of the plot (default: the name of the map)")
    verb.add_argument(
        "--dark", action="store_true", help="use a dark background (default: light; a page follows the system)"
    )
    add_geometry(verb, "the map")
    verb.add_argument(
        "--data",
        metavar="DATA",
        help="the data of the map, in the same order: their columns can colour it (missing values are grey), and a page"
        " shows them and images",
    )
    verb.add_argument(
        "--out",
        metavar="FILE",
        type=picture_path,
        help=".png, .svg, or .html for an interactive page (default: NAME-plot.png for the map NAME.csv)",
    )


def run(args: argparse.Namespace) -> int:
    """Read the map, plot it and write the file."""
    loaded = read_map(args.map, args.coordinates)
    _check_coordinates(args.map, loaded)
    out = args.out or writable(f"{loaded.name}-plot.png")
    names = loaded.columns or tuple(f"y{c + 1}" for c in range(loaded.Y.shape[1]))
    columns = {**loaded.others, **dict(zip(names, loaded.Y.T, strict=True))}
    details = NOTHING if args.data is None else _read_details(args, loaded)
    columns |= {name: values for name, values in details.columns.items() if name not in columns}
    columns = {name: _without_blanks(values) for name, values in columns.items()}
    color = loaded.label if args.color is None else args.color
    if color is not None and color not in columns:
        raise ValueError(_unknown_color(args, list(columns)))
    title = args.title or (loaded.name if color in (None, loaded.label) else f"{loaded.name}, {color}")
    geometry = args.geometry or getattr(loaded.model and loaded.model.method, "geometry_", None)
    drawing = Drawing(loaded.Y, columns, color, title, args.dark, geometry=geometry, images=details.images)
    write_bytes(out, render(out.suffix[1:].lower(), drawing))
    report_written([out])
    return 0


def _unknown_color(args: argparse.Namespace, columns: Sequence[str]) -> str:
    known = suggest_column(args.color, columns)
    if args.data is not None:
        return f"neither {args.map} nor {args.data} has a column {args.color!r}; {known}"
    return (
        f"{args.map} has no column {args.color!r}; {known}. To colour by a column of the data, pass the data with"
        f" --data, or make the map with --keep {args.color}"
    )


def _read_details(args: argparse.Namespace, loaded: MapFile) -> PageDetails:
    """Return the columns and the images of the data of a map, after checking that their rows are those of the map."""
    bundled = args.data in data.DATASETS
    dataset = data.load(args.data) if bundled else data.read(existing(args.data), every_kind=True)
    dataset = _separate_numbers(dataset) if is_frame_of_columns(dataset.X) else dataset
    n, m = dataset.X.shape[0], len(loaded.Y)
    if n != m:
        raise ValueError(f"{args.data} has {plural(n, 'row')}, but {args.map} has {m:,}; pass the data of this map")
    if dataset.ids is not None and (ids := loaded.others.get("id")) is not None:
        other = np.flatnonzero(to_texts(np.asarray(dataset.ids)) != to_texts(np.asarray(ids)))
        if other.size:
            i = other[0]
            raise ValueError(
                f"row {i} is {str(dataset.ids[i])!r} in {args.data}, but {str(ids[i])!r} in {args.map}; pass the data"
                " of this map in the same order"
            )
    details = page_details(dataset, color=args.color)
    for note in details.notes:
        print(note)
    classes = class_names(dataset)
    labels = {} if classes is None else {dataset.label: np.asarray(classes, dtype=object)}
    return replace(details, columns={**labels, **dataset.extra, **details.columns})


def _separate_numbers(dataset: Dataset) -> Dataset:
    """Return a data set with the numbers of an Arrow table as X, NaN where missing, and the rest as `extra`."""
    columns = side_columns(dataset.X, dataset.columns)
    numbers = {name: values for name, values in columns.items() if values.dtype.kind == "f"}
    others = {name: values for name, values in columns.items() if name not in numbers}
    X = np.column_stack([*numbers.values()]) if numbers else np.empty((dataset.X.shape[0], 0))
    return replace(dataset, X=X, columns=tuple(numbers), extra={**dataset.extra, **others})


def _without_blanks(values: Array) -> Array:
    """Return a column with None for blank texts, so that they are drawn as missing and not as a class."""
    if values.dtype != object:
        return values
    result = np.empty(len(values), dtype=object)
    result[:] = [None if isinstance(value, str) and not value.strip() else value for value in values.tolist()]
    return result


def _check_coordinates(source: str, loaded: MapFile) -> None:
    d = loaded.Y.shape[1]
    if d > MAX_UNNAMED and not loaded.columns and loaded.model is None:
        raise ValueError(
            f"{source} has {d} unnamed columns, but a map without column names has at most {MAX_UNNAMED}; make a map of"
            f" it with `equipoise embed {source}`, or name its coordinates y1, y2, …"
        )
