"""Read numbers with decimal commas, which many European spreadsheets write between semicolons."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..._warn import warn

NUMBER = rb"[+-]?\d+(?:,\d+(?:[eE][+-]?\d+)?)?"
COMMA = rb"([+-]?\d+(?:\.\d{3})*),(\d+(?:[eE][+-]?\d+)?)"
GROUPS = rb"[+-]?\d{1,3}(?:\.\d{3})+"  # 1.234, which is 1234 where commas are decimal


def converter(block: bytes, delimiter: str, source: str) -> Callable[[bytes], bytes] | None:
    """Return a function that replaces decimal commas by points in blocks of text; None if the block has none.

    Only cells that are numbers as a whole are changed. A warning says so.
    """
    if delimiter == ",":
        return None
    comma, groups = _whole_cell(COMMA, delimiter), _whole_cell(GROUPS, delimiter)
    if (first := comma.search(block)) is None:
        return None

    def convert(block: bytes) -> bytes:
        if b"." in block and (found := groups.search(block)) is not None:
            raise ValueError(
                f"{source}: {found[0].decode()!r} can mean a thousand times more where {first[0].decode()!r} has a"
                " decimal comma; write all numbers with decimal points and without separators of thousands"
            )
        return comma.sub(lambda found: found[1].replace(b".", b"") + b"." + found[2], block)

    warn(f"{source}: decimal commas, as in {first[0].decode()!r}, are read as decimal points")
    return convert


def separates_numbers(line: bytes, delimiter: bytes) -> bool:
    """Return whether a line consists of numbers, perhaps with decimal commas, between delimiters."""
    cells = [cell.strip().strip(b'"') for cell in line.split(delimiter)]
    return len(cells) > 1 and all(re.fullmatch(NUMBER, cell) for cell in cells)


def _whole_cell(pattern: bytes, delimiter: str) -> re.Pattern[bytes]:
    edge = re.escape(delimiter.encode())
    return re.compile(rb'(?:(?<=[\n\r"' + edge + rb"])|\A)" + pattern + rb'(?=[\n\r"' + edge + rb"]|\Z)")
