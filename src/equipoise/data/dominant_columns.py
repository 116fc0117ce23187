"""Find columns of numbers that hide all others in the Euclidean distance, such as ids and counters of rows."""

from __future__ import annotations

import numpy as np

from .dataset import Dataset

DOMINANT = 0.9  # fraction of the variance of all columns, above which one column hides the others; chosen
FEW_ROWS = 20  # in a smaller table, increasing numbers are often data; chosen


def describe_dominant_column(dataset: Dataset) -> str:
    """Return in words which column makes up nearly all of the variance, and what to do; empty if none does.

    X must be dense and finite.
    """
    X = dataset.X
    n, D = X.shape
    if D < 2 or len(dataset.columns) != D:
        return ""
    mean = X.mean(axis=0)
    variance = np.maximum(np.einsum("ij,ij->j", X, X) / n - mean * mean, 0.0)  # without a copy of the table
    j = int(variance.argmax())
    share = variance[j] / variance.sum() if variance.any() else 0.0
    if not share >= DOMINANT:
        return ""
    values = X[:, j]
    counts = n >= FEW_ROWS and bool((np.diff(values) > 0).all() and (values == np.floor(values)).all())
    what = "counts the rows and " if counts else ""
    name = dataset.columns[j]
    return f"{name!r} {what}makes up {share:.1%} of the variance; --exclude {name!r}, or --standardize all columns"
