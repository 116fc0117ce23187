"""Plain text: a block in which every line has its cells between delimiters and nothing is in quotes."""

from __future__ import annotations

import csv
from collections.abc import Sequence

import numpy as np

from ..._types import Array
from .cells import numbers
from .decimals import DOT, ROOM, decimals


def plain_cells(block: str, delimiter: str, width: int) -> PlainCells | None:
    """Return the cells of whole lines if all have `width` of them and need no closer look, else None."""
    if '"' in block or (" " in block and (f"{delimiter} " in block or "\n " in block or block.startswith(" "))):
        return None
    if "\r" in block:
        block = block.replace("\r\n", "\n")
    if "\r" in block:
        return None
    if not block.endswith("\n"):
        block += "\n"
    raw = b" " * ROOM + block.encode()
    buffer = np.frombuffer(raw, dtype=np.uint8)
    marks = np.flatnonzero((buffer == ord(delimiter)) | (buffer == ord("\n")) | (buffer == DOT))
    pointed = buffer[marks] == DOT
    ends = marks[~pointed]
    if len(ends) % width:
        return None
    table = buffer[ends].reshape(-1, width)
    if not ((table[:, :-1] == ord(delimiter)).all() and (table[:, -1] == ord("\n")).all()):
        return None
    starts = np.concatenate([[ROOM], ends[:-1] + 1])
    if (ends - starts).max() > csv.field_size_limit():
        return None
    dots = ends.copy()
    dots[np.cumsum(~pointed)[pointed]] = marks[pointed]  # of several in a cell the last
    return PlainCells(raw, buffer, *(place.reshape(-1, width) for place in (starts, ends, dots)))


class PlainCells:
    """The places of cells in bytes: beginning, end and point, (n, width) each."""

    def __init__(self, raw: bytes, buffer: Array, starts: Array, ends: Array, dots: Array):
        self.raw, self.buffer = raw, buffer
        self.starts, self.ends, self.dots = starts, ends, dots

    def __len__(self) -> int:
        return len(self.starts)

    def column(self, j: int) -> list[str]:
        """Return the cells of one column."""
        return self._texts(self.starts[:, j], self.ends[:, j])

    def numbers(self, picked: Sequence[int]) -> Array | None:
        """Return columns as numbers (n, picked), or None if one of the cells is not a finite number."""
        of_all = list(picked) == list(range(self.starts.shape[1]))
        starts, ends, dots = (
            (place if of_all else place[:, picked]).ravel() for place in (self.starts, self.ends, self.dots)
        )
        values, unknown = decimals(self.buffer, starts, ends, dots)
        left = np.flatnonzero(unknown)
        told = numbers(self._texts(starts[left], ends[left]))
        if told is None:
            return None
        values[left] = told
        return values.reshape(len(self), len(picked))

    def _texts(self, starts: Array, ends: Array) -> list[str]:
        raw = self.raw
        return [raw[a:b].decode() for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
