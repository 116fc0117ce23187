"""What a studio is doing while no frames come, in words and as a share."""

from __future__ import annotations

import time

from ..._types import Array

WORDS = {
    "neighbours": "Finding neighbours",
    "affinities": "Weighing neighbours",
    "initial map": "Laying out the first map",
}


class Stage:
    """The present stage of a command, as the steps of the library tell it: a screen of `equipoise.progress`."""

    def __init__(self) -> None:
        self.clear("")

    def clear(self, words: str) -> None:
        """Begin a command that is described by `words`; nothing is being done if there are none."""
        self._words, self._total, self._done, self._since = words, 0, 0, time.monotonic()

    @property
    def words(self) -> str:
        """What is being done, how much of it, and for how long; empty while nothing is."""
        if not self._words:
            return ""
        seconds = time.monotonic() - self._since
        parts = [self._words]
        if self._total:
            parts.append(f"{self.share:.0%} of {self._total:,} points")
        if seconds >= 1:
            parts.append(f"{seconds:.0f} s")
        return " · ".join(parts) + " …"

    @property
    def share(self) -> float | None:
        """The part that is done, if it can be counted."""
        return min(self._done / self._total, 1.0) if self._total else None

    def begin(self, name: str, total: int | None, unit: str, done: int) -> None:
        self._words, self._total, self._done = WORDS.get(name, name), total or 0, done

    def end(self) -> None:
        self._total = 0

    def advance(self, count: int) -> None:
        self._done += count

    def tell(self, iteration: int, loss: float, Y: Array) -> None:
        """Nothing: the frames of a studio tell it."""
