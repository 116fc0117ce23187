"""Ranks as threads of one process: the collectives of `Group` through shared lists and a barrier."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import numpy as np

from equipoise.distributed.group import Group
from equipoise.distributed.message_header import Header

REDUCTIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class _Shared:
    def __init__(self, size: int):
        self.barrier, self.slots = Barrier(size), [None] * size


class ThreadGroup(Group):
    """One of `size` ranks that are threads; `run_ranks` makes them."""

    def __init__(self, shared: _Shared, rank: int, size: int):
        super().__init__()
        self.rank, self.size, self.hosts, self.timeout = rank, size, ("here",) * size, 60.0
        self._shared = shared
        self.sent_bytes = 0

    def _report(self, error: BaseException) -> None:
        self._shared.barrier.abort()

    def _all(self, item: Any) -> list[Any]:
        """Return the items of all ranks; they must not be changed before the next call."""
        self._shared.slots[self.rank] = item
        self._shared.barrier.wait(self.timeout)
        items = list(self._shared.slots)
        self._shared.barrier.wait(self.timeout)
        return items

    def _headers(self, header: Header) -> list[Header]:
        return [Header.decode(row) for row in self._all(header.encode(self.size))]

    def _reduce(self, array: Any, op: str) -> Any:
        return REDUCTIONS[op].reduce(self._all(array.copy()), axis=0)

    def _gather(self, parts: list[Any]) -> None:
        for part, found in zip(parts, self._all(parts[self.rank].copy()), strict=True):
            part[...] = found

    def _swap(self, sent: list[Any], received: list[Any], counts: Any) -> None:
        self.sent_bytes += sum(part.nbytes for rank, part in enumerate(sent) if rank != self.rank)
        for rank, parts in enumerate(self._all([part.copy() for part in sent])):
            if rank != self.rank:
                assert counts[rank, self.rank] == parts[self.rank].nbytes
                received[rank][...] = parts[self.rank]

    def _send_from(self, source: int, data: Any) -> None:
        found = self._all(data.copy())[source]
        data[...] = found


def run_ranks(size: int, work: Callable[[Group], Any]) -> list[Any]:
    """Return work(group) of each of `size` ranks, which run as threads; the first error of a rank is raised."""
    shared, results, errors = _Shared(size), [None] * size, []

    def run(rank: int) -> None:
        try:
            results[rank] = work(ThreadGroup(shared, rank, size))
        except BaseException as error:
            errors.append(error)
            shared.barrier.abort()

    threads = [Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((error for error in errors if type(error).__name__ != "BrokenBarrierError"), errors[0])
    return results
