"""Read maps from files: find the coordinates and the classes."""

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
from .._names import list_names, quote
from .._plural import plural
from .._types import Array, Matrix
from ..anndata.stored import find_stored_map
from ..data import Dataset
from ..data.read.selection import MISSING, UnknownColumn
from .options import STDIN, column_names
from .saved_model import SavedModel, is_model, load_model

CLASS = "class"  # column of the classes, if their column has no name
MAX_CLASSES = 20  # a column with more distinct values is not taken for classes; chosen
EXACT = 2**53  # integers below this are exact in float64


@dataclass(frozen=True)
class MapFile:
    """A map read from a file.

    Attributes
    ----------
    name : str
        Name of the file without its suffix.
    Y : ndarray of shape (n, d)
        The map.
    columns : tuple of str
        Names of the coordinates; empty if they have no names.
    others : dict of str to ndarray of shape (n,)
        The other columns by name.
    model : SavedModel or None
        The saved method, if the file contains one.
    """

    name: str
    Y: Array
    columns: tuple[str, ...]
    others: dict[str, Array]
    model: SavedModel | None = None

    @property
    def label(self) -> str | None:
        """The column of the classes: "class", or the first other column, where `embed` writes them; None without one.

        The first other column does not count if it has more than 20 distinct values.
        """
        first = next((name for name in self.others if name != "id"), None)
        if CLASS in self.others or first is None:
            return CLASS if CLASS in self.others else None
        return first if len(set(self.others[first].tolist())) <= MAX_CLASSES else None

    @property
    def measured(self) -> Any:
        """The map for measures: the fitted method, if there is one, because it knows the geometry of the map."""
        return self.Y if self.model is None else self.model.method


def add_coordinates(verb: argparse.ArgumentParser) -> None:
    """Add the option --coordinates."""
    verb.add_argument(
        "--coordinates",
        metavar="A,B,…",
        type=column_names,
        help="columns with the coordinates (default: y1, y2, …)",
    )


def read_map(source: str, coordinates: Sequence[str] | None = None) -> MapFile:
    """Read a map from a table, or from the file of a saved method.

    Parameters
    ----------
    source : str
        Path, or "-" for standard input.
    coordinates : sequence of str, optional
        Columns of the coordinates. The default is y1, y2, …; all columns if they have no names. In an .h5ad file, a key
        of `obsm` such as X_tsne; by default all columns of X if it contains y1, else the only map in `obsm`.
    """
    if source != STDIN and not Path(source).exists():
        raise ValueError(f"the map {source!r} does not exist; make one with `equipoise embed DATA`")
    if is_model(source):
        model = load_model(source)
        others = {} if model.classes is None else {CLASS: model.classes}
        return MapFile(Path(source).stem, model.method.embedding_, (), others, model)
    if (key := find_stored_map(source, coordinates)) is not None:
        dataset = data.read(source, use_rep=key)
        return MapFile(dataset.name, _dense(dataset.X), dataset.columns, _restore_integers(dataset.extra))
    try:
        dataset = data.read(source, columns=coordinates or ("y1",))
    except UnknownColumn as missing:
        if coordinates is not None:
            raise
        if source == STDIN or any(not re.fullmatch(r"column \d+", name) for name in missing.names):
            raise ValueError(_not_a_map(source, missing.names)) from None
        dataset = data.read(source)
        return MapFile(dataset.name, _dense(dataset.X), (), _restore_integers(dataset.extra))
    if coordinates is not None:
        return MapFile(dataset.name, _dense(dataset.X), dataset.columns, _restore_integers(dataset.extra))
    if Path(source).suffix.lower() == ".h5ad":  # reading some columns drops the others
        dataset = data.read(source)
        return MapFile(dataset.name, _dense(dataset.X), dataset.columns, _restore_integers(dataset.extra))
    named = sorted(filter(is_coordinate, dataset.extra), key=lambda name: int(name[1:]))
    for name in named:
        if not _is_numeric(dataset.extra[name]):
            if source != STDIN:
                data.read(source, columns=("y1", *named))  # raises an error that names the row
            raise ValueError(
                f"{'stdin' if source == STDIN else source}, column {name!r}: a coordinate is missing or not a finite"
                " number; store a number in every row"
            )
    Y = np.column_stack([dataset.X, *(dataset.extra[name] for name in named)])
    others = _restore_integers({k: v for k, v in dataset.extra.items() if k not in named})
    return MapFile(dataset.name, Y, ("y1", *named), others)


