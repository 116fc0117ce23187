"""Tables in text, CSV and TSV: read in blocks of rows, so that the numbers are held once and the text never whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import BinaryIO, cast

import numpy as np

from ..._types import Array
from ..dataset import Dataset
from .cells import Growing, Loose, fault, is_absent, is_number, numbers, picked_cells
from .wanted import Wanted, listed, shown

CELLS = 65536  # cells of a block; chosen: some megabytes as text
DELIMITERS = ",;\t"
FIRST_GUESS = 1024  # rows, where the size of the file is not known
SPARE = 1.02  # rows beyond those that the first block lets expect

Block = tuple[list[list[str]], list[int]]  # rows of cells, and the lines on which they end


def read_table(
    stream: BinaryIO, source: str, wanted: Wanted, *, delimiter: str | None = None, size: int = 0
) -> Dataset:
    """Return the table of a CSV or TSV stream; a known `size` in bytes saves memory while it is read.

    Without a delimiter it is the one of , ; and tab that is most frequent in the first line. The first row is a header
    if none of its cells is a number or if it holds a name that is asked for. An unnamed first column names the rows.
    """
    with _decoded(stream, source) as text:
        return _Table(text, source, wanted, delimiter).read(size)


@contextmanager
def _decoded(stream: BinaryIO, source: str) -> Iterator[io.TextIOWrapper]:
    """Open a stream of bytes as text: UTF-8, or UTF-16 that begins with its mark. The stream stays the caller's."""
    if not hasattr(stream, "readinto"):
        raise ValueError(f"{source} gives text; open it in binary mode: bytes are needed")
    buffer = io.BufferedReader(stream)
    mark = buffer.peek(2)[:2]
    encoding = "utf-16" if mark in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = io.TextIOWrapper(buffer, encoding=encoding, newline="")
    try:
        yield text
    finally:
        text.detach()
        buffer.detach()


class _Table:
    """One pass over the rows, which knows on which line it is."""

    def __init__(self, text: io.TextIOWrapper, source: str, wanted: Wanted, delimiter: str | None):
        self.text, self.source, self.wanted = text, source, wanted
        start = self._first_lines()
        if delimiter is None:
            delimiter = max(DELIMITERS, key=_outside_quotes(start[-1]).count)
        self.reader = csv.reader(chain(start, self.text), delimiter=delimiter, strict=True, skipinitialspace=True)
        self.names: tuple[str, ...] = ()

    def read(self, size: int) -> Dataset:
        blocks = self._begin()
        rows, lines = next(blocks, ([], []))
        if not rows:
            raise ValueError(f"{self.source} has a header and no rows; a row for each point is needed")
        picked = self._picked(rows)
        table = Growing(len(picked), self._guess(len(rows), size))
        embedded, aside = set(picked), (self.wanted.label, self.wanted.id)
        others = {j: Loose(text=name in aside) for j, name in enumerate(self.names) if j not in embedded}
        empty = [] if self.wanted.columns else [j for j in others if all(is_absent(row[j]) for row in rows)]
        while rows:
            table.add(self._numbers(rows, lines, picked))
            for j, column in others.items():
                column.add([row[j] for row in rows])
            self._check_still_empty(rows, lines, empty)
            rows, lines = next(blocks, ([], []))
        beside = {self.names[j]: column.done() for j, column in others.items()}
        return self.wanted.dataset(self.source, table.done(), [self.names[j] for j in picked], beside)

    def _begin(self) -> Iterator[Block]:
        """Name the columns by the first row, and return the blocks of all rows that are not names."""
        head = self._next_row()
        if head is None:
            raise ValueError(f"{self.source} is empty; a table with a row for each point is needed")
        header = self._is_header(head)
        self._name(head, header)
        return self._blocks(len(head), ([], []) if header else ([head], [self.reader.line_num]))

    def _guess(self, rows: int, size: int) -> int:
        """Return how many rows to make room for, by the bytes that the first ones took."""
        position = cast(io.BufferedReader, self.text.buffer).tell() if size else 0
        return int(rows * size / position * SPARE) + 1 if 0 < position < size else max(rows, FIRST_GUESS)

    # Lines and rows

    def _first_lines(self) -> list[str]:
        """Return the blank lines at the beginning, and the line after them."""
        lines: list[str] = []
        while not lines or lines[-1].isspace():
            try:
                lines.append(self.text.readline())
            except UnicodeDecodeError as error:
                raise self._not_decoded(error, len(lines)) from error
        return lines

    def _next_row(self) -> list[str] | None:
        """Return the next row that is not blank, or None at the end."""
        try:
            for row in self.reader:
                if row:
                    return row
        except UnicodeDecodeError as error:
            raise self._not_decoded(error, self.reader.line_num) from error
        except csv.Error as error:
            raise ValueError(f"{self.source}, line {self.reader.line_num}: {error}; check the quotes there") from error
        return None

    def _not_decoded(self, error: UnicodeDecodeError, lines: int) -> ValueError:
        line = lines + 1 + error.object[: error.start].count(b"\n")
        return ValueError(
            f"{self.source}, line {line}: the byte 0x{error.object[error.start]:02x} is not {error.encoding.upper()};"
            " save the file as UTF-8"
        )

    def _blocks(self, width: int, first: Block) -> Iterator[Block]:
        """Yield rows of `width` cells by the block, after those given."""
        most = max(1, CELLS // width)
        rows, lines = first
        while (row := self._next_row()) is not None:
            if len(row) != width:
                place = f"{self.source}, line {self.reader.line_num}"
                raise ValueError(f"{place}: a row of {len(row)} where the first has {width} cells; all need as many")
            rows.append(row)
            lines.append(self.reader.line_num)
            if len(rows) == most:
                yield rows, lines
                rows, lines = [], []
        if rows:
            yield rows, lines

    # Columns

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


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])
