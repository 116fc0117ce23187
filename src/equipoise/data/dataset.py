"""Define `Dataset`, which holds a table and what is known about its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._plural import plural
from .._types import Array, Matrix


@dataclass(frozen=True, repr=False)
class Dataset:
    """A table with the classes and names of its rows, and further columns.

    Parameters
    ----------
    name : str
        Name of the data set, for titles and messages.
    X : array or CSR matrix, shape (n, D)
        The table to embed.
    labels : array of int, shape (n,), or None
        Class index of each row; None if the rows have no classes.
    classes : tuple of str
        Class names; row i has the class `classes[labels[i]]`.
    columns : tuple of str, default=()
        Names of the D columns of X; empty if they have none.
    ids : array of str, shape (n,), default=None
        Row names; None if the rows have none.
    extra : dict of str to array, shape (n,), default={}
        Columns that are not part of X, by name: arrays of str objects, or of float64 with NaN for missing values.
        Arrays read from an NPZ file keep their dtype instead.
    label : str, default="class"
        Name of the column of classes.
    image_shape : tuple of int, default=()
        Shape of the image in a row of X: (height, width), or (height, width, 3) for RGB; empty if rows are not images.
    """

    name: str
    X: Matrix
    labels: Any
    classes: tuple[str, ...]
    columns: tuple[str, ...] = ()
    ids: Array | None = None
    extra: dict[str, Array] = field(default_factory=dict)
    label: str = "class"
    image_shape: tuple[int, ...] = ()

    def __repr__(self) -> str:
        n, D = self.X.shape
        classes = f", {plural(len(self.classes), 'class', 'classes')}" * (self.labels is not None)
        extra = f", {plural(len(self.extra), 'extra column')}" * bool(self.extra)
        return f"<{self.name}: table {n:,} × {D:,}{classes}{extra}>"
