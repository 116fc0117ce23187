"""Read CSV and TSV block by block: the numbers are stored once, and the text is never in memory as a whole.

Apache Arrow parses the blocks. A block that Arrow rejects is parsed cell by cell with Python's csv module:
this accepts more cells (1e-999, +1, spaces before quotes), and errors name the line and the column.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np

from ..._cells import is_missing, is_number
from ..._names import list_names, quote
from ..._types import Array
from ..dataset import Dataset
from ..formulas import unmark_formula
from . import decimal_commas
from .arrow_csv import code_cells, columns_of_codes, parse_block, parse_wide_block
from .cell_values import describe_fault, is_finite, to_finite
from .finite import PLACES, others
from .growing import GrowingTable, SideColumn
from .selection import Selection
from .text_lines import CsvError, Lines, open_lines

DELIMITERS = ",;\t"
WIDE = 256  # columns above which numbers are parsed as one column; measured: Arrow takes 8 µs per column and block
EXPECTED_ROWS = 1024  # if the size of the file is unknown; chosen
SPARE = 1.02  # allocated rows relative to those expected from the first block; chosen
QUOTED_BLOCKS = (
    4  # maximum number of blocks appended so that a block ends outside a quoted cell, before parsing by cell; chosen
)


def read_text_table(
    stream: BinaryIO, source: str, selection: Selection, *, delimiter: str | None = None, size: int = 0
) -> Dataset:
    """Return the table of a CSV or TSV stream.

    The first row is a header if it contains text but no number, or if it contains a selected name. If the header leaves
    the first column unnamed and no `id` is selected, that column is read as the row names.

    Parameters
    ----------
    stream : binary file
    source : str
        Name of the stream, for error messages.
    selection : Selection
        Selected columns.
    delimiter : str, default=None
        By default the most frequent of comma, semicolon and tab in the first line that is not blank.
    size : int, default=0
        Size of the stream in bytes, or 0 if unknown; a known size saves memory.
    """
    with open_lines(stream, source, selection.encoding) as lines:
        return _TextTable(lines, selection, delimiter).read(size)


class _TextTable:
    """Reads one table; its first rows determine the names and types of the columns."""

    def __init__(self, lines: Lines, selection: Selection, delimiter: str | None):
        self.lines, self.source, self.selection = lines, lines.source, selection
        self.delimiter = delimiter or _most_frequent_delimiter(lines.first())
        lines.convert(decimal_commas.converter(lines.block, self.delimiter, self.source))
        self.codes = code_cells(self.delimiter)
        self.names: tuple[str, ...] = ()
        self.embedded: list[int] = []  # columns to embed
        self.others: dict[int, SideColumn] = {}
        self.empty: set[int] = set()  # columns without a value so far, whose type is unknown

    def read(self, size: int) -> Dataset:
        """Read all blocks and return the data set; `size` is the size of the stream in bytes, or 0 if unknown."""
        self._find_columns()
        table = None
        while self.lines.block:
            X = self._parse_block()
            if X is None:
                X = self._parse_cells()
            table = table or GrowingTable(X.shape[1], _expected_rows(len(X), self.lines.stream_bytes(), size))
            table.append(X)
            del X
            self.lines.advance()
        assert table is not None  # _find_columns raises if there are no rows
        others = {self.names[j]: column.finish() for j, column in self.others.items()}
        return self.selection.dataset(self.source, table.finish(), [self.names[j] for j in self.embedded], others)

    def _find_columns(self) -> None:
        """Find out from the first rows how columns are named and which to embed; drop the header from the block."""
        rows, has_header = self._first_rows()
        if not rows:
            raise ValueError(f"{self.source} is empty; expected a table with a row for each point")
        head, head_end = rows[0]
        self._set_names(head, has_header)
        if len(rows) == has_header:
            raise ValueError(f"{self.source} has a header but no rows; expected a row for each point")
        if has_header:
            self.lines.drop(head_end - self.lines.number)
        values = [row for row, _ in rows[has_header:]]
        firsts = [next((row[j] for row in values if not is_missing(row[j])), "") for j in range(len(head))]
        self.embedded = self._select(firsts, values[0])
        roles = (self.selection.label, self.selection.id)
        others = set(range(len(head))) - set(self.embedded)
        self.others = {j: SideColumn(is_text=self.names[j] in roles) for j in sorted(others)}
        self.lines.expect_side_columns(len(others))
        self.empty = (
            set() if self.selection.columns or self.selection.every_kind else {j for j in others if not firsts[j]}
        )

    def _first_rows(self) -> tuple[list[tuple[list[str], int]], bool]:
        """Return the first rows with their line numbers, and whether the first row is a header.

        Rows are read until every column has a value below the first row, or until the end of the block. The block is
        extended if it contains no row of data.
        """
        while True:
            rows: list[tuple[list[str], int]] = []
            missing: set[int] = set()  # columns without a value below the first row
            try:
                for row, line in self.lines.iterate_rows(self.delimiter):
                    missing = {j for j in missing if is_missing(row[j])} if rows else set(range(len(row)))
                    rows.append((row, line))
                    if not missing:
                        break
            except CsvError as error:
                if error.is_unclosed and self.lines.extend():
                    continue
                raise
            has_header = bool(rows) and self._is_header(rows[0][0])
            if len(rows) > has_header or not self.lines.extend():
                return rows, has_header

    def _is_header(self, head: Sequence[str]) -> bool:
        cells = [unmark_formula(cell.strip()) for cell in head]
        if not set(cells).isdisjoint(self.selection.named):
            return True
        return not all(map(is_missing, cells)) and not any(map(is_number, cells))

    def _set_names(self, head: Sequence[str], has_header: bool) -> None:
        """Name the columns; if the first has no name, as in files of pandas and R, select it as `id` (row names)."""
        cells = [unmark_formula(cell.strip()) for cell in head] if has_header else [""] * len(head)
        self.names = tuple(cell or f"column {j + 1}" for j, cell in enumerate(cells))
        self.selection.check(self.names, self.source)
        if has_header and not cells[0] and self.selection.id is None and self.names[0] not in self.selection.named:
            self.selection = replace(self.selection, id=self.names[0])

    def _select(self, firsts: Sequence[str], first_row: Sequence[str]) -> list[int]:
        """Return the indices of the columns to embed: the selected columns, or every column that starts with a number.

        `firsts` contains the first value of each column, or an empty text if no value was found; `first_row` is the
        first row of data.
        """
        if self.selection.every_kind:  # all columns are kept as they are
            return []
        roles = (self.selection.label, self.selection.id, *self.selection.exclude)
        numeric = [j for j, name in enumerate(self.names) if name not in roles and is_number(firsts[j])]
        if self.selection.columns is not None:
            index = {name: j for j, name in enumerate(self.names)}
            for name in self.selection.columns:
                if (first := firsts[index[name]]) and not is_number(first):
                    choice = "; convert it to numbers"
                    if numeric:
                        choice = f"; the numeric columns are {list_names(self.names[j] for j in numeric)}"
                    raise ValueError(
                        f"{self.source}: column {quote(name)} contains text ({quote(first)}) and cannot be"
                        f" embedded{choice}"
                    )
            return [index[name] for name in self.selection.columns]
        if not numeric:
            row = quote(",".join(first_row))
            raise ValueError(
                f"{self.source} has no numeric column to embed (the first row of data is {row}); convert a column to"
                " numbers"
            )
        return numeric

    def _parse_block(self) -> Array | None:
        """Parse the block with Arrow; return the values (m, D) to embed, or None to have it parsed cell by cell.

        The result is None if Arrow rejects the block, if a value to embed is not a finite number, or if the block
        contains the first value of a column that was empty in all earlier blocks.
        """
        for _ in range(QUOTED_BLOCKS):
            # Most blocks have no quotes, and searching for one is faster than counting them.
            if b'"' not in self.lines.block or self.lines.block.count(b'"') % 2 == 0 or not self.lines.extend():
                break
        empty = {j for j in self.empty if not self.others[j].is_text}
        texts = {j for j, column in self.others.items() if column.is_text} | empty  # a later text keeps the spelling
        gaps = any(not column.is_text for column in self.others.values())
        parse = parse_wide_block if len(self.names) > WIDE else parse_block
        parsed = parse(self.lines.block, self.delimiter, len(self.names), texts, gaps=gaps)
        if parsed is None:
            return None
        numbers, strings = parsed
        numeric = np.delete(np.arange(len(self.names)), sorted(texts))
        are_all_embedded = self.selection.columns is None and len(numeric) == len(self.embedded)
        X = numbers if are_all_embedded else numbers[:, np.searchsorted(numeric, self.embedded)]
        values = {cell for j in empty for cell in strings[j].unique().to_pylist()}
        if not np.isfinite(X).all() or not all(map(is_missing, values)):
            return None
        if (codes := self._parse_codes(self.others.keys() - texts)) is None:
            return None
        for j, column in self.others.items():
            if j in codes:
                column.append_cells(codes[j].to_pylist())
            elif j in empty:
                column.append_cells(strings[j].to_pylist())
            elif j in texts:
                column.append_strings(strings[j])
            else:
                column.append_numbers(numbers[:, np.searchsorted(numeric, j)])
        return X

    def _parse_codes(self, columns: Collection[int]) -> dict[int, Any] | None:
        """Return the numeric `columns` that contain codes such as "01234" in this block, as Arrow strings.

        Return None if the block must be parsed cell by cell.
        """
        if not columns or self.codes.search(b"\n" + self.lines.block) is None:
            return {}
        return columns_of_codes(self.lines.block, self.delimiter, len(self.names), columns)

    def _parse_cells(self) -> Array:
        """Parse the block cell by cell; return the values (m, D) to embed; raise for the first invalid cell."""
        rows, lines = self.lines.rows(self.delimiter, len(self.names))
        X = to_finite([row[j] for row in rows for j in self.embedded])
        if X is None:
            raise self._first_fault(rows, lines)
        for j, column in self.others.items():
            column.append_cells([row[j] for row in rows])
        self._check_empty(rows, lines)
        return X.reshape(len(rows), len(self.embedded))

    def _first_fault(self, rows: Sequence[Sequence[str]], lines: Sequence[int]) -> ValueError:
        """Return the error for the first cell to embed that is not a finite number."""
        bad = [
            (line, j, row[j])
            for row, line in zip(rows, lines, strict=True)
            for j in self.embedded
            if not is_finite(row[j])
        ]
        line, j, cell = bad[0]
        gaps = [(line, j) for line, j, cell in bad if is_missing(cell)]
        places = [f"line {line}, column {quote(self.names[j])}" for line, j in gaps[1:PLACES]]
        with_gaps = len({line for line, _ in gaps}), len({j for _, j in gaps})  # rows and columns
        more = others(places, len(gaps), *with_gaps, is_part=not self.lines.is_last)
        fault = describe_fault(cell, len(gaps), more)
        return ValueError(f"{self.source}, line {line}, column {quote(self.names[j])}: {fault}")

    def _check_empty(self, rows: Sequence[Sequence[str]], lines: Sequence[int]) -> None:
        """Raise if the rows contain a number in a column that was empty before, and is therefore not embedded."""
        for j in self.empty:
            for row, line in zip(rows, lines, strict=True):
                if not self.others[j].is_text and is_number(row[j]):
                    raise ValueError(
                        f"{self.source}: column {quote(self.names[j])} was not recognised as numeric, because it is"
                        f" empty before line {line}, where its first value is {quote(row[j])}; fill in its missing"
                        " values, or select the columns to embed"
                    )


def _expected_rows(rows: int, stream_bytes: float, size: int) -> int:
    """Return the number of rows to allocate for `size` bytes, if the first `rows` rows take `stream_bytes` bytes."""
    return int(rows * size / stream_bytes * SPARE) + 1 if 0 < stream_bytes < size else max(rows, EXPECTED_ROWS)


def _most_frequent_delimiter(line: bytes) -> str:
    if decimal_commas.separates_numbers(line, b";"):  # 1,5;2,5;3,5 has more commas than semicolons
        return ";"
    unquoted = b"".join(line.split(b'"')[::2])
    return max(DELIMITERS, key=lambda delimiter: unquoted.count(delimiter.encode()))
