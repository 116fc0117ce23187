"""What the user chooses about a file before its map is made: its columns, scaling, and missing values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..data import Dataset, Preparation, prepare, read
from ..data.missing import drop_incomplete_rows, fill_values, is_frame_of_columns, keep_numbers
from ..views.column import MAX_CLASSES

MISSING = ("error", "distance", "drop", "mean", "median")


@dataclass(frozen=True)
class TableChoices:
    """How a data file becomes a table.

    Parameters
    ----------
    label : str, default=None
        Column with the class of each row, which colours the points.
    id : str, default=None
        Column with the name of each row.
    exclude : tuple of str, default=()
        Columns that are not embedded. It must name every column of text if `missing` is not "error" and `every_kind` is
        False.
    every_kind : bool, default=False
        Embed columns of every kind, for the metric "mixed"; otherwise, only numbers.
    missing : {"error", "distance", "drop", "mean", "median"}, default="error"
        "distance" keeps missing values, which the metric takes into account; "drop" drops the rows that have one;
        "mean" and "median" fill in that of the column, with `every_kind=False`. With `every_kind=True`, "error" keeps
        them too.
    standardize : bool, default=False
        Shift and scale the columns of numbers to mean 0 and standard deviation 1.
    """

    label: str | None = None
    id: str | None = None
    exclude: tuple[str, ...] = ()
    every_kind: bool = False
    missing: str = "error"
    standardize: bool = False

    def __post_init__(self) -> None:
        for name in ("label", "id"):
            if not isinstance(getattr(self, name), str | None):
                raise ValueError(f"{name} must be the name of a column or None, got {getattr(self, name)!r}")
        if not isinstance(self.exclude, tuple) or not all(isinstance(name, str) for name in self.exclude):
            raise ValueError(f"exclude must be a tuple of names of columns, got {self.exclude!r}")
        for name in ("every_kind", "standardize"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.missing not in MISSING:
            raise ValueError(f"missing must be one of {', '.join(map(repr, MISSING))}, got {self.missing!r}")
        if self.every_kind and self.missing in ("mean", "median"):
            raise ValueError(
                f'missing={self.missing!r} is for tables of numbers; use metric="mixed_{self.missing}" for others'
            )
        if self.standardize and (self.every_kind or self.missing == "distance"):
            raise ValueError("only tables of numbers without gaps are standardised; fill in the gaps, or drop the rows")

    def read(self, source: str | Path) -> Dataset:
        """Return the data set of a file; raise ValueError if the file, or a choice, does not allow it."""
        in_place = self.every_kind or self.missing != "error"
        dataset = read(source, label=self.label, id=self.id, exclude=self.exclude, every_kind=in_place)
        if len(dataset.classes) > MAX_CLASSES:
            raise ValueError(
                f"column {self.label!r} has {len(dataset.classes):,} different values; choose a column with at most"
                f" {MAX_CLASSES} classes for the colour, or none"
            )
        if is_frame_of_columns(dataset.X) and not self.every_kind:
            dataset, _ = keep_numbers(dataset, dataset.columns)  # raises unless all are numbers
        if self.missing == "drop":
            dataset, _ = drop_incomplete_rows(dataset)
        elif self.missing in ("mean", "median"):
            dataset = Preparation(fill=fill_values(dataset, self.missing)).apply(dataset)
        return prepare(dataset, standardize=True) if self.standardize else dataset

    def code(self, name: str) -> str:
        """Return Python code that reads the file `name` as table X."""
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        given = {name: value for name, value in given.items() if value != getattr(TableChoices, name)}
        if self.missing != "error":
            arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
            return f"from equipoise.studio import TableChoices\n\nX = TableChoices({arguments}).read({name!r}).X"
        arguments = "".join(f", {name}={value!r}" for name, value in given.items() if name != "standardize")
        dataset = f"data.read({name!r}{arguments})"
        return f"X = data.prepare({dataset}, standardize=True).X" if self.standardize else f"X = {dataset}.X"

    def to_texts(self) -> dict[str, str]:
        """Return the choices that differ from the defaults as texts, for a link."""
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: json.dumps(value) for name, value in given.items() if value != getattr(TableChoices, name)}

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> TableChoices:
        """Return the choices that `to_texts` described; raise ValueError if a text is not valid."""
        values: dict[str, Any] = {}
        for name, text in texts.items():
            if name not in {item.name for item in fields(cls)}:
                raise ValueError(f"unknown choice {name[:20]!r}; choose from {', '.join(i.name for i in fields(cls))}")
            try:
                values[name] = json.loads(text)
            except (ValueError, RecursionError):
                raise ValueError(f"{name} must be a JSON value, got {text[:20]!r}") from None
        if isinstance(values.get("exclude"), list):
            values["exclude"] = tuple(values["exclude"])
        return replace(cls(), **values)