def _is_numeric(values: Array) -> bool:
    return values.dtype.kind in "iuf" and bool(np.isfinite(values).all())


def _dense(X: Matrix) -> Array:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _not_a_map(source: str, names: Sequence[str]) -> str:
    return (
        f"{source} is not a map: maps have columns y1, y2, …, but this file has {list_names(names)}; choose the"
        f" coordinates with --coordinates A,B, or make a map of it with `equipoise embed {source}`"
    )


def _restore_integers(columns: dict[str, Array]) -> dict[str, Array]:
    return {name: _as_integers(values) for name, values in columns.items()}


def is_coordinate(column: str) -> bool:
    """Return whether `column` is the name of a coordinate: y1, y2, …"""
    return re.fullmatch(r"y\d+", column) is not None


def _as_integers(values: Array) -> Array:
    """Convert a float column of integers to int64, so that the class 3 is not shown as 3.0; leave others unchanged."""
    is_integer = values.dtype.kind == "f" and (np.abs(values) < EXACT).all() and (values == np.round(values)).all()
    return values.astype(np.int64) if is_integer else values


def read_maps(sources: list[str], coordinates: Sequence[str] | None) -> dict[str, MapFile]:
    """Read maps; return them in a dictionary by file name without suffix, or by path if several names are equal."""
    maps = [read_map(source, coordinates) for source in sources]
    stems = [loaded.name for loaded in maps]
    names = [stem if stems.count(stem) == 1 else str(Path(source)) for stem, source in zip(stems, sources, strict=True)]
    if len(set(names)) < len(names):
        raise ValueError(
            f"the map {next(name for name in names if names.count(name) > 1)!r} is listed twice; list it once"
        )
    return dict(zip(names, maps, strict=True))


def known_classes(dataset: Dataset, *maps: MapFile) -> Any:
    """Return the result of `class_names` with rows without a label masked, for measures of classes."""
    names = class_names(dataset, *maps)
    if names is None:
        return None
    missing = [name != name or (isinstance(name, str) and name in ("", MISSING)) for name in names.tolist()]
    return np.ma.masked_array(names, mask=missing) if any(missing) else names


def unlabelled(labels: Any) -> str:
    """Return "11 rows without a label left out" for the result of `known_classes`; "" if all rows have one."""
    count = 0 if labels is None else int(np.ma.getmaskarray(labels).sum())
    return f"{plural(count, 'row')} without a label left out" if count else ""


def require_classes(dataset: Dataset) -> None:
    """Raise ValueError if the column of labels has more than 20 distinct values and one of them is in one row only."""
    sizes = np.unique(dataset.labels, return_counts=True)[1]
    if len(sizes) > MAX_CLASSES and sizes.min() == 1:
        size = f"{len(sizes):,} values in {plural(len(dataset.labels), 'row')}"
        raise ValueError(f"{quote(dataset.label)} has {size}; it does not look like a class")


def class_names(dataset: Dataset, *maps: MapFile) -> Any:
    """Return the class of each row; None if there are no classes.

    The classes are those of the data or, if the data have none, those of the first map with classes.
    """
    if dataset.labels is not None:
        return np.asarray(dataset.classes)[dataset.labels]
    return next((loaded.others[loaded.label] for loaded in maps if loaded.label is not None), None)
