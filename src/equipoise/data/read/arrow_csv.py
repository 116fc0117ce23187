"""Blocks of CSV, parsed by Apache Arrow, whose numbers agree with float() to the last bit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from .cell_values import MISSING_SPELLINGS

LARGEST_BLOCK = 1 << 30  # bytes; larger than any block, so that Arrow does not split it


def parse_block(block: bytes, delimiter: str, is_text: Sequence[bool], *, gaps: bool = True) -> list[Any] | None:
    """Return the columns of whole lines of CSV as Arrow arrays, or None if Python's csv module must parse them.

    Parameters
    ----------
    block : bytes
        Whole lines in UTF-8.
    delimiter : str
        One character.
    is_text : sequence of bool, shape (columns,)
        Whether each column is parsed as strings; the others are float64.
    gaps : bool, default=True
        Accept missing values in numeric columns, as nulls; this costs Arrow time and memory per column.
    """
    has_quotes = b'"' in block
    if has_quotes and not _is_strict(block, delimiter):
        return None
    import pyarrow
    from pyarrow import compute, csv

    try:
        table = csv.read_csv(pyarrow.BufferReader(block), **_options(delimiter, tuple(is_text), gaps))
    except pyarrow.ArrowInvalid:  # a row of another length, text among numbers, bytes that are not UTF-8
        return None
    columns = [column.chunk(0) for column in table.columns]
    if has_quotes:
        return columns
    # As csv.reader(skipinitialspace=True). Quoted cells keep their spaces; _is_strict rejects spaces before them.
    return [compute.utf8_ltrim(c, characters=" ") if text else c for c, text in zip(columns, is_text, strict=True)]


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
        "parse_options": csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            column_types=dict(zip(names, types, strict=True)),
            null_values=MISSING_SPELLINGS if gaps else [],
            strings_can_be_null=False,
        ),
    }


def _is_strict(block: bytes, delimiter: str) -> bool:
    """Return whether quotes enclose whole cells, so that Arrow and Python's strict csv parser see the same cells.

    Arrow accepts text after a closing quote, which csv treats as an error, and keeps spaces before cells.
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
