"""Tables as sources of rows, and the results of all ranks put together."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


class Table:
    """A source of rows from an array; `read_ranges` are the ranges that were read."""

    def __init__(self, X: Any):
        self.X, self.shape, self.dtype, self.read_ranges = X, X.shape, X.dtype, []

    def read(self, start: int, stop: int) -> Any:
        self.read_ranges.append((start, stop))
        return self.X[start:stop]


def mixture(n: int, D: int, classes: int = 12) -> Any:
    """Return n rows of a Gaussian mixture in random order."""
    rng = np.random.default_rng(3)
    return (3 * rng.standard_normal((classes, D)))[rng.integers(0, classes, n)] + rng.standard_normal((n, D))


def digest(parts: list[Any], *names: str) -> str:
    """Return a digest of the named arrays of all ranks, one after the other."""
    state = hashlib.sha256()
    for name in names:
        state.update(np.concatenate([getattr(part, name) for part in parts]).tobytes())
    return state.hexdigest()


def search_digest(parts: list[Any]) -> tuple[str, float]:
    """Return a digest of the neighbours found by all ranks, and the recall."""
    return digest(parts, "ids", "indices", "distances", "rows"), parts[0].recall


def by_row(parts: list[Any]) -> tuple[Any, Any]:
    """Return the neighbours (n, k) as indices of rows of the table, in the order of the table, and the distances."""
    ids = np.concatenate([part.ids for part in parts])
    indices, distances = (np.concatenate([getattr(p, name) for p in parts]) for name in ("indices", "distances"))
    order = np.argsort(ids)
    return ids[indices][order], distances[order]
