"""Prints the messages of the command line: what was read, the loss, and what was written."""

from __future__ import annotations

from typing import TextIO

from .. import progress
from .._types import Array

WIDTH = 80  # characters per line
EVERY = 50  # iterations between lines of the loss


class Console:
    """Prints messages. Used as a callback of a method if there is no progress bar, it prints the loss as well."""

    def __init__(self, stream: TextIO):
        self.stream = stream
        self.total = ""  # text after the iteration, such as " of 300"

    def print(self, line: str) -> None:
        """End the progress bar, if any, and print a line below it."""
        progress.end_stage()
        print(line, file=self.stream, flush=True)

    def __call__(self, iteration: int, loss: float, Y: Array) -> None:
        if iteration % EVERY == 0:
            self.print(f"iteration {iteration:5d}{self.total}   loss {progress.format_loss(loss)}")
