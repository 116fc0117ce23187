"""Select columns by name: those to embed, the one with the classes, and the one with the row names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from ..._names import quote, suggest_column
from ..._types import Array, Matrix
from ..dataset import Dataset

MISSING = "missing"  # class of rows without a label


class UnknownColumn(ValueError):
    """Raised if a selected column does not exist.

    Attributes
    ----------
    names : tuple of str
        Names of the existing columns; empty if they have none.
    """

    def __init__(self, message: str, names: Sequence[str]):
        super().__init__(message)
        self.names = tuple(names)


@dataclass(frozen=True)
class Selection:
    """The names of the columns that the user selects.

    Parameters
    ----------
    columns : tuple of str, default=None
        Columns to embed; None for all numeric columns except `label` and `id`.
    label : str, default=None
        Column of classes.
    id : str, default=None
        Column of row names.
    use_rep, layer : str, default=None
        The table of an AnnData file: a key of `obsm` or of `layers`; None for X.
    exclude : tuple of str, default=()
        Columns not to embed.
    every_kind : bool, default=False
        Whether to embed columns of every kind, text and gaps included.
    encoding : str, default=None
        Encoding of CSV and TSV; None for UTF-8, or UTF-16 with a byte order mark.
    """

    columns: tuple[str, ...] | None = None
    label: str | None = None
    id: str | None = None
    use_rep: str | None = None
    layer: str | None = None
    exclude: tuple[str, ...] = ()
    every_kind: bool = False
    encoding: str | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """The names of all columns that the user mentions."""
        return (*(self.columns or ()), *(name for name in (self.label, self.id) if name is not None), *self.exclude)

    def check(self, names: Sequence[str], source: str) -> None:
        """Raise if a selected name does not exist or is selected twice, or if two columns have the same name."""
        if duplicate := _repeated(names):
            raise ValueError(f"{source}: two columns are named {quote(duplicate)}; rename one of them")
        known = set(names)
        for name in self.named:
            if name not in known:
                message = f"{source}: no column is named {quote(name)}; {suggest_column(name, names)}"
                raise UnknownColumn(message, names)
        if duplicate := _repeated(self.named):
            raise ValueError(f"{source}: column {quote(duplicate)} is selected twice; select it once")

    def find(self, names: Sequence[str], source: str) -> list[int] | None:
        """Return the indices of the columns to embed in a table of numbers, or None for all of them.

        `names` are the columns of the table. Raise if a column in `columns` or `exclude` does not exist.
        """
        if self.columns is None and not self.exclude:
            return None
        Selection(self.columns, exclude=self.exclude).check(names, source)
        if self.columns is None:
            kept = [j for j, name in enumerate(names) if name not in self.exclude]
        else:
            index = {name: j for j, name in enumerate(names)}
            kept = [index[name] for name in self.columns]
        if not kept:
            raise ValueError(f"{source} has no column to embed; exclude fewer")
        return kept

    def require_none(self, source: str, kind: str) -> None:
        """Raise if a column is selected from a file whose columns have no names."""
        if part := self.use_rep or self.layer:
            raise ValueError(f"{source}: {kind} has no table {quote(part)}; omit use_rep and layer")
        if self.named:
            raise UnknownColumn(
                f"{source}: {kind} has no column names, so {quote(self.named[0])} cannot be selected; omit"
                " `columns`, `label`, `id` and `exclude`",
                (),
            )

    def dataset(self, source: str, X: Matrix, columns: Sequence[str], others: dict[str, Array]) -> Dataset:
        """Return the data set made of a table X (n, D), its column names, and the other columns (n,) by name."""
        others = dict(others)
        labels, classes = (None, ()) if self.label is None else to_classes(others.pop(self.label))
        ids = None if self.id is None else to_texts(others.pop(self.id))
        label = Dataset.label if self.label is None else self.label
        return Dataset(file_stem(source), X, labels, classes, tuple(columns), ids, others, label)


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def file_stem(source: str) -> str:
    """Return the name of a file without folder and suffixes: "digits" for "data/digits.csv.gz"."""
    path = PurePath(source)
    return PurePath(path.stem).stem if path.suffix.lower() in (".gz", ".bz2", ".zst") else path.stem


def to_classes(values: Array) -> tuple[Array, tuple[str, ...]]:
    """Return the class index of each row, and the class names.

    The names are sorted as numbers if all are numbers, else as text. Rows without a value get the class "missing",
    which comes last if all other names are numbers.
    """
    texts = to_texts(values)
    texts[texts == ""] = MISSING
    names = sorted(set(texts))
    with suppress(ValueError):
        names.sort(key=lambda name: np.inf if name == MISSING else float(name))
    index = {name: c for c, name in enumerate(names)}
    return np.fromiter((index[text] for text in texts), dtype=np.int64, count=len(texts)), tuple(names)


def to_texts(values: Array) -> Array:
    """Return a column as an array of str: integers without a decimal point, missing values as empty strings."""
    if values.dtype == object and set(map(type, values)) == {str}:
        return values.copy()
    texts = np.empty(len(values), dtype=object)
    texts[:] = [to_text(value) for value in values.tolist()]
    return texts


def to_text(value: Any) -> str:
    """Return a value as text: a float in the shortest form that reads back equal, a missing value as ""."""
    if isinstance(value, float):
        return "" if value != value else repr(value).removesuffix(".0")
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return "" if value is None else str(value)
