"""The stored frames of a run, to which it can be rewound."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from ..._types import Array

FRAMES = 2000  # maximum number of stored frames
BYTES = 2**27  # maximum size of the stored maps: 239 maps of 70,000 points in the plane, in float32


@dataclass(frozen=True)
class Frame:
    """A read-only map (n, d) with its iteration and the last loss evaluated up to that iteration."""

    iteration: int
    loss: float
    Y: Array
    measured: int  # the iteration at which the loss was evaluated


class History:
    """Frames spread evenly over a run: when the history is full, every second frame is dropped, but not the first."""

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
