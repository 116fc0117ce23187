"""Converts the user's data to arrays of numbers, with error messages that name the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from .._types import Matrix
from .sparse_structure import check_structure

# How messages of scikit-learn begin that its conventions require of every estimator; they are kept unchanged.
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
        If X is not numeric, does not have two dimensions, has too few rows, or is a sparse matrix with inconsistent
        arrays.
    """
    if sparse.issparse(X):
        X = check_structure(X, name)
    try:
        return check_array(X, dtype=np.float64, ensure_all_finite=False, **settings)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # the last is PyTorch's
        if str(error).startswith(CONVENTIONAL):
            raise
        kind = type(error) if isinstance(error, TypeError | ValueError) else ValueError
        raise kind(f"{name} ({type(X).__name__}) is not a table of numbers (n, D): {error}") from error
