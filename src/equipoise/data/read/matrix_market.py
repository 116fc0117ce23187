"""Read MatrixMarket files with SciPy: sparse or dense matrices with one row per point."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import BinaryIO

import numpy as np
from scipy import io, sparse

from ..._plural import plural
from ..dataset import Dataset
from .decode_errors import decoding
from .finite import check_numbers
from .selection import Selection
from .text_lines import COMPRESSIONS, open_binary

FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
# SciPy before 1.15 has no `spmatrix`, and from 1.18 on its default is deprecated
AS_ARRAY = {"spmatrix": False} if "spmatrix" in signature(io.mmread).parameters else {}
EMPTY = 10**7  # rows or columns that a file may declare whatever its size; chosen: most of them are empty
COMPRESSION = 1100  # bytes that one compressed byte expands to at most; gzip's limit is 1032


def read_matrix_market(path: Path, selection: Selection) -> Dataset:
    """Return the data set of an .mtx or .mtx.gz file: X is CSR for coordinate format, dense for array format."""
    source = str(path)
    selection.require_none(source, "a MatrixMarket file")
    with decoding(source, "MatrixMarket"):
        with open_binary(path) as stream:
            _check_header(_SafeStream(stream), path)
        with open_binary(path) as stream:
            X = io.mmread(_SafeStream(stream), **AS_ARRAY)
        X = sparse.csr_matrix(X, dtype=np.float64) if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
    return selection.dataset(source, check_numbers(X, source), (), {})


def _check_header(stream: _SafeStream, path: Path) -> None:
    """Raise if the values are not real, a symmetric matrix is not square, or the matrix is too large for the file.

    This is checked first, because SciPy allocates memory for the declared matrix before it reads the entries.
    """
    rows, columns, entries, _, field, symmetry = io.mminfo(stream)
    if field not in FIELDS:
        raise ValueError(f"line 1: values of type {field} are not real numbers; store real or integer values")
    if symmetry != "general" and rows != columns:
        raise ValueError(f"its header declares a {symmetry} matrix, which must be square, of shape ({rows}, {columns})")
    size = path.stat().st_size * (COMPRESSION if path.suffix.lower() in COMPRESSIONS else 1)
    if entries > size or max(rows, columns) > max(size, EMPTY):
        raise ValueError(
            f"its header declares a matrix of shape ({rows}, {columns}) with {plural(entries, 'entry', 'entries')},"
            " which is too large for a file of this size; correct the header, or remove empty rows and columns"
        )


class _SafeStream:
    """Reads a binary stream; rejects NUL bytes and adds a missing last newline, because SciPy 1.17 would crash."""

    def __init__(self, stream: BinaryIO):
        self._stream, self._last = stream, b""

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, by default all."""
        data = self._stream.read(size)
        if b"\0" in data:
            raise ValueError("it contains NUL bytes, so it is not a text file")
        if not data and self._last not in (b"", b"\n"):
            data = b"\n"
        self._last = data[-1:]
        return data
