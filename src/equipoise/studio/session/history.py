"""Stores frames of a run (maps at some of its iterations), so that the run can be rewound to them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from ..._types import Array

FRAMES = 2000  # maximum number of stored frames
BYTES = 2**27  # maximum size of the stored maps: 239 maps of 70,000 points in the plane, in float32


@dataclass(frozen=True)
class Frame:
    """The map Y (n, d) of a run at one iteration, read-only, with the last loss evaluated up to that iteration."""

    iteration: int
    loss: float
    Y: Array
    measured: int  # the iteration at which the loss was evaluated


class History:
    """Stores frames at even intervals over a run. When it is full, it drops every second frame, but never the first."""

    def __init__(self, frame: Frame):
        self.capacity = int(min(FRAMES, max(2, BYTES // frame.Y.nbytes)))
        self.frames = [frame]
        self._gap = 1  # minimum iterations between stored frames

    def add(self, frame: Frame) -> None:
        """Store a frame if enough iterations have passed since the last stored one."""
        if frame.iteration - self.frames[-1].iteration < self._gap:
            return
        self.frames.append(frame)
        if len(self.frames) > self.capacity:
            self.frames = self.frames[::2]
            self._gap = self.frames[1].iteration - self.frames[0].iteration

    def at(self, iteration: int) -> Frame:
        """Return the last stored frame at or before an iteration."""
        index = bisect_right(self.frames, iteration, key=lambda frame: frame.iteration) - 1
        return self.frames[max(index, 0)]

    def cut(self, iteration: int) -> None:
        """Drop the frames after an iteration, but keep the first frame."""
        self.frames = [frame for frame in self.frames if frame.iteration <= iteration] or self.frames[:1]
