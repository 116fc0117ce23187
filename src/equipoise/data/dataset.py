"""What a data set under a name is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._types import Array


@dataclass(frozen=True)
class Dataset:
    """A table X (n, D), a class number per row, and the names of the classes."""

    name: str
    X: Array
    labels: Any  # (n,) class numbers, or None
    classes: tuple[str, ...]
