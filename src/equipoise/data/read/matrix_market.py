"""MatrixMarket: sparse tables as lists of entries, one row of the matrix per point.

After Boisvert, Pozo & Remington, "The Matrix Market exchange formats: initial design", NISTIR 5935, 1996.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from scipy import sparse

from ..._types import Array, Matrix
from ..dataset import Dataset
from .cells import fault, is_number, numbers
from .opened import opened
from .values import check_table_of_numbers
from .wanted import Wanted

LINES = 20_000  # of a block; chosen: some megabytes as text
VALUES = {"real": 1, "double": 1, "integer": 1, "pattern": 0}  # in an entry, after its row and column


def read_matrix_market(path: Path, wanted: Wanted) -> Dataset:
    """Return the matrix of an .mtx or .mtx.gz file: CSR if it lists its entries, dense if it lists all values."""
    wanted.refuse(str(path), "a MatrixMarket file")
    with opened(path) as stream:
        X = _Matrix(stream, str(path)).read()
    return wanted.dataset(str(path), check_table_of_numbers(X, str(path)), (), {})


class _Matrix:
    """One pass over the lines of a file."""

    def __init__(self, stream: BinaryIO, source: str):
        self.stream, self.source = stream, source
        self.line = self.characters = 0

    def read(self) -> Matrix:
        head = self._next().lower().split()
        if len(head) != 5 or head[:2] != ["%%matrixmarket", "matrix"] or head[2] not in ("coordinate", "array"):
            raise self._wrong(
                "the file does not begin with %%MatrixMarket matrix coordinate or array, type and symmetry"
            )
        layout, field, symmetry = head[2:]
        if field not in VALUES or (layout, field) == ("array", "pattern"):
            raise self._wrong(f"values of type {field} are not real numbers")
        if symmetry not in ("general", "symmetric", "skew-symmetric") or (layout, symmetry[0]) == ("array", "s"):
            raise self._wrong(f"{symmetry} matrices in {layout} form are not read; write it as general")
        size = self._next()
        while size.startswith("%") or size.isspace():
            size = self._next()
        return self._array(size) if layout == "array" else self._coordinates(size, VALUES[field], symmetry)

    def _array(self, size: str) -> Array:
        n, D = self._sizes(size, 2)
        values = self._body(1, n * D).ravel()
        return np.ascontiguousarray(values.reshape(D, n).T)  # it is listed by columns

    def _coordinates(self, size: str, values: int, symmetry: str) -> Matrix:
        n, D, entries = self._sizes(size, 3)
        if symmetry != "general" and n != D:
            raise self._wrong(f"a {symmetry} matrix has as many rows as columns, not {n} and {D}")
        body = self._body(2 + values, entries)
        if max(n, D) > self.characters:  # makes no sense, and would take the memory
            raise self._wrong(f"{n} rows and {D} columns are more than the file has characters")
        places = body[:, :2]
        outside = (places < 1) | (places > (n, D)) | (places != np.floor(places))
        if outside.any():
            i, j = places[outside.any(axis=1)][0]
            raise self._wrong(f"an entry at row {i:g}, column {j:g} of a matrix of {n} rows and {D} columns")
        i, j = (places - 1).astype(np.int64).T
        x = body[:, 2] if values else np.ones(entries)
        if symmetry != "general":
            off, sign = i != j, -1 if symmetry == "skew-symmetric" else 1
            i, j, x = np.r_[i, j[off]], np.r_[j, i[off]], np.r_[x, sign * x[off]]
        return sparse.csr_matrix((x, (i, j)), shape=(n, D))

    def _next(self) -> str:
        for line in islice(self._lines(), 1):
            return line
        raise self._wrong("the file ends there")

    def _lines(self) -> Iterator[str]:
        for line in self.stream:
            self.line += 1
            self.characters += len(line)
            yield line.decode("utf-8", errors="replace")

    def _sizes(self, text: str, count: int) -> list[int]:
        words = text.split()
        if len(words) != count or not all(word.isdecimal() and len(word) <= 18 for word in words):
            raise self._wrong(f"{count} whole numbers are needed, the size of the matrix")
        return [int(word) for word in words]

    def _body(self, width: int, count: int) -> Array:
        """Return all lines that follow, `count` of them, each of `width` numbers."""
        blocks, found, lines = [np.empty((0, width))], 0, self._lines()
        while block := [line.split() for line in islice(lines, LINES)]:
            first = self.line - len(block) + 1
            rows = [row for row in block if row]
            found += len(rows)
            values = numbers([word for row in rows for word in row]) if {*map(len, rows)} <= {width} else None
            if values is None:
                raise self._fault(block, first, width)
            blocks.append(values.reshape(-1, width))
        if found != count:
            raise self._wrong(f"the file ends after {found} entries, but its head speaks of {count}")
        return np.concatenate(blocks)

    def _fault(self, block: list[list[str]], first: int, width: int) -> ValueError:
        for at, row in enumerate(block, start=first):
            if row and len(row) != width:
                return ValueError(f"{self.source}, line {at}: {len(row)} numbers where {width} are needed")
            for word in row:
                if not is_number(word) or not np.isfinite(float(word)):
                    return ValueError(f"{self.source}, line {at}: {fault(word)}")
        raise AssertionError("a line that is wrong was found and lost")

    def _wrong(self, what: str) -> ValueError:
        return ValueError(f"{self.source}, line {self.line}: {what}")
