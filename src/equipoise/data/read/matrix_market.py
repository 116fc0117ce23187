"""MatrixMarket: sparse tables as lists of entries, one row of the matrix per point."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import io, sparse

from ..dataset import Dataset
from .broken import decoding
from .values import check_table_of_numbers
from .wanted import Wanted

RATIO = 1032  # deflate makes no more than that of a byte (Deutsch, RFC 1951: 258 bytes of two bits)


def read_matrix_market(path: Path, wanted: Wanted) -> Dataset:
    """Return the matrix of an .mtx or .mtx.gz file: CSR if it lists entries, dense if it lists all."""
    source = str(path)
    wanted.refuse(source, "a MatrixMarket file")
    with decoding(source, "MatrixMarket"):
        rows, columns, entries, *_ = io.mminfo(path)
    characters = path.stat().st_size * (RATIO if path.suffix.lower() == ".gz" else 1)
    if max(rows, columns, entries) > characters:
        raise ValueError(f"{source} is cut short: its head speaks of {rows} rows, {columns} columns, {entries} entries")
    with decoding(source, "MatrixMarket"):
        A = io.mmread(path)
        X = sparse.csr_matrix(A) if sparse.issparse(A) else np.asarray(A)
    return wanted.dataset(source, check_table_of_numbers(X, source), (), {})
