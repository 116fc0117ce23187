"""The current work of the studio while no frames are computed, as text and as a fraction."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from ..._types import Array

DESCRIPTIONS = {
    "neighbours": "Finding neighbours",
    "affinities": "Computing affinities",
    "initial map": "Computing the initial map",
}


class Count(NamedTuple):
    """The current work: its description, start time, and progress in units; a `total` of 0 means unknown."""

    description: str
    since: float
    total: int = 0
    unit: str = ""
    done: int = 0

    @property
    def share(self) -> float | None:
        return min(self.done / self.total, 1.0) if self.total else None


class Stage:
    """The current stage of a command; implements `equipoise.progress.Display`.

    Several threads use it. They see no half-updated state, because each update replaces the `Count` by a new one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear("")

    def clear(self, description: str) -> None:
        """Begin a command with this description, or become idle if the description is empty."""
        with self._lock:
            self._count = Count(description, time.monotonic())

    @property
    def description(self) -> str:
        """The current work, its progress and duration; empty if the studio is idle."""
        count = self._count
        if not count.description:
            return ""
        seconds = time.monotonic() - count.since
        parts = [count.description]
        if count.share is not None:
            parts.append(f"{count.share:.0%} of {count.total:,} {count.unit}")
        if seconds >= 1:
            parts.append(f"{seconds:.0f} s")
        return " · ".join(parts) + " …"

    @property
    def share(self) -> float | None:
        """The fraction done; None if the total is unknown."""
        return self._count.share

    def begin(self, name: str, total: int | None, unit: str, done: int) -> None:
        with self._lock:
            self._count = Count(DESCRIPTIONS.get(name, name), self._count.since, total or 0, unit, done)

    def end(self) -> None:
        with self._lock:
            self._count = self._count._replace(total=0)

    def advance(self, count: int) -> None:
        with self._lock:
            self._count = self._count._replace(done=self._count.done + count)

    def on_iteration(self, iteration: int, loss: float, Y: Array) -> None:
        """Do nothing: the frames show the iteration."""
