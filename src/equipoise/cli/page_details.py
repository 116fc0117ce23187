"""Columns and images of the data that an interactive page shows beside the map."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from scipy import sparse

from .._plural import plural
from .._types import Array
from ..data import Dataset
from ..data.missing import is_frame_of_columns, side_columns
from .map_files import is_coordinate
from .outputs import PageDetails
from .pictures import Drawing

MAX_COLUMNS = 50  # embedded columns on a page; chosen
MAX_VALUES = 10_000_000  # numbers of embedded columns on a page, 40 MB before compression; chosen
MAX_SIDE = 128  # pixels of the larger side of an image on a page; chosen
MAX_PIXEL_BYTES = 64 * 2**20  # all images of a page before compression; chosen
MIN_SIDE = 12  # smaller images cannot be recognised; chosen


def page_details(dataset: Dataset, without: Collection[str] = (), color: str | None = None) -> PageDetails:
    """Return the columns embedded and the images in the rows of a data set, as far as they fit on a page.

    The columns whose names are in `without` are left out. The column `color` comes first.
    """
    names = [name for name in dataset.columns if name not in dataset.extra and name not in without]
    names.sort(key=lambda name: name != color)
    shown = names[: min(MAX_COLUMNS, MAX_VALUES // max(dataset.X.shape[0], 1))]
    notes = []
    if len(shown) < len(names):
        notes.append(f"shows {len(shown):,} of {plural(len(names), 'column')}; --keep A,B,… adds others")
    images = None
    if dataset.image_shape:
        images, note = _shrunk_images(dataset.X, dataset.image_shape)
        notes += [note] if note else []
    return PageDetails(_columns(dataset, shown), images, tuple(f"page                {note}" for note in notes))


def add_details(drawing: Drawing, details: PageDetails) -> Drawing:
    """Return a drawing that also shows the details; columns whose names are in use get underscores."""
    columns = dict(drawing.columns)
    for name, values in details.columns.items():
        while name in columns or is_coordinate(name):
            name += "_"
        columns[name] = values
    return replace(drawing, columns=columns, images=details.images)


def _columns(dataset: Dataset, names: list[str]) -> dict[str, Array]:
    if not names:
        return {}
    if is_frame_of_columns(dataset.X):
        return side_columns(dataset.X, names)
    places = {name: j for j, name in enumerate(dataset.columns)}
    table = dataset.X[:, [places[name] for name in names]]
    values = table.toarray() if sparse.issparse(table) else np.asarray(table)
    return {name: values[:, j].copy() for j, name in enumerate(names)}


def _shrunk_images(X: Array, shape: tuple[int, ...]) -> tuple[Array | None, str]:
    """Return the images in the rows of X as uint8, averaged over square blocks to fit on a page, and a note."""
    n, (height, width), channels = len(X), shape[:2], shape[2:]
    room = MAX_PIXEL_BYTES / (n * int(np.prod(channels)))  # pixels per image
    block = max(1, int(np.ceil(max(max(height, width) / MAX_SIDE, np.sqrt(height * width / room)))))
    h, w = height // block, width // block
    if block > 1 and min(h, w) < MIN_SIDE:
        return None, f"{plural(n, 'image')} would take too much space, and are left out"
    top = 255 if X.dtype == np.uint8 else float(np.max(X)) or 1.0
    images = np.empty((n, h, w, *channels), dtype=np.uint8)
    for i in range(n):
        pixels = np.asarray(X[i]).reshape(shape)[: h * block, : w * block]
        means = pixels.reshape(h, block, w, block, *channels).mean(axis=(1, 3))
        images[i] = np.clip(np.round(255 * (means / top)), 0, 255)
    return images, "" if block == 1 else f"images of {width} × {height} pixels are reduced to {w} × {h}"
