"""Text in blocks of whole lines, and the rows of cells in it."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

BYTES = 1 << 19  # of a block; chosen: its numbers, and all that is made on the way to them, stay near the processor

Rows = tuple[list[list[str]], list[int]]  # rows of cells, and the lines on which they end


@contextmanager
def lines_of(stream: BinaryIO, source: str) -> Iterator[Lines]:
    """Open a stream of bytes as text: UTF-8, or UTF-16 that begins with its mark. The stream stays the caller's."""
    if not hasattr(stream, "readinto"):
        raise ValueError(f"{source} gives text; open it in binary mode: bytes are needed")
    buffer = io.BufferedReader(stream)
    try:
        yield Lines(buffer, source)
    finally:
        buffer.detach()


class Lines:
    """One pass over a text, which knows on which line it is: `number` lines come before `block`, which is empty at the
    end."""

    def __init__(self, buffer: io.BufferedReader[Any], source: str):
        mark = buffer.peek(2)[:2]
        encoding = "utf-16" if mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._buffer, self.source = buffer, source
        self._ahead = ""  # the beginning of the next block
        self._decoded = self._taken = 0  # lines and bytes so far
        self.number = 0
        self._advance()

    def skip(self, lines: int) -> None:
        """Go on to the next block, after one of so many lines."""
        self.number += lines
        self._advance()

    def first(self) -> str:
        """Return the first line that is not blank; the blank ones before it may be gone over."""
        while self.block.isspace():
            self.skip(_count(self.block))
        return next((line for line in io.StringIO(self.block, newline="") if not line.isspace()), "")

    def taken(self) -> float:
        """Return how many bytes the text took up to the end of the block, about."""
        return self._taken * len(self.block) / max(len(self.block) + len(self._ahead), 1)

    def rows(self, delimiter: str, width: int | None) -> Rows:
        """Return the rows of the block that are not blank, all of `width` cells, and go on to the next block.

        A cell in quotes may go on over the end of the block: then the rows are those of both.
        """
        reader = csv.reader(self._each_line(), delimiter=delimiter, strict=True, skipinitialspace=True)
        rows: list[list[str]] = []
        lines: list[int] = []
        try:
            for row in reader:
                if row:
                    width = self._check_width(row, width, self.number + reader.line_num)
                    rows.append(row)
                    lines.append(self.number + reader.line_num)
                if self._last:
                    break
        except csv.Error as error:
            place = f"{self.source}, line {self.number + reader.line_num}"
            raise ValueError(f"{place}: {error}; check the quotes there") from error
        self.skip(reader.line_num)
        return rows, lines

    def _check_width(self, row: list[str], width: int | None, line: int) -> int:
        if width not in (None, len(row)):
            place = f"{self.source}, line {line}"
            raise ValueError(f"{place}: a row of {len(row)} where the first has {width} cells; all need as many")
        return len(row)

    def _each_line(self) -> Iterator[str]:
        """Yield the lines of the block, and of the following ones if more are asked for; `_last` is true at an end."""
        while self.block:
            lines = list(io.StringIO(self.block, newline=""))
            for i, line in enumerate(lines, 1):
                self._last = i == len(lines)
                yield line
            self._advance()

    def _advance(self) -> None:
        """Take the next block in hand: all whole lines that are there after BYTES more, one at least."""
        parts, cut = [self._ahead], 0
        while not cut and (raw := self._buffer.read(BYTES)):
            self._taken += len(raw)
            parts.append(self._decode(raw))
            # A \r at the very end may be the first half of a line's end.
            cut = max(parts[-1].rfind("\n"), parts[-1].rfind("\r", 0, -1)) + 1
        if not cut:
            parts.append(self._decode(b""))
            cut = len(parts[-1])
        text = "".join(parts)
        cut += len(text) - len(parts[-1])
        self.block, self._ahead = text[:cut], text[cut:]

    def _decode(self, raw: bytes) -> str:
        """Return bytes as text; none are the end."""
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            line = self._decoded + 1 + error.object[: error.start].count(b"\n")
            raise ValueError(
                f"{self.source}, line {line}: the byte 0x{error.object[error.start]:02x} is not"
                f" {error.encoding.upper()}; save the file as UTF-8"
            ) from error
        self._decoded += _count(text)
        return text


def _count(text: str) -> int:
    return text.count("\n") or text.count("\r")
