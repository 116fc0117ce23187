"""Read text files in blocks of whole lines, decompressed and converted to UTF-8."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ..._plural import plural

BLOCK_BYTES = 1 << 20  # size of a block; chosen: its cells and numbers fit in the processor's cache
COLUMNS = 256  # above this many columns that are not embedded, blocks grow; chosen: each is stored block by block
LARGEST = 16  # largest factor by which blocks grow; chosen
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}  # by suffix, as Arrow names them

Rows = tuple[list[list[str]], list[int]]  # rows of cells, and the number of the line on which each ends


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressed according to its suffix; raise ValueError if it cannot be decompressed."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    if compression is None:
        with open(path, "rb") as stream:
            yield stream
        return
    import pyarrow

    with pyarrow.input_stream(str(path), compression=compression) as stream:
        try:
            yield stream
        except OSError as error:
            raise ValueError(f"{path} cannot be read as {compression}: {error}") from error


@contextmanager
def open_lines(stream: BinaryIO, source: str, encoding: str | None = None) -> Iterator[Lines]:
    """Open a stream of text as `Lines`; the stream is not closed.

    By default it is UTF-8, or UTF-16 with a byte order mark.
    """
    if not hasattr(stream, "readinto"):
        raise ValueError(f"source must be a path or a file opened in binary mode, got {type(stream).__name__}")
    buffer = io.BufferedReader(stream)
    try:
        yield Lines(buffer, source, encoding)
    finally:
        buffer.detach()


class Lines:
    """Reads a text file once, in blocks of whole lines; `block` is the current block.

    Attributes
    ----------
    block : bytes
        Whole lines in UTF-8; empty at the end of the file.
    number : int
        Number of lines before the block.
    """

    def __init__(self, buffer: io.BufferedReader[Any], source: str, encoding: str | None = None):
        self._buffer, self.source = buffer, source
        if encoding is None and buffer.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            encoding = "UTF-16"
        self._encoding = encoding or "UTF-8"
        self._decoder = None if encoding is None else codecs.getincrementaldecoder(encoding)()
        if buffer.peek(3)[:3] == codecs.BOM_UTF8:
            buffer.read(3)
        self._block_bytes = BLOCK_BYTES
        self._ahead = b""  # the beginning of the next block
        self._convert: Callable[[bytes], bytes] | None = None
        self._bytes_read = self._bytes_decoded = self._lines_decoded = 0
        self.number = 0
        self.block = self._next()

    @property
    def is_last(self) -> bool:
        """Whether the block is the last one of the stream."""
        return not self._ahead and not self._buffer.peek(1)

    def expect_side_columns(self, columns: int) -> None:
        """Read larger blocks from now on if `columns`, the number of columns that are not embedded, is large."""
        self._block_bytes = BLOCK_BYTES * min(max(columns // COLUMNS, 1), LARGEST)

    def advance(self) -> None:
        """Go to the next block."""
        self.number += count_lines(self.block)
        self.block = self._next()

    def convert(self, convert: Callable[[bytes], bytes] | None) -> None:
        """Apply a function to this block and to all blocks that follow."""
        self._convert = convert
        if convert is not None:
            self.block = convert(self.block)

    def extend(self) -> bool:
        """Append the next block to this one; return False at the end of the file."""
        following = self._next()
        self.block += following
        return bool(following)

    def drop(self, lines: int) -> None:
        """Remove the first `lines` lines from the block."""
        dropped = self.block.splitlines(keepends=True)[:lines]
        self.block = self.block[sum(map(len, dropped)) :]
        self.number += lines

    def first(self) -> bytes:
        """Return the first line that is not blank, or b"" if there is none; advance past blocks of only blank lines."""
        while self.block.isspace():
            self.advance()
        return next((line for line in self.block.splitlines() if line.strip()), b"")

    def stream_bytes(self) -> float:
        """Return the size of the block in bytes before conversion to UTF-8; an estimate if the stream is UTF-16."""
        return len(self.block) * self._bytes_read / max(self._bytes_decoded, 1)

    def iterate_rows(self, delimiter: str, width: int | None = None) -> Iterator[tuple[list[str], int]]:
        """Yield the rows of the block that are not blank, and the number of the line on which each ends.

        All rows must have `width` cells; by default as many as the first row.
        """
        reader = csv.reader(self._decoded_lines(), delimiter=delimiter, strict=True, skipinitialspace=True)
        try:
            for row in filter(None, reader):
                line = self.number + reader.line_num
                width = width or len(row)
                if len(row) != width:
                    raise ValueError(
                        f"{self.source}, line {line}: expected {plural(width, 'cell')} as in the first row,"
                        f" got {len(row)}"
                    )
                yield row, line
        except csv.Error as error:
            line = self.number + reader.line_num
            raise CsvError(f"{self.source}, line {line}: {error}; check the quotes up to this line") from error

    def rows(self, delimiter: str, width: int) -> Rows:
        """Return the rows of the block and their line numbers; extend the block if it ends inside a quoted cell."""
        while True:
            try:
                numbered = list(self.iterate_rows(delimiter, width))
                return [row for row, _ in numbered], [line for _, line in numbered]
            except CsvError as error:
                if not (error.is_unclosed and self.extend()):
                    raise

    def _decoded_lines(self) -> Iterator[str]:
        try:
            text = self.block.decode()
        except UnicodeDecodeError as error:
            before = error.object[: error.start]
            character = len(before[max(before.rfind(b"\n"), before.rfind(b"\r")) + 1 :].decode()) + 1
            raise self._not_encoded(error, self.number + count_lines(before), f", character {character}") from error
        return iter(io.StringIO(text, newline=""))

    def _next(self) -> bytes:
        """Read the next bytes and return the lines that they complete, at least one unless the stream has ended."""
        parts, cut = [self._ahead], 0
        while not cut and (raw := self._buffer.read(self._block_bytes)):
            self._bytes_read += len(raw)
            parts.append(self._to_utf8(raw))
            self._bytes_decoded += len(parts[-1])
            # A \r at the very end may be the first half of \r\n.
            cut = max(parts[-1].rfind(b"\n"), parts[-1].rfind(b"\r", 0, -1)) + 1
        if not cut:
            parts.append(self._to_utf8(b""))
            cut = len(parts[-1])
        text = b"".join(parts)
        cut += len(text) - len(parts[-1])
        self._ahead = text[cut:]
        return text[:cut] if self._convert is None else self._convert(text[:cut])

    def _to_utf8(self, raw: bytes) -> bytes:
        """Return `raw`, the next bytes of the stream, in UTF-8; an empty `raw` means that the stream has ended."""
        if self._decoder is None:
            return raw
        try:
            text = self._decoder.decode(raw, final=not raw).encode()
        except UnicodeDecodeError as error:
            raise self._not_encoded(error, self._lines_decoded + error.object[: error.start].count(b"\n")) from error
        self._lines_decoded += count_lines(text)
        return text

    def _not_encoded(self, error: UnicodeDecodeError, lines_before: int, character: str = "") -> ValueError:
        byte = error.object[error.start]
        return ValueError(
            f"{self.source}, line {lines_before + 1}{character}: the byte 0x{byte:02x} is not valid {self._encoding};"
            ' save the file as UTF-8, or name its encoding, often encoding="cp1252" (--encoding cp1252) on Windows'
        )


def check_encoding(encoding: Any) -> None:
    """Raise ValueError unless `encoding` is None or the name of an encoding of text."""
    try:
        if encoding is not None:
            "".encode(encoding)
    except (LookupError, TypeError, ValueError):
        raise ValueError(f"unknown encoding {encoding!r}; use a name such as 'utf-8', 'cp1252' or 'latin-1'") from None


class CsvError(ValueError):
    """Raised for text that Python's csv module does not accept, usually because of its quotes."""

    @property
    def is_unclosed(self) -> bool:
        """Whether the text ended inside a quoted cell."""
        return "unexpected end of data" in str(self.__cause__)


def count_lines(text: bytes) -> int:
    r"""Return the number of line ends: \n, \r\n or \r."""
    count = text.count(b"\n")
    if b"\r" in text:
        count += text.count(b"\r") - text.count(b"\r\n")
    return count
