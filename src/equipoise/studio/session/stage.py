"""What a studio is doing while no frames come, in words and as a share."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from ..._types import Array

WORDS = {
    "neighbours": "Finding neighbours",
    "affinities": "Weighing neighbours",
    "initial map": "Laying out the first map",
}


class Count(NamedTuple):
    """What is being done since when, and how much of it is, in units; a total of 0 cannot be counted."""

    words: str
    since: float
    total: int = 0
    unit: str = ""
    done: int = 0

    @property
    def share(self) -> float | None:
        return min(self.done / self.total, 1.0) if self.total else None


class Stage:
    """The present stage of a command, as the steps of the library tell it: a screen of `equipoise.progress`.

    It is told and looked at by several threads: the count is replaced as a whole, and read once for each look.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear("")

    def clear(self, words: str) -> None:
        """Begin a command that is described by `words`; nothing is being done if there are none."""
        with self._lock:
            self._count = Count(words, time.monotonic())

    @property
    def words(self) -> str:
        """What is being done, how much of it, and for how long; empty while nothing is."""
        count = self._count
        if not count.words:
            return ""
        seconds = time.monotonic() - count.since
        parts = [count.words]
        if count.share is not None:
            parts.append(f"{count.share:.0%} of {count.total:,} {count.unit}")
        if seconds >= 1:
            parts.append(f"{seconds:.0f} s")
        return " · ".join(parts) + " …"

    @property
    def share(self) -> float | None:
        """The part that is done, if it can be counted."""
        return self._count.share

    def begin(self, name: str, total: int | None, unit: str, done: int) -> None:
        with self._lock:
            self._count = Count(WORDS.get(name, name), self._count.since, total or 0, unit, done)

    def end(self) -> None:
        with self._lock:
            self._count = self._count._replace(total=0)

    def advance(self, count: int) -> None:
        with self._lock:
            self._count = self._count._replace(done=self._count.done + count)

    def on_iteration(self, iteration: int, loss: float, Y: Array) -> None:
        """Do nothing: the frames show the iteration."""
