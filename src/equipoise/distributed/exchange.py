"""Rows sent to the ranks that own them, and rows fetched from their owners, in rounds of bounded size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._types import Array
from .group import Group
from .partition import Partition

ROUND = 2**24  # bytes that a rank sends in one round, 16 MB; chosen


def most_rounds(group: Group, rounds: int) -> int:
    """Return the largest number of rounds that a rank needs."""
    return int(group.all_reduce(np.array([rounds], np.int64), "max")[0])


def row_bytes(arrays: Sequence[Array]) -> int:
    """Return the number of bytes of one row of arrays (m, ...) together."""
    return sum(int(a.dtype.itemsize * np.prod(a.shape[1:], dtype=np.int64)) for a in arrays)


def send(group: Group, to: Array, arrays: Sequence[Array]) -> list[Array]:
    """Send rows to ranks, and return the rows received, those of rank 0 first, each in the order of its sender.

    Parameters
    ----------
    group : Group
    to : array of int, shape (m,)
        The rank to which each row goes.
    arrays : sequence of array, each of shape (m, ...)
        The rows: what belongs to row i is sent together.
    """
    step = max(1, ROUND // max(1, row_bytes(arrays)))
    received: list[list[list[Array]]] = [[[] for _ in range(group.size)] for _ in arrays]
    for r in range(most_rounds(group, -(-len(to) // step))):
        part = slice(r * step, (r + 1) * step)
        order = np.argsort(to[part], kind="stable")
        cuts = np.searchsorted(to[part][order], np.arange(1, group.size))
        for kept, array in zip(received, arrays, strict=True):
            for source, found in enumerate(group.all_to_all(np.split(array[part][order], cuts))):
                kept[source].append(found)
    return [
        np.concatenate([array[:0], *(found for of_source in kept for found in of_source)])
        for kept, array in zip(received, arrays, strict=True)
    ]


def fetch(group: Group, partition: Partition, own: Array, positions: Array) -> Array:
    """Return rows by position, whichever ranks own them.

    Parameters
    ----------
    group : Group
    partition : Partition
    own : array of shape (count, ...)
        The rows of this rank, in the order of positions.
    positions : array of int64, shape (m,)
        The rows wanted, ascending. The ranks may want different numbers of rows, also none.

    Returns
    -------
    rows : array of shape (m, ...)
    """
    result = np.empty((len(positions), *own.shape[1:]), own.dtype)
    cuts = np.searchsorted(positions, partition.bounds)
    mine = slice(cuts[partition.rank], cuts[partition.rank + 1])
    np.take(own, positions[mine] - partition.own.start, axis=0, out=result[mine], mode="clip")
    if group.size == 1:
        return result
    step = max(1, ROUND // (group.size * max(1, row_bytes([own]))))
    others = [slice(0, 0) if r == partition.rank else slice(cuts[r], cuts[r + 1]) for r in range(group.size)]
    longest = max(wanted.stop - wanted.start for wanted in others)
    for r in range(most_rounds(group, -(-longest // step))):
        parts = [
            slice(min(wanted.start + r * step, wanted.stop), min(wanted.start + (r + 1) * step, wanted.stop))
            for wanted in others
        ]
        asked = group.all_to_all([positions[part] for part in parts])
        found = group.all_to_all([own[at - partition.own.start] for at in asked])
        for part, rows in zip(parts, found, strict=True):
            result[part] = rows
    return result
