"""Which columns of a file are embedded, which one is the class and which one names the row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from ..._suggest import closest
from ..._types import Array, Matrix
from ..dataset import Dataset

NAMES = 8  # names listed in a message; chosen
SHOWN = 40  # characters of a name or a cell in a message; chosen
MISSING = "missing"  # the class of rows without one


class NoColumn(ValueError):
    """A column is asked for that is not there; `names` are those that are, none where columns have no names."""

    def __init__(self, message: str, names: Sequence[str]):
        super().__init__(message)
        self.names = tuple(names)


@dataclass(frozen=True)
class Wanted:
    """What the caller asked for: columns to embed (None: all of numbers), the class, the row's name."""

    columns: tuple[str, ...] | None = None
    label: str | None = None
    id: str | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """Every name that was asked for."""
        return (*(self.columns or ()), *(name for name in (self.label, self.id) if name is not None))

    def check(self, names: Sequence[str], source: str) -> None:
        """Raise if a name is asked for that is not there or has two roles, or if two columns share one."""
        if twice := _repeated(names):
            raise ValueError(f"{source}: two columns are called {shown(twice)}; give them different names")
        known = set(names)
        for name in self.named:
            if name not in known:
                near = closest(name, names)
                meant = "" if near is None else f"did you mean {shown(near)}? "
                raise NoColumn(f"{source}: no column is called {shown(name)}; {meant}there are {listed(names)}", names)
        if twice := _repeated(self.named):
            raise ValueError(f"{source}: the column {shown(twice)} is asked for twice; it has one role")

    def refuse(self, source: str, kind: str) -> None:
        """Raise if columns are asked for by name where none has a name."""
        if self.named:
            raise NoColumn(
                f"{source}: {kind} has no column names, so {shown(self.named[0])} cannot be looked up in it", ()
            )

    def dataset(self, source: str, X: Matrix, columns: Sequence[str], others: dict[str, Array]) -> Dataset:
        """Return the table X with its column names, and of the other columns the class, the row's name and the rest."""
        others = dict(others)
        labels, classes = (None, ()) if self.label is None else classes_of(others.pop(self.label))
        ids = None if self.id is None else as_text(others.pop(self.id))
        return Dataset(stem(source), X, labels, classes, tuple(columns), ids, others)


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def stem(source: str) -> str:
    """Return the name of a file without folder and suffix."""
    path = PurePath(source)
    return PurePath(path.stem).stem if path.suffix.lower() in (".gz", ".bz2", ".zst") else path.stem


def shown(text: str) -> str:
    """Return a name or a cell in quotes, its beginning if it is long."""
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "…")


def listed(names: Iterable[str]) -> str:
    """Return the first few names as a list in words."""
    names = list(names)
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(shown(name) for name in names[:NAMES]) + more


def classes_of(values: Array) -> tuple[Array, tuple[str, ...]]:
    """Return a class number per row and the names of the classes, in order of number if all are numbers."""
    texts = as_text(values)
    texts[texts == ""] = MISSING
    names = sorted(set(texts))
    with suppress(ValueError):
        names.sort(key=float)
    number = {name: c for c, name in enumerate(names)}
    return np.fromiter((number[text] for text in texts), dtype=np.int64, count=len(texts)), tuple(names)


def as_text(values: Array) -> Array:
    """Return a column as an array of str: whole numbers without a point, a missing number as nothing."""
    texts = np.empty(len(values), dtype=object)
    texts[:] = [spelled(value) for value in values.tolist()]
    return texts


def spelled(value: Any) -> str:
    """Return one value in letters, as short as it reads back the same."""
    if isinstance(value, float):
        return "" if value != value else repr(value).removesuffix(".0")
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return "" if value is None else str(value)
