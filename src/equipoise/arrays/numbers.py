"""Tables of numbers: conversion of what the user passes, and the range of the values."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from .._types import Array, Matrix
from .csr import entry_place
from .sparse_structure import check_structure

LARGEST = 1e300  # sums, differences and products by small numbers stay below the largest float64, 1.8e308
# How scikit-learn's own messages begin; its conventions require them of every estimator.
CONVENTIONAL = ("Expected 2D", "Found array", "Complex data", "Sparse data", "A sparse matrix", "X has")


def as_numbers(X: Any, name: str = "X", **settings: Any) -> Matrix:
    """Return X as float64 in two dimensions, dense or sparse; NaN and inf are allowed.

    Parameters
    ----------
    X : array-like or sparse matrix
    name : str, default="X"
        Name of X in error messages.
    **settings
        Further arguments of scikit-learn's `check_array`.

    Raises
    ------
    ValueError or TypeError
        If X is not numeric, has another number of dimensions or too few rows, or is a sparse matrix with inconsistent
        arrays.
    """
    if sparse.issparse(X):
        X = check_structure(X, name)
    try:
        return check_array(X, dtype=np.float64, ensure_all_finite=False, **settings)
    except (TypeError, ValueError, OverflowError) as error:
        if str(error).startswith(CONVENTIONAL):
            raise
        kind = type(error) if isinstance(error, TypeError | ValueError) else ValueError
        raise kind(f"{name} ({type(X).__name__}) is not a table of numbers (n, D): {error}") from error


def check_finite(X: Matrix, name: str, columns: Any = None, power: int = 1) -> None:
    """Raise if X contains NaN, inf or a value whose power would overflow, naming the first such entry.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, m)
    name : str
        Name of X in the message.
    columns : sequence of str, default=None
        Names of the columns.
    power : int, default=1
        The highest power of the values that is computed: 2 for distances, 4 for products of Gram matrices. Magnitudes
        up to 1e300^(1/power) are accepted.
    """
    values = X.data if sparse.issparse(X) else X
    largest = LARGEST ** (1 / power)
    if not values.size or (float(values.max()) <= largest and float(values.min()) >= -largest):  # not so for NaN
        return
    bad = np.flatnonzero(~np.isfinite(values.ravel()))
    if bad.size:
        raise not_finite(name, X, bad, columns)
    far = np.flatnonzero(np.abs(values.ravel()) > largest)
    i, j = entry_place(X, far[0])
    raise ValueError(
        f"{name} contains {values.flat[far[0]]:g} at row {i}, {column_label(j, columns)}{_more(far)}; values beyond"
        f" {largest:.0e} would overflow: rescale the column, or divide {name} by a constant"
    )


def not_finite(name: str, X: Matrix, bad: Array, columns: Any = None) -> ValueError:
    """Return the error for the entries of X numbered `bad`, which are NaN or infinite."""
    i, j = entry_place(X, bad[0])
    value = (X.data if sparse.issparse(X) else X.ravel())[bad[0]]
    kind = "NaN" if np.isnan(value) else f"{value:g}"
    remedy = "; drop these rows or fill them in" if name == "X" else ""
    return ValueError(f"{name} contains {kind} at row {i}, {column_label(j, columns)}{_more(bad)}{remedy}")


def _more(bad: Array) -> str:
    return f", and {len(bad) - 1} more such entries" if len(bad) > 1 else ""


def column_label(j: int, columns: Any = None) -> str:
    """Return how messages refer to a column: by its index, and by its name if it has one."""
    return f"column {j}" if columns is None else f"column {j} ({str(columns[j])!r})"
