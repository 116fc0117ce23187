"""Parse blocks of CSV with Apache Arrow; the numbers agree with those of float() to the last bit."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any

import numpy as np

from ..._types import Array
from .cell_values import MISSING_SPELLINGS

CODE = r"^\s*[+-]?0[0-9]+\s*$"  # as in `_cells.is_code`, for Arrow
LARGEST_BLOCK = 1 << 30  # bytes; larger than any block, so that Arrow does not split it

Columns = tuple[Array, dict[int, Any]]  # numeric columns (m, k) in order, and the other columns as Arrow strings


def parse_block(
    block: bytes, delimiter: str, width: int, texts: Collection[int], *, gaps: bool = True
) -> Columns | None:
    """Parse a block of CSV and return its columns, or None if Python's csv module must parse the block.

    Parameters
    ----------
    block : bytes
        Whole lines in UTF-8.
    delimiter : str
        One character.
    width : int
        Number of columns.
    texts : collection of int
        Indices of the columns parsed as strings; the others are float64.
    gaps : bool, default=True
        Accept missing values in numeric columns, as NaN. Arrow then needs more time and memory for each column.

    Returns
    -------
    columns : (array, dict) or None
        The numeric columns (m, k), and the other columns as Arrow strings by index.
    """
    has_quotes = b'"' in block
    if has_quotes and not _is_strict(block, delimiter):
        return None
    from pyarrow import compute

    is_text = np.isin(np.arange(width), list(texts)).tolist()
    table = _read_csv(block, delimiter, tuple(is_text), gaps)
    if table is None:
        return None
    numeric = [table.column(j).chunk(0).to_numpy(zero_copy_only=False) for j in range(width) if not is_text[j]]
    numbers = np.array(numeric) if numeric else np.empty((0, len(table)))
    strings = {j: table.column(j).chunk(0) for j in texts}
    if not has_quotes:  # as csv.reader(skipinitialspace=True); _is_strict rejects spaces before quoted cells
        strings = {j: compute.utf8_ltrim(column, characters=" ") for j, column in strings.items()}
    return numbers.T, strings


def parse_wide_block(
    block: bytes, delimiter: str, width: int, texts: Collection[int], *, gaps: bool = True
) -> Columns | None:
    """Return the same as `parse_block`, but without its cost in time and memory for each column.

    The numbers are parsed as one column, with delimiters replaced by newlines. Measured for 20,000 columns and a block
    of 1 MB: 8 ms instead of 290 ms, and 17 kB less memory per column. The result is None in more cases than that of
    `parse_block`, for example if a line is blank.
    """
    ends = _cell_ends(block, delimiter, width)
    if ends is None or len(texts) == width:
        return None
    import pyarrow

    if not block.endswith(b"\n"):
        block += b"\n"
    try:
        cells = {j: _text_cells(block, ends, j) for j in texts}
    except UnicodeDecodeError:
        return None
    numbers = _without_columns(block, ends, texts).replace(delimiter.encode(), b"\n")
    table = _read_csv(numbers, delimiter, (False,), gaps)
    if table is None or len(table) != len(ends) * (width - len(texts)):
        return None
    strings = {j: pyarrow.array(column, pyarrow.string()) for j, column in cells.items()}
    return table.column(0).chunk(0).to_numpy(zero_copy_only=False).reshape(len(ends), -1), strings


def code_cells(delimiter: str) -> re.Pattern[bytes]:
    """Return a pattern that finds cells that may be codes such as "01234" in a block of CSV that follows a newline."""
    edge = re.escape(delimiter).encode()
    before = rb'[\n\r" ' + edge + rb"]"
    # The 0 comes first, because it is found much faster than an edge.
    return re.compile(rb"0(?:(?<=" + before + rb"0)|(?<=" + before + rb'[+-]0))[0-9]+ *(?=[\n\r"' + edge + rb"]|\Z)")


def columns_of_codes(block: bytes, delimiter: str, width: int, columns: Collection[int]) -> dict[int, Any] | None:
    """Return those of `columns` in a block of CSV that contain a code, as Arrow strings; None as in `parse_block`."""
    from pyarrow import compute

    parsed = parse_block(block, delimiter, width, range(width))
    if parsed is None:
        return None
    return {j: parsed[1][j] for j in columns if compute.any(compute.match_substring_regex(parsed[1][j], CODE)).as_py()}


def _cell_ends(block: bytes, delimiter: str, width: int) -> Array | None:
    """Return the positions (rows, width) of the delimiters and newlines that end the cells.

    Return None if a row is blank or does not have `width` cells, if the quotes are not strict (see `_is_strict`), or if
    a row ends with a lone \\r.
    """
    has_quotes = b'"' in block
    if (has_quotes and not _is_strict(block, delimiter)) or block.count(b"\r") != block.count(b"\r\n"):
        return None
    codes = np.frombuffer(block, np.uint8)
    is_newline = codes == ord("\n")
    is_end = is_newline | (codes == ord(delimiter))
    if has_quotes:
        is_end &= np.bitwise_xor.accumulate(codes == ord('"')) == 0
    ends = np.flatnonzero(is_end)
    is_last = is_newline[ends]
    if not block.endswith(b"\n"):
        ends, is_last = np.append(ends, len(block)), np.append(is_last, True)
    rows = len(ends) // width
    if len(ends) != rows * width or np.count_nonzero(is_last) != rows or not is_last[width - 1 :: width].all():
        return None
    return ends.reshape(rows, width)


def _cell_spans(ends: Array, j: int) -> list[tuple[int, int]]:
    """Return where the cells of column j begin and end."""
    starts = ends[:, j - 1] + 1 if j else np.append(0, ends[:-1, -1] + 1)
    return list(zip(starts.tolist(), ends[:, j].tolist(), strict=True))


def _text_cells(block: bytes, ends: Array, j: int) -> list[str]:
    """Return the cells of column j without leading spaces and enclosing quotes."""
    cells = [block[start:end].removesuffix(b"\r").decode().lstrip(" ") for start, end in _cell_spans(ends, j)]
    return [cell[1:-1].replace('""', '"') if cell.startswith('"') else cell for cell in cells]


def _without_columns(block: bytes, ends: Array, columns: Collection[int]) -> bytes:
    """Return a block without the cells of `columns` and without the delimiters or newlines that end these cells."""
    if not columns:
        return block
    keep = np.ones(len(block), dtype=bool)
    for j in columns:
        for start, end in _cell_spans(ends, j):
            keep[start : end + 1] = False
    return np.frombuffer(block, np.uint8)[keep].tobytes()


def _read_csv(block: bytes, delimiter: str, is_text: tuple[bool, ...], gaps: bool) -> Any:
    """Return a block as an Arrow table of one chunk, or None if Arrow rejects it."""
    import pyarrow
    from pyarrow import csv

    try:
        return csv.read_csv(pyarrow.BufferReader(block), **_options(delimiter, is_text, gaps))
    except pyarrow.ArrowInvalid:  # a row of another length, text among numbers, bytes that are not UTF-8
        return None


@lru_cache(maxsize=4)
def _options(delimiter: str, is_text: tuple[bool, ...], gaps: bool) -> dict[str, Any]:
    """Return the arguments of `pyarrow.csv.read_csv`."""
    import pyarrow
    from pyarrow import csv

    names = [str(j) for j in range(len(is_text))]
    types = [pyarrow.string() if text else pyarrow.float64() for text in is_text]
    return {
        # One thread: a second gained less than 10 % and made pyarrow 26 abort at exit in 1 of 20 runs.
        "read_options": csv.ReadOptions(use_threads=False, block_size=LARGEST_BLOCK, column_names=names),
        "parse_options": csv.ParseOptions(
            # An empty line is an empty cell if there is only one column: parse_wide_block counts the cells.
            delimiter=delimiter,
            newlines_in_values=True,
            ignore_empty_lines=len(is_text) > 1,
        ),
        "convert_options": csv.ConvertOptions(
            column_types=dict(zip(names, types, strict=True)),
            null_values=MISSING_SPELLINGS if gaps else [],
            strings_can_be_null=False,
        ),
    }


def _is_strict(block: bytes, delimiter: str) -> bool:
    """Return whether Arrow and Python's strict csv parser see the same cells in a block with quotes.

    They do if quotes enclose whole cells and no cell is preceded by a space. Arrow accepts text after a closing quote,
    which csv treats as an error, and keeps spaces before cells, which csv removes (skipinitialspace).
    """
    parts = block.split(b'"')
    if len(parts) % 2 == 0:  # an odd number of quotes
        return False
    outside = parts[::2]
    edges = f"{delimiter}\r\n".encode()
    if any(part[0] not in edges for part in outside[1:] if part) or any(
        part[-1] not in edges for part in outside[:-1] if part
    ):
        return False
    return not any(
        part.startswith(b" ") or any(bytes((edge, *b" ")) in part for edge in edges) for part in outside if b" " in part
    )
