"""Maps read back from files: which columns are coordinates, which one is the class."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import data
from .._types import Array
from ..data import Dataset
from .options import existing

CLASS = "class"  # the column that `embed` writes
EXACT = 2**53  # whole numbers that float64 tells apart


@dataclass(frozen=True)
class DrawnMap:
    """A map Y (n, d), and the other columns of its file by name."""

    name: str
    Y: Array
    others: dict[str, Array]


def read_map(source: str) -> DrawnMap:
    """Return the map in a file: the columns y1, y2 … where there are such, else every column of numbers."""
    path = existing(source)
    try:
        dataset = data.read(path, columns=("y1",))
    except ValueError:  # no map of ours; or whatever else is wrong is found again
        dataset = data.read(path)
        return DrawnMap(dataset.name, np.asarray(dataset.X), _others(dataset.extra))
    named = sorted(filter(is_coordinate, dataset.extra), key=lambda name: int(name[1:]))
    Y = np.column_stack([dataset.X, *(dataset.extra[name].astype(np.float64) for name in named)])
    return DrawnMap(dataset.name, Y, _others({k: v for k, v in dataset.extra.items() if k not in named}))


def _others(columns: dict[str, Array]) -> dict[str, Array]:
    return {name: _whole(values) for name, values in columns.items()}


def is_coordinate(column: str) -> bool:
    """Return whether a column holds a coordinate of a map, by its name."""
    return re.fullmatch(r"y\d+", column) is not None


def _whole(values: Array) -> Array:
    """Return numbers that are all whole as such, and other columns as they are: a class called 3 is not 3.0."""
    is_whole = values.dtype.kind == "f" and (np.abs(values) < EXACT).all() and (values == np.round(values)).all()
    return values.astype(np.int64) if is_whole else values


def read_maps(sources: list[str]) -> dict[str, DrawnMap]:
    """Return maps by the names of their files, with the folders where two files have one name."""
    maps = [read_map(source) for source in sources]
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
