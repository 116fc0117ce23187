"""Cells of text made into numbers, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter

import numpy as np

from ..._types import Array
from .wanted import as_text, shown

ABSENT = frozenset(("", "na", "n/a", "nan", "#n/a", "null", "none", "?"))  # what exports write, in lower case


def is_absent(cell: str) -> bool:
    """Return whether a cell says that there is no value."""
    return cell.strip().lower() in ABSENT


def is_number(cell: str) -> bool:
    """Return whether a cell is a number, finite or not; Python's digit groups (1_000) are not."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell and not is_absent(cell)


def picked_cells(rows: Sequence[Sequence[str]], picked: Sequence[int]) -> list[str]:
    """Return the picked cells of every row, row by row."""
    if len(picked) == 1:
        return [row[picked[0]] for row in rows]
    if list(picked) == list(range(len(rows[0]))):
        return list(chain.from_iterable(rows))
    return list(chain.from_iterable(map(itemgetter(*picked), rows)))


def numbers(cells: Sequence[str]) -> Array | None:
    """Return cells as numbers, or None if one of them is not a finite number."""
    if "_" in ",".join(cells):  # float() would read 12_34 as 1234
        return None
    try:
        values = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def fault(cell: str) -> str:
    """Return what is wrong with a cell that should be a finite number, and what to do."""
    if is_absent(cell):
        return f"no value ({shown(cell)}); fill it in, drop that row, or leave the column out by choosing others"
    if is_number(cell):
        return f"{shown(cell)} is not a finite number of double precision; correct it or drop that row"
    return f"{shown(cell)} is text among numbers; correct it, or leave the column out by choosing others"


class Growing:
    """A table (n, D) of float64 that grows by blocks, held once: it is enlarged in place and cut to size at the end."""

    GROWTH = 0.25  # of its rows, when the guess was too low; chosen: what is added is memory in use

    def __init__(self, columns: int, guess: int):
        self.X = np.empty((guess, columns))
        self.n = 0

    def add(self, block: Array) -> None:
        end = self.n + len(block)
        if end > len(self.X):
            self._resize(max(end, int(len(self.X) * (1 + self.GROWTH))))
        self.X[self.n : end] = block
        self.n = end

    def done(self) -> Array:
        self._resize(self.n)
        return self.X

    def _resize(self, n: int) -> None:
        self.X.resize((n, self.X.shape[1]), refcheck=False)


class Loose:
    """A column that is not embedded: numbers as long as nothing else comes, else text."""

    SHARED = 10_000  # different texts of which equal ones are kept once; chosen: names of rows are all different

    def __init__(self, *, text: bool = False):
        self.text = text
        self._blocks: list[Array] = []
        self._known: dict[str, str] = {}

    def add(self, cells: Sequence[str]) -> None:
        values = None if self.text else numbers(cells)
        if values is None and not self.text and all(is_number(cell) or is_absent(cell) for cell in cells):
            values = np.array([np.nan if is_absent(cell) else float(cell) for cell in cells])
        if values is None:
            if not self.text:
                self.text, self._blocks = True, [as_text(block) for block in self._blocks]
            values = np.empty(len(cells), dtype=object)
            values[:] = self._shared(cells)
        self._blocks.append(values)

    def done(self) -> Array:
        whole = np.concatenate(self._blocks)
        if not self.text and np.isnan(whole).all():  # an empty column says nothing on what it would hold
            return as_text(whole)
        return whole

    def _shared(self, cells: Sequence[str]) -> list[str]:
        if len(self._known) > self.SHARED:
            return list(cells)
        return [self._known.setdefault(cell, cell) for cell in cells]
