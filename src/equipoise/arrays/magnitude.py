"""The largest magnitude in a large array, read on several threads."""

from __future__ import annotations

import numpy as np

from .._types import Array
from .csr import current_threads, run_on_threads

LARGE = 2**20  # entries from which an array is read on several threads; chosen
PARTS = 64  # parts in which these read it; chosen


def largest_magnitude(X: Array) -> float:
    """Return the largest magnitude in X, 0 if X is empty and NaN if it contains NaN."""

    def largest(part: Array) -> float:
        return float(np.maximum(part.max(initial=0.0), -part.min(initial=0.0)))

    if X.size < LARGE:
        return largest(X)
    parts = np.array_split(X, PARTS)
    found = np.empty(PARTS)

    def read(i: int) -> None:
        found[i] = largest(parts[i])

    run_on_threads(read, range(PARTS), current_threads())
    return float(found.max())
