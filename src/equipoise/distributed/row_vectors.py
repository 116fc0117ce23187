"""The rows of a table as the vectors that a neighbour search compares, without knowing the other rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._plural import plural
from .._types import Array
from ..arrays.blocks import rows_per_block
from ..arrays.csr import run_on_threads
from ..arrays.namespace import LARGEST, is_integer
from ..neighbors.vectors import EUCLIDEAN, EuclideanVectors, is_euclidean, undefined_for_row

METRICS = (*EUCLIDEAN, "sqeuclidean", "cosine", "correlation")


def check_metric_of_ranks(metric: Any) -> None:
    """Raise ValueError unless the search over ranks supports the metric."""
    if not (isinstance(metric, str) and metric in METRICS):
        raise ValueError(
            f"metric={metric!r} is not supported over ranks; choose from {', '.join(METRICS)}, or search on one machine"
        )


def check_source(source: Any) -> None:
    """Raise ValueError unless a source of rows has at least two rows, one column and numbers."""
    shape, dtype = tuple(source.shape), np.dtype(source.dtype)
    if len(shape) != 2 or not all(is_integer(m) for m in shape) or shape[0] < 2 or shape[1] < 1:
        raise ValueError(f"the source of rows has the shape {shape}; it must have at least two rows and one column")
    if shape[0] >= 2**31:
        raise ValueError(f"the source of rows has {shape[0]:,} rows; at most 2^31 - 1 are supported")
    if dtype.kind not in "biuf":
        raise ValueError(f"the source of rows has the dtype {dtype}; it must have real numbers")


def stored_dtype(source: Any) -> np.dtype[Any]:
    """Return the type in which rows are stored and sent: float32 for floats of up to 32 bits, otherwise float64."""
    dtype = np.dtype(source.dtype)
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)


def read_rows(source: Any, rows: slice) -> Array:
    """Return rows of a source in C order and in the type in which they are stored.

    Raises
    ------
    ValueError
        If the source returns an array of another shape, or a value that is not finite or whose square would overflow.
    """
    expected = rows.stop - rows.start, source.shape[1]
    X = np.asarray(source.read(rows.start, rows.stop))
    if X.shape != expected:
        raise ValueError(f"the source of rows returned an array of shape {X.shape} for {plural(expected[0], 'row')}")
    X = np.ascontiguousarray(X, dtype=stored_dtype(source))
    largest = LARGEST**0.5
    if X.size and not (float(X.max()) <= largest and float(X.min()) >= -largest):  # also for NaN
        i, j = np.argwhere(~(np.abs(X) <= largest))[0]
        kind = "NaN" if np.isnan(X[i, j]) else f"{X[i, j]:g}"
        remedy = "drop such rows, or replace the values" if not np.isfinite(X[i, j]) else "rescale the column"
        raise ValueError(
            f"X contains {kind} at row {rows.start + i}, column {j}; values must be finite and at most {largest:.0e}:"
            f" {remedy}"
        )
    return X


class RowVectors:
    """Converts rows to float64 vectors whose Euclidean distances give the metric, and to float32 in [−1, 1].

    Attributes
    ----------
    metric : str
    center : array of float64, shape (D,)
        Mean of the vectors of all ranks; zero at first.
    scale : float
        Largest coordinate of a vector after the mean is subtracted; one at first.
    """

    def __init__(self, metric: str, D: int):
        self.metric, self.center, self.scale = metric, np.zeros(D), 1.0

    def vectors(self, rows: Array, first: int = 0) -> Array:
        """Return the vectors (m, D) of rows (m, D); `first` is the index of the first row, for error messages."""
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        try:
            return EuclideanVectors(rows, self.metric).base
        except ValueError:
            raise undefined_for_row(first + self._undefined(rows), self.metric) from None

    def unit(self, rows: Array, n_threads: int) -> Array:
        """Return (vectors − center)/scale in float32, of shape (m, D)."""
        result = np.empty(rows.shape, np.float32)
        step = rows_per_block(32 * rows.shape[1])

        def convert(start: int) -> None:
            part = slice(start, start + step)
            result[part] = (self.vectors(rows[part]) - self.center) / self.scale

        run_on_threads(convert, range(0, len(rows), step), n_threads)
        return result

    def distances(self, d2: Array) -> Array:
        """Return distances in the metric from squared distances of vectors, which are overwritten."""
        if is_euclidean(self.metric):
            return np.sqrt(d2, out=d2)
        if self.metric != "sqeuclidean":
            d2 /= 2  # ‖x − y‖² = 2 (1 − cos) for unit vectors
        return d2

    def _undefined(self, rows: Array) -> int:
        """Return the index of the first row that has no vector."""

        def has_vector(row: Array) -> bool:
            try:
                EuclideanVectors(row[None], self.metric)
            except ValueError:
                return False
            return True

        return next(i for i, row in enumerate(rows) if not has_vector(row))
