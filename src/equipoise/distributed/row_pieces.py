"""Rows of tables that are stored, or computed, in pieces of several rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._types import Array

LEAST = 2**22  # bytes of a piece: smaller chunks are read several at a time, 4 MB; chosen
KEPT = 2**27  # bytes of the largest piece that is kept, 128 MB; chosen


class Pieces:
    """Reads rows from pieces of consecutive rows, and keeps the piece whose other rows are probably read next.

    A chunk of a file is thus decoded once if blocks of rows are read in ascending order. Pieces of more than `KEPT`
    bytes are not kept: `whole` is false, and only the rows wanted are read, at the cost of decoding a chunk repeatedly.

    Parameters
    ----------
    bounds : array of int64, shape (chunks + 1,)
        The chunks: chunk q has the rows from bounds[q] to bounds[q + 1] − 1. A piece has one or more of them.
    read : callable
        Returns rows from start to stop − 1, of one piece, as an array (stop − start, D).
    row_bytes : int
        Bytes of a row.
    """

    def __init__(self, bounds: Any, read: Callable[[int, int], Array], row_bytes: int):
        self.bounds = _merged(np.asarray(bounds, np.int64), -(-LEAST // max(1, row_bytes)))
        self._read, self._kept = read, (-1, np.empty((0, 0)))
        self.whole = int(np.diff(self.bounds).max(initial=0)) * row_bytes <= KEPT

    def fill(self, result: Array, start: int) -> Array:
        """Fill `result` (m, D) with the rows from `start` on, and return it."""
        at, stop = start, start + len(result)
        while at < stop:
            q = int(np.searchsorted(self.bounds, at, side="right")) - 1
            begin, end = int(self.bounds[q]), int(self.bounds[q + 1])
            until = min(stop, end)
            if self.whole:
                result[at - start : until - start] = self._piece(q)[at - begin : until - begin]
            else:
                result[at - start : until - start] = self._read(at, until)
            if until == end:
                self._kept = -1, np.empty((0, 0))
            at = until
        return result

    def _piece(self, q: int) -> Array:
        """Return the rows of piece q."""
        if self._kept[0] != q:
            self._kept = -1, np.empty((0, 0))  # freed before the next is read
            self._kept = q, self._read(int(self.bounds[q]), int(self.bounds[q + 1]))
        return self._kept[1]


def _merged(bounds: Array, rows: int) -> Array:
    """Return some of the bounds of chunks, so that pieces have at least about `rows` rows."""
    _, first = np.unique(bounds[:-1] // rows, return_index=True)
    return np.append(bounds[:-1][first], bounds[-1])
