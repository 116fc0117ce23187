"""Save and load fitted methods together with the preparation of their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._types import Array
from ..data import Preparation
from ..saving.archive import is_archive
from ..store import load, save


def save_model(
    method: Any, path: Path, preparation: Preparation, columns: Sequence[str], classes: Array | None = None
) -> None:
    """Save a fitted method with the preparation of its data (`preparation_`) and the column names (`columns_`).

    The class of each row, if there are classes, is saved as well (`row_classes_`, a list of str), for `plot`.
    """
    method.preparation_, method.columns_ = dict(vars(preparation)), list(columns)
    if classes is not None:
        method.row_classes_ = [str(name) for name in classes]
    path.parent.mkdir(parents=True, exist_ok=True)
    save(method, path)


@dataclass(frozen=True)
class SavedModel:
    """A saved method and the preparation of the data it was fitted to.

    `columns` are the names of the columns, and `classes` those of the classes of the rows; None if there are none.
    """

    method: Any
    preparation: Preparation
    columns: list[str] | None
    classes: Array | None = None


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
    preparation, columns = Preparation(**getattr(method, "preparation_", {})), getattr(method, "columns_", None) or None
    classes = getattr(method, "row_classes_", None)
    if not (classes is None or (isinstance(classes, list) and len(classes) == len(method.embedding_))):
        raise ValueError(f"{path} is damaged: it does not contain one class per row; run `equipoise embed` again")
    return SavedModel(method, preparation, columns, None if classes is None else np.array(classes, dtype=object))
