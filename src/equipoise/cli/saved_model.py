"""Fitted methods in files, with what was done to the table before: the same is done to new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import Preparation
from ..saving.archive import is_archive
from ..store import load, save


def keep(method: Any, path: Path, preparation: Preparation, columns: Sequence[str]) -> None:
    """Save a fitted method; what was done to its table goes along as `preparation_`, the names as `columns_`."""
    method.preparation_, method.columns_ = dict(vars(preparation)), list(columns)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(method, path)


@dataclass(frozen=True)
class Kept:
    """A saved method, how its rows are prepared, and the names of their columns where they have some."""

    method: Any
    preparation: Preparation
    columns: list[str] | None


def is_kept(path: str) -> bool:
    """Return whether a path is that of a file which holds a method, and not a table."""
    return Path(path).is_file() and is_archive(path)


def recall(path: str) -> Kept:
    """Return a saved method, or say what a file of one is."""
    if not is_kept(path):
        what = "holds no model" if Path(path).exists() else "is not there"
        raise ValueError(
            f"{path} {what}; a model is the file that `equipoise embed DATA --save model.eq` writes, and stands before"
            " the data"
        )
    method = load(path)
    return Kept(method, Preparation(**getattr(method, "preparation_", {})), getattr(method, "columns_", None) or None)
