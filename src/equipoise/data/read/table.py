"""Tables in text, CSV and TSV: read in blocks of rows, so that the numbers are held once and the text never whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from ..._types import Array
from ..dataset import Dataset
from .cells import Growing, Loose, fault, is_absent, is_number, numbers, picked_cells
from .lines import Lines, Rows, lines_of
from .plain import plain_cells
from .wanted import Wanted, listed, shown

DELIMITERS = ",;\t"
FIRST_GUESS = 1024  # rows, where the size of the file is not known
SPARE = 1.02  # rows beyond those that the first block lets expect


def read_table(
    stream: BinaryIO, source: str, wanted: Wanted, *, delimiter: str | None = None, size: int = 0
) -> Dataset:
    """Return the table of a CSV or TSV stream; a known `size` in bytes saves memory while it is read.

    Without a delimiter it is the one of , ; and tab that is most frequent in the first line. The first row is a header
    if none of its cells is a number or if it holds a name that is asked for. An unnamed first column names the rows.
    """
    with lines_of(stream, source) as lines:
        return _Table(lines, wanted, delimiter).read(size)


class _Table:
    """A table that grows block by block; the rows of the first block say what its columns are."""

    def __init__(self, lines: Lines, wanted: Wanted, delimiter: str | None):
        self.lines, self.source, self.wanted = lines, lines.source, wanted
        self.delimiter = delimiter or max(DELIMITERS, key=_outside_quotes(lines.first()).count)
        self.names: tuple[str, ...] = ()

    def read(self, size: int) -> Dataset:
        taken = self.lines.taken()
        rows, lines = self._begin()
        picked = self._picked(rows)
        embedded, aside = set(picked), (self.wanted.label, self.wanted.id)
        others = {j: Loose(text=name in aside) for j, name in enumerate(self.names) if j not in embedded}
        empty = [] if self.wanted.columns else [j for j in others if all(is_absent(row[j]) for row in rows)]
        table = Growing(len(picked), _guess(len(rows), taken, size))
        while True:
            if rows:
                table.add(self._numbers(rows, lines, picked))
                for j, column in others.items():
                    column.add([row[j] for row in rows])
                self._check_still_empty(rows, lines, empty)
            self._add_plain_blocks(table, others, picked, empty)
            if not self.lines.block:
                break
            rows, lines = self._rows()
        beside = {self.names[j]: column.done() for j, column in others.items()}
        return self.wanted.dataset(self.source, table.done(), [self.names[j] for j in picked], beside)

    def _begin(self) -> Rows:
        """Name the columns by the first row, and return the first rows that are not names."""
        rows, lines = self._rows()
        if not rows:
            raise ValueError(f"{self.source} is empty; a table with a row for each point is needed")
        header = self._is_header(rows[0])
        self._name(rows[0], header)
        if header:
            rows, lines = rows[1:], lines[1:]
        while not rows and self.lines.block:
            rows, lines = self._rows()
        if not rows:
            raise ValueError(f"{self.source} has a header and no rows; a row for each point is needed")
        return rows, lines

    def _rows(self) -> Rows:
        return self.lines.rows(self.delimiter, len(self.names) or None)

    def _add_plain_blocks(
        self, table: Growing, others: dict[int, Loose], picked: Sequence[int], empty: Sequence[int]
    ) -> None:
        """Add the blocks that come next, up to one that needs a closer look: quotes, a missing value, a mistake."""
        while self.lines.block:
            cells = plain_cells(self.lines.block, self.delimiter, len(self.names))
            values = None if cells is None else cells.numbers(picked)
            if cells is None or values is None or any(is_number(cell) for j in empty for cell in cells.column(j)):
                return
            table.add(values)
            for j, column in others.items():
                column.add(cells.column(j))
            self.lines.skip(len(cells))

    def _is_header(self, head: Sequence[str]) -> bool:
        cells = [cell.strip() for cell in head]
        if not set(cells).isdisjoint(self.wanted.named):
            return True
        return not all(map(is_absent, cells)) and not any(map(is_number, cells))

    def _name(self, head: Sequence[str], header: bool) -> None:
        """Set the names of the columns; rows are named by an unnamed first column, as pandas and R write it."""
        cells = [cell.strip() for cell in head] if header else [""] * len(head)
        self.names = tuple(cell or f"column {j + 1}" for j, cell in enumerate(cells))
        self.wanted.check(self.names, self.source)
        if header and not cells[0] and self.wanted.id is None and self.names[0] not in self.wanted.named:
            self.wanted = Wanted(self.wanted.columns, self.wanted.label, self.names[0])

    def _picked(self, rows: Sequence[Sequence[str]]) -> list[int]:
        """Return the places of the columns to embed: those asked for, or all whose first value is a number."""
        firsts = [next((row[j] for row in rows if not is_absent(row[j])), "") for j in range(len(self.names))]
        aside = (self.wanted.label, self.wanted.id)
        picked = [j for j, name in enumerate(self.names) if name not in aside and is_number(firsts[j])]
        if self.wanted.columns is not None:
            place = {name: j for j, name in enumerate(self.names)}
            for name in self.wanted.columns:
                if (first := firsts[place[name]]) and not is_number(first):
                    fit = f"; columns of numbers are {listed(self.names[j] for j in picked)}" if picked else ""
                    raise ValueError(
                        f"{self.source}: the column {shown(name)} holds text, {shown(first)}, and only numbers can be"
                        f" embedded{fit}"
                    )
            return [place[name] for name in self.wanted.columns]
        if not picked:
            first = shown(",".join(rows[0]))
            raise ValueError(f"{self.source}: no column of numbers to embed; the first row below the names is {first}")
        return picked

    def _numbers(self, rows: Sequence[Sequence[str]], lines: Sequence[int], picked: Sequence[int]) -> Array:
        """Return the cells to embed as numbers, or say which one is none."""
        values = numbers(picked_cells(rows, picked))
        if values is not None:
            return values.reshape(len(rows), len(picked))
        for row, line in zip(rows, lines, strict=True):
            for j in picked:
                if not is_number(row[j]) or not np.isfinite(float(row[j])):
                    raise ValueError(f"{self.source}, line {line}, column {shown(self.names[j])}: {fault(row[j])}")
        raise AssertionError("a cell that is not a finite number was found and lost")

    def _check_still_empty(self, rows: Sequence[Sequence[str]], lines: Sequence[int], empty: Sequence[int]) -> None:
        """Raise where a column that had no value in the first block turns out to hold numbers."""
        for j in empty:
            for row, line in zip(rows, lines, strict=True):
                if is_number(row[j]):
                    place = f"{self.source}, column {shown(self.names[j])}"
                    raise ValueError(
                        f"{place}: no value before line {line}, which has {shown(row[j])}; fill it in, or leave the"
                        " column out by choosing others"
                    )


def _guess(rows: int, taken: float, size: int) -> int:
    """Return how many rows to make room for, by the bytes that the first ones took."""
    return int(rows * size / taken * SPARE) + 1 if 0 < taken < size else max(rows, FIRST_GUESS)


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])
