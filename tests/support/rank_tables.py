"""Tables as sources of rows, work on ranks that are threads, and the results of all ranks put together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from equipoise.distributed import Group, RankError, neighbors


class Table:
    """A source of rows from an array; `read_ranges` are the ranges that were read."""

    def __init__(self, X: Any):
        self.X, self.shape, self.dtype, self.read_ranges = X, X.shape, X.dtype, []

    def read(self, start: int, stop: int) -> Any:
        self.read_ranges.append((start, stop))
        return self.X[start:stop]


def on_ranks(size: int, work: Callable[[Group], Any]) -> list[Any]:
    """Return work(group) of each of `size` ranks, which run as threads; raise the error of the rank that failed."""
    from .thread_ranks import run_threads

    results = run_threads(work, size)
    errors = [result for result in results if isinstance(result, Exception)]
    if errors:
        raise next((error for error in errors if not isinstance(error, RankError)), errors[0])
    return results


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


def search_in_cells(group: Group, n: int, D: int, k: int) -> tuple[str, float]:
    """Return `search_digest` of the neighbours of a mixture, searched in cells; for ranks that are processes."""
    neighbors.EXACT_WORK = 0.0
    found = neighbors.find_neighbors(group, Table(mixture(n, D)), k)
    names = "ids", "indices", "distances", "rows"
    gathered = [group.all_gather(getattr(found, name)) for name in names]
    parts = [
        SimpleNamespace(recall=found.recall, **dict(zip(names, part, strict=True)))
        for part in zip(*gathered, strict=True)
    ]
    return search_digest(parts)
