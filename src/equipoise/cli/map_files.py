"""Maps read back from files: which columns are coordinates, which one is the class."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .. import data
from .._types import Array, Matrix
from ..data import Dataset
from ..data.read.wanted import NoColumn, listed
from .options import STDIN, column_names, existing
from .saved_model import Kept, is_kept, recall

CLASS = "class"  # the column that `embed` writes
EXACT = 2**53  # whole numbers that float64 tells apart


@dataclass(frozen=True)
class DrawnMap:
    """A map Y (n, d), the names of its coordinates, none where the file has none, and the other columns by name.

    One that was read from a saved method has that method with it.
    """

    name: str
    Y: Array
    columns: tuple[str, ...]
    others: dict[str, Array]
    kept: Kept | None = None


def add_coordinates(verb: argparse.ArgumentParser) -> None:
    """Add the option that says which columns of a map are its coordinates."""
    verb.add_argument(
        "--coordinates", metavar="A,B,…", type=column_names, help="columns of MAP with the places (default: y1, y2 …)"
    )


def read_map(source: str, coordinates: Sequence[str] | None = None) -> DrawnMap:
    """Return the map in a file, or the one of a saved method.

    Its coordinates are those asked for, else the columns y1, y2 …; where columns have no names, all of them.
    """
    path = existing(source)
    if is_kept(path):
        kept = recall(path)
        return DrawnMap(Path(path).stem, kept.method.embedding_, (), {}, kept)
    try:
        dataset = data.read(path, columns=coordinates or ("y1",))
    except NoColumn as missing:
        if coordinates is not None:
            raise
        if source == STDIN or any(not re.fullmatch(r"column \d+", name) for name in missing.names):
            raise ValueError(_no_map(source, missing.names)) from None
        dataset = data.read(path)
        return DrawnMap(dataset.name, _dense(dataset.X), (), _others(dataset.extra))
    if coordinates is not None:
        return DrawnMap(dataset.name, _dense(dataset.X), dataset.columns, _others(dataset.extra))
    if Path(path).suffix.lower() == ".h5ad":  # where other columns of the table are not beside it
        dataset = data.read(path)
        return DrawnMap(dataset.name, _dense(dataset.X), dataset.columns, _others(dataset.extra))
    named = sorted(filter(is_coordinate, dataset.extra), key=lambda name: int(name[1:]))
    for name in named:
        if not _is_numbers(dataset.extra[name]):
            if source != STDIN:
                data.read(path, columns=("y1", *named))  # says where
            raise ValueError(f"{source}, column {name!r}: a coordinate is missing or no number; every row needs one")
    Y = np.column_stack([dataset.X, *(dataset.extra[name] for name in named)])
    others = _others({k: v for k, v in dataset.extra.items() if k not in named})
    return DrawnMap(dataset.name, Y, ("y1", *named), others)


def _is_numbers(values: Array) -> bool:
    return values.dtype.kind in "iuf" and bool(np.isfinite(values).all())


def _dense(X: Matrix) -> Array:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _no_map(source: str, names: Sequence[str]) -> str:
    return (
        f"{source} is no map: a map has its coordinates in columns y1, y2 …, as `equipoise embed` writes them, and this"
        f" has {listed(names)}; say which columns are coordinates with --coordinates A,B, or make a map of it with"
        f" `equipoise embed {source}`"
    )


def _others(columns: dict[str, Array]) -> dict[str, Array]:
    return {name: _whole(values) for name, values in columns.items()}


def is_coordinate(column: str) -> bool:
    """Return whether a column holds a coordinate of a map, by its name."""
    return re.fullmatch(r"y\d+", column) is not None


def _whole(values: Array) -> Array:
    """Return numbers that are all whole as such, and other columns as they are: a class called 3 is not 3.0."""
    is_whole = values.dtype.kind == "f" and (np.abs(values) < EXACT).all() and (values == np.round(values)).all()
    return values.astype(np.int64) if is_whole else values


def read_maps(sources: list[str], coordinates: Sequence[str] | None) -> dict[str, DrawnMap]:
    """Return maps by the names of their files, with the folders where two files have one name."""
    maps = [read_map(source, coordinates) for source in sources]
    stems = [drawn.name for drawn in maps]
    names = [stem if stems.count(stem) == 1 else str(Path(source)) for stem, source in zip(stems, sources, strict=True)]
    if len(set(names)) < len(names):
        raise ValueError(f"the map {next(name for name in names if names.count(name) > 1)!r} is given twice")
    return dict(zip(names, maps, strict=True))


def class_of_each(dataset: Dataset, *maps: DrawnMap) -> Any:
    """Return classes by name: those of the data, else those that a map was written with, else none."""
    if dataset.labels is not None:
        return np.asarray(dataset.classes)[dataset.labels]
    return next((drawn.others[CLASS] for drawn in maps if CLASS in drawn.others), None)
