"""A record of the calls that were answered, and the table made of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from time import perf_counter

from .._plural import plural

ORIGINAL = "the original"


class NotAvailable(Exception):
    """Raised before work starts if a call cannot be answered; the message, which is printed in the table, says why."""


@dataclass
class Calls:
    """The calls of one method that were answered in the same way.

    `name` is the method that was called, `by` what answered: a class of Equipoise, or "the original". `why` is the
    reason if it was the original, `seconds` the time spent in all of them.
    """

    name: str
    by: str
    why: str = ""
    count: int = 0
    seconds: float = 0.0

    @property
    def taken_over(self) -> bool:
        return self.by != ORIGINAL


class Record:
    """The calls since `install`, in the order in which each kind was seen first."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], Calls] = {}
        self._lock = Lock()

    @contextmanager
    def timed(self, name: str, by: str) -> Iterator[None]:
        """Add one call that Equipoise answered, and the time that it takes, even if it raises."""
        start = perf_counter()
        try:
            yield
        finally:
            self.add(name, by, "", perf_counter() - start)

    def add(self, name: str, by: str, why: str, seconds: float) -> None:
        with self._lock:
            row = self._rows.setdefault((name, by, why), Calls(name, by, why))
            row.count += 1
            row.seconds += seconds

    def clear(self) -> None:
        with self._lock:
            self._rows.clear()

    def rows(self) -> list[Calls]:
        """Return the calls taken over, then those that fell back."""
        with self._lock:
            return sorted(self._rows.values(), key=lambda row: not row.taken_over)

    def table(self) -> str:
        """Return the table as text."""
        rows = self.rows()
        if not rows:
            return "equipoise.accel: no calls"
        ours = sum(row.count for row in rows if row.taken_over)
        rest = sum(row.count for row in rows) - ours
        title = f"equipoise.accel: {plural(ours, 'call')} answered by Equipoise, {rest} by the original"
        cells = [("call", "answered by", "calls", "seconds", "why")]
        cells += [(row.name, row.by, str(row.count), f"{row.seconds:.2f}", row.why) for row in rows]
        widths = [max(len(line[j]) for line in cells) for j in range(4)]
        lines = [
            f"{name:<{widths[0]}}  {by:<{widths[1]}}  {count:>{widths[2]}}  {seconds:>{widths[3]}}  {why}".rstrip()
            for name, by, count, seconds, why in cells
        ]
        return "\n".join([title, *lines])


RECORD = Record()  # of this process
