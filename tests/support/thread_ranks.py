"""Ranks as threads of one process: everything that groups do on top of the transport, without PyTorch."""

from __future__ import annotations

import threading

import numpy as np

from equipoise.distributed import Group, RankError

REDUCTIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class ThreadGroup(Group):
    """A rank of a group whose ranks are threads."""

    def __init__(self, rank, size, shared):
        super().__init__()
        self.rank, self.size, self.timeout = rank, size, 60.0
        self.hosts = tuple(f"host{r}" for r in range(size))
        self._shared = shared

    def _share(self, value):
        """Return the values of all ranks."""
        try:
            self._shared["values"][self.rank] = value
            self._shared["barrier"].wait(self.timeout)
            values = list(self._shared["values"])
            self._shared["barrier"].wait(self.timeout)
        except threading.BrokenBarrierError:
            raise RankError(*self._shared["failure"]) from None
        return values

    def _publish(self, failure):
        self._shared.setdefault("failure", (failure.rank, failure.host, failure.stage, failure.cause))
        self._shared["barrier"].abort()

    def _headers(self, header):
        return [type(header).decode(row) for row in self._share(header.encode(self.size))]

    def _reduce(self, array, op):
        return REDUCTIONS[op].reduce(self._share(array))

    def _gather(self, parts):
        for part, other in zip(parts, self._share(parts[self.rank].copy()), strict=True):
            part[:] = other

    def _swap(self, sent, received, counts):
        for rank, row in enumerate(self._share([part.copy() for part in sent])):
            received[rank][:] = row[self.rank]
            assert rank == self.rank or counts[rank, self.rank] == len(row[self.rank])

    def _send_from(self, source, data):
        data[:] = self._share(data.copy())[source]


def run_threads(function, size, *args):
    """Return what `function(group, *args)` returned or raised on each of `size` ranks."""
    shared = {"values": [None] * size, "barrier": threading.Barrier(size)}
    results = [None] * size

    def work(rank):
        group = ThreadGroup(rank, size, shared)
        try:
            with group, group.stage(function.__name__):
                results[rank] = function(group, *args)
        except BaseException as error:
            results[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def run_ranks(size, function):
    """Return what `function(group)` returned on each of `size` ranks; raise the first error that is no consequence."""
    results = run_threads(function, size)
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise next((error for error in errors if not isinstance(error, RankError)), errors[0])
    return results
