"""The frames of a run that are kept, so that it can be wound back."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from ..._types import Array

FRAMES = 2000  # kept at most
BYTES = 2**27  # of maps kept at most: 479 of 70,000 points


@dataclass(frozen=True)
class Frame:
    """A map (n, d), not to be written to, with its iteration, and the last loss that was taken up to it."""

    iteration: int
    loss: float
    Y: Array
    measured: int  # the iteration of the loss


class History:
    """Frames of all of a run, evenly spread: when there is no room every second one is dropped, but never the first."""

    def __init__(self, frame: Frame):
        self.room = int(min(FRAMES, max(2, BYTES // frame.Y.nbytes)))
        self.frames = [frame]
        self._gap = 1  # iterations between frames that are kept

    def add(self, frame: Frame) -> None:
        """Keep a frame, if it is far enough from the last that was."""
        if frame.iteration - self.frames[-1].iteration < self._gap:
            return
        self.frames.append(frame)
        if len(self.frames) > self.room:
            self.frames = self.frames[::2]
            self._gap = self.frames[1].iteration - self.frames[0].iteration

    def at(self, iteration: int) -> Frame:
        """Return the last frame kept up to an iteration."""
        place = bisect_right(self.frames, iteration, key=lambda frame: frame.iteration) - 1
        return self.frames[max(place, 0)]

    def cut(self, iteration: int) -> None:
        """Drop what came after an iteration."""
        self.frames = [frame for frame in self.frames if frame.iteration <= iteration] or self.frames[:1]
