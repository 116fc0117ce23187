"""What a data set under a name is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._types import Array, Matrix


@dataclass(frozen=True, repr=False)
class Dataset:
    """A table X (n, D), a class number per row, and the names of the classes.

    From a file there may also be the names of the D columns, an identifier per row, and the columns that are not part
    of X, by name: text as objects, numbers as floats with NaN where there is none.
    """

    name: str
    X: Matrix  # dense, or CSR
    labels: Any  # (n,) class numbers, or None
    classes: tuple[str, ...]
    columns: tuple[str, ...] = ()  # D names, or none at all
    ids: Array | None = None  # (n,) text
    extra: dict[str, Array] = field(default_factory=dict)  # (n,) each

    def __repr__(self) -> str:
        n, D = self.X.shape
        classes = f", {len(self.classes)} classes" * (self.labels is not None)
        beside = f", beside it {len(self.extra)} more" * bool(self.extra)
        return f"<{self.name}: table {n:,} × {D:,}{classes}{beside}>"
