"""Collect blocks of rows into tables and columns whose length is not known in advance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._cells import is_code
from ..._types import Array
from ...arrays.csr import shorten
from ..formulas import MARK, unmark_formula
from .cell_values import to_numbers
from .selection import to_texts


class GrowingTable:
    """A table (n, D) of float64 in one array, which is enlarged in place and trimmed at the end.

    Parameters
    ----------
    columns : int
        Number of columns D.
    expected_rows : int
        Number of rows allocated initially.
    """

    GROWTH = 0.25  # fraction of rows added when the table is full; chosen: small, because added rows use memory

    def __init__(self, columns: int, expected_rows: int):
        self._X = np.empty((expected_rows, columns))
        self.n = 0

    def append(self, block: Array) -> None:
        """Append rows (m, D)."""
        end = self.n + len(block)
        if end > len(self._X):
            self._resize(max(end, int(len(self._X) * (1 + self.GROWTH))))
        self._X[self.n : end] = block
        self.n = end

    def finish(self) -> Array:
        """Return the table (n, D)."""
        return shorten(self._X, self.n)

    def _resize(self, n: int) -> None:
        self._X.resize((n, self._X.shape[1]), refcheck=False)


class SideColumn:
    """A column that is not embedded: float64 if all of its values are numbers, otherwise text, as are codes ("01234").

    Cells can be missing. A column without any value is text, and so is every column with `is_text=True`.
    """

    SHARED = 10_000  # distinct strings up to which equal ones share an object; chosen: row names are all distinct

    def __init__(self, *, is_text: bool = False):
        self.is_text = is_text
        self._blocks: list[Array] = []
        self._missing: dict[int, Array] = {}  # by block: the cells of blocks without any value, as the file spells them
        self._strings: dict[str, str] = {}

    def append_cells(self, cells: Sequence[str]) -> None:
        """Append cells; convert the whole column to text if one of them is text or a code."""
        values = None if self.is_text or any(map(is_code, cells)) else to_numbers(cells)
        if values is None:
            if not self.is_text:
                self.is_text = True
                self._blocks = [self._missing.get(i, to_texts(block)) for i, block in enumerate(self._blocks)]
                self._missing.clear()
            values = self._share(cells)
        elif np.isnan(values).all():
            self._missing[len(self._blocks)] = self._share(cells)
        self._blocks.append(values)

    def append_strings(self, array: Any) -> None:
        """Append an Arrow array of strings to a column of text."""
        coded = array.dictionary_encode()
        self._blocks.append(self._share(coded.dictionary.to_pylist())[coded.indices.to_numpy()])

    def append_numbers(self, values: Array) -> None:
        """Append a copy of numbers, with NaN for missing values."""
        self._blocks.append(values.copy())

    def finish(self) -> Array:
        """Return the column: float64, or an object array of str."""
        column = np.concatenate(self._blocks)
        if not self.is_text and np.isnan(column).all():  # an empty column has no type
            return to_texts(column)
        return column

    def _share(self, cells: Sequence[str]) -> Array:
        """Return cells as an object array of str, without the apostrophes that `mark_formula` adds.

        Equal strings share an object until the column has more than `SHARED` distinct strings.
        """
        texts = np.empty(len(cells), dtype=object)
        if any(cell.startswith(MARK) for cell in cells):
            cells = [unmark_formula(cell) for cell in cells]
        if len(self._strings) > self.SHARED:
            texts[:] = cells
        else:
            texts[:] = [self._strings.setdefault(cell, cell) for cell in cells]
        return texts
