"""Describes what the worker is doing, such as "Finding neighbours", and how much of it is done.

The page shows this over the map while no frames are computed.
"""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from ..._types import Array

DESCRIPTIONS = {
    "neighbours": "Finding neighbours",
    "affinities": "Computing affinities",
    "initial map": "Computing the initial map",
    "eigenvectors": "Computing eigenvectors",
}


class Count(NamedTuple):
    """The current work: its description, its start time `since`, and its progress, `done` of `total` units.

    `total` is 0 if it is unknown.
    """

    description: str
    since: float
    total: int = 0
    unit: str = ""
    done: int = 0

    @property
    def share(self) -> float | None:
        return min(self.done / self.total, 1.0) if self.total else None


class Stage:
    """Records the progress of the worker's current command; implements `equipoise.progress.Display`.

    Several threads use it. They never see a half-updated state, because each update replaces the whole `Count`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear("")

    def clear(self, description: str) -> None:
        """Discard the progress and begin a command with this description; an empty description shows nothing."""
        with self._lock:
            self._count = Count(description, time.monotonic())

    @property
    def description(self) -> str:
        """The text for the page: the current work, its progress and its duration; empty if there is nothing to show."""
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
        """The fraction of the current work that is done; None if the total is unknown."""
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
        """Do nothing, because the titles of the maps show the iteration."""
