"""Fitted methods in files, with what was done to the table before: the same is done to new rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..data import Preparation
from ..store import load, save


def keep(method: Any, path: Path, preparation: Preparation, columns: Sequence[str]) -> None:
    """Save a fitted method; what was done to its table goes along as `preparation_`, the names as `columns_`."""
    method.preparation_, method.columns_ = dict(vars(preparation)), list(columns)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(method, path)


def recall(path: str) -> tuple[Any, Preparation, list[str] | None]:
    """Return a saved method, how its rows are prepared, and the names of their columns where they have some."""
    method = load(path)
    return method, Preparation(**getattr(method, "preparation_", {})), getattr(method, "columns_", None) or None
