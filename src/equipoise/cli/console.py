"""Lines for people: what was read, the loss as it falls, what was written."""

from __future__ import annotations

from typing import TextIO

from .. import progress
from .._types import Array

WIDTH = 80  # columns that sentences are set in
EVERY = 50  # iterations between two lines


class Screen:
    """A stream for people, and a callback that writes the loss line by line, where no bars show it."""

    def __init__(self, stream: TextIO):
        self.stream = stream
        self.total = ""  # how many iterations there will be, such as " of 300"

    def say(self, line: str) -> None:
        """Print a line, below the bar that is there."""
        progress.end_stage()
        print(line, file=self.stream, flush=True)

    def __call__(self, iteration: int, loss: float, Y: Array) -> None:
        if iteration % EVERY == 0:
            self.say(f"iteration {iteration:5d}{self.total}   loss {progress.format_loss(loss)}")


def counted(count: int, thing: str) -> str:
    """Return a number of things in words: 1 row, 1,797 rows."""
    return f"{count:,} {thing}{'s' * (count != 1)}"
