"""Save and load fitted methods together with the preparation of their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import Preparation
from ..saving.archive import is_archive
from ..store import load, save


def save_model(method: Any, path: Path, preparation: Preparation, columns: Sequence[str]) -> None:
    """Save a fitted method with the preparation of its data (`preparation_`) and the column names (`columns_`)."""
    method.preparation_, method.columns_ = dict(vars(preparation)), list(columns)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(method, path)


@dataclass(frozen=True)
class SavedModel:
    """A saved method, the preparation of the data it was fitted to, and the column names (None if there are none)."""

    method: Any
    preparation: Preparation
    columns: list[str] | None


def is_model(path: str) -> bool:
    """Return whether `path` is the file of a saved method."""
    return Path(path).is_file() and is_archive(path)


def load_model(path: str) -> SavedModel:
    """Load a saved method; raise ValueError if the file does not contain one."""
    if not is_model(path):
        problem = "is not a model" if Path(path).exists() else "does not exist"
        raise ValueError(
            f"{path} {problem}; models are written by `equipoise embed DATA --save model.eq`. On the command line,"
            " MODEL comes before DATA"
        )
    method = load(path)
    return SavedModel(
        method, Preparation(**getattr(method, "preparation_", {})), getattr(method, "columns_", None) or None
    )
