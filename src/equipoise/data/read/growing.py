"""Tables and columns of unknown length that are filled block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._types import Array
from ..formulas import MARK, unmark_formula
from .cell_values import to_numbers
from .selection import to_texts


class GrowingTable:
    """A table (n, D) of float64 that is filled piece by piece, each piece an array of its own.

    A table that fits into its first piece is not copied. Otherwise the pieces are copied into the table one at a time,
    and each is freed at once: the pages of the table take no memory until they are written.

    Parameters
    ----------
    columns : int
        Number of columns D.
    expected_rows : int
        Number of rows of the first piece.
    """

    GROWTH = 0.125  # rows of a new piece relative to those so far; chosen: small, because one is in memory twice
    PIECE_BYTES = 40 << 20  # limit on a new piece; chosen: from 32 MiB on, glibc returns freed arrays to the system

    def __init__(self, columns: int, expected_rows: int):
        self._pieces = [np.empty((expected_rows, columns))]
        self._used = 0  # rows in the last piece; those before it are full
        self.n = 0

    def append(self, block: Array) -> None:
        """Append rows (m, D)."""
        self.n += len(block)
        while len(block):
            if self._used == len(self._pieces[-1]):
                self._add_piece(len(block))
            part = block[: len(self._pieces[-1]) - self._used]
            self._pieces[-1][self._used : self._used + len(part)] = part
            self._used += len(part)
            block = block[len(part) :]

    def finish(self) -> Array:
        """Return the table (n, D), and forget it."""
        pieces, self._pieces = self._pieces, []
        if len(pieces) == 1 and 2 * self.n >= len(pieces[0]):  # the unused rows were never written
            return pieces[0][: self.n]
        X, end, used = np.empty((self.n, pieces[0].shape[1])), self.n, self._used
        while pieces:  # the last first, so that the heap, where small pieces are, can shrink
            piece = pieces.pop()[:used]
            X[end - len(piece) : end] = piece
            end -= len(piece)
            used = len(pieces[-1]) if pieces else 0
            del piece
        return X

    def _add_piece(self, least: int) -> None:
        """Add a piece with room for `least` rows or more."""
        columns = self._pieces[0].shape[1]
        rows = min(int(self.n * self.GROWTH), self.PIECE_BYTES // (8 * max(1, columns)))
        self._pieces.append(np.empty((max(rows, least), columns)))
        self._used = 0


class SideColumn:
    """A column that is not embedded: float64 if all of its values are numbers, otherwise text.

    Cells may be missing. A column without any value is text, and so is one created with `is_text=True`.
    """

    SHARED = 10_000  # distinct strings up to which equal ones share an object; chosen: row names are all distinct

    def __init__(self, *, is_text: bool = False):
        self.is_text = is_text
        self._blocks: list[Array] = []
        self._missing: dict[int, Array] = {}  # by block: the cells of blocks without any value, as the file spells them
        self._strings: dict[str, str] = {}

    def append_cells(self, cells: Sequence[str]) -> None:
        """Append cells; convert the whole column to text if one of them is text."""
        values = None if self.is_text else to_numbers(cells)
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
        """Return cells as an object array of str, without the apostrophes that mark formulas (formulas.py).

        Equal strings share one object until the column has more than `SHARED` distinct strings.
        """
        texts = np.empty(len(cells), dtype=object)
        if any(cell.startswith(MARK) for cell in cells):
            cells = [unmark_formula(cell) for cell in cells]
        if len(self._strings) > self.SHARED:
            texts[:] = cells
        else:
            texts[:] = [self._strings.setdefault(cell, cell) for cell in cells]
        return texts
